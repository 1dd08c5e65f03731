import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ok } from '../../mount/failure.ts';
import { createGround } from '../../mount/ground.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../mount/mount-table.ts';
import { line, ROOT_MOUNT } from './mount-lines.ts';

const root = '/state' as AbsolutePath;
const pods = '/state/pods' as AbsolutePath;
const target = '/state/pods/p/volumes/v' as AbsolutePath;

function world(start: readonly MountEntry[]) {
  let entries = [ROOT_MOUNT, ...start];
  let reads = 0;
  const ground = createGround(
    {
      readMountTable: async () => {
        reads += 1;
        return ok(createMountTable(entries));
      },
    },
    root,
    [pods],
  );
  const learnt = ground.learn(createMountTable(entries));
  return {
    learnt,
    reads: () => reads,
    mounts(next: readonly MountEntry[]) {
      entries = [ROOT_MOUNT, ...next];
    },
    async told(path = target) {
      const way = createMountTable(entries).way(path.slice(0, path.lastIndexOf('/')) as AbsolutePath);
      const refused = await ground.refuseStranger(path, way.at(-1)?.mountId ?? 0);
      return refused.ok ? 'fine' : `${refused.failure.code} ${refused.failure.blocker}`;
    },
  };
}

const disk = line(10, 1, root, { device: '8:1', fsType: 'ext4' });
const volume = line(20, 10, target);

test('what was mounted at the start is the ground, and no table is read on it', async () => {
  const { learnt, told, reads } = world([disk, line(11, 10, pods, { device: '8:2' })]);
  assert.ok(learnt.ok);
  assert.equal(await told(), 'fine');
  assert.equal(reads(), 0);
});

test('what comes over a directory above later is named, and when it goes all is well', async () => {
  const { mounts, told } = world([disk, volume]);
  for (const over of [pods, root, '/state/pods/p'] as const) {
    mounts([disk, volume, line(30, over === root ? 10 : 10, over)]);
    assert.equal(await told(), `mount-foreign tmpfs "source-30" (mount 30) at ${over}`);
    mounts([disk, volume]);
    assert.equal(await told(), 'fine');
  }
});

test('what lay over it at the start is told by what it hides; an administrator\u2019s disk hides nothing', async () => {
  const { learnt, told, mounts } = world([disk, volume, line(30, 10, pods)]);
  assert.ok(learnt.ok);
  assert.match(await told(), /mount 30/);
  mounts([disk, volume]);
  assert.equal(await told(), 'fine');
  const covered = world([disk, volume, line(30, 10, root)]).learnt;
  assert.ok(!covered.ok && covered.failure.code === 'mount-foreign');
});

test('lines that hang on another mount of the root hide nothing, nor does a tree bound onto itself', async () => {
  const twin = [line(2, 1, '/', { device: '254:1' }), line(21, 2, target, { device: volume.device })];
  const plain = line(20, 1, target);
  assert.ok(world([plain, ...twin]).learnt.ok);
  assert.equal(await world([plain, ...twin]).told(), 'fine');
  const bound = [line(40, 10, root, { device: '8:1' }), line(41, 40, target, { device: volume.device })];
  assert.ok(world([disk, volume, ...bound]).learnt.ok);
});

test('a ground that was unmounted and mounted again is the ground', async () => {
  const { mounts, told } = world([disk]);
  mounts([line(12, 1, root, { device: '8:1', fsType: 'ext4' })]);
  assert.equal(await told(), 'fine');
});
