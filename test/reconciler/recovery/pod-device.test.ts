import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { fail, ok } from '../../../mount/failure.ts';
import { type DeviceNumber, parseAbsolutePath } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { CsiVolumeSpec } from '../../../plugins/volume.ts';
import { type ActualVolume, mountLeft } from '../../../reconciler/model/actual-state.ts';
import type { LogFields } from '../../../mount/process/log.ts';
import { createReconciler } from '../../../reconciler/reconciler.ts';
import { recordOf } from '../../../reconciler/recovery/record.ts';
import { createRecordStore } from '../../../reconciler/recovery/record-store.ts';
import { recover } from '../../../reconciler/recovery/recover.ts';
import { isHeld } from '../../../reconciler/model/group-doubt.ts';
import { lookAtDevices, type ShownDevices } from '../../../reconciler/recovery/pod-device.ts';
import { verifyMounts } from '../../../reconciler/recovery/verify.ts';
import { createBenchHost, settled } from '../bench-host.ts';
import { createBenchPlugin } from '../bench-plugin.ts';
import { READ_WHOLE } from '../bench.ts';
import { actual, csi, place, wanted, wish } from '../world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const raw: CsiVolumeSpec = { ...csi('data'), mode: 'Block' };
const web = place('web', 'data');
const { link, published, held } = layout.blockPublication(web);
const disk = '8:16' as DeviceNumber;
const other = '8:32' as DeviceNumber;
const mount = { mountId: 41, device: '254:1', blockDevice: disk, root: '/disk' };

const entry: MountEntry = {
  mountId: 41,
  parentId: 1,
  device: '254:1',
  root: '/disk',
  target: held,
  options: ['rw'],
  propagation: [],
  fsType: 'devtmpfs',
  source: 'devtmpfs',
  superOptions: ['rw'],
};

function set(): ActualVolume {
  const volume = actual('data', { staged: 'present', pods: { web: 'present' } });
  const known = volume.publications.get(web.key);
  assert.ok(known);
  return { ...volume, spec: raw, publications: new Map([[web.key, { ...known, mount }]]) };
}

function verified(shown: ShownDevices, volume = set(), entries = [entry]) {
  const { losses, volume: now } = verifyMounts(volume, createMountTable(entries), shown, layout, FIRM_GROUND);
  assert.equal(now === volume, losses.length === 0);
  const kind = now.publications.get(web.key)?.presence.kind;
  return [kind, ...losses.map(({ failure }) => [failure.code, failure.blocker])];
}

function seen(device: DeviceNumber | undefined, isHeld = true): ShownDevices {
  return new Map([[link, { device, isHeld }]]);
}

const HOLD_UNSEEN: ShownDevices = new Map([[link, { device: disk, isHeld: undefined }]]);

test('DR-08: a pod’s link that leads to no device, or to another one, is found and named, though ours is held', () => {
  assert.deepEqual(verified(seen(disk)), ['present']);
  assert.deepEqual(verified(seen(undefined)), ['unsure', ['mount-lost', published]]);
  assert.deepEqual(verified(seen(other)), ['unsure', ['device-changed', published]]);
  assert.deepEqual(verified(seen(disk), set(), []), ['unsure', ['mount-lost', held]]);
});

test('ST-17: a device that nobody holds any more is found, named, and its pod’s all the same', () => {
  assert.deepEqual(verified(seen(disk, false)), ['unsure', ['hold-lost', held]]);
  const { volume } = verifyMounts(set(), createMountTable([entry]), seen(disk, false), layout, FIRM_GROUND);
  const known = volume.publications.get(web.key);
  assert.ok(known !== undefined && isHeld(known), 'no other pod gets a volume that is for one');
  assert.deepEqual(mountLeft(known), mount, 'its device is remembered, and searched for users in quarantine');
});

test('what could not be looked at, or was noted without its device, is not judged', () => {
  assert.deepEqual(verified(new Map()), ['present']);
  assert.deepEqual(verified(HOLD_UNSEEN), ['present']);
  const old = set();
  const known = old.publications.get(web.key);
  assert.ok(known);
  const before = new Map([[web.key, { ...known, mount: { mountId: 41, device: '254:1', root: '/disk' } }]]);
  assert.deepEqual(verified(seen(other, false), { ...old, publications: before }), ['present']);
});

test('after a restart a block publication is proven by our bind, its hold and the pod’s link together', () => {
  const recovered = (shown: ShownDevices) => {
    const table = createMountTable([entry]);
    const records = [recordOf(set(), 'boot-1')];
    const now = recover({ records, table, shown, bootId: 'boot-1', layout }).get(raw.id);
    const presence = now?.publications.get(web.key)?.presence;
    if (presence?.kind !== 'unsure' || typeof presence.because === 'string') return presence?.kind;
    return [presence.because.code, presence.because.blocker];
  };
  assert.equal(recovered(seen(disk)), 'present');
  assert.equal(recovered(seen(other)), 'unsure');
  assert.equal(recovered(seen(undefined)), 'unsure');
  assert.deepEqual(recovered(seen(disk, false)), ['hold-lost', held]);
  for (const unseen of [HOLD_UNSEEN, new Map()])
    assert.equal(recovered(unseen), 'unsure', 'it could not be looked at');
});

test('a link is looked through only where it leads to what the driver made; a file system costs no look', async () => {
  const host = createBenchHost();
  const look = async (spec: CsiVolumeSpec = raw) => {
    return [...(await lookAtDevices(host, layout, [{ spec, places: [web] }]))];
  };
  host.nodes.set(published, disk);
  host.held.add(held);
  assert.deepEqual(await look(), [...seen(undefined)]);
  host.links.set(link, '/dev/elsewhere');
  assert.deepEqual(await look(), [...seen(undefined)]);
  host.links.set(link, published);
  assert.deepEqual(await look(), [...seen(disk)]);
  assert.deepEqual(await look(csi('data')), []);
  host.readLink = async () => fail({ code: 'broker-lost', message: '', effect: 'none' });
  assert.deepEqual(await look(), []);
});

test('however many devices pods have, where they are held is asked once, and only if there is one', async () => {
  const host = createBenchHost();
  const cache = place('cache', 'data');
  for (const pod of [web, cache]) {
    const places = layout.blockPublication(pod);
    host.links.set(places.link, places.published);
    host.nodes.set(places.published, disk);
  }
  host.held.add(layout.blockPublication(cache).held);
  const asked: string[] = [];
  const { heldPaths } = host;
  host.heldPaths = (within) => {
    asked.push(within);
    return heldPaths(within);
  };
  const look = (spec: CsiVolumeSpec) => lookAtDevices(host, layout, [{ spec, places: [web, cache] }]);
  const found = await look(raw);
  assert.deepEqual(
    [...found.values()].map((one) => one.isHeld),
    [false, true],
  );
  assert.deepEqual(asked, [layout.root]);
  await look(csi('data'));
  await lookAtDevices(host, layout, [{ spec: raw, places: [] }]);
  assert.equal(asked.length, 1);
  host.heldPaths = async () => fail({ code: 'broker-lost', message: '', effect: 'none' });
  assert.deepEqual(
    [...(await look(raw))],
    [...HOLD_UNSEEN, [layout.blockPublication(cache).link, { device: disk, isHeld: undefined }]],
  );
});

test('DR-08: at the next resync what the driver published, or what we held, is put back by one call', async () => {
  const host = createBenchHost();
  const plugins = createBenchPlugin();
  const plugin = { ...plugins.of(raw) };
  const { publish } = plugin;
  const asked: unknown[] = [];
  /** As the plugin: OK means that the link leads to the device. */
  plugin.publish = async (call) => {
    asked.push({ publication: call.publication, spec: call.spec, refresh: call.refresh });
    await publish(call);
    host.entries.splice(0, host.entries.length, entry);
    host.links.set(link, published);
    host.nodes.set(published, disk);
    host.held.add(held);
    return ok({ mount });
  };
  plugin.stage = async () => ok({ stagedMount: undefined });
  const told: LogFields[] = [];
  const silent = { debug() {}, info() {}, error() {} };
  const log = { ...silent, warn: (_: string, fields: LogFields = {}) => void told.push(fields) };
  const reconciler = createReconciler({
    host,
    layout,
    plugins: { of: () => plugin },
    records: createRecordStore(host, layout),
    recovered: new Map(),
    log,
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneWidth: () => 4,
    resyncMs: 60_000,
  });
  reconciler.takeReconstructed(READ_WHOLE);
  reconciler.setDesired(wish([{ ...wanted('data', ['web']), spec: raw }]));
  await settled();
  await host.advance(120_000);
  assert.equal(asked.length, 1, 'what is whole is left alone');
  host.nodes.delete(published);
  await host.advance(60_000);
  assert.deepEqual(asked[1], asked[0]);
  assert.equal(asked.length, 2);
  assert.deepEqual([told[0]?.['code'], told[0]?.['blocker']], ['mount-lost', published]);
  assert.equal(reconciler.actual().get(raw.id)?.publications.get(web.key)?.presence.kind, 'present');
  assert.deepEqual(reconciler.obstacles(), []);
  assert.ok(plugins.calls.every((call) => call.startsWith('publish')));
  await host.advance(120_000);
  assert.equal(asked.length, 2);
  host.held.delete(held);
  await host.advance(60_000);
  assert.deepEqual([told[1]?.['code'], told[1]?.['blocker'], told.length], ['hold-lost', held, 2]);
  assert.deepEqual([asked[2], asked.length, host.held.has(held)], [asked[0], 3, true]);
  await host.advance(120_000);
  assert.equal(asked.length, 3);
  const { readLink } = host;
  let looks = 0;
  host.readLink = (path) => {
    looks += 1;
    return readLink(path);
  };
  await host.advance(60_000);
  assert.equal(looks, 1);
  host.readMountTable = async () => fail({ code: 'input-output', message: '', effect: 'none' });
  await host.advance(60_000);
  assert.equal(looks, 1, 'no device is looked at when there is no table to judge it by');
});
