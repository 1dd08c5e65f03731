import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWatchedDirectory } from '../../../../agent/source/manifests/watched-directory.ts';
import { fail, ok } from '../../../../mount/failure.ts';
import type { AbsolutePath, DirectoryIdentity } from '../../../../mount/host.ts';

const DIRECTORY = '/etc/mooring/manifests' as AbsolutePath;
const READING = { entriesMax: 10, fileBytesMax: 10 };
const OURS: DirectoryIdentity = { mountId: 7, device: '8:1', inode: '12', bornNs: '1' };
const OTHER: DirectoryIdentity = { ...OURS, inode: '13' };

/** A directory that is there, and what its reader remembers of it. */
function world() {
  const calls: string[] = [];
  const seen = { there: OURS, expected: undefined as DirectoryIdentity | undefined };
  const directory = createWatchedDirectory({
    host: {
      watch() {
        calls.push('watch');
        return () => {};
      },
      async readDirectoryFiles(_path, { identity }) {
        calls.push('read');
        if (identity?.inode === seen.there.inode) return ok([]);
        return fail({ code: 'directory-replaced', message: 'another one', effect: 'none' });
      },
    },
    directory: DIRECTORY,
    trust: {
      async identify() {
        calls.push('identify');
        seen.expected = seen.there;
        return ok(seen.there);
      },
      expected: () => seen.expected,
    },
    concerns: () => true,
    onHint: () => {},
    isInTrouble: () => false,
  });
  return {
    seen,
    async read() {
      calls.length = 0;
      const { ok: isRead } = await directory.read(DIRECTORY, READING);
      return { isRead, calls: calls.join(' ') };
    },
  };
}

test('the directory that was looked at once is read in one call', async () => {
  const { read } = world();
  assert.deepEqual(await read(), { isRead: true, calls: 'identify read' });
  assert.deepEqual(await read(), { isRead: true, calls: 'read' });
});

test('another one in its place is looked at before anything of it is read, and watched', async () => {
  const { read, seen } = world();
  await read();
  seen.there = OTHER;
  assert.deepEqual(await read(), { isRead: true, calls: 'read identify watch read' });
  assert.deepEqual(await read(), { isRead: true, calls: 'read' });
});

test('one that is remembered from before and was not looked at yet is looked at first', async () => {
  const { read, seen } = world();
  seen.expected = OURS;
  assert.deepEqual(await read(), { isRead: true, calls: 'identify read' });
});

test('where nothing can be expected it is looked at each time', async () => {
  const { read, seen } = world();
  await read();
  seen.expected = undefined;
  assert.deepEqual(await read(), { isRead: true, calls: 'identify read' });
});
