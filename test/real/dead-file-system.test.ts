/** What the kernel answers about file systems that died, and that nobody waits for one that hangs. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { type AbsolutePath, below, type MountIdentity, parentOf } from '../../mount/host.ts';
import { deathInOptions } from '../../mount/broker/path/file-system-death.ts';
import { parseMountTable } from '../../mount/mount-table.ts';
import { findDeath } from '../../plugins/guard/dead-file-system.ts';
import { OPERATION } from '../hostile/fuse-protocol.ts';
import { mountFuse } from '../hostile/fuse-server.ts';
import { realHost, scratchDirectory } from '../mount/scratch.ts';
import { csiSpec } from '../plugins/csi-spec.ts';
import { value } from '../value.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();
const MIB = 1_024 * 1_024;
const WAIT_MS_MAX = 120_000;
const { EDQUOT, EIO, ENOENT, ESTALE } = constants.errno;
/** errno(3); Node.js has no constant for it. */
const EUCLEAN = 117;
const SPEC = csiSpec('driver.example', 'data', 'pv-data');
const run = (tool: string, ...argv: readonly string[]): string =>
  execFileSync(tool, argv, { encoding: 'utf8' }).trim();

/** On a loop device that goes with the test; answers the name of the device. */
function mountImage(
  t: TestContext,
  target: AbsolutePath,
  mebibytes: number,
  [tool, ...argv]: readonly [string, ...string[]],
  ...options: readonly string[]
): string {
  const image = `${target}.image`;
  writeFileSync(image, '');
  truncateSync(image, mebibytes * MIB);
  mkdirSync(target);
  run(tool, ...argv, image);
  const device = run('losetup', '--find', '--show', image);
  t.after(() => run('losetup', '--detach', device));
  run('mount', ...options, device, target);
  return device.slice('/dev/'.length);
}

async function world(t: TestContext) {
  const target = below(scratchDirectory(t), 'volume');
  const host = await realHost(t);
  const find = async (mount?: MountIdentity) =>
    value(await findDeath(host, { path: target, spec: SPEC, mount }));
  return { target, host, find };
}

test('MT-07: an XFS that is shut down is dead, though the table shows nothing of it', { skip }, async (t) => {
  const { target, host, find } = await world(t);
  mountImage(t, target, 320, ['mkfs.xfs', '-q']);
  assert.equal(await find(), 'usable');
  run('xfs_io', '-x', '-c', 'shutdown', target);
  assert.equal(await find(), 'input-output');
  const seen = value(await host.lookUpMount(target));
  assert.deepEqual(seen.mounted && seen.death, 'input-output');
});

test('MT-06: an ext4 that an error made read-only is dead, though it answers', { skip }, async (t) => {
  const { target, host, find } = await world(t);
  const device = mountImage(t, target, 32, ['mkfs.ext4', '-q'], '-o', 'errors=remount-ro');
  const mount = value(await host.lookUpMount(target));
  assert.ok(mount.mounted);
  assert.equal(await find(mount), 'usable');
  writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, '1');
  // Before Linux 6.13 the file system itself turns read-only.
  const finding = await find(mount);
  assert.match(finding, /^(emergency-read-only|read-only)$/);
  const seen = value(await host.lookUpMount(target));
  assert.ok(seen.mounted && (seen.death ?? 'read-only') === finding, JSON.stringify(seen));
  const table = value(parseMountTable(readFileSync('/proc/self/mountinfo', 'utf8')));
  const options = table.at(target).at(-1)?.superOptions ?? [];
  assert.ok(deathInOptions(options) !== undefined || options.includes('ro'), options.join());
});

test('DR-11: an ext4 that died is mounted anew, dead, for as long as another mount keeps it', {
  skip,
}, async (t) => {
  const { target, host } = await world(t);
  const device = mountImage(t, target, 32, ['mkfs.ext4', '-q'], '-o', 'errors=remount-ro');
  writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, '1');
  const second = below(parentOf(target), 'second');
  mkdirSync(second);
  // Before Linux 6.13 the kernel refuses to mount it again (EBUSY): it would have to be made read-write.
  const mounted = spawnSync('mount', [`/dev/${device}`, second]);
  if (mounted.status !== 0) return;
  const death = async () => {
    const seen = value(await host.lookUpMount(second));
    return seen.mounted ? seen.death : 'not mounted';
  };
  assert.equal(await death(), 'emergency-read-only');
  run('umount', second);
  run('umount', target);
  run('mount', `/dev/${device}`, second);
  assert.equal(await death(), undefined);
});

test('read-only is dead where it was written, and not where it never was', { skip }, async (t) => {
  const { target, host, find } = await world(t);
  mountImage(t, target, 32, ['mkfs.ext4', '-q']);
  const mount = value(await host.lookUpMount(target));
  assert.ok(mount.mounted && mount.readOnly === undefined);
  run('mount', '-o', 'remount,ro', target);
  assert.equal(await find(mount), 'read-only');
  const now = value(await host.lookUpMount(target));
  assert.ok(now.mounted && now.readOnly === true);
  assert.equal(await find(now), 'usable');
  const probe = { path: target, mount };
  const reader = { ...SPEC, accessModes: ['ReadOnlyMany' as const] };
  assert.equal(value(await findDeath(host, { ...probe, spec: reader })), 'usable');
});

test('what an error made read-only is told from what was mounted read-only', { skip }, async (t) => {
  const { target, host } = await world(t);
  const device = mountImage(t, target, 32, ['mkfs.ext4', '-q']);
  const second = below(parentOf(target), 'second');
  mkdirSync(second);
  run('mount', `/dev/${device}`, second);
  // As an error does: the file system, and not the mount that is looked at.
  run('mount', '-o', 'remount,ro', second);
  const turned = async (path: AbsolutePath) => {
    const seen = value(await host.lookUpMount(path));
    return seen.mounted && [seen.readOnly, seen.turnedReadOnly];
  };
  assert.deepEqual(await turned(target), [true, true]);
  assert.deepEqual(await turned(second), [true, undefined]);
});

test('DR-11: a FUSE whose daemon is gone is dead', { skip }, async (t) => {
  const { target, find } = await world(t);
  mkdirSync(target);
  const fuse = await mountFuse(target);
  assert.equal(await find(), 'usable');
  await fuse.kill();
  assert.equal(await find(), 'daemon-gone');
});

test('DR-11: one whose handle is stale, or that is damaged, is dead: errors that Node.js has no name for', {
  skip,
}, async (t) => {
  const { target, find } = await world(t);
  mkdirSync(target);
  const fuse = await mountFuse(target);
  t.after(() => fuse.kill());
  for (const [errno, cause] of [
    [ESTALE, 'stale'],
    [EUCLEAN, 'damaged'],
  ] as const) {
    await fuse.set({ kind: 'fail', errno });
    assert.equal(await find(), cause);
  }
});

test('what one file answers says nothing of its file system, where a listing does not tell what it is', {
  skip,
}, async (t) => {
  const { target, host, find } = await world(t);
  mkdirSync(target);
  const fuse = await mountFuse(target);
  t.after(() => fuse.kill());
  writeFileSync(below(target, 'file'), '');
  for (const errno of [EIO, ENOENT, ESTALE]) {
    await fuse.set({ kind: 'fail', errno, operation: OPERATION.LOOKUP, isTerse: true });
    assert.equal(await find(), 'usable');
    assert.deepEqual(value(await host.listDirectory(target, 10)), ['file']);
  }
});

test('what goes while a listing that does not tell kinds is walked is left out of the walk', {
  skip,
}, async (t) => {
  const { target, host } = await world(t);
  mkdirSync(target);
  const fuse = await mountFuse(target);
  t.after(() => fuse.kill());
  for (const name of ['one', 'two', 'three']) writeFileSync(below(target, name), '');
  const walk = async () => {
    const { mountId } = value(await host.mountPlaceOf(target));
    return value(
      await host.changeOwnership({
        ...{ volume: 'shared', path: target, mountId, gid: 4_711, readOnly: false, policy: 'always' },
        ...{ onProgress() {}, onWaiting() {}, isCancelled: () => false },
      }),
    );
  };
  const whole = await walk();
  await fuse.set({ kind: 'fail', errno: ENOENT, operation: OPERATION.LOOKUP, isTerse: true });
  assert.equal((await walk()).seen, whole.seen - 3);
});

test('a quota that is used up is a full disk', { skip }, async (t) => {
  const { target, host } = await world(t);
  mkdirSync(target);
  const fuse = await mountFuse(target);
  t.after(() => fuse.kill());
  await fuse.set({ kind: 'fail', errno: EDQUOT, operation: OPERATION.CREATE });
  const written = await host.writeFile(below(target, 'file'), new Uint8Array(), {
    mode: 0o600,
    durable: false,
  });
  assert.equal(written.ok ? 'written' : written.failure.code, 'disk-full');
});

test('one that hangs is silent, is asked once, and holds up no other call', { skip }, async (t) => {
  const root = scratchDirectory(t);
  const target = below(root, 'volume');
  const host = await realHost(t, { deadlinesMs: { probe: 1_000 }, pathBrokersMax: 1 });
  mkdirSync(target);
  const fuse = await mountFuse(target);
  t.after(() => fuse.kill());
  await fuse.set({ kind: 'hang' });
  const asked = [host.probeFileSystem(target), host.probeFileSystem(target)];
  assert.deepEqual(value(await host.listDirectory(root, 10)), ['volume']);
  assert.deepEqual(
    (await Promise.all(asked)).map((one) => value(one).kind),
    ['silent', 'silent'],
  );
  await fuse.set({ kind: 'serve' });
  // The question that hung is answered by and by; until then no other is asked.
  let seen = value(await host.probeFileSystem(target)).kind;
  for (const endMs = Date.now() + WAIT_MS_MAX; seen === 'silent' && Date.now() < endMs; ) {
    await setTimeout(10);
    seen = value(await host.probeFileSystem(target)).kind;
  }
  assert.equal(seen, 'alive');
});

test('what is no mount, or not there, is neither dead nor alive', { skip }, async (t) => {
  const { target, host } = await world(t);
  assert.equal(value(await host.probeFileSystem(target)).kind, 'unmounted');
  mkdirSync(target);
  assert.equal(value(await host.probeFileSystem(target)).kind, 'unmounted');
});
