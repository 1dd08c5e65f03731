/** From what is found on disk to a volume, by the kind that has such traces. */
import { assert } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { VolumeDataOwner } from '../layout/volume-data-text.ts';
import type { FoundPlace, VolumeTraits } from '../traits/volume-traits.ts';
import type { VolumeMode, VolumeSpec } from '../volume.ts';
import { kinds, traitsOfPlugin } from './kinds.ts';

/** What the kubelet's vol_data.json tells of a volume. */
export function specFromPaper(data: VolumeDataOwner, specName: string, mode: VolumeMode): VolumeSpec {
  return firstOf((traits) => traits.fromPaper?.(data, specName, mode));
}

/** Whose place it is in a pod is told elsewhere, by papers or by what is staged, and may be told by nothing. */
export function isToldElsewhere(plugin: string): boolean {
  const traits = traitsOfPlugin(plugin);
  return traits?.fromPaper !== undefined || isToldByStage(traits);
}

/** Which volume of the kind is in a pod is told by what is staged of the same file system. */
export function isToldByStage(traits: VolumeTraits | undefined): boolean {
  return traits?.stages !== undefined && traits.fromPlace === undefined;
}

/** Whose marker it is: of the kinds that have such ones the first, for with the volume gone there is no telling. */
export function specFromMarker(place: FoundPlace, marker: VolumeTraits['marker']): VolumeSpec {
  return firstOf((traits) => (traits.marker === marker ? traits.fromPlace?.(place) : undefined));
}

/** A place in a pod that neither record nor vol_data.json explains; it may or may not be mounted. */
export function orphanAt(path: AbsolutePath): VolumeSpec {
  return firstOf((traits) => traits.fromMount?.(path));
}

function firstOf(read: (traits: VolumeTraits) => VolumeSpec | undefined): VolumeSpec {
  for (const traits of kinds()) {
    const spec = read(traits);
    if (spec !== undefined) return spec;
  }
  assert(false, 'a kind of volume leaves such traces');
}
