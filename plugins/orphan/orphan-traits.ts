/** What mounts are like that nothing explains. */
import { sha256Hex } from '../layout/layout.ts';
import type { VolumeTraits } from '../traits/volume-traits.ts';
import type { OrphanVolumeSpec, VolumeId } from '../volume.ts';

declare module '../volume.ts' {
  interface VolumeSpecs {
    orphan: OrphanVolumeSpec;
  }
}

export const ORPHAN_PLUGIN = 'mooring/orphan';

export const ORPHAN_TRAITS: VolumeTraits<OrphanVolumeSpec> = {
  kind: 'orphan',
  plugin: ORPHAN_PLUGIN,
  isShared: false,
  isInPlace: true,
  name: ({ path }) => path,
  orphanPath: ({ path }) => path,
  fromMount: (path) => ({ kind: 'orphan', id: `${ORPHAN_PLUGIN}/${sha256Hex(path)}` as VolumeId, path }),
  fields: { path: { fixed: () => true } },
};
