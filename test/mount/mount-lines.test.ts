import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AbsolutePath } from '../../mount/host.ts';
import { aboutPath, atOrBelow, type LineFilter, withId } from '../../mount/mount-lines.ts';
import { parseMountTable } from '../../mount/mount-table.ts';
import { readMountInfo } from '../../mount/process/mount-info.ts';
import { value } from '../value.ts';

const ROOT = '/var/lib/mooring' as AbsolutePath;
const POD = `${ROOT}/pods/u1/volumes/kubernetes.io~empty-dir/v`;

function line(id: number, parent: number, root: string, target: string): string {
  return `${id} ${parent} 0:${id} ${root} ${target} rw,relatime shared:${id} - tmpfs mooring rw\n`;
}

const FOREIGN_AMONG = [
  line(40, 1, '/', '/var/lib/mooring-other'),
  line(41, 1, ROOT, '/srv/copy'),
  line(42, 1, '/var', '/mnt/var'),
  line(43, 1, '/', '/var/lib/moo'),
];
const OURS = [
  line(1, 0, '/@', '/'),
  line(20, 1, '/', '/var'),
  line(21, 20, '/', '/var/lib'),
  line(22, 21, '/', ROOT),
  line(23, 22, ROOT, ROOT),
  line(30, 23, '/', POD),
  line(31, 30, '/', `${POD}/sp\\040ace`),
];

function foreign(count: number): string[] {
  return Array.from({ length: count }, (_, n) => line(1_000 + n, 1, '/', `/run/containers/${n}/rootfs`));
}

/** What of a file with these lines is kept. */
function kept(lines: readonly string[], keep: LineFilter): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-lines-'));
  try {
    writeFileSync(join(directory, 'mountinfo'), lines.join(''));
    return value(readMountInfo(join(directory, 'mountinfo'), keep)).split(/(?<=\n)/);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('of the mounts of others none is kept, however many there are', () => {
  for (const count of [0, 10, 5_000]) {
    const lines = [...foreign(count), ...OURS.slice(0, 3), ...FOREIGN_AMONG, ...OURS.slice(3)];
    assert.deepEqual(kept(lines, aboutPath(ROOT)), OURS);
    assert.deepEqual(kept(lines, atOrBelow(POD as AbsolutePath)), OURS.slice(5));
    assert.deepEqual(kept(lines, withId(31)), OURS.slice(6));
  }
});

test('what one sees below the root is the same as with all mounts', () => {
  const lines = [...foreign(50), ...OURS, ...FOREIGN_AMONG];
  const whole = value(parseMountTable(lines.join('')));
  const ours = value(parseMountTable(kept(lines, aboutPath(ROOT)).join('')));
  for (const path of [ROOT, `${ROOT}/pods`, POD, `${POD}/sp ace`, `${POD}/nothing`] as AbsolutePath[]) {
    assert.deepEqual(ours.way(path), whole.way(path));
    assert.deepEqual(ours.at(path), whole.at(path));
    assert.deepEqual(ours.named(path), whole.named(path));
  }
});

test('a path that the kernel may write otherwise is looked for among all mounts', () => {
  const odd = '/var/lib/my mooring' as AbsolutePath;
  assert.deepEqual(kept(OURS, aboutPath(odd)), OURS);
  assert.deepEqual(kept(OURS, atOrBelow(odd)), OURS);
});

test('a line longer than any buffer is read whole', () => {
  const long = line(50, 1, '/', `${ROOT}/${'x'.repeat(200_000)}`);
  assert.deepEqual(kept([long, ...OURS], atOrBelow(ROOT)), [long, ...OURS.slice(3)]);
});
