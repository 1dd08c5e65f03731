/** Devices of the machine that pods have, found again by the names of their places alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { localVolumeId } from '../../../plugins/local/local-traits.ts';
import { hasDevice } from '../../../plugins/volume.ts';
import type { ActualState } from '../../../reconciler/model/actual-state.ts';
import { reconstruct } from '../../../reconciler/recovery/reconstruct.ts';
import { actual } from '../world.ts';
import { accept } from '../../plugins/accept.ts';
import { callOf, emptyDir, layout, POD } from '../../plugins/local-world.ts';
import { BY_ID, deviceHost, localPlugin, localVolume } from '../../plugins/local/local-world.ts';
import type { MemoryHost } from '../../plugins/memory-host.ts';

const DEVICE = localVolume(BY_ID, [], 'Block');
const ID = localVolumeId(DEVICE.name);
const CALL = callOf(DEVICE);
const { held, link } = layout.localDevicePublication(CALL.publication);

async function scan(host: MemoryHost, known: ActualState = new Map()) {
  const ground = FIRM_GROUND;
  const { volumes } = await reconstruct({ host, layout, ground, known, isWanted: () => false }, 'whole');
  return volumes;
}

async function published(): Promise<MemoryHost> {
  const host = deviceHost();
  accept(await localPlugin(host).publish(CALL));
  return host;
}

/** It is found as a device of that volume, and taken down as such leaves nothing. */
async function foundAndTakenDown(host: MemoryHost): Promise<void> {
  const [volume] = (await scan(host)).filter(({ spec }) => spec.id === ID);
  assert.ok(volume !== undefined && hasDevice(volume.spec), 'found');
  const places = [...volume.publications].map(([key, { presence }]) => `${key} ${presence.kind}`);
  assert.deepEqual(places, [`${POD}/${DEVICE.name} unsure`]);
  accept(await localPlugin(host).unpublish({ ...CALL, spec: volume.spec }));
  assert.deepEqual([host.names(layout.localDevices), host.devices.holds()], [[], []]);
  assert.deepEqual(
    (await scan(host)).filter(({ spec }) => spec.id === ID),
    [],
  );
}

test('a device that a pod has, and that no record knows, is found and comes down', async () => {
  const host = await published();
  await foundAndTakenDown(host);
  assert.deepEqual(host.names(layout.pods), []);
});

test('so is what a reboot or a crash left of one: a link alone, a file alone', async () => {
  const rebooted = await published();
  rebooted.reboot();
  accept(await rebooted.removeFile(held));
  await foundAndTakenDown(rebooted);
  const cut = await published();
  cut.reboot();
  accept(await cut.removeFile(link));
  await foundAndTakenDown(cut);
});

test('an emptyDir of the same name in the same pod does not hide it', async () => {
  const host = await published();
  const other = callOf({ ...emptyDir('disk'), name: DEVICE.name } as Parameters<typeof callOf>[0]);
  host.plant(layout.volumeDirectory(other.spec, CALL.publication), { kind: 'directory' });
  await foundAndTakenDown(host);
});

test('the directory of a device that no pod has goes, unless its volume is known', async () => {
  const host = deviceHost();
  host.plant(layout.localDevice(DEVICE.name), { kind: 'directory' });
  await scan(host, new Map([[ID, { ...actual('x', {}), spec: DEVICE }]]));
  assert.deepEqual(host.names(layout.localDevices), [DEVICE.name]);
  await scan(host);
  assert.deepEqual(host.names(layout.localDevices), []);
});
