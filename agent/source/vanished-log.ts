/** Logs who is kept because his manifest vanished while nobody looked, and how that ended for all: one line each. */
import type { Clock } from '../../mount/host.ts';
import type { PodUid } from '../../plugins/volume.ts';
import type { Log } from '../../mount/process/log.ts';
import type { HeldPods } from './vanished-hold.ts';
import { createVanishedTally } from './vanished-tally.ts';
import type { DesiredObjects } from './desired-objects.ts';

export interface VanishedLog {
  /** The wish as it is now, and who is held by it. */
  note(desired: Pick<DesiredObjects, 'pods'>, held: HeldPods): void;
}

export function createVanishedLog(log: Log, clock: Pick<Clock, 'nowMs'>): VanishedLog {
  let told: ReadonlySet<PodUid> = new Set();
  const tally = createVanishedTally();
  return {
    note({ pods }, held) {
      const isNews = [...held.keys()].some((pod) => !told.has(pod));
      told = new Set(held.keys());
      if (isNews) {
        const untilMs = Math.max(...[...held.values()].map((one) => one.untilMs));
        log.warn('manifests vanished while nobody looked, their pods are kept for now', {
          vanished: held.size,
          pods: pods.size,
          waitMs: Math.max(0, Math.round(untilMs - clock.nowMs())),
          command: 'mooring forget --all',
        });
      }
      const end = tally.note(told, pods);
      if (end !== undefined) log.warn('kept pods decided on', { ...end });
    },
  };
}
