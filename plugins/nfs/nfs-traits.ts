/** What volumes of kind nfs are like: a directory of a server, mounted for each pod by itself, as by the kubelet. */
import type { FieldRule, VolumeTraits } from '../traits/volume-traits.ts';
import { type PluginName, type PodUid, podVolumeId, type VolumeId } from '../volume.ts';

declare module '../volume.ts' {
  interface VolumeSpecs {
    nfs: NfsVolumeSpec;
  }
}

/** `nfs` of a pod, or a PersistentVolume with `spec.nfs` as one pod has it. */
export interface NfsVolumeSpec {
  readonly kind: 'nfs';
  readonly id: VolumeId;
  readonly pod: PodUid;
  /** The PersistentVolume's, or the volume's in the pod. */
  readonly name: string;
  /** `<server>:<path>`; empty of one that was found in a pod: to take it down nobody needs it. */
  readonly source: string;
  readonly mountOptions: readonly string[];
}

export const NFS_PLUGIN: PluginName = 'kubernetes.io/nfs';

const FIXED: FieldRule<NfsVolumeSpec> = { fixed: () => true };

export const NFS_TRAITS: VolumeTraits<NfsVolumeSpec> = {
  kind: 'nfs',
  plugin: NFS_PLUGIN,
  // Two claims, or two volumes, of one pod may lead to one place in it.
  isShared: true,
  // Whether its source is the right one its plugin sees.
  mountToldBy: 'plugin',
  name: ({ name }) => name,
  fromPlace: ({ pod, name }) => ({ ...nfsVolume(pod, name), source: '', mountOptions: [] }),
  // The pod has what was mounted; what a PersistentVolume says by now is about its next pod.
  fields: { pod: FIXED, name: FIXED, source: FIXED, mountOptions: FIXED },
};

/** As the kubelet calls a volume that is not attached: by its pod. */
export function nfsVolume(pod: PodUid, name: string): Pick<NfsVolumeSpec, 'kind' | 'id' | 'pod' | 'name'> {
  return { kind: 'nfs', id: podVolumeId(NFS_PLUGIN, pod, name), pod, name };
}
