/** What a burst needs in the API server: volumes with bound claims, and pods that name them, many at once. */
import type { AdminChange, AdminClient } from '../../cluster/admin-client.ts';
import { until } from '../../until.ts';
import { NOOP } from '../world.ts';
import type { ClusterPod } from './cluster-node.ts';

const CORE = '/api/v1/namespaces/default';
export const PODS = `${CORE}/pods`;
const CLAIMS = `${CORE}/persistentvolumeclaims`;
const AT_ONCE = 16;
const MINUTES = { waitMsMax: 600_000, lookEveryMs: 50 };
const CONTAINER = 'main';

/** Each is begun in turn, so many at a time. */
export async function allOf<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = [...items];
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

export function podsOf(name: string, count: number, volumes: number): readonly ClusterPod[] {
  return Array.from({ length: count }, (_, pod) => ({
    name: `${name}-${pod}`,
    volumes: Array.from({ length: volumes }, (_unused, index) => `${name}-${pod}-${index}`),
  }));
}

/** Settles when the real binder has bound all of their claims. */
export async function makeVolumes(admin: AdminClient, pods: readonly ClusterPod[]): Promise<void> {
  const volumes = pods.flatMap((pod) => pod.volumes);
  const bound = new Set<string>();
  const watch = admin.watch(CLAIMS, ({ object }: AdminChange) => {
    const { metadata, status } = object as unknown as {
      readonly metadata: { readonly name: string };
      readonly status?: { readonly phase?: string };
    };
    if (status?.phase === 'Bound') bound.add(metadata.name);
  });
  try {
    await watch.begun;
    const common = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
    await allOf(volumes, (name) =>
      admin.request('POST', '/api/v1/persistentvolumes', {
        metadata: { name },
        spec: {
          ...common,
          capacity: { storage: '1Mi' },
          csi: { driver: NOOP, volumeHandle: name },
          claimRef: { namespace: 'default', name },
        },
      }),
    );
    await allOf(volumes, (name) =>
      admin.request('POST', CLAIMS, {
        metadata: { name },
        spec: { ...common, volumeName: name, resources: { requests: { storage: '1Mi' } } },
      }),
    );
    await until('all claims are bound', () => volumes.every((name) => bound.has(name)), MINUTES);
  } finally {
    watch.end();
  }
}

export async function makePods(
  admin: AdminClient,
  nodeName: string,
  pods: readonly ClusterPod[],
): Promise<void> {
  await allOf(pods, ({ name, volumes }) =>
    admin.request('POST', PODS, {
      metadata: { name },
      spec: {
        nodeName,
        serviceAccountName: 'default',
        containers: [
          {
            name: CONTAINER,
            image: 'none',
            volumeMounts: volumes.map((one) => ({ name: one, mountPath: `/${one}` })),
          },
        ],
        volumes: volumes.map((one) => ({ name: one, persistentVolumeClaim: { claimName: one } })),
      },
    }),
  );
}

/** They are marked for deletion, and their containers run on: nothing has ended yet. */
export async function markDeleted(admin: AdminClient, pods: readonly ClusterPod[]): Promise<void> {
  await allOf(pods, ({ name }) => writeState(admin, name, { running: {} }));
  await allOf(pods, ({ name }) => admin.request('DELETE', `${PODS}/${name}`));
}

/** As whoever runs them says it: their containers have stopped. */
export async function endContainers(admin: AdminClient, pods: readonly ClusterPod[]): Promise<void> {
  await allOf(pods, ({ name }) => writeState(admin, name, { terminated: { exitCode: 0 } }));
}

export async function removePods(admin: AdminClient, pods: readonly ClusterPod[]): Promise<void> {
  await allOf(pods, ({ name }) => admin.request('DELETE', `${PODS}/${name}`, { gracePeriodSeconds: 0 }));
}

async function writeState(admin: AdminClient, name: string, state: object): Promise<void> {
  const ready = 'running' in state;
  const one = { name: CONTAINER, image: 'none', imageID: 'none', restartCount: 0, ready, state };
  await admin.request('MERGE', `${PODS}/${name}/status`, {
    status: { phase: 'Running', containerStatuses: [one] },
  });
}
