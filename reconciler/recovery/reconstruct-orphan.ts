/** What is mounted, or left, in the places of volumes and that nothing explains; and what of it is gone again. */
import { temporaryPath } from '../../mount/temporary-file.ts';
import type { Failure } from '../../mount/failure.ts';
import { hiddenBelow, strangerFailure } from '../../mount/ground.ts';
import { type AbsolutePath, type Host, isBelow, parentOf } from '../../mount/host.ts';
import type { MountEntry, MountTable } from '../../mount/mount-table.ts';
import { isToldElsewhere, orphanAt } from '../../plugins/kinds/found-volume.ts';
import { traitsOfPlugin } from '../../plugins/kinds/kinds.ts';
import { isDevice, orphanPathOf, stagingPathOf } from '../../plugins/kinds/volume-questions.ts';
import type { BlockPublicationLayout, Layout } from '../../plugins/layout/layout.ts';
import { ownerBelow } from '../../plugins/layout/owner.ts';
import type { PodVolumeOwner } from '../../plugins/layout/path-owner.ts';
import { type PublicationSpec, RECONSTRUCTED, type VolumeId, type VolumeSpec } from '../../plugins/volume.ts';
import type { ActualVolume } from '../model/actual-state.ts';
import { reconstructedPublication, type LayoutReading } from './reconstructed.ts';
import { latePlaces } from '../model/tombstone.ts';
import type { UnattributedMount, UnattributedMounts } from './unattributed-mounts.ts';

/**
 * Mounts in the places of volumes that nothing explains: they can only be taken down. Those that somebody mounted over
 * are told as what could not be read, and what lies over them is nobody's volume.
 */
export function findOrphans({ layout, known, disk, table, reconstructed }: LayoutReading): void {
  const unread = disk.unreadDirectories();
  const hidden = hiddenBelow(table, layout.root);
  const hiding = new Set(hidden.values());
  for (const target of unexplained(table, [...known.values(), ...reconstructed.list()], layout)) {
    const [first, ...more] = table.named(target);
    const by = first === undefined ? undefined : hidden.get(first);
    if (by !== undefined && more.every((one) => hidden.has(one))) {
      disk.hide({ path: target, failure: strangerFailure(target, by) });
    }
    if (by !== undefined || [first, ...more].some((one) => one !== undefined && hiding.has(one))) continue;
    // Its papers may tell whose it is as soon as they can be read.
    if (unread.some(({ path }) => isBelow(target, path) || isBindOf(target, path, layout))) continue;
    const place = placeAt(target, layout);
    if (place !== undefined) {
      reconstructed.place(orphanAt(target), false, reconstructedPublication(place.pod, place.specName));
    }
  }
}

/** It is bound of what has its directory there, or of one of the volumes of the pod that could not be listed. */
function isBindOf(target: AbsolutePath, unread: AbsolutePath, layout: Layout): boolean {
  const [bind, of] = [layout.ownerOf(target), layout.ownerOf(unread)];
  if (bind?.kind !== 'subpath') return false;
  if (of?.kind === 'pod') return of.pod === bind.pod;
  return of?.kind === 'volume' && of.pod === bind.pod && of.specName === bind.specName;
}

/** The volume of a pod that has its directory, the mount of its driver, or the bind of a part of it at the path. */
function placeAt(path: AbsolutePath, layout: Layout): Pick<PodVolumeOwner, 'pod' | 'specName'> | undefined {
  const owner = layout.ownerOf(path);
  return owner?.kind === 'subpath' ? owner : volumeAt(path, layout);
}

/** The same without the binds of parts, which no driver makes. */
function volumeAt(path: AbsolutePath, layout: Layout): PodVolumeOwner | undefined {
  const owner = layout.ownerOf(path);
  const isPlace = owner?.kind === 'volume' && (owner.part === 'directory' || owner.part === 'mount');
  return isPlace ? owner : undefined;
}

/** Mount points in the places of volumes, staged or in pods, that none of the volumes explains. */
function unexplained(
  table: MountTable,
  volumes: readonly ActualVolume[],
  layout: Layout,
): readonly AbsolutePath[] {
  const explained = new Set<AbsolutePath>();
  const explain = (spec: VolumeSpec, place: PublicationSpec): void => {
    explained.add(layout.mountPoint(spec, place));
    // What is bound there and is not wanted goes when the volume is published, or with it.
    if (place.subpaths !== undefined || place.origin === RECONSTRUCTED)
      explained.add(layout.subpathDirectory(place));
    if (isDevice(spec)) explained.add(layout.devicePublication(spec, place).published);
  };
  for (const volume of volumes) {
    const { spec, publications } = volume;
    const staging = stagingPathOf(spec, layout);
    if (staging !== undefined) explained.add(staging);
    for (const { spec: place } of publications.values()) explain(spec, place);
    for (const late of latePlaces(volume)) explain(late.spec, late.publication);
  }
  // What is mounted inside a volume is that volume's.
  const isExplained = (path: AbsolutePath, directory: AbsolutePath): boolean => {
    return isBelow(path, directory) && (explained.has(path) || isExplained(parentOf(path), directory));
  };
  const places = [layout.pods, layout.stages];
  const targets = new Set(table.entries.map(({ target }) => target));
  return [...targets].filter((target) => {
    const within = places.find((directory) => isBelow(target, directory));
    return within !== undefined && !isExplained(target, within);
  });
}

/**
 * Adds what is mounted where volumes are staged and neither record nor paper explains. Its driver is not known, and
 * nobody else can say what an umount(8) would leave below it, so it is told and left as it is. True: there is any.
 * `disk` has read what is staged.
 */
export async function findLeftStages(reading: LayoutReading): Promise<boolean> {
  const found = leftStages(reading);
  // A scan may take minutes: what was taken down meanwhile is mounted nowhere any more.
  const now = found.length === 0 ? undefined : await reading.host.readMountTable(reading.layout.root);
  const table = now?.ok === true ? now.value : reading.table;
  for (const path of leftStages({ ...reading, table })) reading.reconstructed.staged(orphanAt(path));
  return found.length > 0;
}

function leftStages(reading: LayoutReading): readonly AbsolutePath[] {
  const { disk, table, layout } = reading;
  const hidden = hiddenBelow(table, layout.root);
  const unread = [...disk.unreadDirectories(), ...disk.hidden()].map(({ path }) => path);
  const left: AbsolutePath[] = [];
  for (const path of [...untoldStages(reading)].sort()) {
    const isUnread = [...unread, ...left].some((one) => path === one || isBelow(path, one));
    // Under somebody's mount nobody can look for its papers.
    if (!isUnread && !table.named(path).every((one) => hidden.has(one))) left.push(path);
  }
  return left;
}

function untoldStages({ table, known, reconstructed, layout }: LayoutReading): readonly AbsolutePath[] {
  const others = [...known.values(), ...reconstructed.list()].filter(
    ({ spec }) => !isLeftStage(spec, layout),
  );
  return unexplained(table, others, layout).filter((path) => isStage(path, layout));
}

/** Where a driver mounts to stage. */
function isStage(path: AbsolutePath, layout: Layout): boolean {
  const owner = layout.ownerOf(path);
  if (owner?.kind === 'stage' || owner?.kind === 'old-stage') return owner.part === 'mount';
  return owner?.kind === 'block-stage';
}

/** It was told by `findLeftStages`. */
export function isLeftStage(spec: VolumeSpec, layout: Layout): boolean {
  const path = orphanPathOf(spec);
  return path !== undefined && isStage(path, layout);
}

/**
 * Those of the volumes that are orphans and have nothing at their place: no mount, no directory, no file; and of what
 * is staged no mount that is unexplained still.
 */
export async function goneOrphans(
  reading: LayoutReading,
  volumes: readonly ActualVolume[],
): Promise<readonly VolumeId[]> {
  const gone: VolumeId[] = [];
  let untold: ReadonlySet<AbsolutePath> | undefined;
  for (const { spec, publications } of volumes) {
    const path = orphanPathOf(spec);
    if (path === undefined) continue;
    const [place] = publications.values();
    const isLeft = isLeftStage(spec, reading.layout);
    if (isLeft) untold ??= new Set(untoldStages(reading));
    const isThere = isLeft
      ? untold?.has(path)
      : await isAnythingAt(reading, pathsOf(path, place?.spec, reading.layout));
    if (!isThere) gone.push(spec.id);
  }
  return gone;
}

async function isAnythingAt(
  { table, disk }: LayoutReading,
  paths: readonly AbsolutePath[],
): Promise<boolean> {
  for (const path of paths) if (table.named(path).length > 0 || (await disk.exists(path))) return true;
  return false;
}

/** All that an orphan at the path may have left: its papers lie beside the mount point. */
function pathsOf(
  path: AbsolutePath,
  place: PublicationSpec | undefined,
  layout: Layout,
): readonly AbsolutePath[] {
  if (isBelow(path, layout.pods)) {
    return volumeAt(path, layout)?.part === 'mount' ? [path, parentOf(path)] : [path];
  }
  if (place === undefined) return [path];
  const { held, published, link } = layout.blockPublication(place);
  return [held, temporaryPath(held), published, link];
}

/**
 * What may be a publication that nobody knows: what is mounted of the orphans and where papers could not be read. A
 * driver is never asked to publish anywhere else, and what is not mounted is not published.
 */
export async function unknownPlaces(
  { host, layout, disk, table }: LayoutReading,
  orphans: readonly ActualVolume[],
): Promise<UnattributedMounts> {
  const unread = [...disk.unlisted()];
  const mounts: UnattributedMount[] = [];
  const isPlace = (path: AbsolutePath): boolean => isToldElsewhere(volumeAt(path, layout)?.plugin ?? '');
  for (const { directory, failure } of disk.unreadPapers()) {
    if (!isBelow(directory, layout.pods)) unread.push(failure);
    else mounts.push(...mountsAt(table, ({ target }) => isBelow(target, directory)));
  }
  for (const { spec, publications } of orphans) {
    const path = orphanPathOf(spec);
    if (path === undefined || isLeftStage(spec, layout)) continue;
    if (isBelow(path, layout.pods)) {
      if (isPlace(path) || layout.ownerOf(path)?.kind === 'subpath')
        mounts.push(...mountsAt(table, ({ target }) => target === path));
      continue;
    }
    const [place] = publications.values();
    const device =
      place === undefined ? undefined : await deviceAt(host, layout.blockPublication(place.spec));
    if (device !== undefined) mounts.push({ path, device, root: '/' });
    else unread.push({ ...NOTHING_TELLS, blocker: path });
  }
  return { mounts, unread, table };
}

/** Its volume directory tells of what kind a pod's volume is; whatever else is hidden may be of any. */
export function mayBeOfDriver(path: AbsolutePath, root: AbsolutePath): boolean {
  const owner = ownerBelow(root, path);
  return owner?.kind !== 'volume' || traitsOfPlugin(owner.plugin)?.driver !== undefined;
}

const NOTHING_TELLS: Failure = {
  code: 'mount-foreign',
  message: 'what is left of a block volume there does not tell of which',
  effect: 'none',
};

function mountsAt(table: MountTable, isMeant: (entry: MountEntry) => boolean): readonly UnattributedMount[] {
  return table.entries.filter(isMeant).map(({ target, device, root }) => ({ path: target, device, root }));
}

async function deviceAt(
  host: Pick<Host, 'deviceOf'>,
  { held, published }: BlockPublicationLayout,
): Promise<string | undefined> {
  for (const path of [held, published]) {
    const device = await host.deviceOf(path);
    if (device.ok && device.value !== undefined) return device.value;
  }
  return undefined;
}
