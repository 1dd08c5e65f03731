/**
 * Pods, claims and volumes that go in the wrong order: whatever the cluster has forgotten, a volume is not detached
 * while anybody uses it here, and it comes down by what the node itself knows of it.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow } from '../demo/machine.ts';
import { until } from '../until.ts';
import { attachmentOf, claim, inUse, MINUTES, withAttacher } from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, placeOf, sharedCluster } from './cluster-world.ts';
import { startHolder } from './container.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };

withAttacher(
  here,
  'a pod is deleted by force while a process uses its volume: it stays in use, and the process is named, until it ends',
  'forced.example.com',
  async ({ world, admin, driver, makeDisk }) => {
    const name = await makeDisk('forced');
    await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'forced', claim('forced'));
    const place = placeOf(await world.untilReady('forced'), 'forced');
    const user = await startHolder(place);
    try {
      await deletePod(admin, 'forced');
      await world.until('the process is named', ({ pods }) =>
        new RegExp(`volume-held.*\\b${user.pid}\\b`).test(JSON.stringify(pods)),
      );
      // The controller has had its turn: another pod would have been attached by now.
      await makePod(admin, 'witness', { memory: { emptyDir: {} } });
      await world.untilReady('witness');
      await deletePod(admin, 'witness');
      assert.deepEqual(await inUse(admin), [name]);
      const attachment = await attachmentOf(admin, driver);
      assert.equal(attachment?.metadata.deletionTimestamp, undefined);
      assert.equal(attachment?.status?.attached, true);
    } finally {
      await user.end();
    }
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
  },
);

withAttacher(
  here,
  'the claim and the volume are gone before the pod: it keeps what it has, and all comes down and is detached',
  'orphaned.example.com',
  async ({ world, admin, driver, makeDisk }) => {
    const name = await makeDisk('orphaned');
    const first = await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'orphaned', claim('orphaned'));
    const place = placeOf(await world.untilReady('orphaned'), 'orphaned');
    writeFileSync(join(place, 'word'), 'kept');
    const objects = [
      '/api/v1/namespaces/default/persistentvolumeclaims/orphaned',
      '/api/v1/persistentvolumes/orphaned',
    ];
    for (const path of objects) {
      await admin.request('DELETE', path);
      await until(
        `${path} is gone, by hand`,
        async () => {
          await admin.tryRequest('MERGE', path, { metadata: { finalizers: null } });
          return (await admin.tryRequest('GET', path)).status === 404;
        },
        MINUTES,
      );
    }
    // Another life has nobody to ask for them any more.
    await first.end('SIGKILL');
    await world.startAgent();
    await world.until('it has looked', ({ agent, volumes, summary }) => {
      const isIdle = summary.operationsRunning + summary.operationsQueued === 0;
      return agent.complete && volumes.length === 1 && isIdle;
    });
    assert.equal(readFileSync(join(place, 'word'), 'utf8'), 'kept');
    assert.deepEqual(await inUse(admin), [name]);
    await deletePod(admin, 'orphaned');
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
  },
);
