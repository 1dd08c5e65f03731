/**
 * Places where a publication may be that nobody knows, and the volumes it may be of: those are not unstaged, all others
 * are. Pure. The kernel tells by the file system: a bind of what is staged has its device.
 */
import type { Failure } from '../../mount/failure.ts';
import { type AbsolutePath, isBelow } from '../../mount/host.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';
import { isDevice, stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import type { ActualState, ActualVolume } from '../model/actual-state.ts';

/** A mount, or a block device, where pods have volumes; nobody knows whose it is. */
export interface UnattributedMount extends Pick<MountEntry, 'device' | 'root'> {
  readonly path: AbsolutePath;
}

export interface UnattributedMounts {
  readonly mounts: readonly UnattributedMount[];
  /** What could not be read, each with its path as blocker: a publication there may be of any volume. */
  readonly unread: readonly Failure[];
  /** As the kernel had it when the places were looked at. */
  readonly table: MountTable;
}

/** What could not be looked at. */
export interface UnreadPlace {
  readonly path: AbsolutePath;
  readonly failure: Failure;
}

/** Why the pod may have something of which nobody knows: the first of the places where it may. */
export function whyPodUnknown(
  pod: PodUid,
  unread: readonly UnreadPlace[],
  layout: Layout,
): Failure | undefined {
  return unread.find(({ path }) => mayHaveIn(pod, path, layout))?.failure;
}

/** Its own directory, what all pods share, and what is above them; nothing of pods is where volumes are staged. */
function mayHaveIn(pod: PodUid, path: AbsolutePath, layout: Layout): boolean {
  const own = layout.podDirectory(pod);
  const isIn = (directory: AbsolutePath): boolean => path === directory || isBelow(path, directory);
  const shared = [layout.blockDevices, layout.localDevices];
  const isAbove = [own, ...shared].some((directory) => isBelow(directory, path));
  return isAbove || isIn(own) || (shared.some(isIn) && !isIn(layout.blockStages));
}

/** What a volume was seen staged from, by belief and by the kernel. */
export function stagedDevices(volume: ActualVolume, table: MountTable, layout: Layout): readonly string[] {
  const { spec, stagedMount } = volume;
  const staging = isDevice(spec) ? undefined : stagingPathOf(spec, layout);
  if (staging === undefined) return [];
  const mounted = table.named(staging).map(({ device }) => device);
  return stagedMount === undefined ? mounted : [stagedMount.device, ...mounted];
}

/** By device: what volumes are staged from, and which part of it each has. */
export type StagedMounts = ReadonlyMap<string, readonly StagedMount[]>;

interface StagedMount extends Pick<MountEntry, 'root'> {
  readonly volume: VolumeId;
}

/** As one sees it in that table. Made once for each look, because every volume asks whose the mounts are. */
export function stagedMounts(volumes: ActualState, table: MountTable, layout: Layout): StagedMounts {
  const staged = new Map<string, StagedMount[]>();
  for (const { spec } of volumes.values()) {
    const staging = isDevice(spec) ? undefined : stagingPathOf(spec, layout);
    const shown = staging === undefined ? undefined : table.at(staging).at(-1);
    if (shown === undefined) continue;
    const { device, root } = shown;
    const ofDevice = staged.get(device) ?? [];
    ofDevice.push({ volume: spec.id, root });
    staged.set(device, ofDevice);
  }
  return staged;
}

export interface PossibleUse {
  readonly unknown: UnattributedMounts;
  /** What all volumes were staged from when the places were looked at. */
  readonly staged: StagedMounts;
  /** All that the volume was ever seen staged from: what was published then may be there still. */
  readonly stagedFrom: ReadonlySet<string>;
}

/** Why the volume may be published where nobody knows; undefined when it is surely not. */
export function possibleUseOf(volume: VolumeId, possibleUse: PossibleUse): Failure | undefined {
  const { mounts, unread } = possibleUse.unknown;
  const [first] = unread;
  if (first !== undefined) {
    const message = `a place that could not be read may be a publication of this volume: ${first.message}`;
    return { ...first, message, effect: 'none' };
  }
  const suspect = mounts.find((mount) => mayBeOf(volume, mount, possibleUse));
  if (suspect === undefined) return undefined;
  const { path, device } = suspect;
  const message =
    `nothing tells whose mount ${path} is (device ${device}), and it may be a publication of this volume, ` +
    'which is not unstaged under it';
  return { code: 'mount-foreign', message, effect: 'none', blocker: path };
}

/**
 * A block device is of one volume, so another one's is not ours. Of anonymous file systems (major 0: NFS, FUSE, btrfs)
 * the number tells less: two mounts of one export may have two, and then a volume must be known that has this one.
 */
function mayBeOf(volume: VolumeId, mount: UnattributedMount, possibleUse: PossibleUse): boolean {
  const { stagedFrom } = possibleUse;
  if (stagedFrom.has(mount.device)) return true;
  const isOthers = isStagedByAnother(volume, mount, possibleUse);
  if (isAnonymous(mount.device)) return !isOthers || stagedFrom.size === 0;
  return !isOthers && (stagedFrom.size === 0 || [...stagedFrom].some(isAnonymous));
}

function isStagedByAnother(volume: VolumeId, mount: UnattributedMount, { staged }: PossibleUse): boolean {
  const ofDevice = staged.get(mount.device) ?? [];
  return ofDevice.some((one) => one.volume !== volume && isWithin(mount.root, one.root));
}

function isWithin(root: string, parent: string): boolean {
  return root === parent || isBelow(root as AbsolutePath, parent as AbsolutePath);
}

function isAnonymous(device: string): boolean {
  return device.startsWith('0:');
}
