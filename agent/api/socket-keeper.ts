/** The socket of the API stays where it was made: who cleans up may delete it, and nobody could ask any more. */
import type { Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Cancel, type Clock, type Host, nameIn, parentOf } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import type { Log } from '../../mount/process/log.ts';

export interface SocketKeeperParts {
  readonly socket: AbsolutePath;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly watch: Host['watch'];
  readonly log: Log;
  /** What is at the path; undefined: nothing. */
  readonly identify: () => Promise<string | undefined>;
  /** Listens at the path, where that is free or nobody answers; what `identify` says of it from then on. */
  readonly listen: () => Promise<Result<string>>;
}

export interface SocketKeeper {
  /** From now on, when the socket is there: `made` is what `listen` has said. */
  begin(made: string): void;
  /** Settles when it is not made any more, with what of ours may be at the path. */
  end(): Promise<string | undefined>;
}

/** Whoever deletes it again and again is not followed faster than that. */
const REST_MS = 1_000;
/** After it was made anew: a directory that is removed again before it is watched again is told to nobody. */
const UNTOLD_LOOK_MS = 30_000;
const RETRY_LIMITS = { firstMs: 2_000, maxMs: 60_000 };

/** Guarantees: what another process answers on is never replaced. That no other agent has our root, the lock says. */
export function createSocketKeeper(parts: SocketKeeperParts): SocketKeeper {
  const { socket, clock, watch, log, identify, listen } = parts;
  const name = nameIn(socket);
  const retries = new Retries(RETRY_LIMITS);
  let ours: string | undefined;
  let lastComplaint: string | undefined;
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  let isEnded = false;
  let underWay = Promise.resolve();
  let cancelLook: Cancel = () => {};
  let cancelUntoldLook: Cancel = () => {};
  let cancelWatch: Cancel = () => {};

  function lookIn(delayMs: number): void {
    if (isEnded) return;
    cancelLook();
    cancelLook = clock.timer(Math.max(delayMs, restsUntilMs - clock.nowMs()), () => {
      underWay = underWay.then(look);
    });
  }

  async function look(): Promise<void> {
    const found = await identify();
    if (isEnded || (found !== undefined && found === ours)) return;
    const listening = await listen();
    restsUntilMs = clock.nowMs() + REST_MS;
    if (listening.ok) {
      ours = listening.value;
      retries.reset();
      lastComplaint = undefined;
      cancelUntoldLook();
      cancelUntoldLook = clock.timer(UNTOLD_LOOK_MS, () => lookIn(0));
      log.warn('socket of the API was gone, and is there again', { socket });
      return;
    }
    const { code, message } = listening.failure;
    if (message !== lastComplaint) log.error('socket of the API is gone', { socket, code, message });
    lastComplaint = message;
    lookIn(retries.nextMs());
  }

  return {
    begin(made) {
      ours = made;
      cancelWatch = watch(
        parentOf(socket),
        () => lookIn(0),
        (changed) => changed === name,
      );
    },
    async end() {
      isEnded = true;
      cancelWatch();
      cancelLook();
      await underWay;
      cancelUntoldLook();
      return ours;
    },
  };
}
