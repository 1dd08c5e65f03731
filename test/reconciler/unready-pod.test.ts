/** DR-11: a pod that never had all of its volumes does not keep one that is dead; one that may have run does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Effect, type Failure, ok } from '../../mount/failure.ts';
import type { PlaceHolder } from '../../mount/holder/place-holder.ts';
import type { ActualPublication, ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../reconciler/model/desired-state.ts';
import { parseRecord } from '../../reconciler/recovery/record.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { createMountTable } from '../../mount/mount-table.ts';
import { createBench, layout, mountAt } from './bench.ts';
import { actual, csi, place, wanted, wish } from './world.ts';

const RESYNC_MS = 60_000;
const { id } = csi('data');
const DATA = wanted('data', ['web']);
const OTHER = wanted('other', ['web']);
const MORE = wanted('more', ['web']);
const { key } = place('web', 'data');
const STAGING = layout.stagingPath(csi('data'));
const TARGET = layout.mountPoint(csi('data'), place('web', 'data'));
const ANEW = ['unpublish web/pv-data', 'unstage data', 'stage data', 'publish web/pv-data'];
const REFUSED: Failure = { code: 'mount-foreign', message: 'somebody lies over it', effect: 'none' };

/** What an agent that was killed twice finds: its place was in doubt, and its mount is there. */
function restarted(more: Partial<ActualPublication> = {}): ActualVolume {
  const volume = actual('data', { staged: 'present', pods: { web: 'unsure' } });
  const there = volume.publications.get(key);
  assert.ok(there);
  const doubted = { ...there, mount: { mountId: 8, device: '7:1' }, ...more };
  return {
    ...volume,
    stagedMount: { mountId: 7, device: '7:1' },
    publications: new Map([[key, doubted]]),
  };
}

function bench(recovered: readonly ActualVolume[] = [], { isRead = true } = {}) {
  const found = new Map(recovered.map((volume) => [volume.spec.id, volume]));
  const { host, plugins, reconciler } = createBench({ recovered: found, resyncMs: RESYNC_MS, isRead });
  let refuses = (_: string): boolean => false;
  let refusal = REFUSED;
  host.entries.push(mountAt(STAGING, 7), mountAt(TARGET));
  for (const handle of ['other', 'more']) {
    host.entries.push(mountAt(layout.stagingPath(csi(handle)), 7));
    host.entries.push(mountAt(layout.mountPoint(csi(handle), place('web', handle))));
  }
  plugins.fault = (kind, subject) => {
    if (kind === 'unstage') host.probes.delete(STAGING);
    return refuses(`${kind} ${subject}`) ? refusal : undefined;
  };
  const die = () => host.probes.set(STAGING, Promise.resolve(ok({ kind: 'dead', cause: 'daemon-gone' })));
  const want = (...volumes: readonly DesiredVolume[]) => reconciler.setDesired(wish(volumes));
  const ofData = () => plugins.calls.filter((call) => call.endsWith('data'));
  return {
    ...{ host, reconciler, die, want, ofData },
    refuse(one: (call: string) => boolean, effect: Effect = 'none') {
      refuses = one;
      refusal = { ...REFUSED, effect };
    },
    presenceOfData: () => reconciler.actual().get(id)?.publications.get(key)?.presence.kind,
  };
}

test('DR-11: what dies before its pod has all its volumes is set up anew, and not told as mounted', async () => {
  const { host, die, want, ofData, refuse, presenceOfData } = bench();
  refuse((call) => call === 'publish web/pv-other' || call === 'unpublish web/pv-data');
  want(DATA, OTHER);
  await host.advance(5_000);
  assert.equal(presenceOfData(), 'present');
  die();
  await host.advance(RESYNC_MS);
  assert.equal(presenceOfData(), 'unsure', 'its pod must not be ready with it, whatever comes up meanwhile');
  refuse((call) => call === 'unpublish web/pv-data');
  await host.advance(RESYNC_MS);
  assert.equal(presenceOfData(), 'unsure');
  refuse(() => false);
  const before = ofData().length;
  await host.advance(RESYNC_MS);
  assert.deepEqual(ofData().slice(before), ANEW);
  assert.equal(presenceOfData(), 'present');
});

test('what is in doubt since the pod lacked something else has not made it ready (seed 1978410232)', async () => {
  const { host, die, want, ofData, refuse, presenceOfData } = bench();
  refuse((call) => call === 'publish web/pv-more');
  want(DATA, OTHER, MORE);
  await host.advance(5_000);
  // Its content has changed, and cannot be written.
  const there = OTHER.publications.values().next().value ?? assert.fail('it is wanted');
  const publications = new Map([[there.spec.key, { ...there, generation: 'newer' }]]);
  refuse((call) => call === 'publish web/pv-more' || call === 'publish web/pv-other', 'unknown');
  want(DATA, { ...OTHER, publications }, MORE);
  await host.advance(5_000);
  refuse((call) => call === 'publish web/pv-other', 'unknown');
  await host.advance(RESYNC_MS);
  const before = ofData().length;
  die();
  await host.advance(2 * RESYNC_MS);
  assert.deepEqual(ofData().slice(before), ANEW);
  assert.equal(presenceOfData(), 'present');
});

test('that a dead place goes is known after a crash, too, whatever its pod has by then', async () => {
  const before = bench();
  before.refuse((call) => call === 'publish web/pv-other' || call === 'unpublish web/pv-data');
  before.want(DATA, OTHER);
  await before.host.advance(5_000);
  before.die();
  await before.host.advance(RESYNC_MS);
  const records = [...before.host.files.values()].flatMap((content) => {
    const parsed = parseRecord(content);
    return parsed.ok && parsed.value.spec.id === id ? [parsed.value] : [];
  });
  const table = createMountTable([mountAt(STAGING, 7), mountAt(TARGET)]);
  const known = recover({ records, table, shown: new Map(), bootId: 'boot-1', layout }).get(id);
  assert.ok(known);
  const other = actual('other', { staged: 'present', pods: { web: 'unsure' } });
  const after = bench([known, other]);
  after.die();
  after.want(DATA, OTHER);
  await after.host.advance(2 * RESYNC_MS);
  // Before the stage is looked at it is not known to be dead again; a driver's publish looks first.
  assert.equal(after.ofData()[0], 'unpublish web/pv-data');
});

test('MT-06: a pod that had all its volumes once keeps a dead one, though it is to have one more by now', async () => {
  const { host, die, want, ofData, refuse, presenceOfData } = bench();
  want(DATA, OTHER);
  await host.advance(5_000);
  refuse((call) => call === 'publish web/pv-more');
  want(DATA, OTHER, MORE);
  await host.advance(5_000);
  const before = ofData().length;
  die();
  await host.advance(2 * RESYNC_MS);
  assert.deepEqual(ofData().slice(before), []);
  assert.equal(presenceOfData(), 'present');
});

test('MT-06: a pod all of whose volumes are known after a restart may have run, and keeps a dead one', async () => {
  const other = actual('other', { staged: 'present', pods: { web: 'unsure' } });
  const { host, die, want, ofData } = bench([restarted(), other]);
  die();
  want(DATA, OTHER);
  await host.advance(2 * RESYNC_MS);
  assert.equal(ofData().includes('unpublish web/pv-data'), false);
});

test('a pod of which a volume is not known yet is not judged: it may have run with it', async () => {
  const { host, reconciler, die, ofData } = bench([restarted({ presence: { kind: 'present' } })]);
  die();
  reconciler.setDesired(wish([DATA, OTHER], { frozenPods: new Set([place('web', 'data').pod.uid]) }));
  await host.advance(RESYNC_MS);
  assert.equal(ofData().includes('unpublish web/pv-data'), false);
  assert.equal(reconciler.actual().get(id)?.publications.get(key)?.ended, undefined);
});

test('MT-06: a pod that had a volume before this life may have run, whatever it lacks now', async () => {
  const had = restarted({ presence: { kind: 'present' } });
  const other = actual('other', { staged: 'present', pods: { web: 'present' } });
  // The wish grew while no agent ran; the record of the other volume is lost, or it was taken from the pod.
  for (const recovered of [[had, other], [had]]) {
    const { host, die, want, ofData, refuse, presenceOfData } = bench(recovered);
    refuse((call) => call === 'publish web/pv-more' || call === 'publish web/pv-other');
    want(DATA, OTHER, MORE);
    await host.advance(5_000);
    die();
    await host.advance(2 * RESYNC_MS);
    assert.equal(ofData().includes('unpublish web/pv-data'), false);
    assert.equal(presenceOfData(), 'present');
  }
});

test('MT-06: before the disk was read a pod may have anything', async () => {
  const { host, die, want, ofData, refuse } = bench([], { isRead: false });
  refuse((call) => call === 'publish web/pv-other');
  want(DATA, OTHER);
  await host.advance(5_000);
  die();
  await host.advance(2 * RESYNC_MS);
  assert.equal(ofData().includes('unpublish web/pv-data'), false);
});

test('MT-06: a pod that had all for a moment, before it was to have more, keeps a dead one', async () => {
  const { host, reconciler, die, want, ofData, refuse, presenceOfData } = bench();
  refuse((call) => call === 'publish web/pv-more');
  const presences = () =>
    [...reconciler.actual().values()].flatMap(({ publications }) =>
      [...publications.values()].map(({ presence }) => presence.kind),
    );
  want(DATA, OTHER);
  while (presences().join() !== 'present,present') await Promise.resolve();
  want(DATA, OTHER, MORE);
  await host.advance(5_000);
  die();
  await host.advance(2 * RESYNC_MS);
  assert.equal(ofData().includes('unpublish web/pv-data'), false);
  assert.equal(presenceOfData(), 'present');
});

test('a pod that waits for a volume that is not resolved is not ready, and gets what died meanwhile anew', async () => {
  const { host, reconciler, die, want, ofData, presenceOfData } = bench();
  const { pod } = place('web', 'other');
  const failure: Failure = { code: 'reference-missing', message: 'there is no such Secret', effect: 'none' };
  const unresolved = [{ pod, volumeName: 'other', failure }];
  reconciler.setDesired(wish([DATA], { frozenPods: new Set([pod.uid]), unresolved }));
  await host.advance(5_000);
  assert.equal(presenceOfData(), 'present');
  die();
  await host.advance(RESYNC_MS);
  const before = ofData().length;
  want(DATA, OTHER);
  await host.advance(5_000);
  assert.deepEqual(ofData().slice(before), ANEW);
  assert.equal(presenceOfData(), 'present');
});

test('a pod that was not wanted for a while has not had all of its volumes by that', async () => {
  const { host, die, want, ofData, refuse, presenceOfData } = bench();
  refuse((call) => call === 'publish web/pv-other' || call === 'unpublish web/pv-data');
  want(DATA, OTHER);
  await host.advance(5_000);
  want();
  await host.advance(5_000);
  want(DATA, OTHER);
  refuse((call) => call === 'publish web/pv-other');
  await host.advance(RESYNC_MS);
  assert.equal(presenceOfData(), 'present');
  const before = ofData().length;
  die();
  await host.advance(2 * RESYNC_MS);
  assert.deepEqual(ofData().slice(before), ANEW);
});

test('a pod that had all, was over, and comes again within a resync has never had its volumes', async () => {
  const { host, reconciler, die, want, ofData, refuse, presenceOfData } = bench();
  want(DATA, OTHER);
  await host.advance(5_000);
  want();
  await host.advance(5_000);
  assert.equal(reconciler.actual().size, 0);
  refuse((call) => call === 'publish web/pv-other');
  want(DATA, OTHER);
  await host.advance(5_000);
  assert.equal(presenceOfData(), 'present');
  const before = ofData().length;
  die();
  await host.advance(2 * RESYNC_MS);
  assert.deepEqual(ofData().slice(before), ANEW);
});

test('of two pods that have a dead one, who may run keeps it, and who lacks a volume waits for him', async () => {
  const { host, reconciler, die, want, ofData, refuse } = bench();
  host.entries.push(mountAt(layout.mountPoint(csi('data'), place('runs', 'data'))));
  want(wanted('data', ['runs']));
  await host.advance(5_000);
  refuse((call) => call === 'publish web/pv-other');
  want(wanted('data', ['runs', 'web']), OTHER);
  await host.advance(5_000);
  die();
  await host.advance(2 * RESYNC_MS);
  const calls = ofData();
  assert.equal(calls.includes('unpublish web/pv-data'), true);
  assert.equal(calls.includes('unpublish runs/pv-data'), false);
  assert.equal(calls.includes('unstage data'), false);
  const waits = reconciler.planOf(id).waits.filter(({ publication }) => publication === key);
  assert.deepEqual(
    waits.map(({ failure }) => [failure?.code, failure?.blocker]),
    [['file-system-dead', 'default/runs']],
  );
});

test('whoever was given a part of such a pod before the rest was there has it until he ends, and is told', async () => {
  const { host, reconciler, die, want, ofData, refuse, presenceOfData } = bench();
  let holders: readonly PlaceHolder[] = [{ pid: 7, command: 'sh', path: '/data', how: 'bound' }];
  host.findPlaceHolders = async (places) => ok(places.map(() => holders));
  refuse((call) => call === 'publish web/pv-other');
  want(DATA, OTHER);
  await host.advance(5_000);
  die();
  await host.advance(2 * RESYNC_MS);
  assert.equal(ofData().includes('unpublish web/pv-data'), false);
  const why = reconciler.obstacles().find(({ volume, publication }) => volume === id && publication === key);
  assert.equal(why?.code, 'volume-held');
  assert.match(why?.message ?? '', /^it is to be set up anew, and somebody still has it/);
  holders = [];
  await host.advance(RESYNC_MS);
  assert.deepEqual(ofData().slice(-4), ANEW);
  assert.equal(presenceOfData(), 'present');
});
