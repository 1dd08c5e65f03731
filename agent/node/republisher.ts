/** Counts the rounds in which volumes of drivers with `requiresRepublish` are published again (KEP-1855). */
import type { Cancel, Clock } from '../../mount/host.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';

export interface Republisher {
  /**
   * The number of this round. As long as the wish has such a driver, `again` is called after the interval, once, for
   * the next one; without one there is no timer.
   */
  epochFor(desired: Pick<DesiredObjects, 'drivers'>, again: () => void): number;
  stop(): void;
}

export function createRepublisher(clock: Pick<Clock, 'timer'>, intervalMs: number): Republisher {
  let epoch = 0;
  let cancel: Cancel | undefined;
  let stopped = false;

  function disarm(): void {
    cancel?.();
    cancel = undefined;
  }

  return {
    epochFor({ drivers }, again) {
      const isNeeded = [...drivers.values()].some(({ requiresRepublish }) => requiresRepublish);
      if (!isNeeded) disarm();
      else if (!stopped) {
        // A wish that changes often must not put the round off.
        cancel ??= clock.timer(intervalMs, () => {
          cancel = undefined;
          epoch += 1;
          again();
        });
      }
      return epoch;
    },
    stop() {
      stopped = true;
      disarm();
    },
  };
}
