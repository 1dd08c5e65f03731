/** Looking when asked, however often that is: one look at a time, one more when asked meanwhile, never in a storm. */
import type { Cancel, Clock } from '../../../mount/host.ts';

export interface PacedLook {
  /** Settles when nobody asks any more. Asked during a look it looks again, `spacingMs` after that one began. */
  ask(): Promise<void>;
  /** No look begins any more; what waits for one waits for good. */
  stop(): void;
}

export function createPacedLook(clock: Clock, spacingMs: number, look: () => Promise<void>): PacedLook {
  let asked = false;
  let stopped = false;
  let looking: Promise<void> | undefined;
  let cancelPause: Cancel | undefined;
  let begunMs = Number.NEGATIVE_INFINITY;

  async function pause(): Promise<void> {
    const waitMs = begunMs + spacingMs - clock.nowMs();
    if (waitMs > 0) {
      await new Promise<void>((resolve) => {
        cancelPause = clock.timer(waitMs, resolve);
      });
    }
  }

  async function lookWhileAsked(): Promise<void> {
    while (asked && !stopped) {
      await pause();
      if (stopped) return;
      asked = false;
      begunMs = clock.nowMs();
      await look();
    }
    looking = undefined;
  }

  return {
    ask: () => {
      asked = true;
      looking ??= lookWhileAsked();
      return looking;
    },
    stop: () => {
      stopped = true;
      cancelPause?.();
    },
  };
}
