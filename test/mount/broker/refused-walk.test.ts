/**
 * What a path broker does not close keeps a file system from being unmounted for as long as that broker lives. So each
 * walk is done again and again, and each time another one of its calls is refused.
 */
import assert from 'node:assert/strict';
import fs, { closeSync, mkdirSync, openSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { test, type TestContext } from 'node:test';
import { measureUsage } from '../../../mount/broker/file/file-usage.ts';
import { changeOwnershipPart } from '../../../mount/broker/file/fs-group-part.ts';
import { openPart } from '../../../mount/broker/part/part-walk.ts';
import { openPathOf, withDirectory } from '../../../mount/broker/path/path-walk.ts';
import { done } from '../../../mount/failure.ts';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { scratchDirectory } from '../scratch.ts';

const CALLS = ['fstatSync', 'lstatSync', 'openSync', 'opendirSync', 'readlinkSync'] as const;

/** Counts the calls of a walk, and what is read of directories, and refuses one of them as a dying disk does. */
class RefusingKernel {
  calls = 0;
  refusedCall = 0;

  constructor(t: TestContext) {
    const own = Object.fromEntries(CALLS.map((name) => [name, fs[name]]));
    for (const name of CALLS) this.#refuse(fs, name);
    const { opendirSync } = fs;
    fs.opendirSync = (...all) => {
      const entries = opendirSync(...all);
      this.#refuse(entries, 'readSync');
      return entries;
    };
    syncBuiltinESMExports();
    t.after(() => {
      Object.assign(fs, own);
      syncBuiltinESMExports();
    });
  }

  #refuse<Name extends string>(owner: Record<Name, (...all: never[]) => unknown>, name: Name): void {
    const act = owner[name].bind(owner);
    owner[name] = (...all) => {
      this.calls += 1;
      if (this.calls !== this.refusedCall) return act(...all);
      throw Object.assign(new Error(`EIO: ${name}`), { code: 'EIO', syscall: name, errno: -5 });
    };
  }
}

function leavesNothingOpen(t: TestContext, walk: () => unknown): void {
  const kernel = new RefusingKernel(t);
  const open = (): number => readdirSync('/proc/self/fd').length;
  const before = open();
  do {
    kernel.refusedCall += 1;
    kernel.calls = 0;
    try {
      walk();
    } catch (error) {
      assert.ok(error instanceof Error && 'code' in error && error.code === 'EIO', String(error));
    }
    assert.equal(open(), before, `after call ${kernel.refusedCall} was refused`);
  } while (kernel.calls >= kernel.refusedCall);
  assert.ok(kernel.refusedCall > 2);
}

/** Deeper than what a walk keeps open. */
function deepTree(t: TestContext): AbsolutePath {
  const root = scratchDirectory(t);
  mkdirSync(`${root}/tree${'/d'.repeat(68)}`, { recursive: true });
  return below(root, 'tree');
}

test('a deep tree that is measured leaves nothing open, whichever call is refused', (t) => {
  const path = deepTree(t);
  leavesNothingOpen(t, () => measureUsage({ path, scope: 'tree' }));
});

test('a deep tree that is given to a group leaves nothing open, whichever call is refused', (t) => {
  const part = { path: deepTree(t), mountId: undefined, gid: 0, readOnly: false, ageMs: 0 };
  const names = ['d', 'd'].map((name) => Buffer.from(name));
  leavesNothingOpen(t, () => changeOwnershipPart({ ...part, names, scope: 'tree' }, () => {}));
});

test('a walk to a part leaves nothing open, whichever call is refused', (t) => {
  const root = scratchDirectory(t);
  mkdirSync(`${root}/a/b`, { recursive: true });
  symlinkSync('a', `${root}/link`);
  const volume = openPathOf(openSync(root, 'r'));
  t.after(() => closeSync(volume.descriptor));
  leavesNothingOpen(t, () => {
    const opened = openPart(volume, 'link/b', false);
    if (opened.ok) closeSync(opened.value.place.descriptor);
  });
});

test('a walk that ends at a file leaves nothing open, whichever call is refused', (t) => {
  const root = scratchDirectory(t);
  writeFileSync(`${root}/file`, '');
  const beyond = below(root, 'file', 'beyond');
  leavesNothingOpen(t, () => withDirectory(beyond, () => done));
});
