/** Kubernetes objects as the user writes them, from what the simulated world means. */

export interface CsiVolume {
  readonly kind: 'csi';
  /** The volume's name in the pod. */
  readonly name: string;
  readonly disk: Disk;
  readonly readOnly: boolean;
}

export type PodVolume =
  | CsiVolume
  | { readonly kind: 'empty-dir'; readonly name: string; readonly medium: 'disk' | 'memory' }
  | { readonly kind: 'host-path'; readonly name: string; readonly path: string }
  | { readonly kind: 'secret' | 'config-map'; readonly name: string; readonly source: Content };

export interface SimPod {
  readonly name: string;
  readonly uid: string;
  readonly volumes: readonly PodVolume[];
}

/** A PersistentVolume with its claim. */
export interface Disk {
  readonly driver: string;
  readonly handle: string;
  /** PersistentVolume name, which is also the last component of the kubelet's directory. */
  readonly specName: string;
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

export function podObject(pod: SimPod): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod.name, namespace: NAMESPACE, uid: pod.uid },
    spec: {
      containers: [
        {
          name: 'main',
          image: 'none',
          volumeMounts: pod.volumes.map(({ name }) => ({ name, mountPath: `/data/${name}` })),
        },
      ],
      volumes: pod.volumes.map((volume) => ({ name: volume.name, ...volumeSource(volume) })),
    },
  };
}

function volumeSource(volume: PodVolume): object {
  switch (volume.kind) {
    case 'csi':
      return { persistentVolumeClaim: { claimName: volume.disk.specName, readOnly: volume.readOnly } };
    case 'empty-dir':
      return { emptyDir: volume.medium === 'memory' ? { medium: 'Memory', sizeLimit: '16Mi' } : {} };
    case 'host-path':
      return { hostPath: { path: volume.path, type: 'DirectoryOrCreate' } };
    case 'secret':
      return { secret: { secretName: volume.source.name } };
    case 'config-map':
      return { configMap: { name: volume.source.name } };
  }
}

export function diskObjects(disk: Disk): readonly object[] {
  const secret = (one: Content | undefined) =>
    one === undefined ? undefined : { name: one.name, namespace: NAMESPACE };
  const persistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: disk.specName },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteMany'],
      claimRef: { namespace: NAMESPACE, name: disk.specName },
      csi: {
        driver: disk.driver,
        volumeHandle: disk.handle,
        volumeAttributes: disk.attributes,
        nodeStageSecretRef: secret(disk.stageSecret),
        nodePublishSecretRef: secret(disk.publishSecret),
      },
    },
  };
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: disk.specName, namespace: NAMESPACE },
    spec: {
      accessModes: ['ReadWriteMany'],
      resources: { requests: { storage: '1Gi' } },
      volumeName: disk.specName,
    },
  };
  return [persistentVolume, claim];
}

export function contentObject(content: Content): object {
  const metadata = { name: content.name, namespace: NAMESPACE };
  if (content.kind === 'ConfigMap')
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: content.data };
  return { apiVersion: 'v1', kind: 'Secret', metadata, stringData: content.data };
}

export function driverObject(name: string, attaches: boolean): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name },
    spec: { attachRequired: attaches, podInfoOnMount: false },
  };
}

/** One file of any number of objects. JSON is YAML, and a cut piece of it is never a valid file. */
export function manifestText(objects: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
}
