/** The objects of the hostile world as Kubernetes YAML (JSON is YAML). */
import { DRIVER } from './hostile-driver.ts';

export interface HostilePod {
  readonly uid: string;
  readonly handle: string;
}

/** The pod's CSI volume, seen from its manifest. */
export function claimOf(handle: string): string {
  return `claim-${handle}`;
}

export function volumeObjects(handles: readonly string[]): string {
  return documents(
    handles.flatMap((handle) => [
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: handle },
        spec: {
          capacity: { storage: '16Mi' },
          accessModes: ['ReadWriteMany'],
          claimRef: { name: claimOf(handle), namespace: 'default' },
          csi: { driver: DRIVER, volumeHandle: handle },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: claimOf(handle), namespace: 'default' },
        spec: {
          accessModes: ['ReadWriteMany'],
          volumeName: handle,
          storageClassName: '',
          resources: { requests: { storage: '16Mi' } },
        },
      },
    ]),
  );
}

export function podObject({ uid, handle }: HostilePod): string {
  const volumes = [
    { name: 'data', persistentVolumeClaim: { claimName: claimOf(handle) } },
    { name: 'scratch', emptyDir: {} },
    { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
    { name: 'keys', secret: { secretName: `keys-${uid}` } },
  ];
  return documents([
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `keys-${uid}`, namespace: 'default' },
      stringData: { password: `canary-${uid}` },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: uid, namespace: 'default', uid },
      spec: {
        containers: [
          {
            name: 'main',
            image: 'none',
            volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
          },
        ],
        volumes,
      },
    },
  ]);
}

function documents(objects: readonly object[]): string {
  return objects.map((one) => JSON.stringify(one)).join('\n---\n');
}
