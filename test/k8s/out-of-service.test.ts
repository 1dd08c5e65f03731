/**
 * A node that an administrator declares out of service: the real controllers delete its pods and take its volumes, and
 * what it has is in quarantine until it was proven clean, or the machine was started anew.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow } from '../demo/machine.ts';
import { until } from '../until.ts';
import {
  type Attached,
  attachmentOf,
  claim,
  inUse,
  isFree,
  MINUTES,
  startManagedAgent,
  untilDetached,
  withAttacher,
} from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, placeOf, sharedCluster } from './cluster-world.ts';
import { startHolder } from './container.ts';
import { collectPod, returnToService, takeOutOfService } from './out-of-service.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster({ collectsPods: true }), skip };
const OUT_OF_SERVICE = 'node-out-of-service';

/** The node is out of service, its pod is collected, what it has is in quarantine. The answer: the volume's name. */
async function evict({ world, admin }: Attached, pod: string): Promise<string> {
  await takeOutOfService(admin);
  const { volumes } = await world.until('it is in quarantine', (status) =>
    status.volumes.some(({ quarantine }) => quarantine?.reason === OUT_OF_SERVICE),
  );
  await collectPod(admin, pod);
  return volumes[0]?.id ?? assert.fail('there is one');
}

/** It has its data, and when it is gone nothing is left of it anywhere. */
async function takeBack({ world, admin, driver }: Attached, pod: string): Promise<void> {
  const place = placeOf(await world.untilReady(pod), pod);
  assert.equal(readFileSync(join(place, 'word'), 'utf8'), 'kept');
  await deletePod(admin, pod);
  await world.untilEmpty();
  await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
  await untilDetached(admin, driver);
}

withAttacher(
  here,
  'KEP-2268: out of service, its pods are collected, its volumes detached; they come back when it was proven clean',
  'evicted.example.com',
  async (attached) => {
    const { world, admin, attacher, driver, makeDisk } = attached;
    const name = await makeDisk('evicted');
    attacher.forgive(name.split('^')[1] ?? '');
    await startManagedAgent(world, admin, driver);
    await makePod(admin, 'evicted', claim('evicted'));
    const place = placeOf(await world.untilReady('evicted'), 'evicted');
    writeFileSync(join(place, 'word'), 'kept');
    const volume = await evict(attached, 'evicted');
    await untilDetached(admin, driver);
    await world.until('it is down', ({ pods }) => pods.length === 0);
    assert.deepEqual(mountsBelow(world.root), []);
    // A pod that comes meanwhile gets nothing of it, whatever the cluster attaches.
    await makePod(admin, 'next', claim('evicted'));
    await world.until('the next one to be blocked', ({ pods }) =>
      pods.some((pod) => pod.name === 'next' && pod.volumes.every(({ state }) => state === 'blocked')),
    );
    assert.deepEqual(mountsBelow(world.root), []);
    await returnToService(admin);
    await until('it is proven clean, or an operator says so', () => isFree(world, volume), MINUTES);
    await takeBack(attached, 'next');
  },
);

withAttacher(
  here,
  'KEP-2268: what a process keeps from being proven clean is clean after another boot, and nobody has to say so',
  'rebooted.example.com',
  async (attached) => {
    const { world, admin, attacher, driver, makeDisk, reboot } = attached;
    const name = await makeDisk('rebooted');
    attacher.forgive(name.split('^')[1] ?? '');
    const agent = await startManagedAgent(world, admin, driver);
    await makePod(admin, 'rebooted', claim('rebooted'));
    const place = placeOf(await world.untilReady('rebooted'), 'rebooted');
    writeFileSync(join(place, 'word'), 'kept');
    const user = await startHolder(place);
    try {
      await evict(attached, 'rebooted');
      await until(
        'the controller takes it, in use as it is',
        async () => (await attachmentOf(admin, driver))?.metadata.deletionTimestamp !== undefined,
        MINUTES,
      );
      const { volumes } = await world.until('the process is named', ({ pods }) =>
        new RegExp(`\\b${user.pid}\\b`).test(JSON.stringify(pods)),
      );
      assert.equal(volumes[0]?.quarantine?.reason, OUT_OF_SERVICE);
      assert.deepEqual(await inUse(admin), [name]);
    } finally {
      await user.end();
    }
    await reboot(agent);
    await untilDetached(admin, driver);
    await world.startAgent();
    await world.until('it is proven clean', ({ volumes }) =>
      volumes.every(({ quarantine }) => quarantine === null || quarantine.verified),
    );
    assert.deepEqual(mountsBelow(world.root), []);
    await returnToService(admin);
    await world.untilEmpty();
    await makePod(admin, 'back', claim('rebooted'));
    await takeBack(attached, 'back');
  },
);
