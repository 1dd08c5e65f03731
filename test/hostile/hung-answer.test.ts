/** A hung file system and a driver that answers at once: the answer is heard, told and acted on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { below } from '../../mount/host.ts';
import { createMounter } from '../../mount/mounter.ts';
import { end, holder } from '../mount/holding-process.ts';
import { realHost, scratchDirectory } from '../mount/scratch.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { onRealNode, podWith, targetOf } from '../real/real-node.ts';
import { value } from '../value.ts';
import { fuseVolume, startFuseDriver } from './fuse-driver.ts';
import { mountFuse } from './fuse-server.ts';

const skip = inPrivateNamespace();
const WAIT_MS_MAX = 60_000;

test('who holds a hung mount is found without asking it', { skip }, async (t) => {
  const root = scratchDirectory(t);
  const target = below(root, 'fuse');
  mkdirSync(target);
  // On a busy machine a helper may take long to start.
  const host = await realHost(t, { deadlinesMs: { holders: WAIT_MS_MAX } });
  const fuse = await mountFuse(target);
  const busy = await holder(t, 'sh', '-c', `cd ${target} && echo && exec sleep 600`);
  await fuse.set({ kind: 'hang' });
  try {
    const late = once(AbortSignal.timeout(WAIT_MS_MAX), 'abort').then(() => 'not found in a minute');
    const found = await Promise.race([host.findHolders(target), late]);
    assert.ok(typeof found === 'object', String(found));
    assert.match(value(found).join(), new RegExp(`^pid ${busy.pid} \\((sh|sleep)\\)$`));
    assert.equal(await fuse.waiting(), 0, 'nothing was asked of the file system');
  } finally {
    // However this ends, nobody is left waiting in the kernel.
    await fuse.kill();
    await end(busy);
  }
  value(await createMounter(host, root).unmount(target));
});

test(
  'what a driver answers about a hung volume is told and tried again, and the other volumes go on',
  { skip },
  () =>
    onRealNode(async (node) => {
      const driver = await startFuseDriver(node.root);
      try {
        const { yaml } = await node.driver.create('data', '33554432');
        node.put('neighbour', `${yaml}---\n${podWith('data').replaceAll(/web-1|web/g, 'neighbour')}`);
        node.put('volume', fuseVolume('hung'));
        node.put('pod', podWith('hung'));
        await node.startAgent();
        await node.untilMounted(2);
        const hung = driver.mounts.get('hung') ?? assert.fail('the driver mounted it');
        driver.busyWith = `umount: ${targetOf(node, 'hung')}: target is busy`;
        await hung.set({ kind: 'hang' });
        node.remove('pod');
        await driver.called(
          ({ call, count }) => call === 'NodeUnpublishVolume hung' && count >= 4,
          WAIT_MS_MAX,
        );
        const told = await node.until('the answer of the driver to be told', ({ pods }) => {
          return pods.some(
            ({ uid, volumes }) => uid === 'web-1' && volumes[0]?.reason?.code === 'driver-failed',
          );
        });
        assert.match(JSON.stringify(told.pods), /target is busy/);
        assert.equal(await hung.waiting(), 0, 'nothing was asked of the file system');
        assert.equal(told.pods.find(({ uid }) => uid === 'neighbour')?.ready, true);
        node.remove('neighbour');
        await node.until('the neighbour to be gone', ({ pods }) => pods.length === 1);
        driver.busyWith = undefined;
        await node.untilEmpty();
      } finally {
        await driver.close();
      }
    }),
);
