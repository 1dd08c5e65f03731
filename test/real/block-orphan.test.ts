/** A block volume whose record and vol_data.json are both lost, with the real agent on the real kernel. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { detachLoopDevices, loopDevicesBelow, mountsBelow } from '../demo/machine.ts';
import { DRIVER } from './judged-driver.ts';
import { inPrivateNamespace } from './namespace.ts';
import { blockPlacesOf, onRealNode, podWith, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();

/** Up with a block volume, and then everything that tells of it gone. */
async function forgotten(node: RealNode, papers: 'missing' | 'empty'): Promise<void> {
  const { yaml } = await node.driver.create('raw', '4194304', { mode: 'Block' });
  node.put('volume', yaml);
  node.put('pod', podWith('raw', 'Block'));
  await node.startAgent();
  await node.untilMounted(1);
  await node.killAgent();
  const records = join(node.root, 'mooring/records');
  for (const name of readdirSync(records)) rmSync(join(records, name));
  const file = join(blockPlacesOf(node, 'raw').data, 'vol_data.json');
  if (papers === 'missing') rmSync(file);
  else truncateSync(file);
  assert.equal(mountsBelow(node.root).length, 2);
}

/** Nobody knows any more whose it was: the driver still has its own loop device, and believes it is staged. */
async function forgetAtDriver({ driver }: RealNode): Promise<void> {
  const devices = loopDevicesBelow(driver.pool);
  assert.equal(devices.length, 1);
  await detachLoopDevices(driver.pool, devices);
  driver.oracle.forgetNode();
}

for (const papers of ['missing', 'empty'] as const) {
  test(
    `KV-D3: with its record lost and its vol_data.json ${papers}, a block volume of no pod is taken down`,
    { skip },
    () =>
      onRealNode(async (node) => {
        await forgotten(node, papers);
        const { link, held, published, all } = blockPlacesOf(node, 'raw');
        node.remove('pod');
        await node.startAgent();
        await node.until('its bind to be gone', () => !existsSync(held));
        await node.untilEmpty();
        assert.deepEqual(mountsBelow(node.root), []);
        assert.ok([link, held, published].every((path) => !existsSync(path)));
        assert.deepEqual(loopDevicesBelow(node.root), [], 'nothing holds the device');
        await node.until(
          'the directories to be gone',
          () => readdirSync(all).sort().join() === 'publish,staging',
        );
        assert.deepEqual(readdirSync(join(node.root, 'pods')), []);
        await forgetAtDriver(node);
      }),
  );
}

test(
  'a pod of which it is not known what is wanted keeps it; when it is wanted it is its volume again',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      await forgotten(node, 'missing');
      const mounts = mountsBelow(node.root);
      node.put('pod', 'kind: Pod\nmetadata: [this is not');
      await node.startAgent();
      const status = await node.until('the orphan to be found', ({ volumes }) => volumes.length === 1);
      assert.equal(status.pods[0]?.volumes[0]?.state, 'kept');
      assert.deepEqual(mountsBelow(node.root), mounts);
      node.put('pod', podWith('raw', 'Block'));
      const known = await node.until('the volume to be known again', ({ pods }) =>
        pods.some(({ ready }) => ready),
      );
      assert.deepEqual(
        known.volumes.map(({ driver }) => driver),
        [DRIVER],
      );
      assert.deepEqual(mountsBelow(node.root), mounts, 'what the pod has was never touched');
      node.remove('pod');
      await node.untilEmpty();
      assert.deepEqual(mountsBelow(node.root), []);
    }),
);
