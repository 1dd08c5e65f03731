/** Two volumes have one name, and it is told which of them a bind is a part of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath } from '../../../mount/host.ts';
import { parseMountTable } from '../../../mount/mount-table.ts';
import { isOfNamesake, type PlacedVolume } from '../../../plugins/subpath/bind-owner.ts';
import type { Subpath } from '../../../plugins/volume.ts';
import { value } from '../../value.ts';
import { callOf, content, emptyDir, layout, POD_DIRECTORY } from '../local-world.ts';

const PART: Subpath = { container: 'web', index: 1, path: 'logs' };
const TARGET = `${POD_DIRECTORY}/volume-subpaths/cache/web/1` as AbsolutePath;
const MEMORY = placed(emptyDir('memory'));
const HOST = placed({
  kind: 'host-path',
  id: 'kubernetes.io/host-path/x/cache',
  path: '/srv/data',
  type: '',
} as unknown as PlacedVolume['spec']);
const DISK = placed(emptyDir('disk'));

function placed(spec: PlacedVolume['spec'], subpaths?: readonly Subpath[]): PlacedVolume {
  const { publication } = callOf({ ...emptyDir('disk') });
  const { subpaths: _, ...rest } = publication;
  return { spec, publication: subpaths === undefined ? rest : { ...rest, subpaths } };
}

const withParts = ({ spec }: PlacedVolume): PlacedVolume => placed(spec, [PART]);

/** The machine's disk, a tmpfs at the emptyDir, and the bind as it is given. */
function isOther(own: PlacedVolume, other: PlacedVolume, device: string, root: string): boolean {
  const memory = layout.target(MEMORY.spec, MEMORY.publication);
  const lines = [
    '1 1 8:1 / / rw - ext4 /dev/sda1 rw',
    ...([own, other].includes(DISK) ? [] : [`2 1 0:40 / ${memory} rw - tmpfs mooring rw`]),
    `3 1 ${device} ${root} ${TARGET} rw - ext4 whatever rw`,
  ];
  return isOfNamesake(value(parseMountTable(lines.join('\n'))), layout, TARGET, own, [other]);
}

test('the file system that is bound tells whose it is', () => {
  assert.equal(isOther(MEMORY, HOST, '0:40', '/logs'), false);
  assert.equal(isOther(HOST, MEMORY, '0:40', '/logs'), true);
  assert.equal(isOther(HOST, MEMORY, '0:40', '/'), true);
});

test('of two volumes on one file system the directory tells it, and half a name is none', () => {
  assert.equal(isOther(MEMORY, HOST, '8:1', '/srv/data/logs'), true);
  assert.equal(isOther(MEMORY, HOST, '8:1', '/srv/database/logs'), false);
  const directory = layout.target(DISK.spec, DISK.publication);
  assert.equal(isOther(DISK, HOST, '8:1', '/srv/data/logs'), true);
  assert.equal(isOther(DISK, HOST, '8:1', `${directory}/logs`), false);
  assert.equal(isOther(HOST, DISK, '8:1', `${directory}/logs`), true);
});

test('what is proven to be of the volume itself is nobody else’s, whatever a record says', () => {
  assert.equal(isOther(MEMORY, withParts(HOST), '0:40', '/logs'), false);
});

test('what the kernel shows of neither is the one’s whose record names the place, or else nobody’s', () => {
  assert.equal(isOther(MEMORY, withParts(HOST), '0:99', '/'), true);
  assert.equal(isOther(MEMORY, HOST, '0:99', '/'), false);
  assert.equal(isOther(withParts(MEMORY), HOST, '0:99', '/'), false);
});

test('where nothing is mounted nothing is anybody’s', () => {
  const table = value(parseMountTable('1 1 8:1 / / rw - ext4 /dev/sda1 rw'));
  assert.equal(
    isOfNamesake(table, layout, TARGET, MEMORY, [withParts(HOST), withParts(placed(content('secret')))]),
    false,
  );
});
