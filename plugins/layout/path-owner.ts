/** What a path of the layout is for, and whose it is: the identities that layout.ts makes paths of. */
import type { PodUid } from '../volume.ts';
import type { OWN_FILES } from './component.ts';

export type PathOwner =
  | SharedOwner
  /** `plugins_registry/<name>`: the socket by which a driver registers. */
  | { readonly kind: 'registration'; readonly name: string }
  /** A file of the agent itself, in `mooring/`. */
  | { readonly kind: 'own-file'; readonly file: keyof typeof OWN_FILES }
  /** `mooring/records/<name>`: what is remembered of one volume, its tombstones included. */
  | { readonly kind: 'record'; readonly name: string }
  /** The directory of a pod, and those in it that only hold what is the pod's. */
  | { readonly kind: 'pod'; readonly pod: PodUid }
  | MarkerOwner
  | PodVolumeOwner
  /** `pods/<uid>/volume-subpaths/<volume>/<container>/<index>`, where a kubelet binds a part of a volume. */
  | ({ readonly kind: 'subpath'; readonly container: string; readonly index: string } & OfPodVolume)
  /** `plugins/kubernetes.io/csi/<driver>`. */
  | { readonly kind: 'driver'; readonly driver: string }
  | StageOwner
  /** `plugins/kubernetes.io/csi/pv/<volume>`, where kubelets before v1.24 staged, or what is in it. */
  | { readonly kind: 'old-stage'; readonly specName: string; readonly part: StageOwner['part'] }
  | BlockVolumeOwner
  | BlockStageOwner
  | BlockPublicationOwner
  | LocalStageOwner
  | LocalDeviceOwner
  | IscsiStageOwner
  /** `mooring/sessions/<name>.json`: a session of iSCSI that the agent has begun, or was about to. */
  | { readonly kind: 'session-note'; readonly name: string }
  /** `mooring/formats/<volume>.json`: the intent to format a device. */
  | { readonly kind: 'format'; readonly specName: string }
  /** A file that is being written, or what a crash has left of one: see mount/temporary-file.ts. */
  | { readonly kind: 'temporary'; readonly of: PathOwner };

interface OfPodVolume {
  readonly pod: PodUid;
  readonly specName: string;
}

/** A directory that nobody owns alone. */
export interface SharedOwner {
  readonly kind: 'shared';
  readonly directory: 'root' | 'pods' | 'plugins' | 'registry' | 'own' | 'records' | SharedStages;
}

type SharedStages =
  | 'local-stages'
  | 'local-devices'
  | 'iscsi-stages'
  | 'session-notes'
  | 'formats'
  | 'stages'
  | 'block-devices'
  | 'block-stages'
  | 'block-targets';

/** The directory of a readiness marker, or what is in it. */
export interface MarkerOwner extends OfPodVolume {
  readonly kind: 'marker';
  /** It is the marker of a secret, configMap or their like; otherwise it is that of an emptyDir. */
  readonly isWrapped: boolean;
  readonly part: 'directory' | 'content';
}

/**
 * `pods/<uid>/volumes/<plugin with ~>/<specName>`, or what is in it. `mount` and `data` are told by their names alone;
 * in a volume whose files lie in its directory they are two of those files.
 */
export interface PodVolumeOwner extends OfPodVolume {
  readonly kind: 'volume';
  /** That of a kind of ours, or any other name: kubelets know more plugins. */
  readonly plugin: string;
  readonly part: 'directory' | 'mount' | 'data' | 'content';
}

/** `plugins/kubernetes.io/csi/<driver>/<sha256hex(volumeHandle)>`, or what is in it. */
export interface StageOwner {
  readonly kind: 'stage';
  readonly driver: string;
  readonly handleHash: string;
  readonly part: 'directory' | 'mount' | 'data' | 'content';
}

/** The directories that all publications of one block volume share; `data` is the directory of its vol_data.json. */
export interface BlockVolumeOwner {
  readonly kind: 'block-volume';
  readonly specName: string;
  readonly part: 'directory' | 'holds' | 'targets' | 'data-directory' | 'data' | 'content';
}

/** `plugins/kubernetes.io/local-volume/mounts/<volume>`, or what is in it. */
export interface LocalStageOwner {
  readonly kind: 'local-stage';
  readonly specName: string;
  readonly part: 'directory' | 'content';
}

/** `plugins/kubernetes.io~local-volume/volumeDevices/<volume>`, and one publication of it: its bind, its link. */
export type LocalDeviceOwner =
  | { readonly kind: 'local-device'; readonly specName: string }
  | ({ readonly kind: 'local-device-publication'; readonly part: 'held' | 'link' } & OfPodVolume);

/** `plugins/kubernetes.io/iscsi/iface-<interface>/<name>`, or what is in it. */
export interface IscsiStageOwner {
  readonly kind: 'iscsi-stage';
  readonly iface: string;
  readonly name: string;
  readonly part: 'directory' | 'content';
}

export interface BlockStageOwner {
  readonly kind: 'block-stage';
  readonly specName: string;
  readonly part: 'directory' | 'content';
}

/** One place of `BlockPublicationLayout`; `content` is in a target that the driver has made a directory. */
export interface BlockPublicationOwner extends OfPodVolume {
  readonly kind: 'block-publication';
  readonly part: 'published' | 'held' | 'link' | 'content';
}
