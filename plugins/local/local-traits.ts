/** What volumes of kind local are like: a directory or disk of this machine, named by an administrator, for a claim. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { FieldRule, VolumeTraits } from '../traits/volume-traits.ts';
import {
  type AccessMode,
  hasDevice,
  isObjectName,
  isOncePod,
  type PluginName,
  type VolumeId,
  type VolumeMode,
} from '../volume.ts';

declare module '../volume.ts' {
  interface VolumeSpecs {
    local: LocalVolumeSpec;
  }
}

/** A PersistentVolume with `spec.local`. */
export interface LocalVolumeSpec {
  readonly kind: 'local';
  readonly id: VolumeId;
  /** The PersistentVolume's. */
  readonly name: string;
  /**
   * As it is written: links on the way are followed, as by the kernel. `/`, which is no volume's, of one that was found
   * in a pod: to take it down nobody needs the path.
   */
  readonly path: AbsolutePath;
  /** Pods have the files, or the device itself. */
  readonly mode: VolumeMode;
  /** What a device is to hold; empty is whatever is on it, and ext4 where nothing is. */
  readonly fsType: string;
  readonly mountOptions: readonly string[];
  readonly accessModes: readonly AccessMode[];
}

export const LOCAL_PLUGIN: PluginName = 'kubernetes.io/local-volume';

const IDENTITY: FieldRule<LocalVolumeSpec> = {};
const FIXED: FieldRule<LocalVolumeSpec> = { fixed: () => true };

export const LOCAL_TRAITS: VolumeTraits<LocalVolumeSpec> = {
  kind: 'local',
  plugin: LOCAL_PLUGIN,
  isShared: true,
  // A directory of the machine may be on anything.
  mountToldBy: 'plugin',
  isForOnePod: ({ accessModes }) => isOncePod(accessModes),
  shownName: ({ name }) => name,
  name: ({ name }) => name,
  persistentVolume: ({ name }) => name,
  accessModes: ({ accessModes }) => accessModes,
  stagingPath: (spec, layout) => (hasDevice(spec) ? undefined : layout.localStage(spec.name)),
  stages: {
    directory: (layout) => layout.localStages,
    fromName: (name) => (isObjectName(name) ? found(name) : undefined),
  },
  isDevice: hasDevice,
  devices: {
    directory: (layout) => layout.localDevices,
    ofVolume: (name, layout) => layout.localDevice(name),
    links: ({ localLinks }) => localLinks,
    fromName: (name) => ({ ...found(name), mode: 'Block' }),
  },
  completed: (spec) => ({ ...spec, mode: (spec as Partial<LocalVolumeSpec>).mode ?? 'Filesystem' }),
  fromPlace: ({ name }) => found(name),
  fields: {
    name: IDENTITY,
    // Two pods of one volume never see two directories.
    path: { ...FIXED, excludes: () => true },
    mode: { ...FIXED, place: true, excludes: () => true, title: 'volumeMode' },
    fsType: FIXED,
    mountOptions: FIXED,
    accessModes: FIXED,
  },
};

/** As the kubelet calls a volume that is the same one for all pods: by its PersistentVolume. */
export function localVolumeId(name: string): VolumeId {
  return `${LOCAL_PLUGIN}/${name}` as VolumeId;
}

function found(name: string): LocalVolumeSpec {
  const path = '/' as AbsolutePath;
  return {
    kind: 'local',
    id: localVolumeId(name),
    name,
    path,
    mode: 'Filesystem',
    fsType: '',
    mountOptions: [],
    accessModes: [],
  };
}
