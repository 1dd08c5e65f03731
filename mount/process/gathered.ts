/** Something that is done once for all that happens within a moment. */
import type { Cancel, Clock } from '../host.ts';

export interface Gathered {
  /** It is done in `afterMs`, unless it is to be done sooner already. */
  soon(): void;
  /** It is not done any more, whoever asks. */
  stop(): void;
}

export function createGathered(clock: Pick<Clock, 'timer'>, afterMs: number, act: () => void): Gathered {
  let isStopped = false;
  let cancel: Cancel | undefined;
  return {
    soon() {
      if (isStopped) return;
      cancel ??= clock.timer(afterMs, () => {
        cancel = undefined;
        act();
      });
    },
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
