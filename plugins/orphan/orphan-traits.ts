/** What mounts are like that nothing explains. */
import { sha256Hex } from '../layout/layout.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import { type OrphanVolumeSpec, SPEC_PLUGIN, type VolumeId } from '../volume.ts';

export const ORPHAN_TRAITS: VolumeTraits<OrphanVolumeSpec> = {
  kind: 'orphan',
  plugin: SPEC_PLUGIN.orphan,
  isShared: false,
  isInPlace: true,
  orphanPath: ({ path }) => path,
  fromMount: (path) => ({ kind: 'orphan', id: `${SPEC_PLUGIN.orphan}/${sha256Hex(path)}` as VolumeId, path }),
  fields: { path: { fixed: () => true } },
};
