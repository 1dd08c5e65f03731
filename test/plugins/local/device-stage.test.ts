/** A local volume whose path is a block device: found, checked, made where it is blank, mounted once for all pods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, ok } from '../../../mount/failure.ts';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import type { LocalVolumeSpec } from '../../../plugins/local/local-traits.ts';
import type { PublicationCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { parsePodUid, publicationKey, type PodUid } from '../../../plugins/volume.ts';
import { value } from '../../value.ts';
import { accept } from '../accept.ts';
import { callOf, layout } from '../local-world.ts';
import type { DeviceOnDisk, MemoryHost } from '../memory-host.ts';
import { diskHost, localPlugin, localVolume } from './local-world.ts';

const DEVICE = '/dev/sdx' as AbsolutePath;
const STAGE = layout.localStage('local-1');
const INTENT = layout.formatIntent('local-1');

function hostWith(content: DeviceOnDisk): MemoryHost {
  const host = diskHost();
  host.plantDevice(DEVICE, content);
  host.plant('/dev/disk/by-id/one', { kind: 'symlink', text: '../../sdx' });
  return host;
}

function deviceVolume(more: Partial<LocalVolumeSpec> = {}): LocalVolumeSpec {
  return { ...localVolume('/dev/disk/by-id/one' as AbsolutePath), ...more };
}

/** As the reconciler calls: what was staged is known to the publish. */
async function stageAndPublish(plugin: VolumePlugin, call: PublicationCall): Promise<PublicationCall> {
  const { stagedMount } = value(await plugin.stage(call));
  const facts = { ...call.facts, stagedMount };
  accept(await plugin.publish({ ...call, facts }));
  return { ...call, facts };
}

async function refusalOf(host: MemoryHost, spec: LocalVolumeSpec): Promise<string> {
  const before = host.effects();
  const result = await localPlugin(host).stage(callOf(spec));
  assert.equal(host.effects(), before, 'nothing was done');
  assert.ok(!result.ok);
  assert.equal(result.failure.effect, 'none');
  return `${result.failure.code}: ${result.failure.message}`;
}

test('what is on a device is mounted once, and bound into each pod; unstaged, nothing is left', async () => {
  const host = hostWith({ kind: 'file-system', type: 'xfs' });
  const before = host.describe('/var' as AbsolutePath);
  const plugin = localPlugin(host);
  const call = await stageAndPublish(
    plugin,
    callOf(deviceVolume({ mountOptions: ['noatime', 'logbufs=8'] })),
  );
  const target = layout.target(call.spec, call.publication);
  const table = value(await host.readMountTable(layout.root));
  assert.equal(table.at(STAGE)[0]?.source, DEVICE);
  assert.deepEqual(host.optionsAt(STAGE).slice(1), ['nouuid', 'noatime', 'logbufs=8']);
  assert.equal(table.at(target)[0]?.device, table.at(STAGE)[0]?.device);
  assert.ok(table.at(target)[0]?.options.includes('noatime'));
  accept(await host.makeDirectory(below(target, 'made'), 0o700));
  assert.deepEqual(host.names(STAGE), ['made']);
  accept(await plugin.unpublish(call));
  accept(await plugin.unstage(call));
  assert.deepEqual(
    host.describe('/var' as AbsolutePath).filter((line) => !before.includes(line)),
    ['kubernetes.io', 'kubernetes.io/local-volume', 'kubernetes.io/local-volume/mounts'].map(
      (path) => `${layout.plugins}/${path} directory 750`,
    ),
  );
  await stageAndPublish(plugin, call);
  assert.deepEqual(host.names(STAGE), ['made'], 'what is on the disk stays');
});

test('staged twice it is mounted once, and the answer is the same', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  const first = value(await localPlugin(host).stage(callOf(deviceVolume())));
  assert.deepEqual(value(await localPlugin(host).stage(callOf(deviceVolume()))), first);
  assert.equal(host.depthAt(STAGE), 1);
});

test('DR-11: what an error made read-only before the first look is not noted as made so', async () => {
  const noted = async (mode: object) => {
    const host = hostWith({ kind: 'file-system', type: 'ext4' });
    const { lookUpMount } = host;
    host.lookUpMount = async (path) => {
      const seen = await lookUpMount(path);
      return seen.ok && seen.value.mounted ? ok({ ...seen.value, ...mode }) : seen;
    };
    return value(await localPlugin(host).stage(callOf(deviceVolume()))).stagedMount?.readOnly;
  };
  assert.equal(
    await noted({ readOnly: true, turnedReadOnly: true }),
    undefined,
    'the next look finds it dead',
  );
  assert.equal(await noted({ readOnly: true }), true);
});

test('a directory is staged by a look, and has no mount there', async () => {
  const host = diskHost();
  const before = host.effects();
  assert.deepEqual(value(await localPlugin(host).stage(callOf(localVolume()))), { stagedMount: undefined });
  accept(await localPlugin(host).unstage(callOf(localVolume())));
  assert.equal(host.effects(), before);
});

test('INV-9: a blank device is formatted with the intent on disk before, which goes when it is mounted', async () => {
  const host = hostWith({ kind: 'blank' });
  let intent: string | undefined;
  const make = host.makeFileSystem;
  host.makeFileSystem = (device, type) => {
    intent = host.read(INTENT);
    assert.equal(type, 'ext4', 'where none is named');
    return make(device, type);
  };
  await stageAndPublish(localPlugin(host), callOf(deviceVolume()));
  assert.deepEqual(JSON.parse(intent ?? ''), {
    version: 1,
    device: DEVICE,
    type: 'ext4',
    bootId: host.bootId,
  });
  assert.equal(host.read(INTENT), undefined);
  assert.equal(value(await host.readMountTable(STAGE)).at(STAGE)[0]?.fsType, 'ext4');
});

test('INV-9: what is not blank, of another type, in use or only to be read is never formatted', async () => {
  const refused = (content: DeviceOnDisk, more: Partial<LocalVolumeSpec> = {}) =>
    refusalOf(hostWith(content), deviceVolume(more));
  assert.match(await refused({ kind: 'data' }), /^device-content: .*cannot be formatted/);
  assert.match(await refused({ kind: 'other', what: 'crypto_LUKS' }), /^device-content: .*holds crypto_LUKS/);
  const other = await refused({ kind: 'file-system', type: 'xfs' }, { fsType: 'ext4' });
  assert.match(other, /^device-content: .*holds xfs, not ext4; it is never reformatted/);
  assert.match(await refused({ kind: 'file-system', type: 'vfat' }), /^device-content: .*holds vfat/);
  assert.match(await refused({ kind: 'blank' }, { fsType: 'ntfs' }), /^device-content: .*ntfs is none of/);
  assert.match(await refused({ kind: 'blank' }, { mountOptions: ['ro'] }), /^device-content: .*read-only/);
});

test('an mkfs that was cut short is told of, and nothing is wiped', async () => {
  const host = hostWith({ kind: 'data' });
  const text = JSON.stringify({ version: 1, device: DEVICE, type: 'ext4', bootId: host.bootId });
  host.plant(INTENT, { kind: 'file', content: text });
  assert.match(await refusalOf(host, deviceVolume()), /an mkfs of this agent was cut short: if nothing else/);
});

test('of an mkfs that was never begun nobody is told that it was cut short', async () => {
  const host = hostWith({ kind: 'blank' });
  host.makeFileSystem = async () => fail({ code: 'tool-missing', message: 'mkfs.ext4', effect: 'none' });
  const result = await localPlugin(host).stage(callOf(deviceVolume()));
  assert.equal(!result.ok && result.failure.code, 'tool-missing');
  assert.equal(host.read(INTENT), undefined);
  host.plantDevice(DEVICE, { kind: 'other', what: 'crypto_LUKS' });
  assert.match(await refusalOf(host, deviceVolume()), /holds crypto_LUKS$/);
  // What may have written a little of it stays told.
  const begun = hostWith({ kind: 'blank' });
  begun.makeFileSystem = async () => fail({ code: 'mount-failed', message: 'killed', effect: 'unknown' });
  assert.ok(!(await localPlugin(begun).stage(callOf(deviceVolume()))).ok);
  assert.notEqual(begun.read(INTENT), undefined);
});

test('of another disk than that of the mkfs nobody is told to wipe it, nor of a whole file system', async () => {
  const told = async (content: DeviceOnDisk, device: string, bootId: string) => {
    const host = hostWith(content);
    const text = JSON.stringify({ version: 1, device, type: 'ext4', bootId });
    host.plant(INTENT, { kind: 'file', content: text });
    return refusalOf(host, deviceVolume({ fsType: 'ext4' }));
  };
  const { bootId } = diskHost();
  const luks = { kind: 'other', what: 'crypto_LUKS' } as const;
  const only = /cut short on \/dev\/sd[xy].*: run wipefs --all only if it is the same disk/;
  assert.match(await told(luks, '/dev/sdy', bootId), only);
  assert.match(await told(luks, DEVICE, 'another boot'), only);
  assert.doesNotMatch(await told({ kind: 'file-system', type: 'xfs' }, DEVICE, bootId), /wipefs/);
});

test('another device under the mount of the volume is told, and not taken for it', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  accept(await localPlugin(host).stage(callOf(deviceVolume())));
  host.plantDevice('/dev/sdy', { kind: 'file-system', type: 'ext4' });
  const moved = callOf(localVolume('/dev/sdy' as AbsolutePath));
  const result = await localPlugin(host).stage(moved);
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['device-changed', 'none']);
});

const strangerComes = async (host: MemoryHost): Promise<void> =>
  accept(await host.mount({ fsType: 'tmpfs', source: 'stranger', target: STAGE, options: [] }));

const sourcesOf = async (host: MemoryHost): Promise<readonly string[]> =>
  value(await host.readMountTable(STAGE))
    .at(STAGE)
    .map(({ source }) => source);

/** The disk goes while mount(8) is on its way, and the next disk is given its name. */
function renamed(host: MemoryHost, then: () => Promise<void> = async () => {}): void {
  host.plantDevice('/dev/sdy', { kind: 'file-system', type: 'ext4' });
  const { mount } = host;
  host.mount = async (request) => {
    if (request.source !== DEVICE) return mount(request);
    const done = await mount({ ...request, source: '/dev/sdy' });
    await then();
    return done;
  };
}

test('what was mounted under a name that had come to be of another disk is taken down again', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  const { mount } = host;
  renamed(host);
  const result = await localPlugin(host).stage(callOf(deviceVolume()));
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['device-changed', 'unknown']);
  assert.equal(host.depthAt(STAGE), 0, 'nobody else would take it down');
  host.mount = mount;
  await stageAndPublish(localPlugin(host), callOf(deviceVolume()));
  assert.equal(value(await host.readMountTable(STAGE)).at(STAGE)[0]?.source, DEVICE);
});

test('with the mount of somebody else over it, it stays, as that does', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  renamed(host, () => strangerComes(host));
  const result = await localPlugin(host).stage(callOf(deviceVolume()));
  assert.ok(!result.ok);
  assert.deepEqual((await sourcesOf(host)).toSorted(), ['/dev/sdy', 'stranger']);
});

test('MT-15: nor is the mount of somebody who comes after the last look at what is there', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  renamed(host);
  const { readMountTable } = host;
  let looks = 0;
  host.readMountTable = async (about) => {
    const table = await readMountTable(about);
    looks += 1;
    // The first one is about which device it is.
    if (looks === 2) await strangerComes(host);
    return table;
  };
  assert.ok(!(await localPlugin(host).stage(callOf(deviceVolume()))).ok);
  assert.deepEqual(await sourcesOf(host), ['/dev/sdy', 'stranger']);
});

test('a mount that could not be looked at is no other disk, so it stays', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  renamed(host);
  const { readMountTable } = host;
  let looks = 0;
  host.readMountTable = async (about) => {
    looks += 1;
    return looks === 1
      ? fail({ code: 'input-output', message: 'sick', effect: 'none' })
      : readMountTable(about);
  };
  const result = await localPlugin(host).stage(callOf(deviceVolume()));
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['input-output', 'unknown']);
  assert.equal(host.depthAt(STAGE), 1);
});

test('without the mount that it was staged by, nothing is published of a device', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  const call = callOf(deviceVolume());
  const { stagedMount } = value(await localPlugin(host).stage(call));
  accept(await host.unmount(STAGE));
  for (const [mount, code] of [
    [stagedMount, 'mount-lost'],
    [undefined, 'staged-not-mounted'],
  ] as const) {
    const result = await localPlugin(host).publish({ ...call, facts: { ...call.facts, stagedMount: mount } });
    assert.equal(!result.ok && result.failure.code, code);
  }
  assert.deepEqual(host.names(layout.pods), []);
});

test('while a pod has a directory, no other pod gets the disk that its path leads to by now', async () => {
  const host = hostWith({ kind: 'file-system', type: 'ext4' });
  const plugin = localPlugin(host);
  const path = '/mnt/current' as AbsolutePath;
  host.plant(path, { kind: 'symlink', text: 'disks/one' });
  const first = await stageAndPublish(plugin, callOf(localVolume(path)));
  accept(await host.removeFile(path));
  host.plant(path, { kind: 'symlink', text: DEVICE });
  const { stagedMount } = value(await plugin.stage(first));
  const facts = { ...first.facts, stagedMount };
  const uid = parsePodUid('0b4f8c1e-2222-4333-8444-55556666bbbb') as PodUid;
  const { specName } = first.publication;
  const pod = { ...first.publication.pod, uid };
  const publication = { ...first.publication, key: publicationKey(uid, specName), pod };
  const second = { ...first, facts, publication, companions: () => [first.publication] };
  const refused = await plugin.publish(second);
  assert.deepEqual(!refused.ok && [refused.failure.code, refused.failure.effect], ['volume-in-use', 'none']);
  accept(await plugin.unpublish(first));
  accept(await plugin.publish({ ...second, companions: () => [] }));
});

test('a stage that fails at any call is repeated, and ends the same', async () => {
  const reference = hostWith({ kind: 'blank' });
  const calls = reference.calls();
  accept(await localPlugin(reference).stage(callOf(deviceVolume())));
  const cost = reference.calls() - calls;
  for (let n = 1; n <= cost; n += 1) {
    for (const moment of ['before', 'after'] as const) {
      const host = hostWith({ kind: 'blank' });
      host.failAt(n, 'input-output', moment);
      await localPlugin(host).stage(callOf(deviceVolume()));
      accept(await localPlugin(host).stage(callOf(deviceVolume())));
      assert.deepEqual(host.describe(layout.root), reference.describe(layout.root), `${moment} call ${n}`);
      assert.equal(host.depthAt(STAGE), 1);
    }
  }
});
