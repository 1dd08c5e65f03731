/** What mounts are like that nothing explains. */
import type { VolumeTraits } from '../traits.ts';
import type { OrphanVolumeSpec } from '../volume.ts';

export const ORPHAN_TRAITS: VolumeTraits<OrphanVolumeSpec> = {
  kind: 'orphan',
  isShared: false,
  fields: { path: { fixed: () => true } },
};
