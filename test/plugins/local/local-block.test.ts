/** Local volumes of which a pod has the device itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below, type DeviceNumber } from '../../../mount/host.ts';
import type { PublicationCall } from '../../../plugins/plugin.ts';
import { parsePodUid, publicationKey, type PodUid } from '../../../plugins/volume.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { value } from '../../value.ts';
import { accept } from '../accept.ts';
import { callOf, layout, POD, ROOT, worldOf } from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';
import { BY_ID, deviceHost, DISK, localPlugin, localVolume, NODE } from './local-world.ts';

const OTHER_POD = parsePodUid('0b4f8c1e-2222-4333-8444-55556666bbbb') as PodUid;
const VOLUME = localVolume(BY_ID, [], 'Block');

const places = ({ publication }: PublicationCall) => layout.localDevicePublication(publication);

function world(call: PublicationCall = callOf(VOLUME)) {
  const { held, link } = places(call);
  const made = worldOf(call, localPlugin, () => undefined, deviceHost());
  return {
    ...made,
    // What the pod's runtime finds behind the link, and what keeps it the same device.
    seen: () => [
      made.host.describe(ROOT).filter((line) => line.includes(link)),
      made.host.devices.holds(),
      made.host.depthAt(held),
    ],
    depth: () => made.host.depthAt(held),
  };
}

function ofPod(call: PublicationCall, uid: PodUid): PublicationCall {
  const pod = { ...call.publication.pod, uid };
  const publication = { ...call.publication, key: publicationKey(uid, call.publication.specName), pod };
  return { ...call, publication };
}

async function deviceAt(host: MemoryHost, path: AbsolutePath): Promise<DeviceNumber> {
  const device = value(await host.deviceOf(path));
  assert.ok(device !== undefined, `a device at ${path}`);
  return device;
}

pluginContract('a local device', world);
pluginContract('a local device, read-only', () => {
  const call = callOf(VOLUME);
  return world({ ...call, publication: { ...call.publication, readOnly: true } });
});

test('a pod has the device where the kubelet would, held open, and nothing is staged or formatted', async () => {
  const { host, plugin, call } = world();
  const { held, link } = places(call);
  accept(await plugin().stage(call));
  const { mount } = value(await plugin().publish(call));
  const device = await deviceAt(host, NODE);
  assert.equal(link, `${layout.podDirectory(POD)}/volumeDevices/kubernetes.io~local-volume/local-1`);
  assert.equal(held, `${ROOT}/plugins/kubernetes.io~local-volume/volumeDevices/local-1/${POD}`);
  assert.equal(value(await host.readLink(link)), held);
  assert.equal(mount?.blockDevice, device);
  assert.deepEqual(
    host.devices.holds().map((one) => [one.path, one.device]),
    [[held, device]],
  );
  assert.deepEqual(host.names(layout.localStages), []);
  accept(await plugin().unpublish(call));
  assert.deepEqual(
    [host.names(layout.pods), host.names(layout.localDevices), host.devices.holds()],
    [[], [], []],
  );
  assert.equal(await deviceAt(host, NODE), device, 'the node of the administrator stays');
});

test('two pods have it at once, and the directory that they share goes with the last', async () => {
  const { host, plugin, call } = world();
  const other = ofPod(call, OTHER_POD);
  accept(await plugin().publish(call));
  accept(await plugin().publish({ ...other, companions: () => [call.publication] }));
  accept(await plugin().unpublish(call));
  assert.equal(await deviceAt(host, places(other).held), await deviceAt(host, NODE));
  accept(await plugin().unpublish(other));
  assert.deepEqual(host.names(layout.localDevices), []);
});

test('while a pod has it, no other pod is shown another device under its name', async () => {
  const { host, plugin, call } = world();
  accept(await plugin().publish(call));
  const second = host.devices.add();
  host.plant('/dev/disk-two', { kind: 'block', mode: 0o660, block: second });
  accept(await host.removeFile(BY_ID));
  host.plant(BY_ID, { kind: 'symlink', text: '../disk-two' });
  const other = { ...ofPod(call, OTHER_POD), companions: () => [call.publication] };
  const before = host.effects();
  const refused = await plugin().publish(other);
  assert.deepEqual(!refused.ok && [refused.failure.code, refused.failure.effect], ['volume-in-use', 'none']);
  assert.equal(host.effects(), before);
  const again = await plugin().publish(call);
  assert.equal(!again.ok && again.failure.code, 'device-changed', 'nor the pod itself');
  accept(await plugin().unpublish(call));
  accept(await plugin().publish(other));
  assert.equal(await deviceAt(host, places(other).held), second);
});

test('what is no device, is missing or denied is refused, and nothing is made', async () => {
  const host = deviceHost();
  host.plant('/dev/denied', { kind: 'symlink', text: `${ROOT}/pods` });
  const at = async (path: string) => {
    const before = host.effects();
    const result = await localPlugin(host).publish(callOf(localVolume(path as AbsolutePath, [], 'Block')));
    assert.equal(host.effects(), before, 'nothing was done');
    assert.ok(!result.ok);
    return [result.failure.code, result.failure.effect, result.failure.blocker];
  };
  assert.deepEqual(await at(DISK), ['path-wrong-kind', 'none', DISK]);
  assert.deepEqual(await at('/dev/none'), ['path-missing', 'none', '/dev/none']);
  assert.deepEqual(await at('/dev/denied'), ['host-path-check', 'none', '/dev/denied']);
  assert.deepEqual(host.names(below(ROOT, 'pods')), []);
});
