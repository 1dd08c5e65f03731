/** A driver that returns ends the back-off of its volumes; one that comes and goes does not end it each time. */
import type { Cancel, Clock } from '../../mount/host.ts';

/** A driver that crashes at every call comes back about once a second; its volumes are not tried as often (DR-25). */
const PACE_MS = 10_000;

export interface BackOffReset {
  /** Resets now, or as soon as the last time is `PACE_MS` ago; it is never left out. */
  ask(driver: string): void;
  close(): void;
}

export function createBackOffReset(clock: Clock, reset: (driver: string) => void): BackOffReset {
  const lastMs = new Map<string, number>();
  const waiting = new Map<string, Cancel>();

  function now(driver: string): void {
    waiting.delete(driver);
    lastMs.set(driver, clock.nowMs());
    reset(driver);
  }

  return {
    ask(driver) {
      if (waiting.has(driver)) return;
      const last = lastMs.get(driver);
      const dueMs = last === undefined ? 0 : last + PACE_MS - clock.nowMs();
      if (dueMs <= 0) now(driver);
      else
        waiting.set(
          driver,
          clock.timer(dueMs, () => now(driver)),
        );
    },
    close() {
      for (const cancel of waiting.values()) cancel();
      waiting.clear();
    },
  };
}
