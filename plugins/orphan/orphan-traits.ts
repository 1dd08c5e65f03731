/** What mounts are like that nothing explains. */
import type { VolumeTraits } from '../traits/volume-traits.ts';
import type { OrphanVolumeSpec } from '../volume.ts';

export const ORPHAN_TRAITS: VolumeTraits<OrphanVolumeSpec> = {
  kind: 'orphan',
  isShared: false,
  isOrphan: true,
  isInPlace: true,
  fields: { path: { fixed: () => true } },
};
