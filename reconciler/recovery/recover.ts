/**
 * The first belief after a start: records crossed with what the kernel shows. Pure.
 *
 * Everything is `unsure` until proven. The proof of a mount: same boot, and the mount one sees on its path has the
 * identity noted when the driver said OK and the kernel agreed; of a block volume also, the pod's link leads to the
 * device noted then, and it is held. What cannot be proven that way is done again when wanted (all verbs are
 * idempotent) and undone when not.
 */
import { strangerFailure } from '../../mount/ground.ts';
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import { sightOf } from '../../mount/mount-sight.ts';
import type { MountTable } from '../../mount/mount-table.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { isDevice, stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PublicationKey, PublicationSpec, VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import {
  ABSENT,
  type ActualPublication,
  type ActualState,
  type ActualVolume,
  PRESENT,
  type Presence,
  RESTARTED,
} from '../model/actual-state.ts';
import { presenceFrom, type RecordedPresence, type VolumeRecord } from './record.ts';
import type { ShownDevices } from './pod-device.ts';
import { areSubpathsBound, type BoundSubpaths, boundSubpaths } from './subpath-sight.ts';
import { holdLost, mountLost } from './verify.ts';
import { withArrivedRaised, withBootEnded } from '../model/tombstone.ts';

export interface RecoveryInput {
  readonly records: readonly VolumeRecord[];
  /** Undefined when it could not be read: then nothing is proven. */
  readonly table: MountTable | undefined;
  /** The devices that the publications of block volumes show; one that is missing here is not proven. */
  readonly shown: ShownDevices;
  readonly bootId: string;
  readonly layout: Layout;
}

export function recover(input: RecoveryInput): ActualState {
  const state = new Map<VolumeId, ActualVolume>();
  const { table, layout } = input;
  const bound: BoundSubpaths = table === undefined ? new Map() : boundSubpaths(table, layout);
  for (const record of input.records) {
    const volume = recoverVolume(record, input, bound);
    state.set(record.spec.id, arrivedRaised(volume, input));
  }
  return state;
}

/** What came while nobody looked is given back. */
function arrivedRaised(volume: ActualVolume, { table, layout }: RecoveryInput): ActualVolume {
  return table === undefined ? volume : withArrivedRaised(volume, table, layout);
}

function recoverVolume(record: VolumeRecord, input: RecoveryInput, bound: BoundSubpaths): ActualVolume {
  const { spec } = record;
  const sameBoot = record.bootId === input.bootId;
  const proven = (
    recorded: RecordedPresence,
    path: AbsolutePath | undefined,
    mount: MountIdentity | undefined,
  ): Presence => {
    if (recorded === 'absent') return ABSENT;
    if (recorded !== 'present' || !sameBoot || path === undefined || mount === undefined) return RESTARTED;
    return provenPresence(input.table, path, mount);
  };
  const staging = stagingPathOf(spec, input.layout);
  const publications = new Map<PublicationKey, ActualPublication>();
  for (const entry of record.publications) {
    const { spec: publication, presence, mount, ended } = entry;
    const held = proven(presence, input.layout.mountPoint(spec, publication), mount);
    const now = held.kind === 'present' ? wholePresence(input, record, publication, mount, bound) : held;
    if (now.kind === 'absent') continue;
    // What is in files that the wish brings is in no record: it is looked at before they are written again.
    const generation = traitsOf(spec).hasContent === true ? undefined : '';
    publications.set(publication.key, {
      spec: publication,
      presence: now,
      generation: now.kind === 'present' ? generation : undefined,
      // What it was mounted from is searched for users in quarantine, proven or not.
      mount: sameBoot ? mount : undefined,
      ...(sameBoot && ended === true ? { ended } : {}),
      ...(isUntold(input, spec, sameBoot, entry) ? { untold: true } : {}),
    });
  }
  const isUsed = [...publications.values()].some(({ presence }) => presence.kind === 'present');
  // Staged without a mount, as block volumes are: what is published from it shows that it is there still.
  const isShownStaged = record.staged === 'present' && sameBoot && record.stagedMount === undefined && isUsed;
  const volume: ActualVolume = {
    spec,
    reconstructed: record.guessed === true ? true : undefined,
    needs: record.needs,
    attached: record.attached === 'absent' ? presenceFrom('absent') : RESTARTED,
    staged: isShownStaged ? PRESENT : proven(record.staged, staging, record.stagedMount),
    publishContext: record.publishContext,
    attachedNode: record.attachedNode,
    // A reboot ends all that was set up under it.
    attachmentUid: sameBoot ? record.attachmentUid : undefined,
    // A mount of another boot says nothing of what a driver mounts today.
    stagedMount: sameBoot ? record.stagedMount : undefined,
    stagedFor: record.stagedFor,
    // A disk that is not mounted after a reboot is missed by it.
    ...(record.wasMountPoint === true ? { wasMountPoint: true } : {}),
    publications,
    sizeBytes: record.sizeBytes,
    // A reboot ends all use of it.
    refusedExpansion:
      sameBoot || record.refusedExpansion?.because !== 'in-use' ? record.refusedExpansion : undefined,
    // A reboot ends every mount and every dirty page: the node is clean (B-4).
    quarantine: sameBoot ? record.quarantine : undefined,
    ...(record.tombstones === undefined ? {} : { tombstones: record.tombstones }),
    // A reboot ends the driver that was given secrets, and what it made with them.
    ...(sameBoot ? { isInherited: true } : {}),
  };
  return sameBoot ? volume : withBootEnded(volume);
}

/**
 * Never noted as answered OK in this boot, and nothing is there to be seen: an OK may be younger than the record, and a
 * record of this boot may be lost. What a pod had in another boot it has no more.
 */
function isUntold(
  { table, layout }: RecoveryInput,
  spec: VolumeSpec,
  sameBoot: boolean,
  { spec: place, untold }: VolumeRecord['publications'][number],
): boolean {
  const shown = table?.named(layout.mountPoint(spec, place)).length;
  return sameBoot ? untold === true && shown === 0 : (shown ?? 0) === 0;
}

/** Its mount is there; so has to be all else that its pod was given. */
function wholePresence(
  { shown, layout }: RecoveryInput,
  { spec }: VolumeRecord,
  publication: PublicationSpec,
  mount: MountIdentity | undefined,
  bound: BoundSubpaths,
): Presence {
  if (!areSubpathsBound(bound, publication, layout)) return RESTARTED;
  if (!isDevice(spec)) return PRESENT;
  const { link, held } = layout.devicePublication(spec, publication);
  const seen = shown.get(link);
  if (seen?.device === undefined || seen.device !== mount?.blockDevice) return RESTARTED;
  if (seen.isHeld === false) return holdLost(held);
  return seen.isHeld === true ? PRESENT : RESTARTED;
}

/** Layers below what one sees do not matter; under somebody else's mount it is what it was when that is gone. */
function provenPresence(table: MountTable | undefined, path: AbsolutePath, mount: MountIdentity): Presence {
  if (table === undefined) return RESTARTED;
  const sight = sightOf(table, path, mount);
  if (sight.kind === 'covered') return { kind: 'unsure', because: strangerFailure(path, sight.by) };
  if (sight.kind === 'gone') return mountLost(path);
  return mount.parentId === undefined || mount.parentId === sight.entry.parentId ? PRESENT : RESTARTED;
}
