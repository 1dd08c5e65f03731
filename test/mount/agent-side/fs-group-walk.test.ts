import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { test } from 'node:test';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { GID, ownershipRequest } from '../../contract/ownership.ts';
import { OPERATION } from '../../hostile/fuse-protocol.ts';
import { mountFuse } from '../../hostile/fuse-server.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { value } from '../../value.ts';
import { plantDeep } from '../deep-tree.ts';
import { realHost, scratchDirectory } from '../scratch.ts';

const skip = inPrivateNamespace();
const DIRECTORIES = 40;
const FILES_EACH = 500;
/** In one directory; giving them away takes several times as long as it is before somebody looks. */
const FILES_WIDE = 100_000;
const LOOK_MS = 20;
/** One part may take so long: a busy machine leaves it without a processor for seconds. */
const DEADLINE_MS = 60_000;

function run(tool: string, ...argv: string[]): void {
  execFileSync(tool, argv);
}

/** On a tmpfs, as a volume is: 20,000 files in 40 directories. */
function plantMany(root: AbsolutePath): AbsolutePath {
  const volume = below(root, 'volume');
  mkdirSync(volume);
  run('mount', '-t', 'tmpfs', '-o', 'mode=0755', 'volume', volume);
  for (let directory = 0; directory < DIRECTORIES; directory += 1) {
    const path = below(volume, `d${directory}`);
    mkdirSync(path, { mode: 0o755 });
    for (let file = 0; file < FILES_EACH; file += 1)
      writeFileSync(below(path, `f${file}`), '', { mode: 0o644 });
  }
  return volume;
}

function countWrong(volume: AbsolutePath): number {
  let wrong = 0;
  for (const name of readdirSync(volume, { recursive: true, encoding: 'utf8' })) {
    const seen = lstatSync(`${volume}/${name}`);
    const bits = seen.isDirectory() ? 0o2770 : 0o660;
    if (seen.gid !== GID || (seen.mode & bits) !== bits) wrong += 1;
  }
  return wrong;
}

test('20,000 files are given to a group; then there is nothing to do', { skip }, async (t) => {
  const host = await realHost(t);
  const volume = plantMany(scratchDirectory(t));
  const entries = DIRECTORIES * (FILES_EACH + 1) + 1;
  assert.deepEqual(value(await host.changeOwnership(ownershipRequest(volume))), {
    seen: entries,
    changed: entries,
    refused: 0,
  });
  assert.equal(countWrong(volume), 0);
  const ctime = lstatSync(below(volume, 'd0', 'f0'), { bigint: true }).ctimeNs;
  assert.deepEqual(value(await host.changeOwnership(ownershipRequest(volume))), {
    seen: entries,
    changed: 0,
    refused: 0,
  });
  assert.equal(lstatSync(below(volume, 'd0', 'f0'), { bigint: true }).ctimeNs, ctime);
});

test('a walk tells how far it is, stops when nobody wants it, and goes on later', { skip }, async (t) => {
  const host = await realHost(t, { deadlinesMs: { path: DEADLINE_MS }, walkLookMs: LOOK_MS });
  const volume = plantMany(scratchDirectory(t));
  run('mount', '-o', 'remount,size=512m', volume);
  const wide = below(volume, 'wide');
  mkdirSync(wide);
  for (let file = 0; file < FILES_WIDE; file += 1) writeFileSync(`${wide}/${file}`, '', { mode: 0o600 });
  const told: number[] = [];
  let cancelled = false;
  const stopped = await host.changeOwnership(
    ownershipRequest(volume, {
      onProgress: (seen) => {
        told.push(seen);
        // On a busy machine the first word may come before the first file.
        cancelled = seen > 0;
      },
      isCancelled: () => cancelled,
    }),
  );
  assert.deepEqual(stopped.ok ? 'ok' : [stopped.failure.code, stopped.failure.effect], [
    'no-longer-wanted',
    'unknown',
  ]);
  assert.ok((told.at(-1) ?? 0) > 0, `told ${told.join()}`);
  const before = countWrong(volume);
  const all = DIRECTORIES * (FILES_EACH + 1) + FILES_WIDE + 1;
  assert.ok(before > 0 && before < all, `${before} of ${all} left`);
  assert.notEqual(lstatSync(volume).gid, GID);
  const rest = value(await host.changeOwnership(ownershipRequest(volume, { policy: 'on-root-mismatch' })));
  assert.equal(rest.changed, before + 1);
  assert.equal(countWrong(volume), 0);
  // Another group comes and goes half-way: the root says no longer that all of it is the first one's.
  cancelled = false;
  const other = await host.changeOwnership(
    ownershipRequest(volume, {
      gid: GID + 1,
      policy: 'on-root-mismatch',
      onProgress: (seen) => {
        cancelled = seen > 0;
      },
      isCancelled: () => cancelled,
    }),
  );
  assert.equal(other.ok ? 'ok' : other.failure.code, 'no-longer-wanted');
  assert.ok(countWrong(volume) > 0);
  value(await host.changeOwnership(ownershipRequest(volume, { policy: 'on-root-mismatch' })));
  assert.equal(countWrong(volume), 0);
  assert.equal(host.abandonedCalls(), 0);
});

test('neither a link to the root of the machine nor a mount below is gone into', { skip }, async (t) => {
  const host = await realHost(t);
  const root = scratchDirectory(t);
  const volume = below(root, 'volume');
  const [inner, file] = [below(volume, 'd', 'mounted'), below(volume, 'd', 'file-mount')];
  mkdirSync(inner, { recursive: true, mode: 0o700 });
  symlinkSync('/', below(volume, 'everything'));
  writeFileSync(below(root, 'outside'), '', { mode: 0o600 });
  writeFileSync(file, '');
  run('mount', '-t', 'tmpfs', '-o', 'mode=0700', 'inner', inner);
  writeFileSync(below(inner, 'kept'), '', { mode: 0o600 });
  // The same file system as the volume: only the mount tells that this file is not of it.
  run('mount', '--bind', below(root, 'outside'), file);
  const before = lstatSync('/');
  const report = value(await host.changeOwnership(ownershipRequest(volume)));
  assert.deepEqual(report, { seen: 3, changed: 3, refused: 0 });
  assert.deepEqual([lstatSync('/').gid, lstatSync('/').mode], [before.gid, before.mode]);
  assert.equal(lstatSync(below(volume, 'everything')).gid, GID);
  for (const path of [inner, below(inner, 'kept'), file, below(root, 'outside')])
    assert.equal(lstatSync(path).gid, 0, path);
});

test('names are bytes, and every kind of file is given away unopened, a device node but for its mode', {
  skip,
}, async (t) => {
  const host = await realHost(t);
  const volume = below(scratchDirectory(t), 'volume');
  mkdirSync(volume, { mode: 0o755 });
  const odd = Buffer.concat([Buffer.from(`${volume}/`), Buffer.from([0xff, 0xfe, 0x0a, 0x20])]);
  mkdirSync(odd, { mode: 0o700 });
  writeFileSync(Buffer.concat([odd, Buffer.from('/f')]), '', { mode: 0o600 });
  run('mkfifo', '-m', '0600', below(volume, 'fifo'));
  run('mknod', '-m', '0600', below(volume, 'null'), 'c', '1', '3');
  mkdirSync([volume, ...Array.from({ length: 200 }, () => 'deep')].join('/'), {
    recursive: true,
    mode: 0o700,
  });
  assert.deepEqual(value(await host.changeOwnership(ownershipRequest(volume))), {
    seen: 205,
    changed: 205,
    refused: 0,
  });
  assert.equal(lstatSync(Buffer.concat([odd, Buffer.from('/f')])).gid, GID);
  assert.deepEqual(
    ['fifo', 'null'].map((name) => lstatSync(below(volume, name)).mode & 0o777),
    [0o660, 0o600],
  );
});

test('a volume far deeper than descriptors and paths reach is given away', { skip }, async (t) => {
  const host = await realHost(t);
  const volume = below(scratchDirectory(t), 'volume');
  mkdirSync(volume, { mode: 0o755 });
  const entries = plantDeep(volume);
  const given = value(await host.changeOwnership(ownershipRequest(volume)));
  assert.deepEqual(given, { seen: entries + 1, changed: entries + 1, refused: 0 });
  const again = value(await host.changeOwnership(ownershipRequest(volume)));
  assert.deepEqual(again, { seen: entries + 1, changed: 0, refused: 0 });
  value(await host.removeTree(volume));
});

test('what refuses is counted and kept, and a root that refuses fails the walk', { skip }, async (t) => {
  const host = await realHost(t);
  const root = scratchDirectory(t);
  const volume = below(root, 'volume');
  mkdirSync(volume);
  run('mount', '-t', 'tmpfs', '-o', 'mode=0755', 'volume', volume);
  writeFileSync(below(volume, 'f'), '', { mode: 0o600 });
  run('mount', '-o', 'remount,ro,bind', volume);
  const refused = await host.changeOwnership(ownershipRequest(volume));
  assert.deepEqual(refused.ok ? 'ok' : [refused.failure.code, refused.failure.effect], [
    'permission-denied',
    'none',
  ]);
  run('mount', '-o', 'remount,rw,bind', volume);
  chownSync(volume, 0, GID);
  chmodSync(volume, 0o2775);
  run('mount', '-o', 'remount,ro,bind', volume);
  assert.deepEqual(value(await host.changeOwnership(ownershipRequest(volume))), {
    seen: 2,
    changed: 0,
    refused: 1,
  });
  assert.equal(lstatSync(below(volume, 'f')).gid, 0);
});

test('a program that ran as its owner does not do so for the new group', { skip }, async (t) => {
  const host = await realHost(t);
  const volume = below(scratchDirectory(t), 'volume');
  mkdirSync(volume);
  writeFileSync(below(volume, 'program'), '');
  chmodSync(below(volume, 'program'), 0o4755);
  value(await host.changeOwnership(ownershipRequest(volume)));
  assert.equal(lstatSync(below(volume, 'program')).mode & 0o7777, 0o775);
});

test('SE-27: a file with a name outside of the volume stays as it is, one with all of its names in it does not', {
  skip,
}, async (t) => {
  const host = await realHost(t, { stampAgeMs: 50 });
  const root = scratchDirectory(t);
  const volume = below(root, 'volume');
  for (const path of [volume, below(volume, 'a'), below(volume, 'b'), below(volume, 'a', 'deep')])
    mkdirSync(path, { mode: 0o755 });
  const write = (path: AbsolutePath): void => writeFileSync(path, 'kept', { mode: 0o600 });
  write(below(root, 'outside'));
  linkSync(below(root, 'outside'), below(volume, 'a', 'led-out'));
  write(below(volume, 'a', 'own'));
  linkSync(below(volume, 'a', 'own'), below(volume, 'b', 'own-too'));
  linkSync(below(volume, 'a', 'own'), below(volume, 'a', 'deep', 'own-as-well'));
  write(below(volume, 'one'));
  const seen = (path: AbsolutePath): string => {
    const { gid, mode } = lstatSync(path);
    return `${gid} ${(mode & 0o7777).toString(8)}`;
  };
  const given = value(await host.changeOwnership(ownershipRequest(volume)));
  assert.deepEqual([seen(below(root, 'outside')), seen(below(volume, 'a', 'led-out'))], ['0 600', '0 600']);
  assert.deepEqual(
    [seen(below(volume, 'b', 'own-too')), seen(below(volume, 'one'))],
    [`${GID} 660`, `${GID} 660`],
  );
  assert.deepEqual(given, { seen: 9, changed: 6, refused: 1 });
  assert.deepEqual(value(await host.changeOwnership(ownershipRequest(volume))), {
    seen: 9,
    changed: 0,
    refused: 1,
  });
  rmSync(below(root, 'outside'));
  assert.deepEqual(value(await host.changeOwnership(ownershipRequest(volume))), {
    seen: 9,
    changed: 1,
    refused: 0,
  });
});

test('a file system that gives no file to a group is left as it is, as by the kubelet, whatever it answers', {
  skip,
}, async (t) => {
  const host = await realHost(t);
  const volume = below(scratchDirectory(t), 'volume');
  mkdirSync(volume);
  const fuse = await mountFuse(volume);
  t.after(() => fuse.kill());
  writeFileSync(below(volume, 'file'), '');
  const { EDQUOT, EINVAL, EIO, ENOSPC, ENOSYS, EOPNOTSUPP, EOVERFLOW, EPERM } = constants.errno;
  const answer = async (errno: number) => {
    await fuse.set({ kind: 'fail', errno, operation: OPERATION.SETATTR });
    return host.changeOwnership(ownershipRequest(volume));
  };
  for (const errno of [EDQUOT, EINVAL, ENOSPC, ENOSYS, EOPNOTSUPP, EOVERFLOW, EPERM])
    assert.deepEqual(value(await answer(errno)), { seen: 2, changed: 0, refused: 2 }, `errno ${errno}`);
  const failed = await answer(EIO);
  assert.equal(failed.ok ? 'given' : failed.failure.code, 'input-output', 'it is dead');
});
