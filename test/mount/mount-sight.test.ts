import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath, DeviceNumber } from '../../mount/host.ts';
import { sightOf } from '../../mount/mount-sight.ts';
import { createMountTable, type MountEntry } from '../../mount/mount-table.ts';
import { line, ROOT_MOUNT } from './mount-lines.ts';

const path = '/state/pods/p/v' as AbsolutePath;
const own = line(20, 1, path, { device: '7:0', fsType: 'ext4' });
const proven = { mountId: 20, device: '7:0' };

function seen(entries: readonly MountEntry[], identity = proven): readonly unknown[] {
  const sight = sightOf(createMountTable([ROOT_MOUNT, ...entries]), path, identity);
  if (sight.kind === 'covered') return ['covered', sight.by.mountId];
  return [sight.kind, sight.kind === 'seen' ? sight.entry.mountId : sight.shown?.mountId];
}

test('the mount that was proven is seen, gone, or covered by the one that is named', () => {
  assert.deepEqual(seen([own]), ['seen', 20]);
  assert.deepEqual(seen([]), ['gone', undefined]);
  assert.deepEqual(seen([own, line(30, 20, path)]), ['covered', 30]);
  assert.deepEqual(seen([own, line(30, 1, '/state/pods')]), ['covered', 30]);
  assert.deepEqual(seen([line(30, 1, path)]), ['gone', 30]);
});

test('its id in another device, in another part of it or at another path is another mount', () => {
  assert.deepEqual(seen([own], { ...proven, device: '7:1' }), ['gone', 20]);
  const known = { ...proven, root: '/part' };
  assert.deepEqual(seen([own], known), ['gone', 20]);
  assert.deepEqual(seen([{ ...own, target: '/elsewhere' as AbsolutePath }]), ['gone', undefined]);
});

test('what was bound and has no name any more is the same mount, and no other one', () => {
  const known = { ...proven, root: '/dev/loop' };
  assert.deepEqual(seen([{ ...own, root: '/dev/loop//deleted' }], known), ['seen', 20]);
  assert.deepEqual(seen([{ ...own, root: '/dev/other//deleted' }], known), ['gone', 20]);
  const nameless = { ...proven, root: '/dev/loop//deleted' };
  assert.deepEqual(seen([{ ...own, root: '/dev/loop//deleted' }], nameless), ['seen', 20]);
});

test('a second layer of the same volume is its driver\u2019s, one of a part of it is not', () => {
  const second = line(30, 20, path, { device: '7:0', fsType: 'ext4' });
  assert.deepEqual(seen([own, second]), ['gone', 30]);
  assert.deepEqual(seen([own, { ...second, root: '/part' }]), ['covered', 30]);
});

test('what is tucked in beneath it hides nothing', () => {
  assert.deepEqual(seen([line(30, 1, path), { ...own, parentId: 30 }]), ['seen', 20]);
});

test('a device node bound over another at its place is ours; over its directory it is not', () => {
  const identity = { ...proven, blockDevice: '8:1' as DeviceNumber };
  assert.deepEqual(seen([own, line(30, 20, path, { device: '7:0', root: '/b' })], identity), ['gone', 30]);
  assert.deepEqual(seen([own, line(30, 1, '/state')], identity), ['covered', 30]);
});
