/** Volumes, pods and publications: the identities and specifications that every floor above `mount` speaks of. */
import { createHash } from 'node:crypto';
import type { AbsolutePath } from '../mount/host.ts';
import type { Brand } from '../mount/absolute-path.ts';

/**
 * The kubelet's unique volume name: `kubernetes.io/csi/<driver>^<volumeHandle>` for CSI,
 * `<plugin>/<podUid>/<name>` for volumes that live and die with a pod. The kubelet joins the two by `-`, which two
 * pods can make the same: uids here need not be UUIDs.
 */
export type VolumeId = Brand<string, 'VolumeId'>;

/** Safe as one path component: letters, digits, `-`, `.` and `_`; at most 128 bytes; not `.` or `..`. */
export type PodUid = Brand<string, 'PodUid'>;

/** `<podUid>/<specName>`: one place where one pod sees one volume. */
export type PublicationKey = Brand<string, 'PublicationKey'>;

export interface PodReference {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod';

/** One pod at a time has it: that is all that it may be used for. */
export function isOncePod([only, ...more]: readonly AccessMode[]): boolean {
  return only === 'ReadWriteOncePod' && more.length === 0;
}

/** Bytes in decimal digits: CSI counts in int64, which no JavaScript number holds, and a record is JSON. */
export type Bytes = Brand<string, 'Bytes'>;

/** What a volume is to the pod: a directory tree, or a raw device. */
export type VolumeMode = 'Filesystem' | 'Block';

/** CSIDriver.spec.fsGroupPolicy, as the API server defaults it. */
export type FsGroupPolicy = 'ReadWriteOnceWithFSType' | 'File' | 'None';

/** What of a volume must be known to take it down again with every API object gone (INV-14). Holds no secret. */
export type VolumeSpec = VolumeSpecs[keyof VolumeSpecs];

/** The specifications by their kind: the traits of each kind add its own (`declare module`). */
// biome-ignore lint/suspicious/noEmptyInterface: what is declared elsewhere fills it.
export interface VolumeSpecs {}

export interface CsiVolumeSpec {
  readonly kind: 'csi';
  readonly id: VolumeId;
  readonly driver: string;
  readonly volumeHandle: string;
  /** The PersistentVolume's name. */
  readonly specName: string;
  /** Empty: the driver chooses. */
  readonly fsType: string;
  readonly mountOptions: readonly string[];
  readonly volumeAttributes: Readonly<Record<string, string>>;
  readonly accessModes: readonly AccessMode[];
  readonly readOnly: boolean;
  /** CSIDriver.spec.attachRequired; undefined when there is no CSIDriver object. */
  readonly attachRequired: boolean | undefined;
  readonly podInfoOnMount: boolean;
  readonly mode: VolumeMode;
  /** `Ephemeral`: written inline in the pod, lives and dies with it; never attached or staged (KEP-596). */
  readonly lifecycle: 'Persistent' | 'Ephemeral';
  readonly fsGroupPolicy: FsGroupPolicy;
  /** Service account tokens go into `secrets` instead of the volume context (KEP-5538). */
  readonly tokensInSecrets: boolean;
  /** Mounted with `-o context=` (KEP-1710); empty: without. Part of what the volume is staged as. */
  readonly seLinuxContext: string;
  /** What the driver's topology on a node must be; any of the terms, each with all of its rules. Absent: any node. */
  readonly reachableFrom?: readonly (readonly TopologyRule[])[];
  /** The name, never the content: detaching takes the secret that attaching took, as it is then (A-040). */
  readonly controllerPublishSecret?: SecretReference;
}

/** One expression of PersistentVolume.spec.nodeAffinity. */
export interface TopologyRule {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
  readonly values: readonly string[];
}

/** A Secret by its name. */
export interface SecretReference {
  readonly namespace: string;
  readonly name: string;
}

/** What every CsiVolumeSpec had before these fields existed: records of 0.1, and volumes found on disk. */
export const CSI_DEFAULTS = {
  mode: 'Filesystem',
  lifecycle: 'Persistent',
  fsGroupPolicy: 'ReadWriteOnceWithFSType',
  tokensInSecrets: false,
  seLinuxContext: '',
} as const satisfies Partial<CsiVolumeSpec>;

export interface EmptyDirVolumeSpec {
  readonly kind: 'empty-dir';
  readonly id: VolumeId;
  readonly pod: PodUid;
  readonly name: string;
  readonly medium: 'disk' | 'memory' | 'huge-pages';
  /** 0 is no limit; only what is in memory enforces it (the size of the file system). */
  readonly sizeLimitBytes: number;
  /** The size of one page, where the medium is huge pages. */
  readonly hugePageBytes?: number;
}

export type HostPathType =
  | ''
  | 'DirectoryOrCreate'
  | 'Directory'
  | 'FileOrCreate'
  | 'File'
  | 'Socket'
  | 'CharDevice'
  | 'BlockDevice';

export interface HostPathVolumeSpec {
  readonly kind: 'host-path';
  readonly id: VolumeId;
  readonly pod: PodUid;
  readonly name: string;
  readonly path: AbsolutePath;
  readonly type: HostPathType;
}

/** The files of an OCI image. What starts the containers has them and mounts them; nothing of it is ours. */
export interface ImageVolumeSpec {
  readonly kind: 'image';
  readonly id: VolumeId;
  readonly pod: PodUid;
  readonly name: string;
  readonly image: WantedImage;
}

export interface WantedImage {
  /** As in the pod: a name with a tag or a digest. */
  readonly reference: string;
  /** `Always`, `IfNotPresent`, `Never`; empty: what starts the containers decides. */
  readonly pullPolicy: string;
}

/** Files on a tmpfs that the wish brings, written by the atomic writer. The files travel in the publication. */
export interface ContentVolumeSpec {
  readonly kind: 'secret' | 'config-map' | 'downward-api' | 'projected';
  readonly id: VolumeId;
  readonly pod: PodUid;
  readonly name: string;
}

/** A mount of ours that no record or vol_data.json explains any more; it can only be taken down. */
export interface OrphanVolumeSpec {
  readonly kind: 'orphan';
  readonly id: VolumeId;
  /** Where it was found. */
  readonly path: AbsolutePath;
}

/** The origin of a publication that no manifest is known to have asked for: it was found on disk. */
export const RECONSTRUCTED = '';

/** The pod's fsGroup and how its owner wants it applied (KEP-695). */
export interface FsGroup {
  readonly gid: number;
  readonly changePolicy: 'Always' | 'OnRootMismatch';
}

/** One wanted place of a volume in a pod, as recorded. */
export interface PublicationSpec {
  readonly key: PublicationKey;
  readonly pod: PodReference;
  /** PersistentVolume name, or the pod's volume name: the last component of the kubelet's volume directory. */
  readonly specName: string;
  readonly readOnly: boolean;
  /** Absent: the pod has none. */
  readonly fsGroup?: FsGroup;
  /** The manifest file (or other source) that asked for it; a source that cannot be read freezes its pods. */
  readonly origin: string;
  /** What is bound of it for single containers. Absent: nothing is, and nothing was. */
  readonly subpaths?: readonly Subpath[];
}

/** A part of a volume that a container of the pod gets instead of all of it. */
export interface Subpath {
  /** The container's name. */
  readonly container: string;
  /** Which of the mounts of the container it is, counted from 0. */
  readonly index: number;
  /** Below the root of the volume: relative, without `..`. */
  readonly path: string;
}

/** The two places bind the same parts of the volume for the same containers. */
export function isSameSubpaths(a: PublicationSpec, b: PublicationSpec): boolean {
  const [left, right] = [a.subpaths ?? [], b.subpaths ?? []];
  return (
    left.length === right.length &&
    left.every(({ container, index, path }) =>
      right.some((one) => one.container === container && one.index === index && one.path === path),
    )
  );
}

/** `<domain>/<name>`, as the kubelet calls its plugins: the ids of the volumes of a kind begin with it. */
export type PluginName = `${string}/${string}`;

export const CSI_PLUGIN = 'kubernetes.io/csi';

const POD_UID = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,126}[A-Za-z0-9])?$/;
/**
 * CSI asks for 128; drivers in the field have longer ones (Azure: a resource path of about 180), and the kubelet passes
 * them on. Paths hold only their hash.
 */
export const VOLUME_HANDLE_BYTES_MAX = 2_048;

/** DNS-1123 subdomain, the rule for object and volume names that become path components. */
const OBJECT_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
/** CSI spec, GetPluginInfo: domain name notation, at most 63 characters. */
const DRIVER_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9.]{0,61}[A-Za-z0-9])?$/;
const LABEL_KEY =
  /^(?:(?=.{1,253}\/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\/)?(?=.{1,63}$)[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?$/;

export function parsePodUid(text: string): PodUid | undefined {
  return POD_UID.test(text) && !text.includes('..') ? (text as PodUid) : undefined;
}

export function isObjectName(text: string): boolean {
  return OBJECT_NAME.test(text) && !text.includes('..');
}

/** Keys of labels: an optional DNS-1123 subdomain and `/`, and a name of at most 63 characters. */
export function isLabelKey(text: string): boolean {
  return LABEL_KEY.test(text);
}

export function isDriverName(text: string): boolean {
  return DRIVER_NAME.test(text) && !text.includes('..');
}

/** Not negative; more than int64 holds is a broken invariant of the caller. */
export function bytesFrom(count: bigint | number): Bytes {
  return BigInt(count).toString() as Bytes;
}

export function isMoreThan(a: Bytes, b: Bytes): boolean {
  return BigInt(a) > BigInt(b);
}

/**
 * The handle of an inline volume, as the kubelet makes it: one pod, one volume name, one volume
 * (kubelet `makeVolumeHandle`; KV-C11).
 */
export function inlineVolumeHandle(pod: PodUid, volumeName: string): string {
  return `csi-${createHash('sha256').update(`${pod}${volumeName}`).digest('hex')}`;
}

/** Also what the lists of a Node's status call the volume. */
export function csiVolumeId(driver: string, volumeHandle: string): VolumeId {
  return `${CSI_PLUGIN}/${driver}^${volumeHandle}` as VolumeId;
}

/** Pods have a device of it and not files. */
export function hasDevice(spec: VolumeSpec): boolean {
  return (spec.kind === 'csi' || spec.kind === 'local') && spec.mode === 'Block';
}

/** A raw device of a driver and not files. */
export function isBlock(spec: VolumeSpec): spec is CsiVolumeSpec & { readonly mode: 'Block' } {
  return spec.kind === 'csi' && spec.mode === 'Block';
}

export function podVolumeId(plugin: PluginName, pod: PodUid, name: string): VolumeId {
  return `${plugin}/${pod}/${name}` as VolumeId;
}

/** Which plugin's volume it is. */
export function pluginOf(id: VolumeId): PluginName {
  const [domain = '', name = ''] = id.split('/', 2);
  return `${domain}/${name}`;
}

export function publicationKey(pod: PodUid, specName: string): PublicationKey {
  return `${pod}/${specName}` as PublicationKey;
}

/** Whose place it is: a pod's uid has no slash. */
export function podOf(key: PublicationKey): PodUid {
  return key.slice(0, key.indexOf('/')) as PodUid;
}
