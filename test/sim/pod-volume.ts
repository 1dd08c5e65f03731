/** A volume of a pod by the names that the kubelet's layout, the agent and the driver have for it. */
import { nfsVolume } from '../../plugins/nfs/nfs-traits.ts';
import { iscsiNameOf, iscsiPlaceOf } from './iscsi-volumes.ts';
import { nfsNameOf } from './nfs-volumes.ts';
import { iscsiVolumeId } from '../../plugins/iscsi/iscsi-traits.ts';
import {
  CONTENT_PLUGIN,
  EMPTY_DIR_PLUGIN,
  HOST_PATH_PLUGIN,
  IMAGE_PLUGIN,
} from '../../plugins/pod/pod-traits.ts';
import { localVolumeId } from '../../plugins/local/local-traits.ts';
import {
  type PodUid,
  podVolumeId,
  type PublicationSpec,
  publicationKey,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import { isLocalDevice } from './local-volumes.ts';
import type { PodVolume, SimPod } from './manifests.ts';
import { handleOfInline } from './sim-storage.ts';

/** A CSI volume of a pod, as its driver knows it. */
export interface DriverVolume {
  readonly driver: string;
  readonly handle: string;
  readonly block: boolean;
  readonly readOnly: boolean;
  readonly ephemeral: boolean;
}

export function placeIn(pod: SimPod, volume: PodVolume): Pick<PublicationSpec, 'pod' | 'specName'> {
  return { pod: { uid: pod.uid as PodUid } as PublicationSpec['pod'], specName: specNameOf(volume) };
}

export function keyOf(pod: SimPod, volume: PodVolume): string {
  return publicationKey(pod.uid as PodUid, specNameOf(volume));
}

/** Undefined for what is no CSI volume. */
export function csiOf(pod: SimPod, volume: PodVolume): DriverVolume | undefined {
  if (volume.kind === 'inline') {
    const handle = handleOfInline(pod, volume);
    return { driver: volume.driver, handle, block: false, readOnly: false, ephemeral: true };
  }
  if (volume.kind !== 'csi') return undefined;
  const { driver, handle, block } = volume.disk;
  return { driver, handle, block, readOnly: volume.readOnly, ephemeral: false };
}

export function specNameOf(volume: PodVolume): string {
  if (volume.kind === 'local') return volume.specName;
  if (volume.kind === 'nfs') return nfsNameOf(volume);
  if (volume.kind === 'iscsi') return iscsiNameOf(volume);
  return volume.kind === 'csi' ? volume.disk.specName : volume.name;
}

const PLUGIN_OF = {
  ...CONTENT_PLUGIN,
  'empty-dir': EMPTY_DIR_PLUGIN,
  'host-path': HOST_PATH_PLUGIN,
  image: IMAGE_PLUGIN,
} as const;

/** Only what the layout needs. */
export function specOf(pod: SimPod, volume: PodVolume): VolumeSpec {
  const csi = csiOf(pod, volume);
  if (csi !== undefined) {
    const mode = csi.block ? 'Block' : 'Filesystem';
    const { driver, handle } = csi;
    return { kind: 'csi', driver, volumeHandle: handle, mode, specName: specNameOf(volume) } as VolumeSpec;
  }
  if (volume.kind === 'local') {
    const mode = isLocalDevice(volume) ? 'Block' : 'Filesystem';
    return { kind: 'local', id: localVolumeId(volume.specName), mode } as VolumeSpec;
  }
  if (volume.kind === 'nfs') return nfsVolume(pod.uid as PodUid, specNameOf(volume)) as VolumeSpec;
  if (volume.kind === 'iscsi') {
    const place = iscsiPlaceOf(volume);
    return { kind: 'iscsi', id: iscsiVolumeId(place), ...place } as VolumeSpec;
  }
  const kind = volume.kind as Exclude<PodVolume['kind'], 'csi' | 'inline' | 'local' | 'nfs' | 'iscsi'>;
  const id = podVolumeId(PLUGIN_OF[kind], pod.uid as PodUid, volume.name);
  const path = volume.kind === 'host-path' ? volume.path : undefined;
  return { kind, id, pod: pod.uid, name: volume.name, path } as unknown as VolumeSpec;
}
