/** Who has something of a place, on the real kernel: in whatever mount namespace, and however he came to it. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import type { PlaceHolder } from '../../mount/holder/place-holder.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { placeHoldersContract } from '../contract/place-holders.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { value } from '../value.ts';
import { deepProcess } from './deep-process.ts';
import { end, holder } from './holding-process.ts';
import { realHost, scratchDirectory } from './scratch.ts';

const skip = inPrivateNamespace();
const STAY = 'echo && exec sleep 600';

if (skip === false)
  placeHoldersContract('LinuxHost', async (t) => ({
    host: await realHost(t),
    root: scratchDirectory(t),
    occupy: async (path) => {
      const inside = await holder(t, 'sh', '-c', `cd ${path} && ${STAY}`);
      return () => end(inside);
    },
  }));

/** A tmpfs and a plain directory, as two volumes of pods have them. */
async function world(t: TestContext) {
  const host = await realHost(t);
  const pods = scratchDirectory(t);
  const memory = below(pods, 'web-1', 'memory');
  const disk = below(pods, 'web-1', 'disk');
  for (const path of [memory, disk]) mkdirSync(path, { recursive: true });
  mountTmpfs(memory);
  const holdersOf = async (...paths: readonly AbsolutePath[]): Promise<readonly (readonly PlaceHolder[])[]> =>
    value(await host.findPlaceHolders(paths, pods));
  return { pods, memory, disk, holdersOf };
}

/** The scratch directory takes with it what is mounted there. */
function mountTmpfs(path: string): void {
  execFileSync('mount', ['-t', 'tmpfs', 'mooring', path]);
}

function shown(found: readonly PlaceHolder[] | undefined) {
  return found?.map(({ pid, path, how }) => ({ pid, path, how }));
}

test('nobody has what nobody uses, mounted or not, or not even there', { skip }, async (t) => {
  const { pods, memory, disk, holdersOf } = await world(t);
  assert.deepEqual(await holdersOf(memory, disk, below(pods, 'none')), [[], [], []]);
});

test('who works in a place or has a file of it open has it, and of each place they are told apart', {
  skip,
}, async (t) => {
  const { memory, disk, holdersOf } = await world(t);
  const inside = await holder(t, 'sh', '-c', `cd ${disk} && ${STAY}`);
  const open = await holder(t, 'sh', '-c', `exec 7>${memory}/file && ${STAY}`);
  const [ofMemory, ofDisk] = await holdersOf(memory, disk);
  assert.deepEqual(shown(ofMemory), [{ pid: open.pid, path: `${memory}/file`, how: 'uses' }]);
  assert.deepEqual(shown(ofDisk), [{ pid: inside.pid, path: disk, how: 'uses' }]);
  assert.match(ofDisk?.[0]?.command ?? '', /^(sh|sleep)$/);
  await end(inside);
  await end(open);
  assert.deepEqual(await holdersOf(memory, disk), [[], []]);
});

test('a namespace that was given a place has it, a part of it as well, and used or not', {
  skip,
}, async (t) => {
  const { pods, memory, disk, holdersOf } = await world(t);
  const rooms = ['a', 'b'].map((name) => below(pods, name));
  for (const room of rooms) mkdirSync(room);
  mkdirSync(below(disk, 'part'));
  // As a runtime does: bound elsewhere, and then all that is ours is taken out of the namespace.
  const binds = `mount --bind ${memory} ${rooms[0]} && mount --bind ${disk}/part ${rooms[1]} && umount ${memory}`;
  const container = await holder(
    t,
    'unshare',
    '-m',
    '--propagation',
    'private',
    'sh',
    '-c',
    `${binds} && ${STAY}`,
  );
  const [ofMemory, ofDisk] = await holdersOf(memory, disk);
  assert.deepEqual(shown(ofMemory), [{ pid: container.pid, path: rooms[0], how: 'bound' }]);
  assert.deepEqual(shown(ofDisk), [{ pid: container.pid, path: rooms[1], how: 'bound' }]);
  await end(container);
  assert.deepEqual(await holdersOf(memory, disk), [[], []]);
});

test('a private copy of all mounts is a copy until somebody in there uses it', { skip }, async (t) => {
  const { memory, disk, holdersOf } = await world(t);
  const copied = ['unshare', '-m', '--propagation', 'private', 'sh', '-c'] as const;
  const idle = await holder(t, ...copied, STAY);
  const [ofMemory, ofDisk] = await holdersOf(memory, disk);
  assert.deepEqual(shown(ofMemory), [{ pid: idle.pid, path: memory, how: 'copy' }]);
  assert.deepEqual(ofDisk, [], 'a directory is not copied');
  const busy = await holder(
    t,
    'nsenter',
    '-t',
    String(idle.pid),
    '-m',
    'sh',
    '-c',
    `cd ${memory} && ${STAY}`,
  );
  const user = { pid: busy.pid, path: memory, how: 'uses' } as const;
  assert.deepEqual(
    shown((await holdersOf(memory))[0])?.filter(({ how }) => how === 'uses'),
    [user],
  );
  await end(busy);
  await end(idle);
  assert.deepEqual(await holdersOf(memory), [[]]);
});

test('a crowd of private copies hides nobody who uses the place', { skip }, async (t) => {
  const { memory, holdersOf } = await world(t);
  const copies: ChildProcess[] = [];
  for (let count = 0; count < 9; count += 1)
    copies.push(await holder(t, 'unshare', '-m', '--propagation', 'private', 'sh', '-c', STAY));
  // Met last: the kernel shows the processes in the order of their pids.
  const busy = await holder(t, 'sh', '-c', `exec 7>${memory}/file && ${STAY}`);
  const [found = []] = await holdersOf(memory);
  for (const one of [busy, ...copies]) await end(one);
  assert.equal(found.length, 8);
  assert.ok(
    found.some(({ pid, how }) => pid === busy.pid && how === 'uses'),
    JSON.stringify(found),
  );
});

/** A place whose mount lies on a shared one, as below the root of a machine with systemd. */
function sharedPlace(pods: AbsolutePath): { readonly tree: AbsolutePath; readonly place: AbsolutePath } {
  const tree = below(pods, 'tree');
  mkdirSync(tree);
  execFileSync('mount', ['--bind', tree, tree]);
  execFileSync('mount', ['--make-shared', tree]);
  const place = below(tree, 'place');
  mkdirSync(place);
  mountTmpfs(place);
  return { tree, place };
}

test('who was given a place elsewhere has it, though his namespace follows ours, as with BindPaths=', {
  skip,
}, async (t) => {
  const { pods, holdersOf } = await world(t);
  const { tree, place } = sharedPlace(pods);
  const room = below(tree, 'room');
  mkdirSync(room);
  const script = `mount --bind ${place} ${room} && ${STAY}`;
  const service = await holder(t, 'unshare', '-m', '--propagation', 'slave', 'sh', '-c', script);
  assert.deepEqual(shown((await holdersOf(place))[0]), [{ pid: service.pid, path: room, how: 'bound' }]);
  // The kernel says so as well: what is unmounted here is there yet.
  execFileSync('umount', [place]);
  const theirs = readFileSync(`/proc/${service.pid}/mountinfo`, 'utf8');
  assert.match(theirs, new RegExp(` ${room} .* - tmpfs `));
  assert.doesNotMatch(theirs, new RegExp(` ${place} .* - tmpfs `));
  await end(service);
});

test('a namespace that follows ours has nothing of it; who uses it there does', { skip }, async (t) => {
  const { pods, holdersOf } = await world(t);
  const { place } = sharedPlace(pods);
  const following = ['unshare', '-m', '--propagation', 'slave', 'sh', '-c'] as const;
  const idle = await holder(t, ...following, STAY);
  assert.deepEqual(await holdersOf(place), [[]]);
  const busy = await holder(t, ...following, `exec 7>${place}/file && ${STAY}`);
  assert.deepEqual(shown((await holdersOf(place))[0]), [
    { pid: busy.pid, path: `${place}/file`, how: 'uses' },
  ]);
  await end(busy);
  await end(idle);
});

test('a part of a place that is bound beside it, as a sub-path is, goes with ours where the namespace follows', {
  skip,
}, async (t) => {
  const { pods, holdersOf } = await world(t);
  const { tree, place } = sharedPlace(pods);
  const [part, subpath, room] = [below(place, 'part'), below(tree, 'subpath'), below(tree, 'room')];
  for (const path of [part, subpath, room]) mkdirSync(path);
  const following = ['unshare', '-m', '--propagation', 'slave', 'sh', '-c'] as const;
  // As systemd-udevd is there before the pod comes, and a service is given its part later.
  const before = await holder(t, ...following, STAY);
  execFileSync('mount', ['--bind', part, subpath]);
  const after = await holder(t, ...following, STAY);
  assert.deepEqual(await holdersOf(place), [[]]);
  const given = await holder(t, ...following, `mount --bind ${subpath} ${room} && ${STAY}`);
  assert.deepEqual(shown((await holdersOf(place))[0]), [{ pid: given.pid, path: room, how: 'bound' }]);
  await end(given);
  // The kernel says so as well: what is unmounted here is gone there.
  execFileSync('umount', [subpath]);
  for (const { pid } of [before, after])
    assert.doesNotMatch(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'), new RegExp(` ${subpath} `));
  await end(before);
  await end(after);
});

test('what another pod has of the same volume counts when it goes as well', { skip }, async (t) => {
  const { pods, memory, holdersOf } = await world(t);
  const second = below(pods, 'web-2', 'memory');
  const elsewhere = below(pods, 'elsewhere');
  for (const path of [second, elsewhere]) mkdirSync(path, { recursive: true });
  execFileSync('mount', ['--bind', memory, second]);
  const script = `mount --bind ${second} ${elsewhere} && umount ${second} ${memory} && ${STAY}`;
  const container = await holder(t, 'unshare', '-m', '--propagation', 'private', 'sh', '-c', script);
  assert.deepEqual(await holdersOf(memory), [[]], 'it may be of the second pod, which has the volume still');
  const given = { pid: container.pid, path: elsewhere, how: 'bound' } as const;
  assert.deepEqual((await holdersOf(memory, second)).map(shown), [[given], [given]]);
  await end(container);
});

test('a copy of where a volume is staged is nothing of the pod', { skip }, async (t) => {
  const host = await realHost(t);
  const root = scratchDirectory(t);
  const [stage, place] = [below(root, 'plugins', 'stage'), below(root, 'pods', 'web-1', 'place')];
  for (const path of [stage, place]) mkdirSync(path, { recursive: true });
  mountTmpfs(stage);
  execFileSync('mount', ['--bind', stage, place]);
  const script = `umount ${place} && ${STAY}`;
  const copy = await holder(t, 'unshare', '-m', '--propagation', 'private', 'sh', '-c', script);
  assert.deepEqual(value(await host.findPlaceHolders([place], below(root, 'pods'))), [[]]);
  await end(copy);
});

test('who works too deep for a path to be told is in the place where that begins, and keeps no other', {
  skip,
}, async (t) => {
  const { pods, memory, disk, holdersOf } = await world(t);
  const elsewhere = below(pods, 'elsewhere');
  mkdirSync(elsewhere);
  for (const top of [elsewhere, disk, memory]) {
    const { process: inside, leave } = await deepProcess(t, top, 'directory');
    const found = (await holdersOf(disk, memory)).map((holders) =>
      holders.map((one) => ({ pid: one.pid, how: one.how, isBelow: one.path.startsWith(`${top}/deep`) })),
    );
    const user = { pid: inside.pid, how: 'uses', isBelow: true };
    assert.deepEqual(found, [top === disk ? [user] : [], top === memory ? [user] : []]);
    await leave();
  }
});

test('a file too deep to be told is in the place that is all of its mount, and else it may be anywhere', {
  skip,
}, async (t) => {
  const { pods, memory, disk, holdersOf } = await world(t);
  const host = await realHost(t);
  const inMemory = await deepProcess(t, memory, 'file');
  assert.deepEqual(await holdersOf(disk), [[]]);
  assert.deepEqual(shown((await holdersOf(memory))[0]), [
    { pid: inMemory.process.pid, path: memory, how: 'uses' },
  ]);
  await inMemory.leave();
  const onDisk = await deepProcess(t, disk, 'file');
  assert.deepEqual(await holdersOf(memory), [[]]);
  const found = await host.findPlaceHolders([disk], pods);
  assert.equal(found.ok, false);
  if (!found.ok) {
    assert.equal(found.failure.code, 'too-large');
    assert.match(
      found.failure.message,
      new RegExp(`^pid ${onDisk.process.pid} .*longer than the kernel tells`),
    );
  }
  await onDisk.leave();
});
