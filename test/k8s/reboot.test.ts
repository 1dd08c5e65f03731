/**
 * The machine starts again and the API server is away: what its manifests say comes up, and nothing that the server has
 * said before. It may have given any of it to another node since.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow } from '../demo/machine.ts';
import {
  attachmentOf,
  claim,
  inUse,
  startManagedAgent,
  untilDetached,
  withAttacher,
} from './attached-world.ts';
import { clusterObstacle, deletePod, makeContent, makePod, placeOf, sharedCluster } from './cluster-world.ts';

const skip = clusterObstacle();
const here = { cluster: sharedCluster(), skip };
const STATIC = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'static', namespace: 'default', uid: '5d3c2f6a-0d7d-4a52-9c11-0f2b3c4d5e6f' },
  spec: {
    containers: [{ name: 'c', image: 'none', volumeMounts: [{ name: 'memory', mountPath: '/memory' }] }],
    volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }],
  },
});

withAttacher(
  here,
  'another boot, and no API server: static pods come up, and of the others nothing before it answers',
  'unheard.example.com',
  async ({ world, shared, admin, driver, makeDisk, reboot }) => {
    const name = await makeDisk('unheard');
    await makeContent(admin, 'Secret', 'unheard', 'quiet');
    await makeContent(admin, 'ConfigMap', 'unheard', 'blue');
    world.putManifest('static.yaml', STATIC);
    const agent = await startManagedAgent(world, admin, driver);
    await makePod(admin, 'unheard', {
      ...claim('unheard'),
      key: { secret: { secretName: 'unheard' } },
      settings: { configMap: { name: 'unheard' } },
      scratch: { emptyDir: {} },
      memory: { emptyDir: { medium: 'Memory' } },
    });
    await world.untilReady('static');
    const before = await world.untilReady('unheard');
    // A claim's is known by the name of its PersistentVolume.
    for (const volume of ['unheard', 'scratch', 'memory'])
      writeFileSync(join(placeOf(before, 'unheard', volume), 'word'), 'kept');
    const uid = (await attachmentOf(admin, driver))?.metadata.uid;

    shared.silence(true);
    try {
      await reboot(agent);
      await world.startAgent();
      await world.untilRegistered(driver);
      await world.untilReady('static');
      const blind = await world.until('it has looked', ({ sources, summary }) => {
        const isIdle = summary.operationsRunning + summary.operationsQueued === 0;
        return sources.cluster?.state === 'broken' && isIdle;
      });
      assert.equal(blind.agent.complete, false);
      assert.deepEqual(
        blind.pods.map(({ name: pod, wanted, ready }) => [pod, wanted, ready]),
        [
          ['static', true, true],
          ['unheard', false, false],
        ],
      );
      // What the disk remembers is neither set up nor taken down.
      for (const { state, reason } of blind.pods[1]?.volumes ?? [])
        assert.deepEqual([state, reason?.code], ['kept', 'gate-closed']);
      assert.deepEqual(
        mountsBelow(world.root).map(({ target }) => target),
        [placeOf(blind, 'static')],
      );
    } finally {
      shared.silence(false);
    }
    assert.deepEqual(await inUse(admin), [name]);
    const again = await world.untilReady('unheard');
    const read = (volume: string, file = 'word'): string =>
      readFileSync(join(placeOf(again, 'unheard', volume), file), 'utf8');
    assert.deepEqual(
      ['unheard', 'scratch', 'key', 'settings'].map((volume) => read(volume)),
      ['kept', 'kept', 'quiet', 'blue'],
    );
    assert.equal(existsSync(join(placeOf(again, 'unheard', 'memory'), 'word')), false);
    assert.equal((await attachmentOf(admin, driver))?.metadata.uid, uid);
    assert.deepEqual(await inUse(admin), [name]);
    await deletePod(admin, 'unheard');
    world.removeManifest('static.yaml');
    await world.untilEmpty();
    await untilDetached(admin, driver);
    assert.deepEqual(mountsBelow(world.root), []);
  },
);
