import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { makeDirectory, removeEmptyDirectory } from '../../../../mount/broker/file/directory-effects.ts';
import { protectMountPointsFromNowOn } from '../../../../mount/broker/file/mount-point.ts';
import { removeTree } from '../../../../mount/broker/file/file-tree.ts';
import { type AbsolutePath, below } from '../../../../mount/host.ts';
import { inPrivateNamespace } from '../../../real/namespace.ts';
import { accept } from '../../../plugins/accept.ts';
import { scratchDirectory } from '../../scratch.ts';

const skip = inPrivateNamespace();
const MODE = 0o750;

/** A protected mount point; undefined where the file system has no such flag. */
function protectedPoint(t: TestContext): AbsolutePath | undefined {
  const root = scratchDirectory(t);
  const isAble = spawnSync('chattr', ['+i', root]).status === 0;
  if (!isAble) {
    t.skip('this file system has no flag that makes a directory immutable');
    return undefined;
  }
  execFileSync('chattr', ['-i', root]);
  const path = below(root, 'above', 'point');
  accept(makeDirectory(path, MODE, 'mount-point'));
  assert.throws(() => mkdirSync(`${path}/made`), { code: 'EPERM' });
  return path;
}

test('by default a bare mount point is a directory as others are', { skip }, (t) => {
  const path = below(scratchDirectory(t), 'point');
  accept(makeDirectory(path, MODE, 'mount-point'));
  writeFileSync(`${path}/file`, '');
  protectMountPointsFromNowOn();
});

test('DL-15: a protected mount point takes nothing, is made again, and goes when it is to go', {
  skip,
}, (t) => {
  const path = protectedPoint(t);
  if (path === undefined) return;
  accept(makeDirectory(path, MODE, 'mount-point'));
  assert.throws(() => writeFileSync(`${path}/file`, ''), { code: 'EPERM' });
  accept(removeEmptyDirectory(path));
  assert.ok(!existsSync(path));
});

test('one that was taken for a directory with content goes, too', { skip }, (t) => {
  const path = protectedPoint(t);
  if (path === undefined) return;
  accept(removeTree(path));
  assert.ok(!existsSync(path));
});

test('one can mount on it and write there; then it does not go, and its protection stays', { skip }, (t) => {
  const path = protectedPoint(t);
  if (path === undefined) return;
  execFileSync('mount', ['-t', 'tmpfs', 'protection-test', path]);
  writeFileSync(`${path}/file`, '');
  for (const remove of [removeEmptyDirectory, removeTree]) {
    const removed = remove(path);
    assert.deepEqual(removed.ok || removed.failure.code, 'mount-busy');
  }
  // What is mounted there is never protected.
  accept(makeDirectory(path, MODE, 'mount-point'));
  writeFileSync(`${path}/more`, '');
  execFileSync('umount', [path]);
  assert.deepEqual(readdirSync(path), []);
  assert.throws(() => mkdirSync(`${path}/made`), { code: 'EPERM' });
  accept(removeEmptyDirectory(path));
});

test('a directory that is no mount point is not protected', { skip }, (t) => {
  const path = below(scratchDirectory(t), 'plain');
  accept(makeDirectory(path, MODE));
  mkdirSync(`${path}/made`);
});
