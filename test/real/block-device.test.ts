/** A block volume from the driver to the pod and back, with the real agent on the real kernel. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loopDevicesBelow, mountsBelow, unmountByHand } from '../demo/machine.ts';
import { until } from '../until.ts';
import { inPrivateNamespace } from './namespace.ts';
import { blockPlacesOf, onRealNode, podWith, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();
const BYTES = 4 * 1024 * 1024;
const SECTOR_BYTES = 512;
/** The shortest that the configuration allows. */
const RESYNC_MS = 10_000;

function write(device: string, text: string): void {
  const descriptor = openSync(device, 'r+');
  writeSync(descriptor, text.padEnd(SECTOR_BYTES, '\0'));
  closeSync(descriptor);
}

function read(device: string): string {
  const descriptor = openSync(device, 'r');
  const bytes = Buffer.alloc(SECTOR_BYTES);
  readSync(descriptor, bytes);
  closeSync(descriptor);
  return bytes.toString('latin1').replace(/\0+$/, '');
}

/** A pod with a block volume, and the agent; not yet mounted. */
async function begin(node: RealNode): Promise<void> {
  const { yaml } = await node.driver.create('raw', String(BYTES), { mode: 'Block' });
  node.put('volume', yaml);
  node.put('pod', podWith('raw', 'Block'));
  await node.startAgent();
}

async function end(node: RealNode): Promise<void> {
  node.remove('pod');
  await node.untilEmpty();
  assert.deepEqual([...mountsBelow(node.root), ...loopDevicesBelow(node.scratch)], []);
}

test(
  'KV-D3: the agent killed and started again has the same device, held by the same loop device, without an RPC',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      await begin(node);
      await node.untilMounted(1);
      const { link, held } = blockPlacesOf(node, 'raw');
      assert.equal(statSync(link).rdev, lstatSync(held).rdev, 'the pod has the device that is held');
      write(link, 'precious');
      const before = { mounts: mountsBelow(node.root), holds: loopDevicesBelow(node.root) };
      assert.equal(before.holds.length, 1);
      assert.deepEqual(node.driver.newCalls(), ['NodeStageVolume', 'NodePublishVolume']);
      for (let life = 0; life < 2; life += 1) {
        await node.untilRecorded();
        await node.killAgent();
        await node.startAgent();
        await node.untilMounted(1);
      }
      assert.deepEqual({ mounts: mountsBelow(node.root), holds: loopDevicesBelow(node.root) }, before);
      assert.deepEqual(node.driver.newCalls(), [], 'nothing was asked of the driver');
      assert.equal(read(link), 'precious');
      await end(node);
      assert.deepEqual(node.driver.newCalls(), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
      node.put('pod', podWith('raw', 'Block'));
      await node.untilMounted(1);
      assert.equal(read(link), 'precious', 'and what was written is in the volume');
      await end(node);
    }),
);

test(
  'k/k#34437: taken away behind the pod’s back, the device keeps its number: no other is put in its place',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      await begin(node);
      await node.untilMounted(1);
      const { link, published } = blockPlacesOf(node, 'raw');
      write(link, 'precious');
      const { rdev } = statSync(link);
      const [device = ''] = loopDevicesBelow(node.driver.pool);
      execFileSync('losetup', ['--detach', device]);
      const image = join(node.scratch, 'other');
      writeFileSync(image, 'somebody else'.padEnd(BYTES, '\0'));
      const others = Array.from({ length: 3 }, () =>
        execFileSync('losetup', ['--find', '--show', image], { encoding: 'utf8' }).trim(),
      );
      try {
        assert.ok(!others.includes(device));
        assert.equal(statSync(link).rdev, rdev);
        assert.equal(read(link), 'precious');
        // The driver has lost it, and takes down nothing that it does not know: what an operator would do.
        unmountByHand(published);
      } finally {
        for (const other of others) execFileSync('losetup', ['--detach', other]);
      }
      await end(node);
    }),
);

test(
  'DR-08: the driver’s bind unmounted behind everybody’s back is found and made again; who has the device open goes on',
  {
    skip,
  },
  () =>
    onRealNode(async (node) => {
      node.settings.resync_ms = RESYNC_MS;
      await begin(node);
      await node.untilMounted(1);
      const { link, held, published } = blockPlacesOf(node, 'raw');
      write(link, 'precious');
      const { rdev } = statSync(link);
      // As a container runtime does: a node of its own, of the same number.
      const own = join(node.scratch, 'container-device');
      const [major, minor] = execFileSync('stat', ['-L', '-c', '%Hr %Lr', link], { encoding: 'utf8' })
        .trim()
        .split(' ');
      execFileSync('mknod', [own, 'b', major ?? '', minor ?? '']);
      const open = openSync(own, 'r+');
      const asked = () => node.driver.calls.filter(({ method }) => method === 'NodePublishVolume');
      for (let times = 1; times <= 2; times += 1) {
        const holds = loopDevicesBelow(node.root);
        unmountByHand(published);
        assert.ok(!statSync(link).isBlockDevice(), 'a container started now would get an empty file');
        // The second time nobody is there to see it: the restart is what finds it.
        if (times === 2) await node.killAgent();
        if (times === 2) await node.startAgent();
        await node.until('it to be published again', () => asked().length === 1 + times);
        // The status of before says the same of it.
        await until('a device to be there', () => statSync(link, { throwIfNoEntry: false })?.isBlockDevice());
        await node.untilMounted(1);
        assert.equal(statSync(link).rdev, rdev, 'the pod’s link leads to its device');
        assert.equal(lstatSync(held).rdev, rdev);
        assert.deepEqual(loopDevicesBelow(node.root), holds, 'held by the loop device that held it before');
        assert.equal(read(link), 'precious');
        writeSync(open, 'precious'.padEnd(SECTOR_BYTES, '\0'), 0);
      }
      closeSync(open);
      const [first, ...again] = asked().map(({ request }) => JSON.stringify(request));
      assert.ok(
        again.every((request) => request === first),
        'asked with the same arguments',
      );
      const found = node
        .log()
        .split('\n')
        .filter((line) => line.includes('mount lost'));
      assert.equal(found.length, 1);
      assert.ok(found[0]?.includes(published) && found[0].includes('mount-lost'));
      assert.ok(
        node.driver.calls.every(({ method }) => !/^NodeUn/.test(method)),
        'nothing was taken down',
      );
      await end(node);
    }),
);

test('k/k#34437: what holds the device, ended by somebody else, is found and made again', { skip }, () =>
  onRealNode(async (node) => {
    node.settings.resync_ms = RESYNC_MS;
    await begin(node);
    await node.untilMounted(1);
    const { link, held } = blockPlacesOf(node, 'raw');
    write(link, 'precious');
    const { rdev } = statSync(link);
    const asked = () => node.driver.calls.filter(({ method }) => method === 'NodePublishVolume');
    for (let times = 1; times <= 2; times += 1) {
      // The second time nobody is there to see it: the restart is what finds it.
      if (times === 2) await node.untilRecorded();
      if (times === 2) await node.killAgent();
      const askedBefore = asked().length;
      const [hold = ''] = loopDevicesBelow(node.root);
      execFileSync('losetup', ['--detach', hold]);
      // It goes when the last one closes it who looked at it meanwhile; a living agent may hold it again by then.
      if (times === 2) await until('the hold to be gone', () => loopDevicesBelow(node.root).length === 0);
      if (times === 2) await node.startAgent();
      // Twice, where the hold that is going was found: it goes with the last one who has it open, maybe a look.
      await node.until('the driver to say which device it is', () => asked().length > askedBefore);
      await node.untilMounted(1);
      await until('only one to hold it', () => loopDevicesBelow(node.root).length === 1);
      assert.deepEqual([statSync(link).rdev, lstatSync(held).rdev, read(link)], [rdev, rdev, 'precious']);
    }
    const found = node
      .log()
      .split('\n')
      .filter((line) => line.includes('mount lost'));
    assert.equal(found.length, 1);
    assert.ok(found[0]?.includes(held));
    assert.ok(
      node.driver.calls.every(({ method }) => !/^NodeUn/.test(method)),
      'nothing was taken down',
    );
    await end(node);
  }),
);

test(
  'ST-17: what holds the device, its path taken from it by somebody, is ended with the pod',
  { skip },
  () =>
    onRealNode(async (node) => {
      node.settings.resync_ms = RESYNC_MS;
      await begin(node);
      await node.untilMounted(1);
      const { link, held } = blockPlacesOf(node, 'raw');
      const { rdev } = statSync(link);
      write(link, 'precious');
      execFileSync('umount', ['--lazy', held]);
      const asked = () => node.driver.calls.filter(({ method }) => method === 'NodePublishVolume');
      await node.until('it to be published again', () => asked().length === 2);
      await node.untilMounted(1);
      await until('only one to hold it', () => loopDevicesBelow(node.root).length === 1);
      assert.deepEqual([statSync(link).rdev, lstatSync(held).rdev, read(link)], [rdev, rdev, 'precious']);
      // The driver's own device is below the scratch directory: nothing else keeps it.
      await end(node);
    }),
);

test('A-061: published as a plain file instead of a device, it is not given to the pod', { skip }, () =>
  onRealNode(async (node) => {
    let lies = true;
    node.driver.answered = ({ method, code, request }) => {
      if (lies && method === 'NodePublishVolume' && code === 0)
        execFileSync('umount', [request.targetPath ?? '']);
    };
    await begin(node);
    const { link, held, published } = blockPlacesOf(node, 'raw');
    // Each try takes the file away and has it made again, so it is looked at with the word of it.
    const status = await node.until('the lie to be found', ({ pods }) => {
      const isFile = lstatSync(published, { throwIfNoEntry: false })?.isFile() === true;
      return isFile && pods[0]?.volumes[0]?.reason?.code === 'published-not-a-device';
    });
    assert.equal(status.pods[0]?.volumes[0]?.reason?.blocker, published);
    assert.deepEqual([existsSync(link), mountsBelow(held), loopDevicesBelow(node.root)], [false, [], []]);
    lies = false;
    await node.untilMounted(1);
    assert.ok(statSync(link).isBlockDevice());
    await end(node);
  }),
);
