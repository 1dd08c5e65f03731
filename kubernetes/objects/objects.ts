/** The objects of the wish: of each Kubernetes kind only the fields that decide about volumes. */
import type { IscsiTarget } from '../fields/iscsi-target.ts';
import type { NfsExport } from '../fields/nfs-export.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { Container, SeLinuxLabel } from './container.ts';
import type { Sensitive } from '../../plugins/secret/sensitive.ts';
import type {
  AccessMode,
  Bytes,
  CsiVolumeSpec,
  FsGroup,
  FsGroupPolicy,
  PodReference,
  TopologyRule,
  VolumeMode,
} from '../../plugins/volume.ts';
import type { ContentSource, DownwardSource, ProjectedSource } from './content-source.ts';
import type { NodeResources } from '../fields/node-resource.ts';
import type { EmptyDirSource } from '../sources/read-empty-dir.ts';
import type { HostPathSource } from '../sources/read-host-path.ts';
import type { ImageSource } from '../sources/read-image.ts';

/** Where an object was read; the source writes it, not the manifest. */
export interface Stamp {
  /** The part of the source that says it: the manifest file's name. */
  readonly origin: string;
  /** People are told where in it: the file and the document, `web.yaml#2`. */
  readonly place: string;
}

/** Namespace and name as one key; cluster-wide objects are keyed by their name alone. */
export type ObjectKey = string;

/** A namespaced object by name; both parts have kept their name rules. */
export interface NamedReference {
  readonly namespace: string;
  readonly name: string;
}

/** A pod: who it is, and the volumes it wants. */
export interface Pod {
  readonly kind: 'Pod';
  readonly reference: PodReference;
  /** Those that a container mounts; as by the kubelet, the others are ignored. */
  readonly volumes: readonly PodVolume[];
  /** Those of all kinds. */
  readonly containers: readonly Container[];
  /** securityContext.fsGroup and fsGroupChangePolicy. */
  readonly fsGroup: FsGroup | undefined;
  /** The one label of all containers that mount something, as far as it is written; `different`: there is not one. */
  readonly seLinux: SeLinuxLabel | 'different' | undefined;
}

/** A volume as the pod names it; the name is unique in the pod and safe as a path component. */
export interface PodVolume {
  readonly name: string;
  /** Used through volumeDevices: as a raw block device. */
  readonly block: boolean;
  readonly source: PodVolumeSource;
}

/** Where the content of a pod's volume comes from. `unsupported` is known to be a source, but not one we set up. */
export type PodVolumeSource =
  | { readonly kind: 'claim'; readonly claimName: string; readonly readOnly: boolean }
  /** Generic ephemeral: the claim `<pod>-<volume>`, which must be owned by the pod (KEP-1698). */
  | { readonly kind: 'own-claim' }
  | InlineSource
  | EmptyDirSource
  | IscsiSource
  | NfsSource
  | HostPathSource
  | ImageSource
  | ContentSource
  | DownwardSource
  | ProjectedSource
  | { readonly kind: 'unsupported'; readonly what: string };

/** A CSI volume written in the pod itself (KEP-596); the secret is looked up in the pod's namespace. */
export interface InlineSource {
  readonly kind: 'csi-inline';
  readonly driver: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly volumeAttributes: Readonly<Record<string, string>>;
  readonly publishSecretName: string | undefined;
}

/** A PersistentVolume; `accessModes` is never empty, each mount option has passed `mountOptionProblem`. */
export interface PersistentVolume {
  readonly kind: 'PersistentVolume';
  readonly name: string;
  /** It is as of a claim. */
  readonly leaving: boolean;
  readonly source:
    | CsiSource
    | HostPathSource
    | IscsiSource
    | LocalSource
    | NfsSource
    | { readonly kind: 'unsupported'; readonly what: string };
  readonly accessModes: readonly AccessMode[];
  readonly mountOptions: readonly string[];
  readonly volumeMode: VolumeMode;
  readonly claimRef: (NamedReference & { readonly uid: string | undefined }) | undefined;
  /** spec.nodeAffinity.required; undefined: from every node. */
  readonly reachableFrom: readonly (readonly TopologyRule[])[] | undefined;
  /** spec.capacity.storage; undefined when it is not written. */
  readonly capacityBytes: Bytes | undefined;
  /** Annotation `pv.beta.kubernetes.io/gid`: the supplemental group of each pod that uses it; `none`: it is none. */
  readonly supplementalGid: number | 'none' | undefined;
}

/** A volume of a CSI driver. `volumeHandle` has 1 to 2,048 bytes; secrets are references, resolved late. */
export interface CsiSource {
  readonly kind: 'csi';
  readonly driver: string;
  readonly volumeHandle: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly volumeAttributes: Readonly<Record<string, string>>;
  readonly controllerPublishSecret: NamedReference | undefined;
  readonly stageSecret: NamedReference | undefined;
  readonly publishSecret: NamedReference | undefined;
  readonly expandSecret: NamedReference | undefined;
}

/** A directory of an NFS server. */
export interface NfsSource extends NfsExport {
  readonly kind: 'nfs';
  readonly readOnly: boolean;
}

/** A disk of an iSCSI target. */
export interface IscsiSource extends IscsiTarget {
  readonly kind: 'iscsi';
  /** Empty: not said. */
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly chap: { readonly discovery: boolean; readonly session: boolean };
  /** An empty namespace is that of the pod. */
  readonly secret: NamedReference | undefined;
}

/** A directory or disk of the one machine that `nodeAffinity` names. */
export interface LocalSource {
  readonly kind: 'local';
  readonly path: AbsolutePath;
  /** Empty: not said. */
  readonly fsType: string;
}

/** A claim, from the pod's namespace, to a PersistentVolume. */
export interface PersistentVolumeClaim {
  readonly kind: 'PersistentVolumeClaim';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
  /** The PersistentVolume it is bound to; undefined when the binding is written on the other side, or nowhere. */
  readonly volumeName: string | undefined;
  /** All of them must be among those of the volume; empty: it asks for none. */
  readonly accessModes: readonly AccessMode[];
  readonly volumeMode: VolumeMode;
  /** Being deleted and no longer protected: for a new setup it is as good as gone. */
  readonly leaving: boolean;
  /** The pod that controls it (metadata.ownerReferences), by uid. */
  readonly ownerPodUid: string | undefined;
  /** spec.resources.requests.storage; undefined when it is not written. */
  readonly requestedBytes: Bytes | undefined;
  /** status.capacity.storage and status.allocatedResources.storage. */
  readonly statusBytes: Bytes | undefined;
  readonly allocatedBytes: Bytes | undefined;
  /** status.allocatedResourceStatuses.storage: `NodeResizePending` and its like (KEP-1790); empty when not written. */
  readonly resizeStatus: string;
  /** Annotation `volume.kubernetes.io/node-expansion-not-required` (k/k#131419). */
  readonly nodeExpansionNotRequired: boolean;
}

/** A StorageClass has no part in volumes that exist: it may be in a manifest, and only its name is read. */
interface StorageClass {
  readonly kind: 'StorageClass';
  readonly name: string;
}

/** How a volume comes to be: as a PersistentVolume, or with its pod (KEP-596). */
export type LifecycleMode = CsiVolumeSpec['lifecycle'];

/** What the cluster says about a driver, with the API server's defaults filled in. */
export interface CsiDriver {
  readonly kind: 'CSIDriver';
  readonly name: string;
  readonly attachRequired: boolean;
  readonly podInfoOnMount: boolean;
  readonly fsGroupPolicy: FsGroupPolicy;
  /** Never empty. */
  readonly lifecycleModes: readonly LifecycleMode[];
  readonly requiresRepublish: boolean;
  readonly tokenRequests: readonly TokenRequest[];
  readonly seLinuxMount: boolean;
  readonly serviceAccountTokenInSecrets: boolean;
}

/** One token that a driver wants of the pod's service account (KEP-1855). */
export interface TokenRequest {
  /** Empty: the API server's own audience. */
  readonly audience: string;
  readonly expirationSeconds: number | undefined;
}

/** The Node object of this machine. */
export interface Node {
  readonly kind: 'Node';
  readonly name: string;
  /** The mark that its volumes were given to others (KEP-2268). */
  readonly outOfService: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** status.allocatable. */
  readonly allocatable: NodeResources;
}

/** What an attach/detach controller says of one PersistentVolume and one node; the volume is named by its object. */
export interface VolumeAttachment {
  readonly kind: 'VolumeAttachment';
  readonly name: string;
  /** The API server gives every object its own; one written by hand may have none. */
  readonly uid: string | undefined;
  /** The driver. */
  readonly attacher: string;
  readonly nodeName: string;
  readonly volumeName: string;
  /** status.attached; undefined without a status: nothing is said yet. */
  readonly attached: boolean | undefined;
  /** status.attachError.message; undefined when it is not written. */
  readonly attachError: string | undefined;
  /** Deletion has been asked for: it is being detached. */
  readonly deleted: boolean;
}

/** What a Secret or a ConfigMap has beside its data. */
interface ContentMetadata extends NamedReference {
  /** The API server gives every object its own; one written by hand may have none. */
  readonly uid: string | undefined;
  /** Its data is never another one: what is read of this object later does not count. */
  readonly immutable: boolean;
}

/** A Secret, its data decoded, and sealed from the moment of parsing. */
export interface Secret extends ContentMetadata {
  readonly kind: 'Secret';
  readonly data: Sensitive<ReadonlyMap<string, Uint8Array>>;
}

/** A ConfigMap: data as UTF-8 and binaryData decoded, together. */
export interface ConfigMap extends ContentMetadata {
  readonly kind: 'ConfigMap';
  readonly data: ReadonlyMap<string, Uint8Array>;
}

/** Any object of the wish, without its stamp. */
export type ApiObject =
  | Pod
  | PersistentVolume
  | PersistentVolumeClaim
  | StorageClass
  | CsiDriver
  | Node
  | VolumeAttachment
  | Secret
  | ConfigMap;

/** An object as the wish holds it: with where it came from and which version of it this is. */
export type Stamped<T> = T & Stamp;

/** The apiVersions of each kind that is read; anything else is somebody else's object. */
export const API_VERSIONS = {
  Pod: ['v1'],
  PersistentVolume: ['v1'],
  PersistentVolumeClaim: ['v1'],
  StorageClass: ['storage.k8s.io/v1'],
  CSIDriver: ['storage.k8s.io/v1'],
  Node: ['v1'],
  VolumeAttachment: ['storage.k8s.io/v1'],
  Secret: ['v1'],
  ConfigMap: ['v1'],
} as const satisfies Record<ApiObject['kind'], readonly string[]>;

/** `namespace/name`. */
export function objectKey(reference: NamedReference): ObjectKey {
  return `${reference.namespace}/${reference.name}`;
}

/** Kind and key: what makes two objects the same one. For people too: `Pod default/web`. */
export function identityOf(object: ApiObject): string {
  return `${object.kind} ${keyOf(object)}`;
}

/** The key under which the wish holds the object, among those of its kind. */
export function keyOf(object: ApiObject): ObjectKey {
  if (object.kind === 'Pod') return objectKey(object.reference);
  return 'namespace' in object ? objectKey(object) : object.name;
}
