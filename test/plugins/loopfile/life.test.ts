/** The whole life of a volume on the real kernel, for each file system and as a block device. */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
  closeSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import {
  assertOk,
  assertStatus,
  cannotRun,
  createVolume,
  createWorld,
  type Driver,
  MEBIBYTE,
  skipLoudly,
  type World,
} from './world.ts';

const skip = cannotRun('losetup', 'mkfs.ext4');

/** Bit 24 is CAP_SYS_RESOURCE (linux/capability.h): ext4 asks for it before it grows while mounted. */
const CAPABILITIES = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
const growsOnline = ((BigInt(`0x${CAPABILITIES}`) >> 24n) & 1n) === 1n;
if (!growsOnline)
  skipLoudly('growing a mounted ext4, which needs CAP_SYS_RESOURCE; its refusal is tested instead');

describe('a loopfile volume', { skip }, () => {
  let world: World;
  let driver: Driver;
  before(async () => {
    world = await createWorld();
    driver = await world.start();
  });
  after(async () => {
    const exitCode = await driver.stop();
    await world.close();
    assert.equal(exitCode, 0);
  });
  afterEach(async () => assert.deepEqual(await world.sweep(), [], 'nothing stays mounted or attached'));

  const SIZES = { ext4: 64, xfs: 300, btrfs: 256 } as const;
  for (const [fsType, mebibytes] of Object.entries(SIZES)) {
    test(`lives from create to delete with ${fsType}`, { skip: cannotRun(`mkfs.${fsType}`) }, async () => {
      const volume = await createVolume(world, `life-${fsType}`, { fsType }, mebibytes * MEBIBYTE);
      assert.equal(statSync(volume.data).blocks, 0, 'a new volume takes no room');
      for (let again = 0; again < 2; again += 1) {
        assertOk(await volume.stage());
        assertOk(await volume.publish());
        assert.equal(world.mountsAt(volume.stagingPath).length, 1);
        assert.deepEqual(
          world.mountsAt(volume.target).map((entry) => entry.fsType),
          [fsType],
        );
        assert.equal(world.loops().length, 1);
      }
      writeFileSync(world.inside(join(volume.target, 'kept')), 'content');
      const bytes = await volume.totalBytes();
      const grown = mebibytes * 2 * MEBIBYTE;
      const enlarged = await volume.enlarge(grown);
      assert.deepEqual(enlarged, { capacityBytes: BigInt(grown), nodeExpansionRequired: true });
      const online = fsType !== 'ext4' || growsOnline;
      for (let again = 0; again < 2; again += 1) {
        const reply = await volume.expand();
        if (!online) {
          assertStatus(reply, 'FAILED_PRECONDITION', /CAP_SYS_RESOURCE.*ermission denied/);
        } else if (reply.kind === 'ok') assert.equal(reply.reply.capacityBytes, BigInt(grown));
        else assertOk(reply);
      }
      const larger = await volume.totalBytes(volume.stagingPath);
      if (online) assert.ok(larger > bytes * 1.5, 'the file system grew while it was mounted');
      else assert.equal(larger, bytes);

      assertStatus(await volume.unstage(), 'FAILED_PRECONDITION');
      assertStatus(await volume.remove(), 'FAILED_PRECONDITION');
      for (let again = 0; again < 2; again += 1) {
        assertOk(await volume.unpublish());
        assert.equal(existsSync(volume.target), false);
      }
      for (let again = 0; again < 2; again += 1) {
        assertOk(await volume.unstage());
        assert.deepEqual(world.loops(), []);
      }
      await volume.enlarge(mebibytes * 3 * MEBIBYTE);
      for (let again = 0; again < 2; again += 1) {
        assertOk(await volume.stage());
        const offline = await volume.totalBytes(volume.stagingPath);
        assert.ok(offline > bytes * 2.5, 'staging grew what the data file had grown meanwhile');
        assert.equal(readFileSync(world.inside(join(volume.stagingPath, 'kept')), 'utf8'), 'content');
        if (again === 0) assertOk(await volume.unstage());
      }
      assertOk(await volume.unstage());
      for (let again = 0; again < 2; again += 1) assertOk(await volume.remove());
      assert.equal(existsSync(volume.directory), false);
    });
  }

  test('is served as large as it is where its file system cannot be grown', async () => {
    const volume = await createVolume(world, 'ungrown', { fsType: 'ext4' });
    // Blocks of 1 KiB with numbers of 32 bits end at 4 TiB.
    world.run('mkfs.ext4', '-q', '-F', '-b', '1024', '-O', '^64bit', volume.data);
    truncateSync(volume.data, 5 * 1024 * 1024 * MEBIBYTE);
    assertOk(await volume.stage());
    assertOk(await volume.publish());
    assert.ok((await volume.totalBytes()) < 64 * MEBIBYTE);
    writeFileSync(world.inside(join(volume.target, 'kept')), 'content');
    assert.match(driver.log(), /"event":"file system not grown".*resize2fs ended with 1: .*32 bits/);
    assertOk(await volume.unpublish());
    assertOk(await volume.unstage());
    assertOk(await volume.remove());
  });

  test('is a block device when asked to be one', async () => {
    const volume = await createVolume(world, 'block', { kind: 'block', mode: 'SINGLE_NODE_MULTI_WRITER' });
    for (let again = 0; again < 2; again += 1) {
      assertOk(await volume.stage());
      assertOk(await volume.publish());
    }
    const device = openSync(world.inside(volume.target), 'r+');
    writeSync(device, 'raw bytes', 5 * MEBIBYTE);
    closeSync(device);
    assert.equal(await volume.totalBytes(), 64 * MEBIBYTE);
    assertStatus(await volume.publish(`${volume.target}-ro`, true), 'FAILED_PRECONDITION');
    assertStatus(await volume.stage({}), 'ALREADY_EXISTS');
    await volume.enlarge(96 * MEBIBYTE);
    assertOk(await volume.expand());
    assert.equal(await volume.totalBytes(), 96 * MEBIBYTE);
    assertOk(await volume.unpublish());
    assert.equal(existsSync(volume.target), false);

    assertOk(await volume.publish(volume.target, true));
    assert.throws(
      () => {
        const readOnly = openSync(world.inside(volume.target), 'r+');
        try {
          writeSync(readOnly, 'x', 0);
        } finally {
          closeSync(readOnly);
        }
      },
      { code: /EACCES|EPERM|EROFS/ },
    );
    assertOk(await volume.unpublish());
    assertOk(await volume.unstage());
    assert.equal(
      readFileSync(volume.data)
        .subarray(5 * MEBIBYTE, 5 * MEBIBYTE + 9)
        .toString(),
      'raw bytes',
    );
    assertStatus(await volume.stage({}), 'FAILED_PRECONDITION');
    assert.deepEqual(world.loops(), [], 'a refused stage leaves no loop device');
    assertOk(await volume.remove());
  });

  test('cannot be written to through a read-only publication', async () => {
    const volume = await createVolume(world, 'read-only', { mode: 'SINGLE_NODE_MULTI_WRITER' });
    assertOk(await volume.stage());
    const writable = `${volume.target}-rw`;
    assertOk(await volume.publish(writable));
    for (let again = 0; again < 2; again += 1) assertOk(await volume.publish(volume.target, true));
    assert.throws(() => writeFileSync(world.inside(join(volume.target, 'no')), ''), { code: 'EROFS' });
    writeFileSync(world.inside(join(writable, 'yes')), '');
    assert.ok(existsSync(world.inside(join(volume.target, 'yes'))));
    assertStatus(await volume.publish(volume.target, false), 'ALREADY_EXISTS');
    assertStatus(await volume.publish(writable, true), 'ALREADY_EXISTS');
    for (const target of [volume.target, writable]) assertOk(await volume.unpublish(target));
    assertOk(await volume.unstage());

    const reader = { mode: 'SINGLE_NODE_READER_ONLY' } as const;
    assertOk(await volume.stage(reader));
    assertOk(await volume.publish(volume.target, false, reader));
    assert.throws(() => writeFileSync(world.inside(join(volume.target, 'no')), ''), { code: 'EROFS' });
    await volume.enlarge(80 * MEBIBYTE);
    assertStatus(await volume.expand(), 'FAILED_PRECONDITION');
    assertOk(await volume.unpublish());
    assertOk(await volume.unstage());
    assertOk(await volume.remove());
  });

  test('is published as often as its access mode allows', async () => {
    for (const mode of [
      'SINGLE_NODE_WRITER',
      'SINGLE_NODE_SINGLE_WRITER',
      'SINGLE_NODE_MULTI_WRITER',
    ] as const) {
      const volume = await createVolume(world, `mode-${mode}`, { mode });
      const second = `${volume.target}-2`;
      assertOk(await volume.stage());
      assertOk(await volume.publish());
      const reply = await volume.publish(second);
      if (mode === 'SINGLE_NODE_MULTI_WRITER') assertOk(reply);
      else assertStatus(reply, 'FAILED_PRECONDITION');
      assert.equal(world.mountsAt(second).length, mode === 'SINGLE_NODE_MULTI_WRITER' ? 1 : 0);
      assert.equal(existsSync(second), mode === 'SINGLE_NODE_MULTI_WRITER');
      for (const target of [volume.target, second]) assertOk(await volume.unpublish(target));
      assertOk(await volume.unstage());
      assertOk(await volume.remove());
    }
  });

  test("takes no place that is somebody else's", async () => {
    const volume = await createVolume(world, 'places');
    assertOk(await volume.stage());
    mkdirSync(volume.target);
    writeFileSync(join(volume.target, 'mine'), 'mine');
    assertStatus(await volume.publish(), 'FAILED_PRECONDITION');
    assertStatus(await volume.publish(`${world.directory}/missing/parent`), 'FAILED_PRECONDITION');
    assert.equal(readFileSync(join(volume.target, 'mine'), 'utf8'), 'mine');
    const other = join(world.directory, 'pods', 'tmpfs');
    mkdirSync(other);
    world.run('mount', '-t', 'tmpfs', 'tmpfs', other);
    assertStatus(await volume.publish(other), 'ALREADY_EXISTS');
    assertStatus(await volume.unpublish(other), 'FAILED_PRECONDITION');
    assert.equal(world.mountsAt(other).length, 1);
    world.run('umount', other);
    assertOk(await volume.unpublish(other));
    assertOk(await volume.unstage());
    assertOk(await volume.remove());
  });

  test('is torn down also when its directory was deleted under it', async () => {
    const volume = await createVolume(world, 'deleted');
    assertOk(await volume.stage());
    assertOk(await volume.publish());
    world.run('rm', '-r', volume.directory);
    assertOk(await volume.unpublish());
    assertOk(await volume.unstage());
    assert.deepEqual(world.loops(), []);
    assertStatus(await volume.unstage(), 'NOT_FOUND');
    assertOk(await volume.remove());
  });

  test('is mounted with the options it asks for, and with none beyond the list', async () => {
    const volume = await createVolume(world, 'options');
    assertStatus(await volume.stage({ flags: ['noatime', 'loop'] }), 'INVALID_ARGUMENT');
    assertStatus(await volume.stage({ flags: ['noatime,dev'] }), 'INVALID_ARGUMENT');
    assertOk(await volume.stage({ flags: ['noatime', 'nodev'] }));
    assert.ok(world.mountsAt(volume.stagingPath)[0]?.options.includes('noatime'));
    assertStatus(await volume.stage(), 'ALREADY_EXISTS');
    assertOk(await volume.publish());
    assert.ok(world.mountsAt(volume.target)[0]?.options.includes('nodev'));
    assertOk(await volume.unpublish());
    assertOk(await volume.unstage());
    assertOk(await volume.remove());
  });

  test('is worked on by one call at a time', async () => {
    const volume = await createVolume(world, 'concurrent');
    const replies = await Promise.all(Array.from({ length: 8 }, () => volume.stage()));
    const codes = replies.map((reply) => (reply.kind === 'status' ? reply.status : reply.kind));
    assert.deepEqual([...new Set(codes)].sort(), [10, 'ok']);
    assert.equal(codes.filter((code) => code === 'ok').length, 1);
    assert.equal(world.mountsAt(volume.stagingPath).length, 1);
    assertOk(await volume.unstage());
    assertOk(await volume.remove());
    assert.match(driver.log(), /"event":"call failed","method":"nodeStageVolume"/);
  });
});
