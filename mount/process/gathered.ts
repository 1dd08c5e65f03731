/** Something that is done once for all that happens within a moment. */
import type { Cancel, Clock } from '../host.ts';

export interface Gathered {
  /**
   * It is done in `afterMs`, unless it is to be done sooner already. When it has taken long the last time, it is done
   * later, at most a second: whatever happens on a large node, a twentieth of the time goes into it.
   */
  soon(): void;
  /** It is not done any more, whoever asks. */
  stop(): void;
}

const PAUSES_OF_ITS_LENGTH = 20;
const PAUSE_MS_MAX = 1_000;

export function createGathered(
  clock: Pick<Clock, 'nowMs' | 'timer'>,
  afterMs: number,
  act: () => void,
): Gathered {
  let isStopped = false;
  let cancel: Cancel | undefined;
  let tookMs = 0;
  return {
    soon() {
      if (isStopped) return;
      const pauseMs = Math.min(PAUSES_OF_ITS_LENGTH * tookMs, PAUSE_MS_MAX);
      cancel ??= clock.timer(Math.max(afterMs, pauseMs), () => {
        cancel = undefined;
        const startMs = clock.nowMs();
        act();
        tookMs = clock.nowMs() - startMs;
      });
    },
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
