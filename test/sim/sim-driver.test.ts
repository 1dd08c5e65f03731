import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  NodeService,
  type VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../plugins/csi/wire/generated/csi.ts';
import { csiDriverContract, type CsiDriverWorld } from '../contract/csi-driver.ts';
import { EPHEMERAL_KEY, GIB } from './backing.ts';
import { type DriverBench, driverBench } from './driver-bench.ts';

csiDriverContract('SimDriver', (t) => driverBench(t));
csiDriverContract('SimDriver over the wire', (t) => driverBench(t, {}, true));

function unstage({ host, socket, volumeId, staging }: CsiDriverWorld) {
  const request = { volumeId, stagingTargetPath: staging };
  return host.call({ socket, method: NodeService.nodeUnstageVolume, request, deadlineMs: 1_000 });
}

test('a call while another of the volume runs is aborted, and the oracle notes that two were open', async (t) => {
  const world = await driverBench(t);
  const [first, second] = await Promise.all([unstage(world), unstage(world)]);
  assert.deepEqual([first, second].map((one) => (one.kind === 'status' ? one.status : 0)).sort(), [0, 10]);
  assert.deepEqual(world.violations, ['INV-6']);
});

test('a driver that lies says OK and has done nothing', async (t) => {
  const world = await driverBench(t, { lie: 1 });
  assert.equal((await unstage(world)).kind, 'ok');
  const stage = NodeService.nodeStageVolume;
  const request = {
    ...stage.requestDeserialize(Buffer.alloc(0)),
    volumeId: 'vol-1',
    stagingTargetPath: world.staging,
  };
  const staged = await world.host.call({ socket: world.socket, method: stage, request, deadlineMs: 1_000 });
  assert.equal(staged.kind, 'ok');
  assert.equal(world.bench.kernel.mountsAt(world.staging).length, 0);
});

test('a driver that died is unreachable, and comes back behind another socket', async (t) => {
  const world = await driverBench(t, { crash: 1 });
  const lost = await unstage(world);
  assert.equal(lost.kind === 'broken' && lost.because, 'unreachable');
  world.driver.start();
  const after = await unstage(world);
  assert.equal(after.kind === 'broken' && after.because, 'unreachable');
});

/** Stages and publishes `volumeId` at the first target, as what it is asked for. */
async function setUp(world: DriverBench, volumeId: string, accessType: VolumeCapability['accessType']) {
  const { host, socket, staging, targets } = world;
  const volumeCapability = { accessType, accessMode: { mode: Mode.SINGLE_NODE_WRITER } };
  const common = { volumeId, publishContext: {}, stagingTargetPath: staging, volumeCapability, secrets: {} };
  const stage = { ...common, volumeContext: {} };
  await host.call({ socket, method: NodeService.nodeStageVolume, request: stage, deadlineMs: 1_000 });
  const publish = { ...stage, targetPath: targets[0], readonly: false };
  return host.call({ socket, method: NodeService.nodePublishVolume, request: publish, deadlineMs: 1_000 });
}

for (const bindsDevices of [false, true]) {
  const how = bindsDevices ? 'a bind of its node' : 'a node of its own';
  test(`a device is published as ${how}, and its number is free when it is unstaged`, async (t) => {
    const world = await driverBench(t, {}, false, { bindsDevices });
    const { kernel } = world.bench;
    world.driver.addVolume('block', { block: true });
    assert.equal((await setUp(world, 'block', { $case: 'block', value: {} })).kind, 'ok');
    const [target] = world.targets;
    const device = kernel.deviceOf(target);
    assert.equal(device, world.driver.backing('block')?.device);
    assert.equal(kernel.mountsAt(target).length, bindsDevices ? 1 : 0);
    const { host, socket } = world;
    const request = { volumeId: 'block', targetPath: target };
    await host.call({ socket, method: NodeService.nodeUnpublishVolume, request, deadlineMs: 1_000 });
    const last = { volumeId: 'block', stagingTargetPath: world.staging };
    await host.call({ socket, method: NodeService.nodeUnstageVolume, request: last, deadlineMs: 1_000 });
    assert.equal(kernel.deviceOf(target), undefined);
    assert.equal(kernel.devices.add(), device);
    assert.deepEqual(world.violations, []);
  });
}

test('A-071: a driver that grows only offline refuses while it is published; a second try is noted', async (t) => {
  const world = await driverBench(t, {}, false, { expands: 'offline' });
  await setUp(world, 'vol-1', {
    $case: 'mount',
    value: { fsType: '', mountFlags: [], volumeMountGroup: '' },
  });
  const { host, socket, staging, targets } = world;
  const request = {
    volumeId: 'vol-1',
    volumePath: targets[0],
    capacityRange: { requiredBytes: 2n * GIB, limitBytes: 0n },
    stagingTargetPath: staging,
    volumeCapability: undefined,
    secrets: {},
  };
  const expand = () =>
    host.call({ socket, method: NodeService.nodeExpandVolume, request, deadlineMs: 1_000 });
  const first = await expand();
  assert.equal(first.kind === 'status' && first.status, 9);
  assert.deepEqual(world.violations, []);
  await expand();
  assert.deepEqual(world.violations, ['A-071']);
  assert.equal(world.driver.backing('vol-1')?.nodeBytes, GIB);
});

test('an inline volume comes with its publication and goes with it', async (t) => {
  const world = await driverBench(t, {}, false, { stages: false });
  const { host, socket, targets, driver } = world;
  const value = { fsType: '', mountFlags: [], volumeMountGroup: '' };
  const accessType = { $case: 'mount' as const, value };
  const request = {
    volumeId: 'csi-1',
    publishContext: {},
    stagingTargetPath: '',
    targetPath: targets[0],
    volumeCapability: { accessType, accessMode: { mode: Mode.SINGLE_NODE_WRITER } },
    readonly: false,
    secrets: {},
    volumeContext: { [EPHEMERAL_KEY]: 'true' },
  };
  const published = await host.call({
    socket,
    method: NodeService.nodePublishVolume,
    request,
    deadlineMs: 1_000,
  });
  assert.equal(published.kind, 'ok');
  assert.equal(driver.backing('csi-1')?.ephemeral, true);
  const down = { volumeId: 'csi-1', targetPath: targets[0] };
  await host.call({ socket, method: NodeService.nodeUnpublishVolume, request: down, deadlineMs: 1_000 });
  assert.equal(driver.backing('csi-1'), undefined);
});

test('a question that hangs holds up no call of the volume in the driver', async (t) => {
  const world = await driverBench(t, { hung: 1 }, false, { statistics: true });
  const { host, socket, staging } = world;
  const request = { volumeId: 'vol-1', volumePath: staging, stagingTargetPath: staging };
  const asked = await host.call({
    socket,
    method: NodeService.nodeGetVolumeStats,
    request,
    deadlineMs: 1_000,
  });
  assert.equal(asked.kind === 'broken' && asked.because, 'deadline');
  world.driver.heal();
  assert.deepEqual(world.violations, []);
});
