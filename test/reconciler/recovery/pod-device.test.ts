import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRM_GROUND } from '../../../mount/ground.ts';
import { fail, ok } from '../../../mount/failure.ts';
import { type DeviceNumber, parseAbsolutePath } from '../../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../../mount/mount-table.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import type { CsiVolumeSpec } from '../../../plugins/volume.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import type { LogFields } from '../../../mount/process/log.ts';
import { createReconciler } from '../../../reconciler/reconciler.ts';
import { recordOf } from '../../../reconciler/recovery/record.ts';
import { createRecordStore } from '../../../reconciler/recovery/record-store.ts';
import { recover } from '../../../reconciler/recovery/recover.ts';
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

test('DR-08: a pod’s link that leads to no device, or to another one, is found and named, though ours is held', () => {
  assert.deepEqual(verified(new Map([[link, disk]])), ['present']);
  assert.deepEqual(verified(new Map([[link, undefined]])), ['unsure', ['mount-lost', published]]);
  assert.deepEqual(verified(new Map([[link, other]])), ['unsure', ['device-changed', published]]);
  assert.deepEqual(verified(new Map([[link, disk]]), set(), []), ['unsure', ['mount-lost', held]]);
});

test('what could not be looked at, or was noted without its device, is not judged', () => {
  assert.deepEqual(verified(new Map()), ['present']);
  const old = set();
  const known = old.publications.get(web.key);
  assert.ok(known);
  const before = new Map([[web.key, { ...known, mount: { mountId: 41, device: '254:1', root: '/disk' } }]]);
  assert.deepEqual(verified(new Map([[link, other]]), { ...old, publications: before }), ['present']);
});

test('after a restart a block publication is proven by our bind and the pod’s link together', () => {
  const recovered = (shown: ShownDevices) => {
    const table = createMountTable([entry]);
    const records = [recordOf(set(), 'boot-1')];
    const now = recover({ records, table, shown, bootId: 'boot-1', layout }).get(raw.id);
    return now?.publications.get(web.key)?.presence.kind;
  };
  assert.equal(recovered(new Map([[link, disk]])), 'present');
  assert.equal(recovered(new Map([[link, other]])), 'unsure');
  assert.equal(recovered(new Map([[link, undefined]])), 'unsure');
  assert.equal(recovered(new Map()), 'unsure', 'it could not be looked at');
});

test('a link is looked through only where it leads to what the driver made; a file system costs no look', async () => {
  const host = createBenchHost();
  const look = async (spec: CsiVolumeSpec = raw) => {
    return [...(await lookAtDevices(host, layout, [{ spec, places: [web] }]))];
  };
  host.nodes.set(published, disk);
  assert.deepEqual(await look(), [[link, undefined]]);
  host.links.set(link, '/dev/elsewhere');
  assert.deepEqual(await look(), [[link, undefined]]);
  host.links.set(link, published);
  assert.deepEqual(await look(), [[link, disk]]);
  assert.deepEqual(await look(csi('data')), []);
  host.readLink = async () => fail({ code: 'broker-lost', message: '', effect: 'none' });
  assert.deepEqual(await look(), []);
});

test('DR-08: at the next resync what the driver published is put back, by the same call', async () => {
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
