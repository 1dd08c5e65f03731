import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs, {
  closeSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { done, ok } from '../../../../mount/failure.ts';
import { below } from '../../../../mount/host.ts';
import { removeTree } from '../../../../mount/broker/file/file-tree.ts';
import { readFile } from '../../../../mount/broker/file/file-reading.ts';
import { walkTree } from '../../../../mount/broker/file/file-walk.ts';
import { withDirectory } from '../../../../mount/broker/path/path-walk.ts';
import { inPrivateNamespace } from '../../../real/namespace.ts';
import { plantDeep } from '../../deep-tree.ts';
import { scratchDirectory } from '../../scratch.ts';

test('a tree far deeper than a path can be long goes, with the names that are no text', (t) => {
  const root = scratchDirectory(t);
  mkdirSync(`${root}/tree`);
  plantDeep(`${root}/tree`);
  for (let n = 0; n < 500; n += 1) writeFileSync(`${root}/tree/${n}`, 'x');
  const removed = removeTree(below(root, 'tree'));
  assert.ok(removed.ok, removed.ok ? '' : removed.failure.message);
  assert.deepEqual(readdirSync(root), []);
});

/** At the top of the tree: 70 directories in each other, below them many more, and as many beside one another. */
function plantCrowd(top: string, many: number): void {
  const enter = (above: number, name: string): number => {
    mkdirSync(`/proc/self/fd/${above}/${name}`);
    const next = openSync(`/proc/self/fd/${above}/${name}`, constants.O_RDONLY | constants.O_DIRECTORY);
    closeSync(above);
    return next;
  };
  let descriptor = openSync(top, constants.O_RDONLY | constants.O_DIRECTORY);
  for (let level = 0; level < 70; level += 1) descriptor = enter(descriptor, 'd');
  for (let n = 0; n < many; n += 1) mkdirSync(`/proc/self/fd/${descriptor}/${n}`);
  for (let level = 0; level < many; level += 1) descriptor = enter(descriptor, 'd');
  closeSync(descriptor);
}

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return getHeapStatistics().used_heap_size;
}

test('a walk needs no more memory, however many directories are in and beside each other', {
  skip: inPrivateNamespace(),
}, (t) => {
  const root = below(scratchDirectory(t), 'memory');
  mkdirSync(root);
  execFileSync('mount', ['-t', 'tmpfs', 'crowd', root]);
  mkdirSync(`${root}/tree`);
  const many = 10_000;
  plantCrowd(`${root}/tree`, many);
  const beforeBytes = heapBytes();
  let moreBytes: number | undefined;
  const walked = withDirectory(below(root, 'tree'), (top) =>
    walkTree(top, root, {
      entry: () => ok(false),
      finish: (_, depth) => {
        if (depth === many + 70) moreBytes ??= heapBytes() - beforeBytes;
        return done;
      },
      left: () => ok(false),
      mounted: () => done,
      refused: () => done,
      crowded: () => done,
    }),
  );
  assert.ok(walked.ok);
  assert.ok(moreBytes !== undefined && moreBytes < 1_000_000, `${moreBytes} bytes`);
  assert.deepEqual(removeTree(below(root, 'tree')), done);
  assert.deepEqual(readdirSync(root), []);
});

/** False: this file system has no such flag. */
const setFlag = (flag: '+i' | '+a', path: string): boolean => spawnSync('chattr', [flag, path]).status === 0;
const clearFlags = (root: string): void => void spawnSync('chattr', ['-R', '-f', '-i', '-a', root]);
const NO_FLAGS = 'this file system has no flags that forbid a change';

test('a tree goes whose files and directories are immutable, or may only be appended to', (t) => {
  const root = scratchDirectory(t);
  const tree = `${root}/tree`;
  for (const one of ['closed/empty', 'log']) mkdirSync(`${tree}/${one}`, { recursive: true });
  for (const one of ['file', 'lines', 'closed/file', 'log/file']) writeFileSync(`${tree}/${one}`, '');
  try {
    const immutable = ['file', 'closed/empty', 'closed', ''].map((one) => setFlag('+i', `${tree}/${one}`));
    const appended = ['lines', 'log'].map((one) => setFlag('+a', `${tree}/${one}`));
    if ([...immutable, ...appended].includes(false)) return t.skip(NO_FLAGS);
    const removed = removeTree(below(root, 'tree'));
    assert.deepEqual(removed, { ok: true, value: undefined });
    assert.ok(!existsSync(tree));
  } finally {
    clearFlags(root);
  }
});

test('an immutable file that has another name outside of the tree stays what it is', (t) => {
  const root = scratchDirectory(t);
  mkdirSync(`${root}/tree`);
  const [inside, outside] = [`${root}/tree/file`, `${root}/outside`];
  writeFileSync(inside, '');
  linkSync(inside, outside);
  try {
    if (!setFlag('+i', outside)) return t.skip(NO_FLAGS);
    const removed = removeTree(below(root, 'tree'));
    assert.equal(removed.ok || removed.failure.code, 'permission-denied');
    assert.throws(() => writeFileSync(outside, 'x'), { code: 'EPERM' });
  } finally {
    clearFlags(root);
  }
});

test('each directory is listed once, however many are beside it', (t) => {
  const root = scratchDirectory(t);
  const directories = 1_000;
  for (let n = 0; n < directories; n += 1) mkdirSync(`${root}/tree/${n}`, { recursive: true });
  for (let n = 0; n < directories; n += 1) writeFileSync(`${root}/tree/${n}/f`, '');
  const { opendirSync } = fs;
  t.after(() => {
    fs.opendirSync = opendirSync;
    syncBuiltinESMExports();
  });
  let listed = 0;
  fs.opendirSync = ((...all: Parameters<typeof opendirSync>) => {
    listed += 1;
    return opendirSync(...all);
  }) as typeof opendirSync;
  syncBuiltinESMExports();
  assert.ok(removeTree(below(root, 'tree')).ok);
  assert.equal(existsSync(`${root}/tree`), false);
  // A look at the first of them comes before.
  assert.ok(listed <= directories + 100, `${listed} listings`);
});

for (const [files, tables] of [
  [20, 0],
  [2_000, 1],
] as const) {
  test(`the table of all mounts is read ${tables} times to delete ${files} files`, (t) => {
    const root = scratchDirectory(t);
    mkdirSync(`${root}/tree/deep`, { recursive: true });
    for (let n = 0; n < files; n += 1) writeFileSync(`${root}/tree/deep/${n}`, 'x');
    const { openSync } = fs;
    t.after(() => {
      fs.openSync = openSync;
      syncBuiltinESMExports();
    });
    let read = 0;
    fs.openSync = (...all: Parameters<typeof openSync>) => {
      if (String(all[0]).endsWith('/mountinfo')) read += 1;
      return openSync(...all);
    };
    syncBuiltinESMExports();
    assert.ok(removeTree(below(root, 'tree')).ok);
    assert.deepEqual([read, existsSync(`${root}/tree`)], [tables, false]);
  });
}

test('what is no directory is refused and kept', (t) => {
  const root = scratchDirectory(t);
  writeFileSync(`${root}/file`, 'x');
  const removed = removeTree(below(root, 'file'));
  assert.deepEqual(removed.ok ? 'ok' : [removed.failure.code, removed.failure.effect], [
    'path-wrong-kind',
    'none',
  ]);
  assert.ok(existsSync(`${root}/file`));
});

/** Swaps `<root>/way` between the real directory and a link to another, as fast as it can, until it is ended. */
const SWAPPER = `
  const { renameSync, symlinkSync, unlinkSync } = require('node:fs');
  const { workerData: root, parentPort } = require('node:worker_threads');
  parentPort.postMessage('swapping');
  for (;;) {
    renameSync(root + '/way', root + '/aside');
    symlinkSync(root + '/victim', root + '/way');
    unlinkSync(root + '/way');
    renameSync(root + '/aside', root + '/way');
  }
`;

test('a link swapped in on the way is never followed, however often it is tried', async (t) => {
  const root = scratchDirectory(t);
  for (const name of ['way', 'victim']) {
    mkdirSync(`${root}/${name}/deep`, { recursive: true });
    mkdirSync(`${root}/${name}/tree`);
    writeFileSync(`${root}/${name}/deep/f`, name);
    writeFileSync(`${root}/${name}/tree/precious`, name);
  }
  const swapper = new Worker(SWAPPER, { eval: true, workerData: root });
  await new Promise((resolve) => swapper.once('message', resolve));
  const seen = new Map<string, number>();
  for (let tries = 0; tries < 20_000; tries += 1) {
    const read = readFile(below(root, 'way', 'deep', 'f'), 100);
    const what = read.ok ? Buffer.from(read.value).toString() : read.failure.code;
    seen.set(what, (seen.get(what) ?? 0) + 1);
    if (tries % 100 === 0) removeTree(below(root, 'way', 'tree'));
  }
  await swapper.terminate();
  assert.equal(seen.get('victim'), undefined, JSON.stringify([...seen]));
  assert.ok((seen.get('way') ?? 0) > 0 && (seen.get('path-unsafe') ?? 0) > 0, JSON.stringify([...seen]));
  assert.ok(existsSync(`${root}/victim/tree/precious`));
});
