/** Which device a mounted btrfs is of: its number is made up at each mount, and its source may be any name of one. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import type { MountEntry } from '../../../mount/mount-table.ts';
import { isOnDevice } from '../../../plugins/device/mounted-device.ts';
import { refuseStagedDevice } from '../../../plugins/device/shared-device.ts';
import { scratchDirectory } from '../../mount/scratch.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { value } from '../../value.ts';
import { diskHost } from './local-world.ts';
import { stageWorld } from './stage-world.ts';

const DISK_BYTES = 128 * 1024 * 1024;
const skip = inPrivateNamespace();

const run = (tool: string, ...argv: string[]): string =>
  execFileSync(tool, argv, { encoding: 'utf8' }).trim();

/** A disk under a name that is not the kernel's, as device-mapper's are. */
function addDisk(t: TestContext, scratch: AbsolutePath, name: string): AbsolutePath {
  const file = below(scratch, `${name}.img`);
  writeFileSync(file, '');
  truncateSync(file, DISK_BYTES);
  const loop = run('losetup', '--find', '--show', file);
  t.after(() => run('losetup', '--detach', loop));
  const node = below(scratch, name);
  const [major = '', minor = ''] = run(
    'lsblk',
    '--noheadings',
    '--nodeps',
    '--output',
    'MAJ:MIN',
    loop,
  ).split(':');
  run('mknod', node, 'b', major.trim(), minor.trim());
  return node;
}

async function world(t: TestContext) {
  const scratch = scratchDirectory(t);
  const [one, other] = [addDisk(t, scratch, 'one'), addDisk(t, scratch, 'other')];
  const made = await stageWorld(t, scratch);
  mkdirSync(made.volume.target, { recursive: true });
  return { ...made, one, other };
}

test('the btrfs of another disk under the mount of the volume is told, and not taken for it', {
  skip,
}, async (t) => {
  const { stage, volume, one, other, call } = await world(t);
  for (const disk of [one, other]) run('mkfs.btrfs', '-q', disk);
  run('mount', '-t', 'btrfs', other, volume.target);
  const refused = await stage.stage(volume, one, call);
  assert.deepEqual(!refused.ok && [refused.failure.code, refused.failure.effect], ['device-changed', 'none']);
  value(await stage.stage(volume, other, call));
  value(await stage.unstage(volume.target));
});

test('a btrfs of several disks is that of each of them', { skip }, async (t) => {
  const { stage, volume, one, other, call } = await world(t);
  run('mkfs.btrfs', '-q', '-d', 'single', '-m', 'single', one, other);
  run('btrfs', 'device', 'scan', one);
  run('btrfs', 'device', 'scan', other);
  run('mount', '-t', 'btrfs', one, volume.target);
  for (const disk of [one, other]) value(await stage.stage(volume, disk, call));
  value(await stage.unstage(volume.target));
});

test('no pod gets a disk whose btrfs is mounted, by whichever name and beside whichever disk', {
  skip,
}, async (t) => {
  const { host, root, stage, volume, one, other, call } = await world(t);
  const ask = async (path: AbsolutePath): Promise<string> => {
    const disk = value(await host.identifyDisk(path)) ?? assert.fail(path);
    const name = `/dev/${run('basename', run('readlink', `/sys/dev/block/${disk.device}`))}`;
    const source = { ...disk, path: name as AbsolutePath };
    const asked = await refuseStagedDevice(host, below(root, 'mounts'), source);
    return asked.ok ? 'free' : asked.failure.code;
  };
  run('mkfs.btrfs', '-q', one);
  value(await stage.stage(volume, one, call));
  assert.deepEqual([await ask(one), await ask(other)], ['device-in-use', 'free']);
  run('btrfs', 'device', 'add', other, volume.target);
  assert.deepEqual([await ask(one), await ask(other)], ['device-in-use', 'device-in-use']);
  value(await stage.unstage(volume.target));
  assert.deepEqual([await ask(one), await ask(other)], ['free', 'free']);
});

test('a name in /dev/mapper is that of the device it leads to; of one that has gone nothing is known', async () => {
  const host = diskHost();
  const device = host.plantDevice('/dev/dm-0', { kind: 'file-system', type: 'btrfs' });
  host.plant('/dev/mapper/data', { kind: 'symlink', text: '../dm-0' });
  const [entry] = value(await host.readMountTable('/' as AbsolutePath)).entries;
  const ask = async (source: string, more: Partial<MountEntry> = {}) =>
    value(
      await isOnDevice(
        host,
        { ...(entry as MountEntry), device: '0:99', fsType: 'btrfs', source, ...more },
        device,
      ),
    );
  assert.equal(await ask('/dev/mapper/data'), true);
  assert.equal(await ask('/dev/mapper/gone'), undefined);
  assert.equal(await ask('/dev/mapper/data', { fsType: 'ext4' }), false);
  assert.equal(await ask('/dev/mapper/gone', { fsType: 'ext4', device }), true);
});
