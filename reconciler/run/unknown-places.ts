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

interface StagedInVain extends Pick<ActualVolume, 'spec' | 'needs'> {
  /** The device of the file system that was found dead. */
  readonly device: string;
}

export function createUnknownPlaces(parts: UnknownPlacesParts): UnknownPlaces {
  const { belief, desired, layout, log } = parts;
  const dead = new Map<VolumeId, StagedInVain>();

  /** `device`: a stranger's is not given back, and the volume must not wait for him. */
  function found(
    volume: ActualVolume,
    wanted: DesiredVolume,
    device: string,
    table: MountTable,
  ): ActualVolume {
    const publications = new Map(volume.publications);
    for (const [key, { spec }] of wanted.publications) {
      if (publications.has(key)) continue;
      const stack = table.at(layout.mountPoint(volume.spec, spec));
      if (stack.some((mount) => mount.device === device)) publications.set(key, untoldPlace(spec, FOUND));
    }
    return publications.size === volume.publications.size ? volume : { ...volume, publications };
  }

  return {
    ended({ spec, needs }, { kind }, outcome) {
      if (kind !== 'stage') return;
      if (outcome.kind === 'done') return void dead.delete(spec.id);
      const device = outcome.failure.deadDevice;
      if (device !== undefined) dead.set(spec.id, { spec, needs, device });
    },
    look(table, changed) {
      for (const [id, { spec, needs, device }] of dead) {
        const wanted = desired().volumes.get(id);
        if (wanted === undefined) dead.delete(id);
        if (wanted === undefined || changed.has(id) || parts.isBusy(id) || !parts.placesRead(id)) continue;
        const volume = belief.volumes.get(id) ?? onTheGround(spec, needs);
        const raised = found(volume, wanted, device, table);
        if (raised === volume) continue;
        log.warn('mount found that nobody set up', { volume: id });
        belief.reconstruct(raised);
        parts.touch(id);
      }
    },
  };
}
