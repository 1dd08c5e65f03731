/** What a user would have written for one volume of a driver and a pod that uses it. Pure. */
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../plugins/csi/wire/generated/csi.ts';
import type { DriveOptions, StringMap } from './drive-options.ts';
import type { TestVolume } from './test-volume.ts';

export const POD_UID = 'd1e00000-0000-4000-8000-000000000001';
export const PV = 'driven';
const CLAIM = 'driven';
const NAMESPACE = 'default';

const REFERENCES = {
  controllerPublish: 'controllerPublishSecretRef',
  stage: 'nodeStageSecretRef',
  publish: 'nodePublishSecretRef',
} as const;

/** JSON text of a List: PersistentVolume, claim, pod, and the secrets the driver is given. */
export function volumeManifest(driver: string, volume: TestVolume, options: DriveOptions): string {
  const calls = Object.keys(REFERENCES) as (keyof typeof REFERENCES)[];
  const given = calls.filter((call) => Object.keys(options.secrets[call]).length > 0);
  const accessModes = [accessModeOf(options.accessMode)];
  const resources = { requests: { storage: '1' } };
  const items = [
    ...given.map((call) => secret(`drive-${call.toLowerCase()}`, options.secrets[call])),
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: PV },
      spec: {
        capacity: { storage: '1' },
        accessModes,
        claimRef: { namespace: NAMESPACE, name: CLAIM },
        csi: {
          driver,
          volumeHandle: volume.id,
          volumeAttributes: volume.context,
          ...(options.fsType === '' ? {} : { fsType: options.fsType }),
          ...Object.fromEntries(given.map((call) => [REFERENCES[call], reference(call)])),
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: CLAIM, namespace: NAMESPACE },
      spec: { accessModes, volumeName: PV, storageClassName: '', resources },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'driven', namespace: NAMESPACE, uid: POD_UID },
      spec: {
        containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: CLAIM } }],
      },
    },
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

function reference(call: string): object {
  return { name: `drive-${call.toLowerCase()}`, namespace: NAMESPACE };
}

function secret(name: string, stringData: StringMap): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: NAMESPACE }, stringData };
}

function accessModeOf(mode: Mode | undefined): string {
  switch (mode) {
    case Mode.MULTI_NODE_READER_ONLY:
      return 'ReadOnlyMany';
    case Mode.MULTI_NODE_MULTI_WRITER:
    case Mode.MULTI_NODE_SINGLE_WRITER:
      return 'ReadWriteMany';
    case Mode.SINGLE_NODE_SINGLE_WRITER:
      return 'ReadWriteOncePod';
    default:
      return 'ReadWriteOnce';
  }
}
