/**
 * The API server dies and forgets: it is killed and comes back with no history that anybody could go on from, again and
 * again, while pods come and go. What cannot be heard takes nothing down, and what happened meanwhile is made up for.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { mountsBelow } from '../demo/machine.ts';
import { until } from '../until.ts';
import {
  attachmentOf,
  claim,
  inUse,
  MINUTES,
  startManagedAgent,
  untilDetached,
  withAttacher,
} from './attached-world.ts';
import { clusterObstacle, deletePod, makePod, placeOf, sharedCluster } from './cluster-world.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };
const ROUNDS = [1, 2];
const CUT_EVERY_MS = 1_000;
const CUT_ROUNDS = 5;

withAttacher(
  here,
  'the API server is killed and its history is cut, under pods that come and go: what stands stays as it is',
  'history.example.com',
  async ({ world, shared, admin, driver, makeDisk }) => {
    const name = await makeDisk('stays');
    await world.startAgent();
    await world.untilRegistered(driver);
    const memory = { memory: { emptyDir: { medium: 'Memory' } } };
    await makePod(admin, 'stays', claim('stays'));
    await makePod(admin, 'goes-0', memory);
    const place = placeOf(await world.untilReady('stays'), 'stays');
    await world.untilReady('goes-0');
    writeFileSync(join(place, 'word'), 'kept');
    const mounted = (): readonly string[] =>
      mountsBelow(world.root)
        .filter(({ target }) => target === place)
        .map(({ mountId }) => `${mountId}`);
    const before = mounted();
    for (const round of ROUNDS) {
      await shared.restartApiServer();
      // By the time when the agent is back this has happened, and nobody can tell it how.
      await deletePod(admin, `goes-${round - 1}`);
      await makePod(admin, `goes-${round}`, memory);
      await shared.compactHistory();
      await world.untilReady(`goes-${round}`);
      await world.until(
        'the one before is gone',
        ({ pods }) => !pods.some((pod) => pod.name === `goes-${round - 1}`),
      );
      assert.deepEqual(mounted(), before);
      assert.equal(readFileSync(join(place, 'word'), 'utf8'), 'kept');
      assert.deepEqual(await inUse(admin), [name]);
      await world.until('it follows', ({ sources }) => sources.cluster?.state === 'following');
    }
    for (const pod of ['stays', `goes-${ROUNDS.length}`]) await deletePod(admin, pod);
    await world.untilEmpty();
    assert.deepEqual(mountsBelow(world.root), []);
    await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
    await until('it is detached', async () => (await attachmentOf(admin, driver)) === undefined, MINUTES);
  },
);

withAttacher(
  { cluster: sharedCluster({ isUncached: true }), skip },
  'without a watch cache, and with a history that is cut each second, what stands stays and what comes is heard',
  'uncached.example.com',
  async ({ world, shared, admin, driver, makeDisk }) => {
    const name = await makeDisk('stays');
    await startManagedAgent(world, admin, driver);
    await makePod(admin, 'stays', claim('stays'));
    const place = placeOf(await world.untilReady('stays'), 'stays');
    const mounted = (): readonly string[] =>
      mountsBelow(world.root)
        .filter(({ target }) => target === place)
        .map(({ mountId }) => `${mountId}`);
    const before = mounted();
    const memory = { memory: { emptyDir: { medium: 'Memory' } } };
    let isOver = false;
    const storm = (async () => {
      for (; !isOver; await pause(CUT_EVERY_MS)) await shared.compactHistory();
    })();
    try {
      for (let round = 0; round < CUT_ROUNDS; round += 1) {
        await makePod(admin, `goes-${round}`, memory);
        await world.untilReady(`goes-${round}`);
        await pause(CUT_EVERY_MS);
        await deletePod(admin, `goes-${round}`);
        await world.until('it is gone', ({ pods }) => pods.every((pod) => pod.name === 'stays'));
        assert.deepEqual([mounted(), await inUse(admin)], [before, [name]]);
      }
    } finally {
      isOver = true;
      await storm;
    }
    await deletePod(admin, 'stays');
    await world.untilEmpty();
    await untilDetached(admin, driver);
  },
);
