/** The one list of the kinds of volume: a new kind is a folder below plugins/ and a line here. */
import { assert } from '../../mount/failure.ts';
import { CSI_TRAITS } from '../csi/csi-traits.ts';
import { ORPHAN_TRAITS } from '../orphan/orphan-traits.ts';
import { CONFIG_MAP_TRAITS, EMPTY_DIR_TRAITS, HOST_PATH_TRAITS, SECRET_TRAITS } from '../pod/pod-traits.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import type { VolumeSpec } from '../volume.ts';

const KINDS: readonly VolumeTraits[] = [
  CSI_TRAITS,
  EMPTY_DIR_TRAITS,
  HOST_PATH_TRAITS,
  SECRET_TRAITS,
  CONFIG_MAP_TRAITS,
  ORPHAN_TRAITS,
];

const byKind = new Map<string, VolumeTraits>(KINDS.map((traits) => [traits.kind, traits]));

/** Total: every specification has a kind that is listed here. */
export function traitsOf(spec: VolumeSpec): VolumeTraits {
  const traits = byKind.get(spec.kind);
  assert(traits !== undefined, `${spec.kind} has traits`);
  return traits;
}

/** Of the plugin whose name a directory in a pod has; undefined: no kind of ours. */
export function traitsOfPlugin(plugin: string): VolumeTraits | undefined {
  return kinds().find((traits) => traits.plugin === plugin);
}

/** All that there are. */
export function kinds(): readonly VolumeTraits[] {
  return [...byKind.values()];
}
