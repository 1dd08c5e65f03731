/** How long a pod waits for a volume, from the wish to its mount, by the kubelet's name. */
import type { Clock } from '../../mount/host.ts';
import type { PublicationKey, VolumeId } from '../../plugins/volume.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import { createHistogram, STORAGE_BOUNDS } from './histogram.ts';

export interface MountTimes {
  /** This is wanted now, and that is there. */
  wanted(desired: Pick<DesiredState, 'volumes'>, actual: ActualState): void;
  /** A place is there; counted once for as long as it is wanted. */
  mounted(volume: VolumeId, place: PublicationKey, plugin: string): void;
  text(): string;
}

/** As the kubelet calls it (pkg/volume/util/operationexecutor). */
const OPERATION = 'overall_volume_mount';

/** What stands when it is first wanted, as after a restart, is waited for by nobody. */
export function createMountTimes(clock: Pick<Clock, 'nowMs'>): MountTimes {
  const times = createHistogram({
    name: 'volume_operation_total_seconds',
    help: 'From the moment a pod wants a volume to the moment it has it, in seconds.',
    bounds: STORAGE_BOUNDS,
  });
  /** By volume and place: since when it is waited for, `counted` when it is not any more. */
  let waits = new Map<string, number | 'counted'>();

  return {
    wanted({ volumes }, actual) {
      const now = new Map<string, number | 'counted'>();
      for (const [volume, { publications }] of volumes) {
        const here = actual.get(volume)?.publications;
        for (const place of publications.keys()) {
          const name = nameOf(volume, place);
          const isThere = here?.get(place)?.presence.kind === 'present';
          now.set(name, waits.get(name) ?? (isThere ? 'counted' : clock.nowMs()));
        }
      }
      waits = now;
    },
    mounted(volume, place, plugin) {
      const name = nameOf(volume, place);
      const sinceMs = waits.get(name);
      if (sinceMs === undefined || sinceMs === 'counted') return;
      waits.set(name, 'counted');
      times.observe({ operation_name: OPERATION, plugin_name: plugin }, (clock.nowMs() - sinceMs) / 1_000);
    },
    text: times.text,
  };
}

function nameOf(volume: VolumeId, place: PublicationKey): string {
  return `${place} ${volume}`;
}
