import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runLoopfile } from './world.ts';

test('a command of the bundled driver names what is wrong, and makes no pool but to create a volume', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-command-'));
  const pool = join(directory, 'pool');
  const wrong = (...argv: readonly string[]): string => {
    const { status, stdout, stderr } = runLoopfile(...argv);
    assert.deepEqual([status, stdout], [1, ''], argv.join(' '));
    return stderr.split('\n')[0] ?? '';
  };
  try {
    assert.match(wrong('crate', '--pool', pool), /unknown command crate/);
    const rightPath =
      /^mooring-loopfile: --pool "pool\/": expected a path from \/ on, .* such as \/var\/lib\/mooring-loopfile/;
    assert.match(wrong('list', '--pool', 'pool/'), rightPath);
    const named = ['create', '--pool', pool, '--name', 'x', '--size', '16Mi'];
    assert.match(wrong(...named, '--fs', 'zfs'), /--fs "zfs": expected one of ext4, xfs, btrfs$/);
    assert.match(wrong(...named, '--driver', 'a/b', '--yaml'), /--driver "a\/b": expected letters, digits,/);
    const served = ['--pool', pool, '--endpoint', join(directory, 'csi.sock')];
    assert.match(
      wrong(...served, '--node-id', 'a/b'),
      /--node-id "a\/b": expected letters, digits, .*at most 63/,
    );
    assert.match(
      wrong(...served, '--capacity-bytes', '1Gi'),
      /--capacity-bytes "1Gi": expected a number of bytes/,
    );
    const missing = new RegExp(`--pool ${pool}: there is no such directory`);
    assert.match(wrong('list', '--pool', pool), missing);
    assert.match(wrong('grow', '--pool', pool, '--name', 'x', '--size', '16Mi'), missing);
    assert.match(wrong('delete', '--pool', pool, '--name', 'x'), missing);
    assert.equal(existsSync(pool), false);
    assert.match(wrong('create', '--pool', pool, '--name', 'A b', '--size', '16Mi'), /--name "A b" must be/);
    assert.equal(runLoopfile('create', '--pool', pool, '--name', 'x', '--size', '16Mi').status, 0);
    assert.match(wrong('delete', '--pool', pool, '--name', 'y'), /there is no volume y in /);
    assert.match(wrong('grow', '--pool', pool, '--name', 'y', '--size', '16Mi'), /there is no volume y in /);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
