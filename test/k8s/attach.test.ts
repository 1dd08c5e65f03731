/**
 * Volumes that are to be attached: the agent with a plain node identity, the real attach/detach controller, and the
 * loop-file driver, which stages only what is attached and detaches nothing that is staged. INV-4 and INV-5.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allowWatchOfAttachments } from '../cluster/watch-right.ts';
import { mountsBelow } from '../demo/machine.ts';
import { until } from '../until.ts';
import {
  attachmentOf,
  claim,
  inUse,
  isFree,
  MINUTES,
  nodeStatus,
  startManagedAgent,
  untilDetached,
  withAttacher,
} from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, placeOf, sharedCluster } from './cluster-world.ts';
import { ATTACHMENTS } from './test-attacher.ts';

const skip = clusterObstacle();
const cluster = sharedCluster();

const here = { cluster, skip };

withAttacher(
  here,
  'in use is reported, the controller attaches, the volume is set up; drained, it is taken off the list and detached',
  'whole.example.com',
  async ({ world, shared, admin, attacher, driver, makeDisk }) => {
    attacher.wait(true);
    const name = await makeDisk('whole');
    await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'whole', claim('whole'));
    await until('it is reported in use', async () => (await inUse(admin)).includes(name), MINUTES);
    const waiting = await world.until('it waits for the attacher', ({ pods }) =>
      pods.some(({ volumes }) =>
        volumes.some(({ reason }) => /csi-attacher of driver/.test(reason?.message ?? '')),
      ),
    );
    assert.match(JSON.stringify(waiting.pods), /"code":"not-attached"/);
    assert.deepEqual(mountsBelow(world.root), []);
    attacher.wait(false);
    const ready = await world.untilReady('whole');
    writeFileSync(join(placeOf(ready, 'whole'), 'word'), 'kept');
    assert.deepEqual(await inUse(admin), [name]);

    await deletePod(admin, 'whole');
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);

    await makePod(admin, 'again', claim('whole'));
    const again = await world.untilReady('again');
    assert.equal(readFileSync(join(placeOf(again, 'again'), 'word'), 'utf8'), 'kept');
    await deletePod(admin, 'again');
    await world.untilEmpty();
    await until(
      'it is detached again',
      async () => (await attachmentOf(admin, driver)) === undefined,
      MINUTES,
    );
    assert.deepEqual(shared.refusals(), []);
  },
);

withAttacher(
  here,
  'killed at any time and with a silent server nothing is taken off the list, and nothing is taken down',
  'killed.example.com',
  async ({ world, shared, admin, attacher, driver, makeDisk }) => {
    attacher.wait(true);
    const name = await makeDisk('killed');
    const first = await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'killed', claim('killed'));
    await until('it is reported in use', async () => (await inUse(admin)).includes(name), MINUTES);
    await first.end('SIGKILL');
    assert.deepEqual(await inUse(admin), [name]);
    attacher.wait(false);
    await until(
      'it is attached while no agent lives',
      async () => (await attachmentOf(admin, driver))?.status?.attached === true,
      MINUTES,
    );
    const second = await world.startAgent();
    const ready = await world.untilReady('killed');
    writeFileSync(join(placeOf(ready, 'killed'), 'word'), 'kept');
    const mounts = mountsBelow(world.root).map(({ target }) => target);

    shared.silence(true);
    try {
      await second.end('SIGKILL');
      await world.startAgent();
      await world.until('it has looked', ({ volumes, summary }) => {
        return volumes.length === 1 && summary.operationsRunning + summary.operationsQueued === 0;
      });
      assert.deepEqual(
        mountsBelow(world.root).map(({ target }) => target),
        mounts,
      );
    } finally {
      shared.silence(false);
    }
    assert.deepEqual(await inUse(admin), [name]);
    const again = await world.untilSettled('killed');
    assert.equal(readFileSync(join(placeOf(again, 'killed'), 'word'), 'utf8'), 'kept');
    assert.deepEqual(await inUse(admin), [name]);
    await deletePod(admin, 'killed');
    await world.untilEmpty();
    await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
  },
);

withAttacher(
  here,
  'an attachment that somebody deletes under a pod: quarantine, and the data under the next one',
  'taken.example.com',
  async ({ world, admin, driver, makeDisk }) => {
    await allowWatchOfAttachments(admin);
    const volume = await makeDisk('taken');
    await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'taken', claim('taken'));
    const ready = await world.untilReady('taken');
    writeFileSync(join(placeOf(ready, 'taken'), 'word'), 'kept');
    const before = (await attachmentOf(admin, driver)) ?? assert.fail('there is an attachment');
    const path = `${ATTACHMENTS}/${before.metadata.name}`;
    await admin.request('MERGE', path, { metadata: { finalizers: null } });
    await admin.request('DELETE', path, { preconditions: { uid: before.metadata.uid } });
    await world.until('it is in quarantine', ({ volumes }) =>
      volumes.some(({ quarantine }) => /^attachment-/.test(quarantine?.reason ?? '')),
    );
    await until(
      'the controller has made another one',
      async () => {
        const uid = (await attachmentOf(admin, driver))?.metadata.uid;
        return uid !== undefined && uid !== before.metadata.uid;
      },
      MINUTES,
    );
    await until('it is out of quarantine', () => isFree(world, volume), MINUTES);
    const again = await world.untilReady('taken');
    assert.equal(readFileSync(join(placeOf(again, 'taken'), 'word'), 'utf8'), 'kept');
    await deletePod(admin, 'taken');
    await world.untilEmpty();
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
  },
);

withAttacher(
  here,
  'what is attached since it was reported in use is mounted though the controller has not listed it (D-131)',
  'listed.example.com',
  async ({ world, shared, admin, attacher, driver, makeDisk }) => {
    await allowWatchOfAttachments(admin);
    attacher.wait(true);
    const name = await makeDisk('listed');
    await startManagedAgent(world, admin, driver);
    shared.stopControllers(true);
    try {
      await makePod(admin, 'listed', claim('listed'));
      await world.until('it has looked for the attachment', ({ pods }) =>
        /has to make it/.test(JSON.stringify(pods)),
      );
      shared.stopControllers(false);
      await until(
        'the attachment is made',
        async () => (await attachmentOf(admin, driver)) !== undefined,
        MINUTES,
      );
      shared.stopControllers(true);
      attacher.wait(false);
      await world.untilReady('listed');
      const { volumesInUse, volumesAttached = [] } = await nodeStatus(admin);
      assert.deepEqual([volumesInUse, volumesAttached], [[name], []]);
    } finally {
      shared.stopControllers(false);
    }
    await until(
      'the controller lists it',
      async () => (await nodeStatus(admin)).volumesAttached?.length === 1,
      MINUTES,
    );
    await deletePod(admin, 'listed');
    await world.untilEmpty();
    await untilDetached(admin, driver);
  },
);
