/** What is mounted where a pod is to have a volume, and nobody has set it up. */
import type { MountTable } from '../../mount/mount-table.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { Belief } from '../model/belief.ts';
import {
  type ActualVolume,
  onTheGround,
  type Presence,
  untoldPlace,
  type VolumeOutcome,
} from '../model/actual-state.ts';
import type { DesiredState, DesiredVolume } from '../model/desired-state.ts';
import type { Operation } from '../model/operation.ts';
import type { Log } from '../../mount/process/log.ts';

export interface UnknownPlacesParts {
  readonly layout: Pick<Layout, 'mountPoint'>;
  readonly log: Log;
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly touch: (volume: VolumeId) => void;
  /** As Gate: before, a pod may have a volume that no record tells (RC-18). */
  readonly placesRead: (volume: VolumeId) => boolean;
}

/**
 * A file system that is dead stays so until its last mount has gone, so one that was made anew and is dead at once is
 * mounted elsewhere. What a call has made of which no record tells any more may be at a place that is not set up
 * before the stage is well: that is given back to its driver.
 */
export interface UnknownPlaces {
  ended(volume: ActualVolume, operation: Operation, outcome: VolumeOutcome): void;
  /** As Lookout. */
  look(table: MountTable, changed: ReadonlySet<VolumeId>): void;
}

const FOUND: Presence = {
  kind: 'unsure',
  because: {
    code: 'late-effect',
    message: 'something is mounted there that nobody is known to have set up: it is given back',
    effect: 'unknown',
  },
};

export function createUnknownPlaces(parts: UnknownPlacesParts): UnknownPlaces {
  const { belief, desired, layout, log } = parts;
  /** As they were staged in vain. */
  const dead = new Map<VolumeId, ActualVolume>();

  function found(volume: ActualVolume, wanted: DesiredVolume, table: MountTable): ActualVolume {
    const publications = new Map(volume.publications);
    for (const [key, { spec }] of wanted.publications) {
      const top = table.at(layout.mountPoint(volume.spec, spec)).at(-1);
      // A stranger's, mostly, and none that dies: the volume must not wait for him.
      if (publications.has(key) || top === undefined || top.fsType === 'tmpfs') continue;
      publications.set(key, untoldPlace(spec, FOUND));
    }
    return publications.size === volume.publications.size ? volume : { ...volume, publications };
  }

  return {
    ended(volume, { kind }, outcome) {
      if (kind !== 'stage') return;
      if (outcome.kind === 'done') dead.delete(volume.spec.id);
      else if (outcome.failure.death !== undefined) dead.set(volume.spec.id, volume);
    },
    look(table, changed) {
      for (const [id, { spec, needs }] of dead) {
        const wanted = desired().volumes.get(id);
        if (wanted === undefined) dead.delete(id);
        if (wanted === undefined || changed.has(id) || parts.isBusy(id) || !parts.placesRead(id)) continue;
        const volume = belief.volumes.get(id) ?? onTheGround(spec, needs);
        const raised = found(volume, wanted, table);
        if (raised === volume) continue;
        log.warn('mount found that nobody set up', { volume: id });
        belief.reconstruct(raised);
        parts.touch(id);
      }
    },
  };
}
