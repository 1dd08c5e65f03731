/** Trying to admit the driver behind one socket: one attempt per life of the socket, repeated after a back-off. */
import type { Failure, Result } from '../../../mount/failure.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';
import { doubledMs, spreadMs } from '../../../mount/process/back-off.ts';
import type { Admitted } from './handshake.ts';

const RETRY = { firstMs: 100, maxMs: 10_000 } as const;
/** A socket that is replaced while its driver hangs: so many abandoned handshakes may run out beside the new one. */
const HANDSHAKES_PER_SOCKET_MAX = 3;

export type AdmissionClock = Pick<Clock, 'nowMs' | 'timer'> & { random(): number };

export interface Verdict {
  admit(admitted: Admitted): void;
  /** The try failed, and another one follows after the back-off. */
  turnAway(failure: Failure): void;
}

export interface Admission {
  /** `key` names the life of the socket it is about: while an attempt with this key is under way it goes on. */
  begin(key: string, run: () => Promise<Result<Admitted>>): void;
  /** Forgets the back-off: the next try is made as soon as the spacing of tries allows. */
  hurry(): void;
  /** Gives the attempt up; an answer still on its way is dropped. */
  end(): void;
}

interface Attempt {
  readonly key: string;
  readonly run: () => Promise<Result<Admitted>>;
  failures: number;
  endedAtMs: number;
  retry: Cancel | undefined;
}

export function createAdmission(clock: AdmissionClock, verdict: Verdict): Admission {
  let current: Attempt | undefined;
  let handshakes = 0;

  async function carryOut(attempt: Attempt): Promise<void> {
    if (handshakes < HANDSHAKES_PER_SOCKET_MAX) {
      handshakes += 1;
      const admitted = await attempt.run();
      handshakes -= 1;
      if (current !== attempt) return;
      if (admitted.ok) {
        current = undefined;
        return verdict.admit(admitted.value);
      }
      verdict.turnAway(admitted.failure);
    }
    attempt.failures += 1;
    attempt.endedAtMs = clock.nowMs();
    schedule(attempt);
  }

  /** Counted from the end of the last try, so that a storm of hints makes some ten tries a second at most. */
  function schedule(attempt: Attempt): void {
    attempt.retry?.();
    // After a hint, too: the first wait is how far two tries are apart at least.
    const waitMs = spreadMs(doubledMs(Math.max(attempt.failures, 1), RETRY), clock.random());
    attempt.retry = clock.timer(Math.max(0, attempt.endedAtMs + waitMs - clock.nowMs()), () => {
      attempt.retry = undefined;
      if (current === attempt) void carryOut(attempt);
    });
  }

  return {
    begin: (key, run) => {
      if (current?.key === key) return;
      current?.retry?.();
      current = { key, run, failures: 0, endedAtMs: Number.NEGATIVE_INFINITY, retry: undefined };
      void carryOut(current);
    },
    hurry: () => {
      if (current === undefined) return;
      current.failures = 0;
      if (current.retry !== undefined) schedule(current);
    },
    end: () => {
      current?.retry?.();
      current = undefined;
    },
  };
}
