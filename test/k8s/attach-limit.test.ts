/** A node that has less room than its driver said: the driver is asked anew, and the real scheduler sends no more. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { attachmentNameOf } from '../../kubernetes/objects/attachment-name.ts';
import type { AdminClient } from '../cluster/admin-client.ts';
import { inWorld, NODE } from '../interop/world.ts';
import { script, serveDriver, serveRegistrar } from '../plugins/csi/scripted-driver.ts';
import type { SocketHost } from '../plugins/csi/socket-host.ts';
import { until } from '../until.ts';
import { claim, MINUTES } from './attached-world.ts';
import { clusterObstacle, makeCsiDriver, makePod, makeVolume, sharedCluster } from './cluster-world.ts';
import { ATTACHMENTS } from './test-attacher.ts';

const skip = clusterObstacle();
const cluster = sharedCluster();
const DRIVER = 'full.example.com';
const PODS = '/api/v1/namespaces/default/pods';
/** It stages and publishes nothing here, so it has no mounts. */
const NO_MOUNTS = {} as SocketHost;

async function countOf(admin: AdminClient): Promise<number | undefined> {
  const { body } = await admin.tryRequest('GET', `/apis/storage.k8s.io/v1/csinodes/${NODE}`);
  const { drivers = [] } = (body['spec'] ?? {}) as {
    drivers?: readonly { readonly name: string; readonly allocatable?: { readonly count?: number } }[];
  };
  return drivers.find(({ name }) => name === DRIVER)?.allocatable?.count;
}

/** A pod that nobody has bound to a node: the scheduler is asked. What it says last, or where it sent it. */
async function scheduled(admin: AdminClient, name: string, volume: string): Promise<string> {
  await admin.request('POST', PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      serviceAccountName: 'default',
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'c', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', ...claim(volume).data }],
    },
  });
  let said = '';
  await until(
    `the scheduler has looked at ${name}`,
    async () => {
      const { spec, status } = (await admin.request('GET', `${PODS}/${name}`)) as {
        readonly spec: { readonly nodeName?: string };
        readonly status: {
          readonly conditions?: readonly { readonly type: string; readonly message?: string }[];
        };
      };
      const told = status.conditions?.find(({ type }) => type === 'PodScheduled')?.message;
      said = spec.nodeName ?? told ?? '';
      return said !== '';
    },
    MINUTES,
  );
  return said;
}

test('KEP-4876: a volume is refused as one too many, the CSINode says so, and the scheduler stops sending', {
  skip,
}, async () => {
  const { admin, plane } = await cluster();
  await makeCsiDriver(admin, DRIVER, true);
  const plan = script({ name: DRIVER, nodeId: NODE, volumesMax: 7n });
  await inWorld(async (world) => {
    const socket = world.socketOf(DRIVER);
    const driver = await serveDriver(NO_MOUNTS, socket, plan);
    const registrar = await serveRegistrar(join(world.registry, 'full-reg.sock'), {
      name: DRIVER,
      endpoint: socket,
    });
    try {
      for (const name of ['full-1', 'full-2', 'full-3']) await makeVolume(admin, name, DRIVER, name);
      await world.startAgent();
      await world.untilRegistered(DRIVER);
      await until('the first limit', async () => (await countOf(admin)) === 7, MINUTES);
      // Somebody has attached disks by hand, and the next one of the cluster does not go any more.
      await makePod(admin, 'first', claim('full-1'));
      const name = attachmentNameOf({ driver: DRIVER, volumeHandle: 'full-1' }, NODE);
      const path = `${ATTACHMENTS}/${name}`;
      await until(
        'its attachment',
        async () => (await admin.tryRequest('GET', path)).status === 200,
        MINUTES,
      );
      plan.volumesMax = 1n;
      const attachError = { errorCode: 8, message: 'no room', time: new Date().toISOString() };
      await admin.request('MERGE', `${path}/status`, { status: { attached: false, attachError } });
      await until('the new limit', async () => (await countOf(admin)) === 1, MINUTES);
      assert.match(await scheduled(admin, 'second', 'full-2'), /max volume count/);
      // The limit is of this driver alone, and of this moment.
      await admin.request('DELETE', `${PODS}/second`, { gracePeriodSeconds: 0 });
      plan.volumesMax = 5n;
      await admin.request('MERGE', `${path}/status`, {
        status: { attachError: { ...attachError, message: 'no room still', time: new Date().toISOString() } },
      });
      await until('the limit of now', async () => (await countOf(admin)) === 5, MINUTES);
      assert.equal(await scheduled(admin, 'third', 'full-3'), NODE);
      for (const pod of ['first', 'third'])
        await admin.request('DELETE', `${PODS}/${pod}`, { gracePeriodSeconds: 0 });
      await world.untilEmpty();
    } finally {
      await registrar.close();
      await driver.close();
    }
  }, `kubeconfig: ${plane.nodeKubeconfig}`);
});
