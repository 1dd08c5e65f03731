/** The pool and its borders: what may be promised, what an id may reach, and volumes made by hand. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import {
  ControllerService,
  CreateVolumeRequest,
  GetCapacityRequest,
  NodePublishVolumeRequest,
  NodeService,
  NodeStageVolumeRequest,
} from '../../../../plugins/csi/wire/generated/csi.ts';
import { lockPool } from '../../../../plugins/loopfile/pool/pool-lock.ts';
import { lockWaiter } from '../../../mount/lock-waiter.ts';
import {
  assertOk,
  assertStatus,
  cannotRun,
  capability,
  createVolume,
  createWorld,
  MEBIBYTE,
  runLoopfile,
  type World,
} from '../world.ts';

async function makeWorld(t: TestContext): Promise<World> {
  const world = await createWorld();
  t.after(() => world.close());
  return world;
}

const create = (world: World, name: string, requiredBytes: number, limitBytes = 0) =>
  world.call(
    ControllerService.createVolume,
    CreateVolumeRequest.fromPartial({
      name,
      capacityRange: { requiredBytes: BigInt(requiredBytes), limitBytes: BigInt(limitBytes) },
      volumeCapabilities: [capability()],
    }),
  );

describe('a loopfile pool', { skip: cannotRun('losetup', 'mkfs.ext4') }, () => {
  test('promises no byte twice', async (t) => {
    const world = await makeWorld(t);
    await world.start('--capacity-bytes', String(100 * MEBIBYTE));
    const room = async () =>
      Number(
        (await world.must(ControllerService.getCapacity, GetCapacityRequest.create())).availableCapacity,
      );
    assert.equal(await room(), 100 * MEBIBYTE);
    const volume = await createVolume(world, 'first');
    assert.equal(await room(), 36 * MEBIBYTE);
    assertStatus(await create(world, 'second', 64 * MEBIBYTE), 'RESOURCE_EXHAUSTED');
    const both = await Promise.all(['a', 'b'].map((name) => create(world, name, 30 * MEBIBYTE)));
    assert.deepEqual(both.map(({ kind }) => kind).sort(), ['ok', 'status'], 'one of two that fit only alone');
    const { entries } = await world.must(ControllerService.listVolumes, { maxEntries: 0, startingToken: '' });
    assert.equal(entries.length, 2);
    const grow = (mebibytes: number) =>
      world.call(ControllerService.controllerExpandVolume, {
        volumeId: volume.volumeId,
        capacityRange: { requiredBytes: BigInt(mebibytes * MEBIBYTE), limitBytes: 0n },
        secrets: {},
        volumeCapability: undefined,
      });
    assertStatus(await grow(71), 'OUT_OF_RANGE');
    assert.equal(statSync(volume.data).size, 64 * MEBIBYTE);
    assertOk(await grow(70));
    assert.equal(await room(), 0);
    assertOk(await volume.remove());
    assert.equal(await room(), 70 * MEBIBYTE);
    assertStatus(await create(world, 'none', 9 * MEBIBYTE, 8 * MEBIBYTE), 'OUT_OF_RANGE');
    assertStatus(await create(world, 'none', 0, MEBIBYTE), 'OUT_OF_RANGE');
  });

  test('is the end of what a volume id can reach (SE-10)', async (t) => {
    const world = await makeWorld(t);
    await world.start();
    const volume = await createVolume(world, 'victim');
    mkdirSync(join(world.directory, 'outside'));
    for (const file of ['volume.json', 'data.img']) {
      writeFileSync(join(world.directory, 'outside', file), readFileSync(join(volume.directory, file)));
    }
    const tree = () =>
      execFileSync('find', [world.directory, '-printf', '%p %y %s %C@\n'], { encoding: 'utf8' });
    const before = tree();
    const stagingTargetPath = volume.stagingPath;
    const targetPath = volume.target;
    const outside = join(world.directory, 'outside');
    const wild = [
      '../outside',
      `../pool/${volume.volumeId}`,
      `./${volume.volumeId}`,
      outside,
      '..',
      '.',
      '.lock',
    ];
    const odd = [
      `${volume.volumeId}/`,
      `${volume.volumeId}\0`,
      volume.volumeId.toUpperCase(),
      'v'.repeat(4096),
    ];
    for (const volumeId of [...wild, ...odd]) {
      const common = { volumeId, stagingTargetPath, volumeCapability: capability() };
      const stage = NodeStageVolumeRequest.fromPartial(common);
      const publish = NodePublishVolumeRequest.fromPartial({ ...common, targetPath });
      const stats = { volumeId, volumePath: stagingTargetPath, stagingTargetPath: '' };
      for (const reply of [
        await world.call(NodeService.nodeStageVolume, stage),
        await world.call(NodeService.nodePublishVolume, publish),
        await world.call(NodeService.nodeUnpublishVolume, { volumeId, targetPath }),
        await world.call(NodeService.nodeUnstageVolume, { volumeId, stagingTargetPath }),
        await world.call(NodeService.nodeGetVolumeStats, stats),
        await world.call(ControllerService.controllerGetVolume, { volumeId }),
      ]) {
        assertStatus(reply, 'NOT_FOUND');
      }
      // CSI: what does not exist is as good as deleted.
      assertOk(await world.call(ControllerService.deleteVolume, { volumeId, secrets: {} }));
      assert.equal(tree(), before, volumeId);
      assert.deepEqual(world.loops(), []);
    }
  });

  test('has one driver, which makes the directory of its endpoint', async (t) => {
    const world = await makeWorld(t);
    const run = join(world.directory, 'run');
    const endpoint = (name: string) => ['--endpoint', `unix://${run}/loopfile/${name}`];
    await world.start(...endpoint('csi.sock'));
    assert.ok(statSync(join(run, 'loopfile', 'csi.sock')).isSocket());
    for (const made of [run, join(run, 'loopfile')]) assert.equal(statSync(made).mode & 0o777, 0o750);
    const second = runLoopfile('--pool', world.pool, ...endpoint('second.sock'));
    assert.equal(second.status, 1);
    assert.match(second.stderr, /another driver serves it/);
    assert.equal(existsSync(join(run, 'loopfile', 'second.sock')), false);
  });

  test('a pool of a killed driver, whose lock something that it started has yet, is waited for', async (t) => {
    const { pool } = await makeWorld(t);
    mkdirSync(pool);
    const before = await lockPool(pool);
    const locking = lockPool(pool);
    await Promise.race([locking, lockWaiter()]);
    await before.release();
    await (await locking).release();
  });

  test('a driver that cannot register ends, says why, and gives the pool back', async (t) => {
    const world = await makeWorld(t);
    const registry = join(world.directory, 'no-such-registry');
    const ended = runLoopfile(
      ...['--pool', world.pool, '--endpoint', `unix://${world.socket}`, '--registry', registry],
    );
    assert.equal(ended.status, 1, `it did not end by itself: ${ended.signal}`);
    assert.match(ended.stderr, /--registry \S+no-such-registry is not there/);
    assert.equal(existsSync(world.socket), false, 'nobody calls a driver that has ended');
    await world.start();
  });

  test('can be worked on by hand, beside its driver', async (t) => {
    const world = await makeWorld(t);
    await world.start();
    const pool = ['--pool', world.pool];
    const wish = [...pool, '--name', 'by-hand', '--size', '64Mi'];
    const made = runLoopfile('create', ...wish);
    assert.equal(made.status, 0, made.stderr);
    const handle = made.stdout.trim();
    assert.equal(runLoopfile('create', ...wish).stdout, made.stdout, 'making it again shows it again');
    assert.match(runLoopfile('create', ...pool, '--name', 'by-hand', '--size', '65Mi').stderr, /by-hand has/);
    assert.deepEqual(
      runLoopfile('list', ...pool)
        .stdout.trim()
        .split('\t')
        .slice(0, 3),
      [handle, 'by-hand', String(64 * MEBIBYTE)],
    );

    const yaml = runLoopfile('create', ...wish, '--yaml', '--driver', 'other.example.com').stdout;
    const [persistentVolume, claim] = parseAllDocuments(yaml).map((document) => {
      assert.deepEqual(document.errors, []);
      return document.toJS();
    });
    assert.deepEqual(persistentVolume.spec.csi, {
      driver: 'other.example.com',
      volumeHandle: handle,
      fsType: 'ext4',
    });
    assert.deepEqual([persistentVolume.kind, claim.kind], ['PersistentVolume', 'PersistentVolumeClaim']);
    assert.equal(claim.spec.volumeName, persistentVolume.metadata.name);
    assert.equal(persistentVolume.spec.claimRef.name, claim.metadata.name);

    const volume = await createVolume(world, 'by-hand');
    assert.equal(volume.volumeId, handle, 'the driver knows it by the same handle');
    assertOk(await volume.stage());
    const busy = runLoopfile('delete', ...pool, '--name', 'by-hand');
    assert.deepEqual([busy.status, existsSync(volume.data)], [1, true]);
    assert.match(busy.stderr, /in use through \/dev\/loop/);

    const tooEarly = await volume.expandTo(96 * MEBIBYTE);
    assertStatus(tooEarly, 'ABORTED', /has 67108864 bytes.*mooring-loopfile grow/);
    const grow = (size: string) => runLoopfile('grow', ...pool, '--name', 'by-hand', '--size', size);
    assert.deepEqual(
      [grow('96Mi').stdout, grow('96Mi').status],
      [`${handle}\n`, 0],
      'and again is no change',
    );
    assert.equal(statSync(volume.data).size, 96 * MEBIBYTE);
    assert.match(grow('64Mi').stderr, /100663296 bytes.*do not shrink/);
    assert.match(grow('8Ti').stderr, /the pool has no \d+ bytes more/);
    assert.match(runLoopfile('grow', ...pool, '--name', 'none', '--size', '96Mi').stderr, /no volume/);

    assertOk(await volume.unstage());
    assert.equal(runLoopfile('delete', ...pool, '--name', 'by-hand').status, 0);
    assert.equal(existsSync(volume.directory), false);
    assert.equal(runLoopfile('list', ...pool).stdout, '');
    assert.equal(runLoopfile('delete', ...pool, '--name', 'by-hand').status, 1);
    assert.equal(runLoopfile('create', ...pool, '--name', '../x', '--size', '64Mi').status, 1);
  });
});
