/** How many system calls the steps of a transition make: a pod of four volumes is some two hundred steps. */
import assert from 'node:assert/strict';
import fs, { mkdirSync, symlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import { makeDirectory, removeEmptyDirectory } from '../../../../mount/broker/file/directory-effects.ts';
import { inspect } from '../../../../mount/broker/file/path-facts.ts';
import { lookUpMount } from '../../../../mount/broker/path/mount-lookup.ts';
import { type AbsolutePath, below } from '../../../../mount/host.ts';
import { value } from '../../../value.ts';
import { scratchDirectory } from '../../scratch.ts';

/** Whatever of node's fs is a system call; what is closed is as many as what is opened. */
const CALLS = [
  'openSync',
  'readlinkSync',
  'readSync',
  'mkdirSync',
  'rmdirSync',
  'lstatSync',
  'fstatSync',
] as const;

type Count = (act: () => unknown) => number;

function counter(t: TestContext): Count {
  const real = new Map(CALLS.map((name) => [name, fs[name]]));
  let calls = 0;
  for (const [name, call] of real) {
    const counting = (...all: readonly unknown[]): unknown => {
      calls += 1;
      return (call as (...all: readonly unknown[]) => unknown)(...all);
    };
    Object.assign(fs, { [name]: counting });
  }
  syncBuiltinESMExports();
  t.after(() => {
    for (const [name, call] of real) Object.assign(fs, { [name]: call });
    syncBuiltinESMExports();
  });
  return (act) => {
    calls = 0;
    act();
    return calls;
  };
}

/** As deep as the volume of a pod is below the root of our state. */
function volumeOf(root: AbsolutePath): AbsolutePath {
  return below(root, 'pods', 'uid', 'volumes', 'kubernetes.io~csi', 'volume');
}

test('a directory that is not there is made with those above it, at the cost of what is missing', (t) => {
  const root = scratchDirectory(t);
  const volume = volumeOf(root);
  const count = counter(t);
  // Five are missing: each is tried once, made and entered; what is there is opened and named, its mode is read.
  assert.equal(
    count(() => value(makeDirectory(volume, 0o750))),
    5 + 3 + 5 * 2 + 1,
  );
  assert.equal(value(inspect(volume)).kind, 'directory');
  assert.equal(
    count(() => value(makeDirectory(volume, 0o750))),
    3,
  );
});

test('an empty directory is removed without a look before, and one that is used is left at the same cost', (t) => {
  const root = scratchDirectory(t);
  const volume = volumeOf(root);
  mkdirSync(volume, { recursive: true });
  const count = counter(t);
  assert.equal(
    count(() => assert.equal(removeEmptyDirectory(below(root, 'pods')).ok, false)),
    3,
  );
  assert.equal(
    count(() => value(removeEmptyDirectory(volume))),
    3,
  );
  assert.equal(
    count(() => value(removeEmptyDirectory(volume))),
    3,
  );
  assert.equal(value(inspect(volume)).kind, 'absent');
});

test('what is mounted at a place is seen in one walk', (t) => {
  const root = scratchDirectory(t);
  const count = counter(t);
  // Two to the directory above, one to the place, and which mount each of the two is on.
  assert.equal(
    count(() => value(lookUpMount(root))),
    2 + 1 + 2 * 2,
  );
});

test('what is missing behind a link is unsafe, not missing', (t) => {
  const root = scratchDirectory(t);
  mkdirSync(`${root}/real`);
  symlinkSync(`${root}/real`, `${root}/link`);
  symlinkSync(`${root}/nowhere`, `${root}/dangling`);
  for (const link of ['link', 'dangling']) {
    const behind = below(root, link, 'a', 'b');
    for (const outcome of [makeDirectory(behind, 0o750), removeEmptyDirectory(behind), inspect(behind)])
      assert.equal(outcome.ok ? 'ok' : outcome.failure.code, 'path-unsafe');
  }
});
