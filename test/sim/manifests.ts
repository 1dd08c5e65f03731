/** Kubernetes objects as the user writes them, from what the simulated world means. */
import { iscsiSource, type IscsiVolume } from './iscsi-volumes.ts';
import { nfsSource, type NfsVolume } from './nfs-volumes.ts';
import type { FsGroup, FsGroupPolicy } from '../../plugins/volume.ts';
import { fieldsSource, projectedSource } from './pod-fields.ts';
import { isLocalDevice, type LocalVolume, localSource } from './local-volumes.ts';
import { mountsOf, type Subpaths } from './subpaths.ts';
import type { SimAccessMode } from './wish-history.ts';

export interface CsiVolume {
  readonly kind: 'csi';
  /** The volume's name in the pod. */
  readonly name: string;
  readonly disk: Disk;
  readonly readOnly: boolean;
}

/** Written in the pod itself; its handle follows from the pod's uid. */
export interface InlineVolume {
  readonly kind: 'inline';
  readonly name: string;
  readonly driver: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly secret: Content | undefined;
}

export type PodVolume =
  | CsiVolume
  | InlineVolume
  | LocalVolume
  | IscsiVolume
  | NfsVolume
  | {
      readonly kind: 'empty-dir';
      readonly name: string;
      readonly medium: 'disk' | 'memory' | 'huge-pages';
      /** Only one on disk has any. */
      readonly limitBytes?: number;
    }
  | { readonly kind: 'host-path'; readonly name: string; readonly path: string }
  | { readonly kind: 'image'; readonly name: string }
  | { readonly kind: 'secret' | 'config-map'; readonly name: string; readonly source: Content }
  | { readonly kind: 'downward-api'; readonly name: string; readonly showsAll: boolean }
  | {
      readonly kind: 'projected';
      readonly name: string;
      readonly showsAll: boolean;
      readonly sources: readonly Content[];
    };

export interface SimPod {
  readonly name: string;
  readonly uid: string;
  readonly volumes: readonly PodVolume[];
  readonly fsGroup: FsGroup | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly subpaths: Subpaths;
}

/** A PersistentVolume with its claim. */
export interface Disk {
  readonly driver: string;
  readonly handle: string;
  /** PersistentVolume name, which is also the last component of the kubelet's directory. */
  readonly specName: string;
  readonly claimName: string;
  /** A generic ephemeral volume: the pod whose claim it is. */
  readonly owner: { readonly name: string; readonly uid: string } | undefined;
  /** A device, as it is set up on this machine, or was last. */
  readonly block: boolean;
  wishedBlock: boolean;
  accessMode: SimAccessMode;
  fsType: string;
  mountOptions: readonly string[];
  bytes: bigint;
  /** What the claim's status says it has. */
  readonly statusBytes: bigint | undefined;
  attributes: Readonly<Record<string, string>>;
  readonly stageSecret: Content | undefined;
  readonly publishSecret: Content | undefined;
}

/** A Secret or ConfigMap. */
export interface Content {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly name: string;
  data: Readonly<Record<string, string>>;
}

export const NAMESPACE = 'default';
export const NODE_NAME = 'node-sim';

/** The pod, and the volumes and claims that are its own. */
export function podObjects(pod: SimPod): readonly object[] {
  const own = pod.volumes.flatMap((volume) => {
    return volume.kind === 'csi' && volume.disk.owner !== undefined ? diskObjects(volume.disk) : [];
  });
  return [podObject(pod), ...own];
}

function podObject(pod: SimPod): object {
  const isDevice = (volume: PodVolume): boolean =>
    volume.kind === 'local' ? isLocalDevice(volume) : volume.kind === 'csi' && volume.disk.wishedBlock;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: pod.name,
      namespace: NAMESPACE,
      uid: pod.uid,
      ...(Object.keys(pod.annotations).length === 0 ? {} : { annotations: pod.annotations }),
    },
    spec: {
      ...(pod.fsGroup === undefined
        ? {}
        : {
            securityContext: { fsGroup: pod.fsGroup.gid, fsGroupChangePolicy: pod.fsGroup.changePolicy },
          }),
      containers: [
        {
          name: 'main',
          image: 'none',
          ...resourcesOf(pod),
          volumeMounts: mountsOf(
            pod,
            pod.volumes.filter((volume) => !isDevice(volume)),
          ),
          volumeDevices: pod.volumes
            .filter(isDevice)
            .map(({ name }) => ({ name, devicePath: `/dev/x${name}` })),
        },
      ],
      volumes: pod.volumes.map((volume) => ({ name: volume.name, ...volumeSource(volume) })),
    },
  };
}

const MEDIA = {
  disk: {},
  memory: { medium: 'Memory', sizeLimit: '16Mi' },
  'huge-pages': { medium: 'HugePages-2Mi' },
} as const;

/** What a pod with huge pages has to say of its container. */
function resourcesOf({ volumes }: SimPod): object {
  const isHuge = volumes.some((one) => one.kind === 'empty-dir' && one.medium === 'huge-pages');
  return isHuge ? { resources: { limits: { 'hugepages-2Mi': '4Mi' } } } : {};
}

function volumeSource(volume: PodVolume): object {
  switch (volume.kind) {
    case 'csi':
      return volume.disk.owner === undefined
        ? { persistentVolumeClaim: { claimName: volume.disk.claimName, readOnly: volume.readOnly } }
        : { ephemeral: { volumeClaimTemplate: { spec: claimSpec(volume.disk) } } };
    case 'inline':
      return {
        csi: {
          driver: volume.driver,
          volumeAttributes: volume.attributes,
          ...(volume.secret === undefined ? {} : { nodePublishSecretRef: { name: volume.secret.name } }),
        },
      };
    case 'iscsi':
      return iscsiSource(volume);
    case 'nfs':
      return nfsSource(volume);
    case 'local':
      return localSource(volume);
    case 'empty-dir':
      return {
        emptyDir: volume.limitBytes === undefined ? MEDIA[volume.medium] : { sizeLimit: volume.limitBytes },
      };
    case 'host-path':
      return { hostPath: { path: volume.path, type: 'DirectoryOrCreate' } };
    case 'image':
      return { image: { reference: 'quay.example/data:1', pullPolicy: 'IfNotPresent' } };
    case 'secret':
      return { secret: { secretName: volume.source.name } };
    case 'config-map':
      return { configMap: { name: volume.source.name } };
    case 'downward-api':
      return { downwardAPI: fieldsSource(volume) };
    case 'projected':
      return { projected: projectedSource(volume) };
  }
}

function claimSpec(disk: Disk): object {
  return {
    accessModes: [disk.accessMode],
    ...(disk.wishedBlock ? { volumeMode: 'Block' } : {}),
    resources: { requests: { storage: String(disk.bytes) } },
  };
}

export function diskObjects(disk: Disk): readonly object[] {
  const secret = (one: Content | undefined) =>
    one === undefined ? undefined : { name: one.name, namespace: NAMESPACE };
  const { owner, statusBytes } = disk;
  const persistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: disk.specName },
    spec: {
      capacity: { storage: String(disk.bytes) },
      accessModes: [disk.accessMode],
      ...(disk.wishedBlock ? { volumeMode: 'Block' } : {}),
      ...(disk.mountOptions.length === 0 ? {} : { mountOptions: disk.mountOptions }),
      claimRef: { namespace: NAMESPACE, name: disk.claimName },
      csi: {
        driver: disk.driver,
        volumeHandle: disk.handle,
        ...(disk.fsType === '' ? {} : { fsType: disk.fsType }),
        volumeAttributes: disk.attributes,
        nodeStageSecretRef: secret(disk.stageSecret),
        nodePublishSecretRef: secret(disk.publishSecret),
      },
    },
  };
  const controller = { apiVersion: 'v1', kind: 'Pod', controller: true, ...owner };
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: disk.claimName,
      namespace: NAMESPACE,
      ...(owner === undefined ? {} : { ownerReferences: [controller] }),
    },
    spec: { ...claimSpec(disk), volumeName: disk.specName },
    ...(statusBytes === undefined ? {} : { status: { capacity: { storage: String(statusBytes) } } }),
  };
  return [persistentVolume, claim];
}

export function contentObject(content: Content): object {
  const metadata = { name: content.name, namespace: NAMESPACE };
  if (content.kind === 'ConfigMap')
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: content.data };
  return { apiVersion: 'v1', kind: 'Secret', metadata, stringData: content.data };
}

export interface DriverTerms {
  readonly name: string;
  readonly attaches: boolean;
  readonly inline: boolean;
  readonly republishes: boolean;
  readonly fsGroupPolicy: FsGroupPolicy;
}

export function driverObject({ name, attaches, inline, republishes, fsGroupPolicy }: DriverTerms): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name },
    spec: {
      attachRequired: attaches,
      podInfoOnMount: inline,
      requiresRepublish: republishes,
      fsGroupPolicy,
      ...(inline ? { volumeLifecycleModes: ['Persistent', 'Ephemeral'] } : {}),
    },
  };
}

/** This machine; `marked` says that its volumes were given away (KEP-2268). */
export function nodeObject(marked: boolean): object {
  const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: NODE_NAME },
    spec: marked ? { taints: [taint] } : {},
  };
}

/** What a controller says of a disk and this machine; `attached` is undefined while it attaches. */
export interface AttachmentWord {
  readonly disk: Disk;
  readonly attached: boolean | undefined;
  readonly going: boolean;
  readonly uid?: string | undefined;
}

export function attachmentObject({ disk, attached, going, uid }: AttachmentWord, name: string): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: {
      name,
      ...(uid === undefined ? {} : { uid }),
      ...(going ? { deletionTimestamp: '2026-11-21T10:00:00Z' } : {}),
    },
    spec: {
      attacher: disk.driver,
      nodeName: NODE_NAME,
      source: { persistentVolumeName: disk.specName },
    },
    ...(attached === undefined ? {} : { status: { attached } }),
  };
}

/** An object of another machine: a file without any object says nothing at all. */
export const ELSEWHERE: object = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  metadata: { name: 'elsewhere' },
  spec: { attacher: 'none', nodeName: 'another', source: { persistentVolumeName: 'none' } },
  status: { attached: false },
};

/** One file of any number of objects. JSON is YAML, and a cut piece of it is never a valid file. */
export function manifestText(objects: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
}
