/** Pods for the bench and where their volumes will be seen. Manifests are JSON lists: the fastest to read. */
import { csiVolumeId, type VolumeId } from '../../plugins/volume.ts';

export interface BenchPod {
  readonly objects: readonly object[];
  /** Keys of its publications, `<pod uid>/<name>`, as in the agent's log. */
  readonly publications: readonly string[];
  readonly csiPublications: readonly string[];
  readonly csiVolumes: readonly VolumeId[];
  readonly csiHandles: readonly string[];
}

export type ContentKind = 'secret' | 'configMap' | 'emptyDir';

/** Handles are `h-<pod>-<n>`, unless they are given. */
export interface PodWish {
  readonly name: string;
  readonly driver: string;
  readonly csiVolumes: number;
  readonly others: readonly ContentKind[];
  readonly handles?: readonly string[];
  readonly fsType?: string;
}

export function benchPod({ name, driver, csiVolumes, others, handles, fsType }: PodWish): BenchPod {
  const volumes = Array.from({ length: csiVolumes }, (_, index) => ({
    name: `v-${name}-${index}`,
    handle: handles?.[index] ?? `h-${name}-${index}`,
  }));
  const sources = [
    ...volumes.map((volume, index) => ({
      name: `csi-${index}`,
      persistentVolumeClaim: { claimName: volume.name },
    })),
    ...others.map((kind) => ({ name: kind.toLowerCase(), ...sourceOf(kind, name) })),
  ];
  const volumeMounts = sources.map((source) => ({ name: source.name, mountPath: `/${source.name}` }));
  const csiPublications = volumes.map((volume) => `${name}/${volume.name}`);
  return {
    objects: [
      ...volumes.flatMap((volume) => storage(volume.name, driver, volume.handle, fsType)),
      ...others.flatMap((kind) => contentOf(kind, name)),
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, uid: name },
        spec: { containers: [{ name: 'main', volumeMounts }], volumes: sources },
      },
    ],
    publications: [...csiPublications, ...others.map((kind) => `${name}/${kind.toLowerCase()}`)],
    csiPublications,
    csiVolumes: volumes.map(({ handle }) => csiVolumeId(driver, handle)),
    csiHandles: volumes.map(({ handle }) => handle),
  };
}

/**
 * Pods without volumes. A listing in which most pods vanish has to last for ten seconds before it is believed; they
 * make the others a minority, so that what is measured is the work and not that wait.
 */
export function bystanders(count: number): readonly object[] {
  return Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `bystander-${index}` },
    spec: { containers: [{ name: 'main' }] },
  }));
}

export function manifestOf(objects: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
}

function storage(
  name: string,
  driver: string,
  volumeHandle: string,
  fsType: string | undefined,
): readonly object[] {
  const accessModes = ['ReadWriteOnce'];
  const csi = { driver, volumeHandle, ...(fsType === undefined ? {} : { fsType }) };
  const claimRef = { namespace: 'default', name };
  return [
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec: { accessModes, claimRef, csi } },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: { accessModes, volumeName: name },
    },
  ];
}

function sourceOf(kind: ContentKind, pod: string): object {
  switch (kind) {
    case 'secret':
      return { secret: { secretName: `s-${pod}` } };
    case 'configMap':
      return { configMap: { name: `c-${pod}` } };
    case 'emptyDir':
      return { emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } };
  }
}

function contentOf(kind: ContentKind, pod: string): readonly object[] {
  switch (kind) {
    case 'secret':
      return [
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: `s-${pod}` },
          stringData: { a: 'bench', b: pod },
        },
      ];
    case 'configMap':
      return [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `c-${pod}` }, data: { a: 'bench', b: pod } },
      ];
    case 'emptyDir':
      return [];
  }
}
