/** Two PersistentVolumes that name one disk, one as files and one as it is: who comes second writes over nobody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath } from '../../../mount/host.ts';
import { localVolumeId, type LocalVolumeSpec } from '../../../plugins/local/local-traits.ts';
import { accept } from '../accept.ts';
import { callOf, layout } from '../local-world.ts';
import type { DeviceOnDisk, MemoryHost } from '../memory-host.ts';
import { diskHost, localPlugin, localVolume } from './local-world.ts';

const DEVICE = '/dev/sdx' as AbsolutePath;
const BY_ID = '/dev/disk/by-id/one' as AbsolutePath;
const FILES = callOf(localVolume(BY_ID));
const RAW = callOf(rawVolume());

function rawVolume(): LocalVolumeSpec {
  const name = 'raw-1';
  return { ...localVolume(DEVICE, [], 'Block'), name, id: localVolumeId(name) };
}

function hostWith(content: DeviceOnDisk): MemoryHost {
  const host = diskHost();
  for (const path of [layout.localDevices, layout.localStages])
    host.plant(path, { kind: 'directory', mode: 0o750 });
  host.plantDevice(DEVICE, content);
  host.plant(BY_ID, { kind: 'symlink', text: '../../sdx' });
  return host;
}

for (const content of [{ kind: 'blank' }, { kind: 'file-system', type: 'ext4' }] as const)
  test(`INV-9: a ${content.kind} disk that a pod has as it is gets no mkfs, no check and no mount`, async () => {
    const host = hostWith(content);
    const plugin = localPlugin(host);
    accept(await plugin.publish(RAW));
    const before = host.effects();
    const staged = await plugin.stage(FILES);
    assert.equal(host.effects(), before, 'nothing was done');
    const { held } = layout.localDevicePublication(RAW.publication);
    assert.deepEqual(!staged.ok && [staged.failure.code, staged.failure.effect, staged.failure.blocker], [
      'device-in-use',
      'none',
      held,
    ]);
    accept(await plugin.unpublish(RAW));
    accept(await plugin.stage(FILES));
  });

for (const type of ['ext4', 'btrfs'] as const)
  test(`a disk whose ${type} is mounted for pods is given to none as it is`, async () => {
    const host = hostWith({ kind: 'file-system', type });
    const plugin = localPlugin(host);
    accept(await plugin.stage(FILES));
    const before = host.effects();
    const published = await plugin.publish(RAW);
    assert.equal(host.effects(), before, 'nothing was done');
    const blocker = layout.localStage('local-1');
    const refused = !published.ok && [
      published.failure.code,
      published.failure.effect,
      published.failure.blocker,
    ];
    assert.deepEqual(refused, ['device-in-use', 'none', blocker]);
    accept(await plugin.unstage(FILES));
    accept(await plugin.publish(RAW));
  });

test('who has the device already keeps it, whatever is mounted of it by now', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  const plugin = localPlugin(host);
  accept(await plugin.publish(RAW));
  const stage = layout.localStage('local-1');
  host.plant(stage, { kind: 'directory', mode: 0o750 });
  accept(await host.mount({ fsType: 'ext4', source: DEVICE, target: stage, options: [] }));
  accept(await plugin.publish(RAW));
});
