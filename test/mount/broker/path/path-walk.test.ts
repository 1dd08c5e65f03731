/** What a transition keeps open between its steps is never taken for what stands there now. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { test, type TestContext } from 'node:test';
import { forgetWalked, keepWalked, withChild } from '../../../../mount/broker/path/path-walk.ts';
import { ok, type Result } from '../../../../mount/failure.ts';
import { type AbsolutePath, below } from '../../../../mount/host.ts';
import { inPrivateNamespace } from '../../../real/namespace.ts';
import { value } from '../../../value.ts';
import { scratchDirectory } from '../../scratch.ts';

const skip = inPrivateNamespace();

function contentOf(path: AbsolutePath): Result<string> {
  return withChild(path, (child) => ok(readFileSync(child.path, 'utf8')));
}

function directoryWith(
  t: TestContext,
  content: string,
): { readonly root: AbsolutePath; readonly file: AbsolutePath } {
  const root = scratchDirectory(t);
  mkdirSync(below(root, 'd'));
  const file = below(root, 'd', 'file');
  writeFileSync(file, content);
  return { root, file };
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

test('a directory that was moved away and made anew is walked to again', (t) => {
  const { root, file } = directoryWith(t, 'before');
  const open = openDescriptors();
  keepWalked(() => {
    assert.equal(value(contentOf(file)), 'before');
    renameSync(below(root, 'd'), below(root, 'moved'));
    mkdirSync(below(root, 'd'));
    writeFileSync(file, 'after');
    assert.equal(value(contentOf(file)), 'after');
  });
  assert.equal(openDescriptors(), open);
});

test('one that a link stands for by now is not gone into, and one that was removed is missing', (t) => {
  const { root, file } = directoryWith(t, 'before');
  mkdirSync(below(root, 'bare'));
  keepWalked(() => {
    assert.equal(value(contentOf(file)), 'before');
    renameSync(below(root, 'd'), below(root, 'moved'));
    symlinkSync(below(root, 'moved'), below(root, 'd'));
    const linked = contentOf(file);
    assert.ok(!linked.ok && linked.failure.code === 'path-unsafe');
    const bare = below(root, 'bare', 'x');
    value(withChild(bare, () => ok(undefined)));
    rmdirSync(below(root, 'bare'));
    const gone = withChild(bare, () => ok(undefined));
    assert.ok(!gone.ok && gone.failure.code === 'path-missing');
  });
});

test('who is at work in a directory that moves keeps it while somebody else walks to its path', (t) => {
  const { root, file } = directoryWith(t, 'before');
  keepWalked(() =>
    withChild(file, (child) => {
      renameSync(below(root, 'd'), below(root, 'moved'));
      const missing = contentOf(file);
      assert.ok(!missing.ok && missing.failure.code === 'path-missing');
      assert.equal(readFileSync(child.path, 'utf8'), 'before');
      return ok(undefined);
    }),
  );
});

test('after a mount of our own the directory below it is not taken for what is mounted', { skip }, (t) => {
  const { root, file } = directoryWith(t, 'below');
  mkdirSync(below(root, 'other'));
  writeFileSync(below(root, 'other', 'file'), 'mounted');
  keepWalked(() => {
    assert.equal(value(contentOf(file)), 'below');
    spawnSync('mount', ['--bind', below(root, 'other'), below(root, 'd')]);
    try {
      forgetWalked();
      assert.equal(value(contentOf(file)), 'mounted');
    } finally {
      // What is walked to holds the mount.
      spawnSync('umount', ['--lazy', below(root, 'd')]);
    }
  });
});

test('below a directory that is kept a walk begins there, and follows no link either', (t) => {
  const { root } = directoryWith(t, 'before');
  mkdirSync(below(root, 'd', 'e'));
  writeFileSync(below(root, 'd', 'e', 'file'), 'deeper');
  symlinkSync(below(root, 'd', 'e'), below(root, 'd', 'link'));
  const open = openDescriptors();
  keepWalked(() => {
    assert.equal(value(contentOf(below(root, 'd', 'file'))), 'before');
    assert.equal(value(contentOf(below(root, 'd', 'e', 'file'))), 'deeper');
    const linked = contentOf(below(root, 'd', 'link', 'file'));
    assert.ok(!linked.ok && linked.failure.code === 'path-unsafe');
    const missing = contentOf(below(root, 'd', 'none', 'file'));
    assert.ok(!missing.ok && missing.failure.code === 'path-missing');
  });
  assert.equal(openDescriptors(), open);
});

test('where a way ends is kept, too, and what is made below it meanwhile is found', (t) => {
  const { root } = directoryWith(t, 'before');
  const late = below(root, 'd', 'late', 'file');
  keepWalked(() => {
    assert.equal(contentOf(late).ok, false);
    mkdirSync(below(root, 'd', 'late'));
    writeFileSync(late, 'come');
    assert.equal(value(contentOf(late)), 'come');
  });
});
