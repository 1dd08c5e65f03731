/** What the kinds of volume are like that live and die with their pod. A pod is not changed, and so they are not. */
import type { VolumeTraits } from '../traits/volume-traits.ts';
import type { ContentVolumeSpec, EmptyDirVolumeSpec, HostPathVolumeSpec } from '../volume.ts';

const FIXED = { fixed: () => true } as const;
const OF_ONE_POD = { isShared: false } as const;

export const EMPTY_DIR_TRAITS: VolumeTraits<EmptyDirVolumeSpec> = {
  ...OF_ONE_POD,
  kind: 'empty-dir',
  isDataLost: true,
  fields: { pod: FIXED, name: FIXED, medium: FIXED, sizeLimitBytes: FIXED },
};

export const HOST_PATH_TRAITS: VolumeTraits<HostPathVolumeSpec> = {
  ...OF_ONE_POD,
  kind: 'host-path',
  isInPlace: true,
  fields: { pod: FIXED, name: FIXED, path: FIXED, type: FIXED },
};

const CONTENT = { ...OF_ONE_POD, hasContent: true, fields: { pod: FIXED, name: FIXED } } as const;

export const SECRET_TRAITS: VolumeTraits<ContentVolumeSpec> = { ...CONTENT, kind: 'secret' };

export const CONFIG_MAP_TRAITS: VolumeTraits<ContentVolumeSpec> = { ...CONTENT, kind: 'config-map' };
