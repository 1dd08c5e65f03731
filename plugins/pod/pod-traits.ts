/** What the kinds of volume are like that live and die with their pod. A pod is not changed, and so they are not. */
import type { VolumeTraits } from '../traits/volume-traits.ts';
import {
  type ContentVolumeSpec,
  type EmptyDirVolumeSpec,
  type HostPathVolumeSpec,
  type ImageVolumeSpec,
  type PluginName,
  podVolumeId,
} from '../volume.ts';

declare module '../volume.ts' {
  interface VolumeSpecs {
    'empty-dir': EmptyDirVolumeSpec;
    'host-path': HostPathVolumeSpec;
    image: ImageVolumeSpec;
    content: ContentVolumeSpec;
  }
}

export const EMPTY_DIR_PLUGIN = 'kubernetes.io/empty-dir';
export const HOST_PATH_PLUGIN = 'kubernetes.io/host-path';
export const IMAGE_PLUGIN = 'kubernetes.io/image';
export const CONTENT_PLUGIN = {
  secret: 'kubernetes.io/secret',
  'config-map': 'kubernetes.io/configmap',
  'downward-api': 'kubernetes.io/downward-api',
  projected: 'kubernetes.io/projected',
} as const satisfies Readonly<Record<ContentVolumeSpec['kind'], PluginName>>;

const FIXED = { fixed: () => true } as const;
const OF_ONE_POD = {
  isShared: false,
  name: ({ name }: { readonly name: string }): string => name,
} as const;

export const EMPTY_DIR_TRAITS: VolumeTraits<EmptyDirVolumeSpec> = {
  ...OF_ONE_POD,
  kind: 'empty-dir',
  plugin: EMPTY_DIR_PLUGIN,
  isDataLost: true,
  isPlain: ({ medium }) => medium === 'disk',
  marker: 'own',
  fromPlace: ({ pod, name, isMounted }) => ({
    kind: 'empty-dir',
    id: podVolumeId(EMPTY_DIR_PLUGIN, pod, name),
    pod,
    name,
    // The medium is written nowhere; what is mounted shows it, and without a mount there is a directory to remove.
    medium: isMounted ? 'memory' : 'disk',
    sizeLimitBytes: 0,
  }),
  // The size of one in memory follows the node's: nobody is told of a change that concerns only the next mount.
  fields: { pod: FIXED, name: FIXED, medium: FIXED, sizeLimitBytes: {}, hugePageBytes: FIXED },
};

export const HOST_PATH_TRAITS: VolumeTraits<HostPathVolumeSpec> = {
  ...OF_ONE_POD,
  kind: 'host-path',
  plugin: HOST_PATH_PLUGIN,
  // Two volumes of one pod may lead to one PersistentVolume, or to one and to a path of its name.
  isShared: true,
  isInPlace: true,
  fields: { pod: FIXED, name: FIXED, path: FIXED, type: FIXED },
};

export const IMAGE_TRAITS: VolumeTraits<ImageVolumeSpec> = {
  ...OF_ONE_POD,
  kind: 'image',
  plugin: IMAGE_PLUGIN,
  isInPlace: true,
  image: ({ image }) => image,
  fields: { pod: FIXED, name: FIXED, image: FIXED },
};

export const SECRET_TRAITS: VolumeTraits<ContentVolumeSpec> = contentTraits('secret');

export const CONFIG_MAP_TRAITS: VolumeTraits<ContentVolumeSpec> = contentTraits('config-map');

export const DOWNWARD_API_TRAITS: VolumeTraits<ContentVolumeSpec> = contentTraits('downward-api');

export const PROJECTED_TRAITS: VolumeTraits<ContentVolumeSpec> = contentTraits('projected');

function contentTraits(kind: ContentVolumeSpec['kind']): VolumeTraits<ContentVolumeSpec> {
  return {
    ...OF_ONE_POD,
    kind,
    plugin: CONTENT_PLUGIN[kind],
    hasContent: true,
    marker: 'wrapped',
    fromPlace: ({ pod, name }) => ({ kind, id: podVolumeId(CONTENT_PLUGIN[kind], pod, name), pod, name }),
    fields: { pod: FIXED, name: FIXED },
  };
}
