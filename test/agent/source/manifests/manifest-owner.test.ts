/** Who could put another directory of manifests in the place of this one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { directoryWarnings } from '../../../../agent/source/manifests/manifest-owner.ts';
import { ok } from '../../../../mount/failure.ts';
import type { PathFacts } from '../../../../mount/host.ts';
import { path } from '../../manifests.ts';

const ABSENT: PathFacts = { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };

/** Directories with these modes, all of root unless said otherwise. */
async function warnings(modes: Readonly<Record<string, readonly [mode: number, uid?: number]>>) {
  const inspect = async (at: string) => {
    const [mode, uid = 0] = modes[at] ?? [];
    return ok<PathFacts>(mode === undefined ? ABSENT : { ...ABSENT, kind: 'directory', mode, uid });
  };
  const said = await directoryWarnings({ inspect }, path('/a/b/m'));
  return said.map((one) => one.replace('manifests are read from /a/b/m, but of ', ''));
}

test('nothing is said of directories that only root can write, or that are not there', async () => {
  assert.deepEqual(await warnings({ '/': [0o755], '/a': [0o755], '/a/b': [0o750], '/a/b/m': [0o700] }), []);
  assert.deepEqual(await warnings({ '/': [0o755] }), []);
});

test('each directory on the way that others can write is named, but for a sticky one above', async () => {
  const said = await warnings({ '/': [0o755], '/a': [0o1777], '/a/b': [0o775], '/a/b/m': [0o1777] });
  assert.deepEqual(said, [
    '/a/b/m: it can be written by others than its owner (mode 1777): chmod go-w',
    '/a/b: it can be written by others than its owner (mode 0775): chmod go-w',
  ]);
  const foreign = await warnings({ '/': [0o755], '/a': [0o755, 4_242], '/a/b': [0o755], '/a/b/m': [0o700] });
  assert.deepEqual(foreign, ['/a: it belongs to uid 4242, not to root']);
});
