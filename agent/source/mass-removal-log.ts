/** Logs that most pods vanished from a source at once, and how that ended for all of them: one line each. */
import type { Clock } from '../../mount/host.ts';
import type { PodUid } from '../../plugins/volume.ts';
import type { Log } from '../../mount/process/log.ts';
import { createVanishedTally } from './vanished-tally.ts';
import { massRemovalIn, type DesiredObjects } from './desired-objects.ts';

export interface MassRemovalLog {
  /** The wish as it is now. */
  note(desired: Pick<DesiredObjects, 'pods' | 'reports'>): void;
}

const FROM_MANIFESTS = 'most pods vanished from the manifests at once, kept for now';
const FROM_CLUSTER = 'most pods vanished from the cluster at once, kept for now';

export function createMassRemovalLog(log: Log, clock: Pick<Clock, 'nowMs'>): MassRemovalLog {
  /** All that were kept since there were none. */
  let told: ReadonlySet<PodUid> = new Set();
  const tally = createVanishedTally();
  return {
    note({ pods, reports }) {
      const massRemoval = massRemovalIn({ reports });
      const end = tally.note(massRemoval?.pods ?? new Set(), pods);
      if (end !== undefined) log.warn('vanished pods decided on', { ...end });
      if (massRemoval === undefined) {
        told = new Set();
        return;
      }
      for (const { massRemoval: one, cluster } of reports) {
        if (one === undefined || [...one.pods].every((pod) => told.has(pod))) continue;
        log.warn(cluster === undefined ? FROM_MANIFESTS : FROM_CLUSTER, {
          vanished: one.pods.size,
          pods: pods.size,
          waitMs: Math.max(0, Math.round(one.untilMs - clock.nowMs())),
        });
      }
      // They go and come back one after the other, as their manifests are read.
      told = new Set([...told, ...massRemoval.pods]);
    },
  };
}
