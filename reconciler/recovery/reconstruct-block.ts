/**
 * Block volumes in the kubelet's layout. What is left of one may be any of: the link in the pod, the driver's target,
 * our bind of it, the staging directory. One of them is enough to find it. When its vol_data.json says nothing any
 * more, nobody knows whose volume it was: what is left of it in a pod is an orphan and can only be taken down.
 */
import { orphanAt, specFromPaper } from '../../plugins/kinds/found-volume.ts';
import { isBlockVolumeName } from '../../plugins/layout/stage-owner.ts';
import {
  removeEmptyBlockDirectories,
  removeUnknownBlockDirectories,
} from '../../plugins/layout/block-directory.ts';
import { isBlock, parsePodUid, type PublicationSpec } from '../../plugins/volume.ts';
import type { ActualState } from '../model/actual-state.ts';
import { reconstructedPublication, type LayoutReading } from './reconstructed.ts';

/** By the name of the volume, the pods that have anything of it; none: only its shared directories are left. */
export type BlockPlaces = ReadonlyMap<string, ReadonlySet<string>>;

/** Every place on disk, listed once for all that is asked about it; `pods` are the names in the pods' directory. */
export async function listBlockPlaces(
  { disk, layout }: LayoutReading,
  pods: readonly string[],
): Promise<BlockPlaces> {
  const places = new Map<string, Set<string>>();
  for (const directory of [layout.blockDevices, layout.blockTargets])
    for (const specName of await disk.names(directory))
      if (isBlockVolumeName(specName)) places.set(specName, new Set());
  for (const [specName, ofVolume] of places) {
    const { targets, holds } = layout.blockVolume(specName);
    for (const pod of await disk.names(targets)) ofVolume.add(pod);
    for (const pod of await disk.namesBegun(holds)) ofVolume.add(pod);
  }
  for (const pod of pods) {
    for (const specName of await disk.names(layout.podFolders(pod).links))
      if (isBlockVolumeName(specName)) places.set(specName, (places.get(specName) ?? new Set()).add(pod));
  }
  return places;
}

/** Adds every place of a block volume that nobody knows and that is asked for; what is mounted is, in any pod. */
export async function addBlockPlaces(
  reading: LayoutReading,
  places: BlockPlaces,
  isAskedFor: (place: PublicationSpec) => boolean,
): Promise<void> {
  for (const [specName, pods] of places)
    for (const pod of pods) await addPlace(reading, { pod, specName, isAskedFor });
}

interface PodDevicePath {
  readonly pod: string;
  readonly specName: string;
  readonly isAskedFor: (place: PublicationSpec) => boolean;
}

async function addPlace(
  { disk, layout, table, reconstructed }: LayoutReading,
  place: PodDevicePath,
): Promise<void> {
  const { specName } = place;
  const pod = parsePodUid(place.pod);
  if (pod === undefined) return;
  const publication = reconstructedPublication(pod, specName);
  const { held, published, data: directory } = layout.blockPublication(publication);
  const isMounted = table.named(held).length > 0 || table.named(published).length > 0;
  if (reconstructed.isKnownPlace(publication.key) || !(isMounted || place.isAskedFor(publication))) return;
  const data = await disk.volData(directory);
  if (data === 'unknown') return;
  if (data === 'nothing') {
    // It may have begun to be published while the scan went, and then it is a volume that is known.
    if (!reconstructed.isBelieved(publication.key)) reconstructed.place(orphanAt(held), false, publication);
    return;
  }
  const spec = specFromPaper(data, specName, 'Block');
  reconstructed.place(spec, await disk.exists(layout.blockVolume(specName).stage), publication);
}

/**
 * Adds what is staged and nobody knows. `tidies`: empty directories of a volume that nothing tells of are removed.
 */
export async function scanBlockStaging(
  { host, layout, known, disk, reconstructed }: LayoutReading,
  { places, tidies }: { readonly places: BlockPlaces; readonly tidies: boolean },
): Promise<void> {
  const explained = stagedNames(known);
  const volumeData = (specName: string) => disk.volData(layout.blockVolume(specName).data);
  for (const specName of await disk.names(layout.blockStages)) {
    if (!isBlockVolumeName(specName) || explained.has(specName)) continue;
    const data = await volumeData(specName);
    if (data === 'nothing' && tidies && !blockNames(known).includes(specName))
      await removeUnknownBlockDirectories(host, layout, specName);
    if (typeof data !== 'string') reconstructed.staged(specFromPaper(data, specName, 'Block'));
  }
  if (!tidies || !disk.complete()) return;
  // Nothing of it is published or staged: a teardown was cut short, and its record is gone.
  const believed = new Set([...blockNames(known), ...blockNames(reconstructed.all())]);
  for (const [specName, pods] of places) {
    if (pods.size > 0 || believed.has(specName) || (await volumeData(specName)) === 'unknown') continue;
    // It may have become known since.
    if (!blockNames(known).includes(specName)) await removeEmptyBlockDirectories(host, layout, specName);
  }
}

function blockNames(state: ActualState): readonly string[] {
  return [...state.values()].flatMap(({ spec }) => {
    return isBlock(spec) ? [spec.specName] : [];
  });
}

function stagedNames(known: ActualState): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { spec, staged } of known.values())
    if (isBlock(spec) && staged.kind !== 'absent') names.add(spec.specName);
  return names;
}
