/**
 * What the kubelet's layout on disk tells of volumes that no record explains: a kubelet's node taken over, a record
 * lost or corrupt. Everything found is `unsure`: wanted, it is done again; unwanted, it is undone.
 *
 * Reads names only, down to the volume directories, never into a volume. Global (staging) mounts are scanned as well,
 * which the kubelet does not (k/k#121937, k/k#101791).
 */
import { type Ground, strangerFailure } from '../../mount/ground.ts';
import { below, type Host, isBelow } from '../../mount/host.ts';
import { isToldByStage, orphanAt, specFromMarker, specFromPaper } from '../../plugins/kinds/found-volume.ts';
import { kinds, traitsOfPlugin } from '../../plugins/kinds/kinds.ts';
import { isInline, isOrphan, stagingDirectoryOf } from '../../plugins/kinds/volume-questions.ts';
import { unescapePlugin } from '../../plugins/layout/component.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { markedBy } from '../../plugins/layout/owner.ts';
import { isStagingDriver } from '../../plugins/layout/stage-owner.ts';
import { removeEmptyDeviceDirectory } from '../../plugins/layout/device-directory.ts';
import { removeStrangePodDirectories } from '../../plugins/layout/pod-directory.ts';
import type { VolumeTraits } from '../../plugins/traits/volume-traits.ts';
import { removeLeftBinds } from '../../plugins/subpath/subpath-binds.ts';
import {
  isObjectName,
  parsePodUid,
  type PodUid,
  type PublicationKey,
  type PublicationSpec,
  type VolumeId,
} from '../../plugins/volume.ts';
import {
  type ActualPublication,
  type ActualState,
  type ActualVolume,
  isBegun,
  podsOf,
  RESTARTED,
  wasAbsent,
} from '../model/actual-state.ts';
import { addBlockPlaces, type BlockPlaces, listBlockPlaces, scanBlockStaging } from './reconstruct-block.ts';
import { addNamedDevices, scanNamedStages, stagedAs, tidyNamedDevices } from './reconstruct-named.ts';
import {
  findLeftStages,
  findOrphans,
  goneOrphans,
  isLeftStage,
  mayBeOfDriver,
  unknownPlaces,
} from './reconstruct-orphan.ts';
import { coverIn, createDiskReader } from './disk-reader.ts';
import {
  createReconstructed,
  isStagingDirectory,
  type LayoutReading,
  reconstructedPublication,
  stagedDirectories,
} from './reconstructed.ts';
import type { UnattributedMounts, UnreadPlace } from './unattributed-mounts.ts';

export interface LayoutScan {
  readonly host: Host;
  readonly layout: Layout;
  /** What somebody mounted over is not read: it is not what it was. */
  readonly ground: Pick<Ground, 'strangerOver'>;
  /** What is believed already; read as the scan goes, so it may change meanwhile. */
  readonly known: ActualState;
  /** The empty directories of a pod that is not wanted and has no volume left are removed on the way. */
  readonly isWanted: (pod: PodUid) => boolean;
}

export interface Reconstruction {
  readonly volumes: readonly ActualVolume[];
  /** Orphans that are known and of which nothing is there any more: somebody else took them down. */
  readonly gone: readonly VolumeId[];
  /**
   * Every place of every pod was looked at, and nothing of ours is hidden by what somebody mounted over it; what nobody
   * explains is an orphan among the volumes.
   */
  readonly placesRead: boolean;
  /** Somebody's mount hides what may be a driver's and is in no record: nobody can say what of drivers stands here. */
  readonly driversHidden: boolean;
  /** All was read, and nothing is an orphan: no publication is unknown. False: it is worth another scan. */
  readonly complete: boolean;
  /** What could not be looked at, and where pods may have something; undefined when nothing could be learnt. */
  readonly unreadPlaces: readonly UnreadPlace[] | undefined;
  /** Where publications may be that nobody knows; undefined when nothing could be learnt. */
  readonly unknown: UnattributedMounts | undefined;
}

/** Has any pod a directory here? One that could not be looked for may be there. */
export async function mayHavePods(host: Host, { pods }: Layout): Promise<boolean> {
  const disk = createDiskReader(host);
  return (await disk.names(pods)).length > 0 || !disk.complete();
}

/**
 * Volumes and places on disk that `known` does not have.
 * Guarantees: a volume that is staged is reported without a publication of it only when that is surely not there, or
 * is among the unknown places; what cannot be read is never taken for absent. `whole` looks at every pod; otherwise
 * only at pods that nobody knows or wants.
 */
export async function reconstruct(scan: LayoutScan, extent: 'whole' | 'strangers'): Promise<Reconstruction> {
  const { host, layout, known } = scan;
  const reconstructed = createReconstructed(known);
  const pods = new Set([...known.values()].flatMap(podsOf));
  const isStrange = (pod: PodUid): boolean => !scan.isWanted(pod) && !pods.has(pod);
  const table = await host.readMountTable(layout.root);
  if (!table.ok) return NOTHING_FOUND;
  const coverOf = coverIn(table.value, scan.ground);
  for (const directory of [layout.pods, layout.plugins]) {
    const failure = coverOf(directory);
    if (failure === undefined) continue;
    const unknown = { mounts: [], unread: [failure], table: table.value };
    return { ...NOTHING_FOUND, driversHidden: true, unreadPlaces: [{ path: directory, failure }], unknown };
  }
  const disk = createDiskReader(host, coverOf);
  const reading: LayoutReading = { ...scan, disk, table: table.value, reconstructed };
  const podNames = await disk.names(layout.pods);
  const isAskedFor = ({ pod }: PublicationSpec): boolean => extent === 'whole' || isStrange(pod.uid);
  for (const uid of podNames.map(parsePodUid)) {
    if (uid === undefined) continue;
    const isRead = (extent === 'whole' || isStrange(uid)) && (await scanPod(reading, uid));
    if (isRead && isStrange(uid) && !reconstructed.isKnownPod(uid)) await removeLeftovers(reading, uid);
  }
  const blockPlaces = await listBlockPlaces(reading, podNames);
  await addBlockPlaces(reading, blockPlaces, isAskedFor);
  const unusedDevices = await addNamedDevices(reading, podNames, isAskedFor);
  findOrphans(reading);
  const isOrphaned = [...known.values(), ...reconstructed.list()].some(({ spec }) => isOrphan(spec));
  // A scan may take minutes: what is mounted now of what nobody knows is worth a second look.
  const again = isOrphaned || disk.unreadPapers().length > 0 ? await host.readMountTable(layout.root) : table;
  if (!again.ok) {
    const volumes = reconstructed.list().filter(({ spec }) => !isOrphan(spec));
    return { ...NOTHING_FOUND, volumes, unreadPlaces: [...disk.hidden(), ...disk.unreadDirectories()] };
  }
  const now: LayoutReading = { ...reading, table: again.value };
  for (const orphan of await goneOrphans(now, reconstructed.list())) reconstructed.drop(orphan);
  const gone = await goneOrphans(now, [...known.values()]);
  const placesRead = disk.complete();
  const orphans = [...known.values(), ...reconstructed.list()].filter(({ spec }) => {
    return isOrphan(spec) && !gone.includes(spec.id);
  });
  const places = await unknownPlaces(now, orphans);
  const isClear = placesRead && orphans.every(({ spec }) => isLeftStage(spec, layout));
  const stages = createDiskReader(host, coverIn(again.value, scan.ground));
  // Where a directory of the pods could not be listed, not even the kernel's word for what is in it is asked for.
  const isToScan = disk.unlisted().length === 0;
  if (isToScan && isClear) await tidyNamedDevices(now, unusedDevices);
  const staged = { ...now, disk: stages };
  const isAnyLeft = isToScan && (await scanStages(staged, { places: blockPlaces, tidies: isClear }));
  const hidden = [...disk.hidden(), ...stages.hidden()];
  const unread = [
    ...hidden.map(({ failure }) => failure),
    ...places.unread,
    ...stages.unlisted(),
    ...stages.unreadPapers().map(({ failure }) => failure),
  ];
  return {
    volumes: reconstructed.list(),
    gone,
    placesRead,
    complete: isClear && !isAnyLeft && stages.complete(),
    driversHidden: hidden.some(({ path }) => mayBeOfDriver(path, layout.root)),
    unreadPlaces: [...hidden, ...disk.unreadDirectories()],
    unknown: { ...places, unread },
  };
}

/** The directories of a pod of which nothing is known. What is below somebody's mount is his. */
async function removeLeftovers({ host, layout, table }: LayoutReading, pod: PodUid): Promise<void> {
  const { subpaths } = layout.podFolders(pod);
  const isMounted = table.entries.some(({ target }) => target === subpaths || isBelow(target, subpaths));
  if (!isMounted) await host.perform(removeLeftBinds, { path: subpaths });
  const own = kinds().filter(({ isInPlace }) => isInPlace !== true);
  const plugins = own.map(({ plugin }) => plugin);
  await removeStrangePodDirectories(host, layout, pod, plugins);
}

const NOTHING_FOUND: Reconstruction = {
  volumes: [],
  gone: [],
  placesRead: false,
  complete: false,
  driversHidden: false,
  unreadPlaces: undefined,
  unknown: undefined,
};

/** Was all of it read? What is hidden of it may be a volume, and what hides it is somebody's. */
async function scanPod(reading: LayoutReading, pod: PodUid): Promise<boolean> {
  const { layout, ground, disk, table, reconstructed } = reading;
  const { volumes, volumesOf } = layout.podFolders(pod);
  const unread = (): number => disk.unlisted().length + disk.hidden().length;
  const unreadBefore = unread();
  for (const name of await disk.names(volumes)) {
    const traits = traitsOfPlugin(unescapePlugin(name));
    if (traits === undefined || !isFoundInPods(traits)) continue;
    for (const specName of await disk.names(volumesOf(traits.plugin))) {
      if (!isObjectName(specName)) continue;
      const publication = reconstructedPublication(pod, specName);
      const directory = below(volumesOf(traits.plugin), specName);
      const mountPoint = traits.foundTarget?.(publication, layout) ?? directory;
      const stranger = ground.strangerOver(table, mountPoint);
      if (stranger !== undefined) {
        if (!reconstructed.isExplainedPlace(publication.key))
          disk.hide({ path: directory, failure: strangerFailure(directory, stranger) });
        continue;
      }
      if (traits.fromPlace !== undefined) {
        const isMounted = table.named(directory).length > 0;
        reconstructed.place(traits.fromPlace({ pod, name: specName, isMounted }), false, publication);
        continue;
      }
      if (reconstructed.isExplainedPlace(publication.key)) continue;
      const isKnown = reconstructed.isKnownPlace(publication.key);
      if (isToldByStage(traits)) {
        const spec = stagedAs(reading, traits, directory);
        if (spec !== undefined || !isKnown)
          reconstructed.place(spec ?? orphanAt(mountPoint), spec !== undefined, publication);
        continue;
      }
      const data = await disk.volData(directory);
      if (data === 'nothing' && !isKnown) reconstructed.place(orphanAt(mountPoint), false, publication);
      if (typeof data === 'string') continue;
      const spec = specFromPaper(data, specName, 'Filesystem');
      const staging = isInline(spec) ? undefined : stagingDirectoryOf(spec, layout);
      reconstructed.place(spec, staging !== undefined && (await disk.exists(staging)), publication);
    }
  }
  if (unread() > unreadBefore) return false;
  await scanMarkers(reading, pod);
  return unread() === unreadBefore;
}

function isFoundInPods(traits: VolumeTraits): boolean {
  return traits.fromPlace !== undefined || traits.fromPaper !== undefined || isToldByStage(traits);
}

/**
 * The kubelet's readiness markers outlive their volume when a crash comes between the two. Which kind it was of is a
 * guess, so it is one only when all volumes of the pod were read: what is there is none of theirs.
 */
async function scanMarkers({ layout, disk, reconstructed }: LayoutReading, pod: PodUid): Promise<void> {
  for (const marker of await disk.names(layout.podFolders(pod).markers)) {
    const { specName, isWrapped } = markedBy(marker);
    const publication = reconstructedPublication(pod, specName);
    if (!isObjectName(specName) || reconstructed.isKnownPlace(publication.key)) continue;
    const place = { pod, name: specName, isMounted: false };
    reconstructed.place(specFromMarker(place, isWrapped ? 'wrapped' : 'own'), false, publication);
  }
}

/** All that is staged. True: of something nothing tells whose it is. */
async function scanStages(
  reading: LayoutReading,
  block: { readonly places: BlockPlaces; readonly tidies: boolean },
): Promise<boolean> {
  await scanStaging(reading, block.tidies);
  await scanNamedStages(reading);
  await scanBlockStaging(reading, block);
  return findLeftStages(reading);
}

/** Adds what is staged and nobody knows. `tidies`: an empty directory that tells of no volume is removed. */
async function scanStaging(reading: LayoutReading, tidies: boolean): Promise<void> {
  const { host, layout, known, disk, reconstructed } = reading;
  for (const driver of await disk.names(layout.stages)) {
    if (!isStagingDriver(driver)) continue;
    const hashes = await disk.names(layout.driverDirectory(driver));
    const explained = stagedDirectories(known, layout, driver);
    for (const directory of hashes.map((hash) => below(layout.driverDirectory(driver), hash))) {
      if (explained.has(directory)) continue;
      const data = await disk.volData(directory);
      // It may have begun to be staged while the scan went.
      if (data === 'nothing' && tidies && !isStagingDirectory(reading, directory))
        await host.perform(removeEmptyDeviceDirectory, { path: directory });
      if (typeof data === 'string') continue;
      const spec = specFromPaper(data, '', 'Filesystem');
      if (stagingDirectoryOf(spec, layout) === directory) reconstructed.staged(spec);
    }
  }
}

/** The found volume's rungs and places added where nothing is known of them; undefined when nothing is new. */
export function mergeFound(known: ActualVolume | undefined, found: ActualVolume): ActualVolume | undefined {
  if (known === undefined) return found;
  const news = [...found.publications].flatMap(([key, place]): [PublicationKey, ActualPublication][] => {
    const believed = known.publications.get(key);
    if (believed === undefined) return [[key, place]];
    // What was begun meanwhile was there before, and is not gone when the operation does nothing.
    const { untold: _, ...begun } = believed;
    return isBegun(begun.presence) ? [[key, { ...begun, presence: RESTARTED }]] : [];
  });
  const staged = wasAbsent(known.staged) && found.staged.kind !== 'absent' ? found.staged : known.staged;
  if (news.length === 0 && staged === known.staged) return undefined;
  // Today's driver may have ceased to stage; what it staged once is unstaged all the same.
  const needs = staged === known.staged ? known.needs : { ...known.needs, stage: true };
  const publications = new Map([...known.publications, ...news]);
  return { ...known, staged, needs, publications, isInherited: true };
}
