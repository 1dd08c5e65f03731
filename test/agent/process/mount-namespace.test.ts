import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkMountNamespace,
  mountHolding,
  type NamespaceFacts,
} from '../../../agent/process/mount-namespace.ts';
import { fail, ok } from '../../../mount/failure.ts';
import { type MountTable, parseMountTable } from '../../../mount/mount-table.ts';
import { path } from '../status-fixture.ts';

function table(...lines: readonly string[]): MountTable {
  const parsed = parseMountTable(lines.join('\n'));
  assert(parsed.ok);
  return parsed.value;
}

const SHARED = '20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw';
const PRIVATE = '20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw';
const LIB = '30 20 8:2 / /var/lib rw - ext4 /dev/sda2 rw';
const LIB_SHARED = '31 30 8:3 / /var/lib rw shared:9 - ext4 /dev/sda3 rw';
const NEIGHBOUR = '32 20 8:4 / /var/lib/mooring-old rw - ext4 /dev/sda4 rw';

function verdict(rest: Partial<NamespaceFacts>): string {
  const checked = checkMountNamespace({
    own: ok('mnt:[1]'),
    first: ok('mnt:[1]'),
    table: ok(table(SHARED)),
    root: path('/var/lib/mooring'),
    ...rest,
  });
  return checked.ok ? 'ok' : `${checked.failure.code}: ${checked.failure.message}`;
}

test("pid 1's namespace and a shared mount below the root are what pods can see into", () => {
  assert.equal(verdict({}), 'ok');
});

test('A-004, INV-38: another namespace is refused, with both names', () => {
  assert.match(verdict({ own: ok('mnt:[2]') }), /^mount-foreign: .*mnt:\[2\].*mnt:\[1\]/);
});

test('a namespace that cannot be compared is refused too', () => {
  const unreadable = fail({ code: 'permission-denied', message: 'EACCES', effect: 'none' });
  assert.match(verdict({ first: unreadable }), /^mount-foreign: .*EACCES.*CAP_SYS_PTRACE/);
});

test('A-004, INV-38: a mount that is not shared is refused, and named with its cure', () => {
  assert.match(
    verdict({ table: ok(table(PRIVATE)) }),
    /the mount at \/, which holds .* "mount --make-shared \/"/,
  );
  assert.match(verdict({ table: ok(table(SHARED, LIB)) }), /make-shared \/var\/lib"/);
  assert.match(verdict({ table: ok(table(SHARED.replace('shared:1', 'master:1'))) }), /is not shared/);
});

test('the visible mount decides: the deepest, and of a stack the last; never a neighbour', () => {
  assert.equal(verdict({ table: ok(table(PRIVATE, LIB, LIB_SHARED)) }), 'ok');
  assert.equal(verdict({ table: ok(table(SHARED, NEIGHBOUR)) }), 'ok');
  assert.equal(mountHolding(path('/var/lib'), table(SHARED, LIB, LIB_SHARED))?.mountId, 31);
});
