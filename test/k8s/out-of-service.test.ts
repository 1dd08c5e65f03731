/**
 * A node that an administrator declares out of service: the real controllers delete its pods and take its volumes, and
 * what it has is in quarantine until it was proven clean.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow } from '../demo/machine.ts';
import { NODE } from '../interop/world.ts';
import { until } from '../until.ts';
import { attachmentOf, claim, inUse, isFree, MINUTES, withAttacher } from './attached-world.ts';
import { clusterObstacle, makePod, placeOf, sharedCluster } from './cluster-world.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster({ collectsPods: true }), skip };
const NODE_PATH = `/api/v1/nodes/${NODE}`;
const POD_PATH = '/api/v1/namespaces/default/pods/evicted';
const TAINT = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };

withAttacher(
  here,
  'KEP-2268: out of service, its pods are collected, its volumes detached; they come back when it was proven clean',
  'evicted.example.com',
  async ({ world, admin, attacher, driver, makeDisk }) => {
    const name = await makeDisk('evicted');
    attacher.forgive(name.split('^')[1] ?? '');
    await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'evicted', claim('evicted'));
    const place = placeOf(await world.untilReady('evicted'), 'evicted');
    writeFileSync(join(place, 'word'), 'kept');
    const ready = (status: 'True' | 'False') =>
      admin.request('MERGE', `${NODE_PATH}/status`, { status: { conditions: [{ type: 'Ready', status }] } });
    await ready('False');
    await admin.request('MERGE', NODE_PATH, { spec: { taints: [TAINT] } });
    const { volumes } = await world.until('it is in quarantine', (status) =>
      status.volumes.some(({ quarantine }) => quarantine?.reason === 'node-out-of-service'),
    );
    const volume = volumes[0]?.id ?? assert.fail('there is one');
    // Nobody runs its containers any more, and so nobody says that they have ended: the controller does.
    await admin.request('DELETE', POD_PATH);
    await until(
      'its pod is collected',
      async () => (await admin.tryRequest('GET', POD_PATH)).status === 404,
      MINUTES,
    );
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
    await world.until('it is down', ({ pods }) => pods.length === 0);
    assert.deepEqual(mountsBelow(world.root), []);
    // A pod that comes meanwhile gets nothing of it, whatever the cluster attaches.
    await makePod(admin, 'next', claim('evicted'));
    await world.until('the next one to be blocked', ({ pods }) =>
      pods.some((pod) => pod.name === 'next' && pod.volumes.every(({ state }) => state === 'blocked')),
    );
    assert.deepEqual(mountsBelow(world.root), []);
    await ready('True');
    await admin.request('MERGE', NODE_PATH, { spec: { taints: null } });
    await until('it is proven clean, or an operator says so', () => isFree(world, volume), MINUTES);
    const again = placeOf(await world.untilReady('next'), 'next');
    assert.equal(readFileSync(join(again, 'word'), 'utf8'), 'kept');
    await admin.request('DELETE', '/api/v1/namespaces/default/pods/next', { gracePeriodSeconds: 0 });
    await world.untilEmpty();
    await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
    await until(
      'it is detached again',
      async () => (await attachmentOf(admin, driver)) === undefined,
      MINUTES,
    );
  },
);
