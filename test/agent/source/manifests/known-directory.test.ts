/** AP-12: which directory is the one that it was, within a boot and across one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  describeDirectory,
  formatKnownDirectory,
  isSameDirectory,
  type KnownDirectory,
  parseKnownDirectory,
  sightOf,
} from '../../../../agent/source/manifests/known-directory.ts';
import { path } from '../../manifests.ts';

const DISK: KnownDirectory = {
  path: path('/etc/mooring/manifests'),
  bootId: 'one',
  mountId: 30,
  device: '8:1',
  inode: '1201',
  bornNs: '1767225600000000000',
  fsType: 'ext4',
  source: '/dev/sda1',
  mountRoot: '/',
  mountPoint: '/',
};
const MEMORY: KnownDirectory = {
  ...DISK,
  device: '0:45',
  inode: '1',
  fsType: 'tmpfs',
  source: 'tmpfs',
  mountPoint: DISK.path,
};
const EXPORT: KnownDirectory = {
  ...DISK,
  device: '0:50',
  bornNs: undefined,
  fsType: 'nfs4',
  source: 'store:/manifests',
  mountPoint: DISK.path,
};
const OVERLAY: KnownDirectory = { ...DISK, device: '0:60', fsType: 'overlay', source: 'overlay' };

type Change = Partial<KnownDirectory>;
const REBOOT: Change = { bootId: 'two', mountId: 77 };

const SAME: readonly (readonly [string, KnownDirectory, Change])[] = [
  ['a bind of it, or its disk mounted again', DISK, { mountId: 99, mountRoot: '/etc', mountPoint: '/etc' }],
  [
    'its disk with another number after a reboot',
    DISK,
    { ...REBOOT, device: '259:3', source: '/dev/nvme0n1p1' },
  ],
  ['an export that is mounted again', EXPORT, { mountId: 99, device: '0:51' }],
  ['an export after a reboot', EXPORT, { ...REBOOT, device: '0:44' }],
  [
    'memory after a reboot, at the same place',
    MEMORY,
    { ...REBOOT, device: '0:31', inode: '7', bornNs: '9' },
  ],
  ['an overlay that copied it up', OVERLAY, { bornNs: '9' }],
  ['an overlay after a reboot', OVERLAY, { ...REBOOT, inode: '9', bornNs: '9' }],
];
const OTHER: readonly (readonly [string, KnownDirectory, Change])[] = [
  ['a file system mounted over it', DISK, { ...MEMORY, mountId: 99 }],
  ['a directory with another inode', DISK, { inode: '1202' }],
  ['one made anew with the inode of the old one', DISK, { bornNs: '1767225600000000001' }],
  ['a copy of its disk mounted over it', DISK, { device: '7:3', source: '/dev/loop3', mountId: 99 }],
  ['one made anew while the machine was off', DISK, { ...REBOOT, bornNs: '9' }],
  [
    'what lies under its disk, which is not mounted after a reboot',
    DISK,
    { ...REBOOT, inode: '88', bornNs: '9' },
  ],
  ['other memory of the same label', MEMORY, { device: '0:46', bornNs: '9' }],
  [
    'other memory with the number of the old, where no births are kept',
    { ...MEMORY, bornNs: undefined },
    { mountId: 99 },
  ],
  ['memory at another place after a reboot', MEMORY, { ...REBOOT, mountPoint: '/etc' }],
  ['another export with the number of the old one', EXPORT, { source: 'other:/manifests', mountId: 99 }],
  ['another export after a reboot', EXPORT, { ...REBOOT, source: 'other:/manifests' }],
  ['another overlay', OVERLAY, { inode: '9' }],
];

for (const [name, was, change] of SAME) {
  test(`the same directory: ${name}`, () => assert.ok(isSameDirectory(was, { ...was, ...change })));
}
for (const [name, was, change] of OTHER) {
  test(`another directory: ${name}`, () => assert.ok(!isSameDirectory(was, { ...was, ...change })));
}

test('a note is read back whole, or not at all', () => {
  for (const one of [DISK, EXPORT]) {
    const text = formatKnownDirectory(one);
    assert.deepEqual(parseKnownDirectory(text), JSON.parse(JSON.stringify(one)));
    assert.equal(isSameDirectory(parseKnownDirectory(text) ?? MEMORY, one), true);
    for (let cut = 0; cut < text.length; cut += 1)
      assert.equal(parseKnownDirectory(text.slice(0, cut)), undefined);
    assert.equal(parseKnownDirectory(text.replace('1201', '1202')), undefined);
  }
});

test('a sight names exactly one directory, and people can tell two apart', () => {
  assert.equal(sightOf(DISK), sightOf({ ...DISK, fsType: 'xfs' }));
  assert.notEqual(sightOf(DISK), sightOf({ ...DISK, inode: '9' }));
  assert.equal(
    describeDirectory(DISK),
    'ext4 /dev/sda1, mounted at /, inode 1201, made 2026-01-01T00:00:00.000Z',
  );
  assert.equal(describeDirectory(EXPORT), 'nfs4 store:/manifests, mounted on it, inode 1201');
});
