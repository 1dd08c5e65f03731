/** What many mounts cost that nobody explains, as after records were lost: no look at all of them for each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { createMountTable, type MountEntry } from '../../mount/mount-table.ts';
import type { PublicationKey, VolumeId } from '../../plugins/volume.ts';
import { type ActualVolume, onTheGround, RESTARTED } from '../../reconciler/model/actual-state.ts';
import { createBelief } from '../../reconciler/model/belief.ts';
import { createReconstructGate } from '../../reconciler/recovery/reconstruct-gate.ts';
import { CountedMap, type ReadCount } from '../agent/counted-reads.ts';
import { createBench, layout, READ_WHOLE } from './bench.ts';
import { actual, csi, place, wanted, wish } from './world.ts';

const COUNT = 60;
const NUMBERS = Array.from({ length: COUNT }, (_, index) => index);

/** A mount in the place of the volume in the pod, of which nothing else is known. */
function orphan(pod: string, handle: string): ActualVolume {
  const spec = place(pod, handle);
  const path: AbsolutePath = below(layout.pods, pod, 'volumes', handle);
  const entry = { spec, presence: RESTARTED, generation: undefined, mount: undefined };
  const needs = { attach: false, stage: false, expand: false };
  return {
    ...onTheGround({ kind: 'orphan', id: `mooring/orphan/${pod}-${handle}` as VolumeId, path }, needs),
    publications: new Map<PublicationKey, typeof entry>([[spec.key, entry]]),
  };
}

function gateOver(volumes: readonly ActualVolume[], count: ReadCount = { reads: 0 }) {
  const touched: string[] = [];
  const belief = createBelief(new Map(volumes.map((volume) => [volume.spec.id, volume])));
  const gate = createReconstructGate({
    layout,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    belief: { ...belief, volumes: new CountedMap(belief.volumes, count) },
    desired: () => wish([]),
    isBusy: () => false,
    touch: (id) => touched.push(id),
    forget: () => {},
  });
  return { gate, touched };
}

test('the end of an operation is looked at by the orphans of its pod, and by no others', () => {
  const { gate, touched } = gateOver([
    ...NUMBERS.map((index) => orphan(`web-${index}`, 'x')),
    actual('data', { staged: 'present', pods: { 'web-7': 'present' } }),
  ]);
  const { key } = place('web-7', 'data');
  gate.ended({ kind: 'publish', volume: actual('data', {}).spec.id, publication: key });
  assert.deepEqual(touched, ['mooring/orphan/web-7-x']);
});

test('what is wanted is not read for each orphan that goes', async () => {
  const { reconciler, host, plugins } = createBench();
  const count = { reads: 0 };
  const desired = wish(NUMBERS.map((index) => wanted(`v${index}`, [`other-${index}`])));
  reconciler.takeReconstructed({
    ...READ_WHOLE,
    volumes: NUMBERS.map((index) => orphan(`web-${index}`, 'x')),
  });
  reconciler.setDesired({ ...desired, volumes: new CountedMap(desired.volumes, count) });
  await host.advance(5_000);
  assert.equal(plugins.calls.filter((call) => call.startsWith('unpublish ')).length, COUNT);
  assert.equal(reconciler.actual().size, COUNT, 'what is wanted is there, and nothing else');
  assert.ok(count.reads <= 20 * COUNT, `${count.reads} reads`);
});

test('whose a mount is that nobody explains is not looked for among all volumes for each of them', () => {
  const count = { reads: 0 };
  const volumes = NUMBERS.map((index) => actual(`v${index}`, { staged: 'present' }));
  const { gate } = gateOver(volumes, count);
  const entries = NUMBERS.map((index): MountEntry => {
    const target = layout.stagingPath(csi(`v${index}`));
    const id = { mountId: index + 10, parentId: 1, device: `8:${index}`, root: '/', target };
    return { ...id, options: [], propagation: [], fsType: 'ext4', source: 'x', superOptions: [] };
  });
  const path = layout.target(csi('x'), place('web', 'x'));
  const mounts = [{ path, device: '0:99', root: '/' }];
  const unknown = { mounts, unread: [], table: createMountTable(entries) };
  gate.take({ ...READ_WHOLE, complete: false, unknown });
  const isHeld = volumes.map(({ spec }) => gate.gateOf(spec.id).possibleUse?.blocker === path);
  assert.ok(isHeld.every(Boolean), 'it may be of each of them');
  assert.ok(count.reads <= 20 * COUNT, `${count.reads} reads`);
});
