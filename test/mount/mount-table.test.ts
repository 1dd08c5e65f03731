import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import {
  type MountEntry,
  type MountTable,
  parseMountLine,
  parseMountTable,
} from '../../mount/mount-table.ts';

/** What the kernel does to a name (fs/proc_namespace.c). */
function mangle(name: string): string {
  return name.replace(/[ \t\n\\#]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

interface Names {
  readonly root: string;
  readonly target: string;
  readonly fsType: string;
  readonly source: string;
}

function lineOf({ root, target, fsType, source }: Names, optional = 'shared:7 master:1 '): string {
  const left = `36 35 98:0 ${mangle(root)} ${mangle(target)} rw,noatime ${optional}`;
  return `${left}- ${mangle(fsType)} ${mangle(source)} rw,errors=continue`;
}

function entry(result: Result<MountEntry>): MountEntry {
  assert.ok(result.ok, result.ok ? '' : result.failure.message);
  return result.value;
}

function table(result: Result<MountTable>): MountTable {
  assert.ok(result.ok, result.ok ? '' : result.failure.message);
  return result.value;
}

const PLAIN: Names = { root: '/', target: '/mnt', fsType: 'ext4', source: '/dev/sda1' };

test('a line of the manual page is read field by field', () => {
  const line = '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue';
  assert.deepEqual(entry(parseMountLine(line)), {
    mountId: 36,
    parentId: 35,
    device: '98:0',
    root: '/mnt1',
    target: '/mnt2',
    options: ['rw', 'noatime'],
    propagation: ['master:1'],
    fsType: 'ext3',
    source: '/dev/root',
    superOptions: ['rw', 'errors=continue'],
  });
});

test('a line has any number of optional fields, none too', () => {
  assert.deepEqual(entry(parseMountLine(lineOf(PLAIN, ''))).propagation, []);
  const many = 'shared:1 master:2 propagate_from:3 unbindable ';
  assert.deepEqual(entry(parseMountLine(lineOf(PLAIN, many))).propagation, [
    'shared:1',
    'master:2',
    'propagate_from:3',
    'unbindable',
  ]);
});

test('names with the five signs that the kernel escapes come out as they are on disk', () => {
  const target = '/a b/tab\there/new\nline/back\\slash/#hash';
  assert.equal(entry(parseMountLine(lineOf({ ...PLAIN, target }))).target, target);
  assert.equal(
    entry(parseMountLine('1 2 0:3 / /sp\\040ace rw - tmpfs we\\040ird\\043src rw')).source,
    'we ird#src',
  );
});

test('a name that looks like the rest of a line stays a name', () => {
  const hostile = '/x - ext4 /dev/sda1 rw\n37 35 98:0 / /etc rw - ext4 y rw';
  const seen = table(parseMountTable(`${lineOf({ ...PLAIN, target: hostile })}\n${lineOf(PLAIN)}\n`));
  assert.equal(seen.entries.length, 2);
  assert.equal(seen.entries[0]?.target, hostile);
  assert.equal(seen.entries[0]?.fsType, 'ext4');
  assert.deepEqual(seen.at('/etc' as AbsolutePath), []);
});

test('an escape of an escape is undone once', () => {
  assert.equal(entry(parseMountLine(lineOf({ ...PLAIN, target: '/a\\040b' }))).target, '/a\\040b');
});

test('a deleted bind source and an empty source are read as the kernel writes them', () => {
  assert.equal(entry(parseMountLine('1 2 0:3 /a//deleted /m rw - tmpfs  rw')).source, '');
  assert.equal(entry(parseMountLine('1 2 0:3 /a//deleted /m rw - tmpfs  rw')).root, '/a//deleted');
});

test('a space in the options of a file system blinds nobody to the rest of the table', () => {
  const seen = table(parseMountTable(`1 2 0:3 / /m rw - fuse.odd src rw,name=a b\n${lineOf(PLAIN)}\n`));
  assert.deepEqual(seen.entries[0]?.superOptions, ['rw', 'name=a b']);
  assert.equal(seen.entries.length, 2);
});

test('two mounts on one target are a stack, the lower one first', () => {
  const text = `${lineOf(PLAIN)}\n${lineOf({ ...PLAIN, fsType: 'xfs' }).replace('36 35', '40 36')}\n`;
  const stack = table(parseMountTable(text)).at('/mnt' as AbsolutePath);
  assert.deepEqual(
    stack.map(({ mountId, fsType }) => [mountId, fsType]),
    [
      [36, 'ext4'],
      [40, 'xfs'],
    ],
  );
});

const ROOT_LINE = '10 1 98:0 / / rw shared:1 - ext4 /dev/sda1 rw';

function lineAt(mountId: number, parentId: number, target: string): string {
  return lineOf({ ...PLAIN, target }).replace('36 35', `${mountId} ${parentId}`);
}

function idsIn(seen: MountTable, target: string): { at: number[]; named: number[]; way: number[] } {
  const path = target as AbsolutePath;
  const ids = (entries: readonly MountEntry[]) => entries.map(({ mountId }) => mountId);
  return { at: ids(seen.at(path)), named: ids(seen.named(path)), way: ids(seen.way(path)) };
}

test('what lies under a mount over a directory above it is not seen, and known by its name', () => {
  const lines = [ROOT_LINE, lineAt(20, 10, '/a/b'), lineAt(21, 10, '/a'), lineAt(22, 21, '/a/c')];
  const seen = table(parseMountTable(`${lines.join('\n')}\n`));
  assert.deepEqual(idsIn(seen, '/a/b'), { at: [], named: [20], way: [10, 21] });
  assert.deepEqual(idsIn(seen, '/a/c'), { at: [22], named: [22], way: [10, 21, 22] });
  assert.deepEqual(idsIn(seen, '/a'), { at: [21], named: [21], way: [10, 21] });
});

test('the order of the lines decides nothing: one that was moved away and back has the older line', () => {
  const lines = [ROOT_LINE, lineAt(20, 21, '/a'), lineAt(21, 10, '/a')];
  const seen = table(parseMountTable(`${lines.join('\n')}\n`));
  assert.deepEqual(idsIn(seen, '/a').at, [21, 20]);
});

test('with the root bound onto itself one sees what hangs on the root that one is in', () => {
  const lines = [ROOT_LINE, lineAt(11, 10, '/'), lineAt(20, 10, '/a'), lineAt(21, 11, '/a')];
  const text = `${lines.join('\n')}\n`;
  assert.deepEqual(idsIn(table(parseMountTable(text)), '/a'), { at: [20], named: [20, 21], way: [10, 20] });
  assert.deepEqual(idsIn(table(parseMountTable(text, 11)), '/a').at, [21]);
  // A process whose root directory is inside a mount sees no line of that mount (chroot).
  const inside = lines.filter((line) => line !== ROOT_LINE).join('\n');
  assert.deepEqual(idsIn(table(parseMountTable(`${inside}\n`, 10)), '/a').at, [20]);
});

test('a ring of parents, as a table read while it changed may have, ends the walk', () => {
  const lines = [ROOT_LINE, lineAt(20, 10, '/a'), lineAt(20, 21, '/a'), lineAt(21, 20, '/a')];
  assert.ok(table(parseMountTable(`${lines.join('\n')}\n`)).at('/a' as AbsolutePath).length > 0);
});

test('a line that is none is a failure that shows it', () => {
  const bad = [
    'x',
    '1 2 3 / / rw - a b c',
    '1 2 0:3 / relative rw - a b c',
    '1 2 0:3 / /m rw a b c',
    '1 2 0:3 / /m rw - a',
    '-1 2 0:3 / /m rw - a b c',
    '1 2 0:3  /m rw - a b c',
  ];
  for (const line of bad) {
    const parsed = parseMountTable(`${lineOf(PLAIN)}\n${line}\n`);
    assert.deepEqual(
      parsed.ok ? 'ok' : [parsed.failure.code, parsed.failure.effect],
      ['table-unreadable', 'none'],
      line,
    );
    assert.ok(!parsed.ok && parsed.failure.message.includes(line));
  }
});

test('INV-23: what the kernel escapes comes out as it was, in every field, and no field bleeds into another', () => {
  const name = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\\', '#', '-', '0', '4', ',', '/', 'é', '\u0001') }),
  );
  fc.assert(
    fc.property(name, name, name, name, (root, target, fsType, source) => {
      const names = { root: `/${root}`, target: `/${target}`, fsType, source };
      const seen = table(parseMountTable(`${lineOf(names)}\n${lineOf(PLAIN)}\n`)).entries;
      assert.equal(seen.length, 2);
      const { root: r, target: t, fsType: f, source: s, superOptions } = seen[0] ?? assert.fail();
      assert.deepEqual({ root: r, target: t as string, fsType: f, source: s }, names);
      assert.deepEqual(superOptions, ['rw', 'errors=continue']);
    }),
    { numRuns: 2_000 },
  );
});

test('INV-23: any text is a table or a failure, never an exception', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
      parseMountTable(text);
    }),
  );
  const nearly = fc.array(fc.constantFrom('1', '0:3', '/', '/m', '-', 'rw', '', 'a', '\n', '\\777'), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(nearly, (words) => {
      parseMountTable(words.join(' '));
    }),
  );
});

test('5,000 lines keep their number, their order and their targets', () => {
  const lines = Array.from({ length: 5_000 }, (_, n) =>
    lineOf({ ...PLAIN, target: `/var/lib/mooring/pods/${n}/volumes/a b` }).replace(/^36 35/, `${n} 9999`),
  );
  const seen = table(parseMountTable(`${lines.join('\n')}\n`));
  assert.equal(seen.entries.length, 5_000);
  assert.ok(seen.entries.every(({ mountId }, n) => mountId === n));
  assert.equal(seen.at('/var/lib/mooring/pods/4321/volumes/a b' as AbsolutePath)[0]?.mountId, 4_321);
});
