/** The Node object is deleted and made anew under pods that run, and somebody else writes what is in use. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeNode } from '../cluster/control-plane.ts';
import { mountsBelow } from '../demo/machine.ts';
import { NODE } from '../interop/world.ts';
import { until } from '../until.ts';
import { attachmentsIn } from './test-attacher.ts';
import { claim, inUse, MINUTES, nodeStatus, withAttacher } from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, placeOf, sharedCluster } from './cluster-world.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };
const NODE_PATH = `/api/v1/nodes/${NODE}`;
const CSI_NODE_PATH = `/apis/storage.k8s.io/v1/csinodes/${NODE}`;
const NUMBERS = [1, 2, 3, 4];

withAttacher(
  here,
  'the Node is deleted under pods, and made anew: they keep their volumes, and all is told to the new one',
  'anew.example.com',
  async ({ world, admin, attacher, driver, makeDisk }) => {
    const names: string[] = [];
    for (const number of NUMBERS) names.push(await makeDisk(`anew-${number}`));
    await world.startAgent();
    await world.untilRegistered(driver);
    for (const number of NUMBERS.slice(0, 3)) await makePod(admin, `pod-${number}`, claim(`anew-${number}`));
    const places: string[] = [];
    for (const number of NUMBERS.slice(0, 3)) {
      const place = placeOf(await world.untilReady(`pod-${number}`), `pod-${number}`);
      writeFileSync(join(place, 'word'), `kept ${number}`);
      places.push(place);
    }
    const uid = ((await admin.request('GET', NODE_PATH)) as { metadata: { uid: string } }).metadata.uid;
    const mounts = mountsBelow(world.root).map(({ target, mountId }) => `${mountId} ${target}`);

    await admin.request('DELETE', NODE_PATH);
    await world.until('it is told', ({ sources }) => sources.cluster?.state === 'broken');
    // What comes meanwhile waits, and what goes comes down, without a word to anybody.
    await makePod(admin, 'pod-4', claim('anew-4'));
    // Without a Node the controller asks nobody whether it is in use.
    attacher.forgive(names[2]?.split('^')[1] ?? '');
    await deletePod(admin, 'pod-3');
    await makeNode(admin, NODE);
    await until('another Node', async () => {
      const { metadata } = (await admin.request('GET', NODE_PATH)) as { metadata: { uid: string } };
      return metadata.uid !== uid;
    });
    await world.until('it is followed again', ({ sources }) => sources.cluster?.state === 'following');
    const fourth = placeOf(await world.untilReady('pod-4'), 'pod-4');
    writeFileSync(join(fourth, 'word'), 'new');
    await world.until('the third is gone', ({ pods }) => !pods.some(({ name }) => name === 'pod-3'));

    const isWanted = (one: string | undefined): one is string => one !== undefined && one !== names[2];
    const wanted = names.filter(isWanted).sort();
    await until(
      'the list is the new Node’s',
      async () => JSON.stringify([...(await inUse(admin))].sort()) === JSON.stringify(wanted),
      MINUTES,
    );
    await until(
      'the controller lists them, too',
      async () => {
        const { volumesAttached = [] } = await nodeStatus(admin);
        return JSON.stringify(volumesAttached.map(({ name }) => name).sort()) === JSON.stringify(wanted);
      },
      MINUTES,
    );
    await until(
      'the driver is announced by a CSINode of the new Node',
      async () => {
        const { status, body } = await admin.tryRequest('GET', CSI_NODE_PATH);
        return status === 200 && JSON.stringify(body).includes(`"name":"${driver}"`);
      },
      MINUTES,
    );
    const now = new Set(mountsBelow(world.root).map(({ target, mountId }) => `${mountId} ${target}`));
    for (const [index, place] of places.slice(0, 2).entries()) {
      assert.equal(readFileSync(join(place, 'word'), 'utf8'), `kept ${index + 1}`);
      const own = mounts.filter((one) => one.endsWith(place));
      assert.ok(own.length > 0 && own.every((one) => now.has(one)), 'it was not mounted anew');
    }
    for (const pod of ['pod-1', 'pod-2', 'pod-4']) await deletePod(admin, pod);
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await until('all are detached', async () => (await attachmentsIn(admin)).length === 0, MINUTES);
    assert.deepEqual(await inUse(admin), []);
  },
);

withAttacher(
  here,
  'a kubelet that writes what is in use, too: it is told, nothing new is staged, and what stands stays',
  'contested.example.com',
  async ({ world, admin, driver, makeDisk }) => {
    const name = await makeDisk('stands');
    await makeDisk('comes');
    await world.startAgent();
    await world.untilRegistered(driver);
    await makePod(admin, 'stands', claim('stands'));
    const place = placeOf(await world.untilReady('stands'), 'stands');
    writeFileSync(join(place, 'word'), 'kept');
    let isOver = false;
    let taken = 0;
    const kubelet = (async () => {
      while (!isOver) {
        if ((await inUse(admin)).length > 0) {
          await admin.tryRequest('MERGE', `${NODE_PATH}/status`, { status: { volumesInUse: [] } });
          taken += 1;
        }
        await pause(20);
      }
    })();
    try {
      await until('both have written', () => taken > 3, MINUTES);
      await makePod(admin, 'first', claim('comes'));
      await world.until('it is contested', ({ pods }) => JSON.stringify(pods).includes('in-use-contested'));
      assert.equal(mountsBelow(world.root).filter(({ target }) => target.includes('/globalmount')).length, 1);
      assert.equal(readFileSync(join(place, 'word'), 'utf8'), 'kept');
    } finally {
      isOver = true;
      await kubelet;
    }
    await until('it is on the list again', async () => (await inUse(admin)).includes(name), MINUTES);
    for (const pod of ['first', 'stands']) await deletePod(admin, pod);
    await world.untilEmpty();
    await until('all are detached', async () => (await attachmentsIn(admin)).length === 0, MINUTES);
    assert.deepEqual(await inUse(admin), []);
  },
);
