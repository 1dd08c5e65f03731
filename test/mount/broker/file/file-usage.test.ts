/** What is counted of a tree that a pod has made, and where counting ends. */
import assert from 'node:assert/strict';
import { linkSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { removeTree } from '../../../../mount/broker/file/file-tree.ts';
import { measureUsage } from '../../../../mount/broker/file/file-usage.ts';
import { below } from '../../../../mount/host.ts';
import { value } from '../../../value.ts';
import { plantDeep } from '../../deep-tree.ts';
import { scratchDirectory } from '../../scratch.ts';

const KIB = 1_024;

test('a file of many names counts once, and a hole for nothing', (t) => {
  const path = below(scratchDirectory(t), 'tree');
  mkdirSync(path);
  const before = value(measureUsage({ path, scope: 'tree' }));
  writeFileSync(`${path}/first`, Buffer.alloc(100 * KIB, 'x'));
  const one = value(measureUsage({ path, scope: 'tree' }));
  assert.ok(one.bytes.used - before.bytes.used >= 100 * KIB);
  for (let n = 0; n < 50; n += 1) linkSync(`${path}/first`, `${path}/name-${n}`);
  writeFileSync(`${path}/hole`, '');
  truncateSync(`${path}/hole`, 1_000_000 * KIB);
  const after = value(measureUsage({ path, scope: 'tree' }));
  assert.ok(after.bytes.used - one.bytes.used < 100 * KIB, `${after.bytes.used} after ${one.bytes.used}`);
  assert.deepEqual([one.inodes.used, after.inodes.used], [2n, 3n]);
});

test('counting ends at its bound, with what was counted until then', (t) => {
  const path = below(scratchDirectory(t), 'tree');
  mkdirSync(path);
  for (let n = 0; n < 300; n += 1) writeFileSync(`${path}/${n}`, Buffer.alloc(4 * KIB, 'x'));
  const cut = value(measureUsage({ path, scope: 'tree' }, { entriesMax: 10, walkMsMax: 60_000 }));
  assert.deepEqual([cut.isWhole, cut.inodes.used], [false, 10n]);
  assert.ok(cut.bytes.used >= 40 * KIB);
  const late = value(measureUsage({ path, scope: 'tree' }, { entriesMax: 1_000, walkMsMax: -1 }));
  assert.deepEqual([late.isWhole, late.inodes.used], [false, 256n]);
  const whole = value(measureUsage({ path, scope: 'tree' }, { entriesMax: 1_000, walkMsMax: 60_000 }));
  assert.deepEqual([whole.isWhole, whole.inodes.used], [true, 301n]);
});

test('a tree far deeper than a path can be long is counted whole', (t) => {
  const path = below(scratchDirectory(t), 'tree');
  mkdirSync(path);
  plantDeep(path);
  const { isWhole, inodes } = value(measureUsage({ path, scope: 'tree' }));
  value(removeTree(path));
  assert.ok(isWhole && inodes.used > 1_000n, `${inodes.used}`);
});
