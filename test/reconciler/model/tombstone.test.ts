/** DR-05, RC-04: a call that was given up may take effect minutes later, and what comes is given back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../../mount/failure.ts';
import { createMountTable } from '../../../mount/mount-table.ts';
import type { ActualState } from '../../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { LATE_EFFECT_MS } from '../../../reconciler/run/lookout.ts';
import type { VolumeRecord } from '../../../reconciler/recovery/record.ts';
import { recover } from '../../../reconciler/recovery/recover.ts';
import { nextDueMs } from '../../../reconciler/model/tombstone.ts';
import { createBench, layout, mountAt, onlyRecord } from '../bench.ts';
import { csi, place, wanted, wantedAs, wantedOfSize, wish } from '../world.ts';

const { id } = csi('data');
const TOMBSTONES_MAX = 256;
const UNANSWERED: Failure = { code: 'driver-deadline', message: 'late', effect: 'unknown', unanswered: true };
const ANSWERED: Failure = { code: 'driver-failed', message: 'no', effect: 'unknown' };
const GIVEN_BACK = ['unpublish web/pv-data', 'unstage data'];

/** Not the one that was answered. */
const LATE_MOUNT_ID = 40;
/** Nothing is mounted here, so belief is seldom compared with the table. */
const SELDOM_MS = 100 * LATE_EFFECT_MS;

function bench(recovered: ActualState = new Map(), resyncMs = SELDOM_MS, nowMs = 0, wallMs = nowMs) {
  const { host, plugins, reconciler } = createBench({ recovered, resyncMs, nowMs, wallMs });
  const known = () => reconciler.actual().get(id);
  const callsIn = async (ms: number): Promise<readonly string[]> => {
    const before = plugins.calls.length;
    await host.advance(ms);
    return plugins.calls.slice(before);
  };
  const failing = (verb: string, failure: Failure) => {
    plugins.fault = (kind) => (kind === verb ? failure : undefined);
  };
  const record = () => onlyRecord(host);
  return { host, plugins, reconciler, known, callsIn, failing, record };
}

/** One whose publish, or stage, was given up, and that nobody wants any more since. */
async function takenDown(
  verb: 'publish' | 'stage',
  failure: Failure,
  resyncMs = SELDOM_MS,
  world = bench(new Map(), resyncMs),
) {
  world.failing(verb, failure);
  world.reconciler.setDesired(wish([wanted('data', ['web'])]));
  await world.callsIn(100);
  world.reconciler.setDesired(wish([]));
  await world.callsIn(1_000);
  world.plugins.fault = () => undefined;
  return world;
}

test('after a publish that was given up the record stays, and at the end all is given back once more', async () => {
  const { plugins, known, callsIn, host } = await takenDown('publish', UNANSWERED);
  assert.deepEqual(plugins.calls.slice(-2), GIVEN_BACK);
  assert.deepEqual(
    known()?.tombstones?.map(({ operation }) => operation),
    ['publish'],
  );
  assert.equal(host.files.size, 1);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS - 10_000), [], 'nothing is asked before');
  assert.deepEqual(await callsIn(20_000), GIVEN_BACK);
  assert.deepEqual([known(), host.files.size], [undefined, 0]);
});

test('a wall clock that is set, forward or back, ends its time neither sooner nor later (INV-29)', async () => {
  for (const stepMs of [3 * 86_400_000, -3 * 86_400_000]) {
    const { known, callsIn, host } = await takenDown('publish', UNANSWERED, 60_000);
    host.wallStepMs = stepMs;
    assert.deepEqual(await callsIn(LATE_EFFECT_MS - 10_000), [], 'nothing is asked before');
    assert.deepEqual(await callsIn(20_000), GIVEN_BACK);
    assert.equal(known(), undefined);
  }
});

/** The next life of an agent; `setByMs`: the clock on the wall was set meanwhile. */
async function restarted(
  { record, host, reconciler }: ReturnType<typeof bench>,
  { setByMs = 0, bootId = 'boot-1' } = {},
) {
  const records = [record()];
  await reconciler.stop(0);
  const recovered = recover({ records, table: undefined, shown: new Map(), bootId, layout });
  const nowMs = bootId === 'boot-1' ? host.nowMs() : 0;
  const next = bench(recovered, SELDOM_MS, nowMs, host.wallMs() + setByMs);
  next.reconciler.setDesired(wish([]));
  return next;
}

test('a restart after the wall clock was set, before or after the call, ends its time no sooner (INV-29)', async () => {
  for (const stepMs of [3 * 86_400_000, -3 * 86_400_000]) {
    const before = bench();
    before.host.wallStepMs = stepMs;
    await takenDown('publish', UNANSWERED, SELDOM_MS, before);
    const after = await takenDown('publish', UNANSWERED, 60_000);
    after.host.wallStepMs = stepMs;
    assert.deepEqual(await after.callsIn(61_000), []);
    for (const life of [before, after]) {
      const { known, callsIn } = await restarted(life);
      assert.deepEqual(await callsIn(LATE_EFFECT_MS - 75_000), [], 'nothing is asked before');
      assert.deepEqual(await callsIn(80_000), GIVEN_BACK);
      assert.equal(known(), undefined);
    }
  }
});

test('a wall clock that is set while no agent runs ends its time neither sooner nor later (INV-29)', async () => {
  for (const stepMs of [3 * 86_400_000, -3 * 86_400_000]) {
    const before = await takenDown('publish', UNANSWERED);
    await before.callsIn(60_000);
    const { known, callsIn } = await restarted(before, { setByMs: stepMs });
    assert.deepEqual(await callsIn(LATE_EFFECT_MS - 75_000), [], 'nothing is asked before');
    assert.deepEqual(await callsIn(20_000), GIVEN_BACK);
    assert.equal(known(), undefined);
  }
});

test('after a reboot what a controller was asked is waited for anew: its clock has ended', async () => {
  const before = bench(new Map(), SELDOM_MS, 30 * 86_400_000);
  before.plugins.needs = { attach: true, stage: true, expand: false };
  before.failing('attach', UNANSWERED);
  before.reconciler.setDesired(wish([wanted('data', ['web'])]));
  await before.callsIn(100);
  before.reconciler.setDesired(wish([]));
  await before.callsIn(1_000);
  const { known, callsIn } = await restarted(before, { bootId: 'boot-2' });
  await callsIn(1_000);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS - 10_000), [], 'nothing is asked before');
  assert.deepEqual(await callsIn(20_000), ['detach data']);
  assert.equal(known(), undefined);
});

test('one that was answered, with whatever, has ended and leaves nothing', async () => {
  for (const verb of ['publish', 'stage'] as const) {
    const { known, host } = await takenDown(verb, ANSWERED);
    assert.deepEqual([known(), host.files.size], [undefined, 0]);
  }
});

test('a stage that was given up is unstaged once more', async () => {
  const { plugins, callsIn, known } = await takenDown('stage', UNANSWERED);
  assert.deepEqual(plugins.calls, ['stage data', 'unstage data']);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS + 10_000), ['unstage data']);
  assert.equal(known(), undefined);
});

test('what may come late has the size of its day: grown meanwhile, it is grown when it is set up', async () => {
  const { reconciler, plugins, failing, callsIn, known } = bench();
  plugins.needs = { attach: false, stage: true, expand: true };
  failing('stage', UNANSWERED);
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 10)]));
  await callsIn(100);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  assert.equal(known()?.staged.kind, 'absent');
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 20)]));
  assert.deepEqual(await callsIn(1_000), ['stage data', 'expand data', 'publish web/pv-data']);
});

/** The publish for `web` is under way when the wish for its volume changes, and `next` is published by that. */
async function wishedOtherwiseMeanwhile(failure: Failure | undefined) {
  const world = bench();
  const { plugins, reconciler, callsIn } = world;
  reconciler.setDesired(wish([wanted('data', ['first'])]));
  await callsIn(1_000);
  let answer = (): void => {};
  plugins.gate = new Promise((resolve) => (answer = resolve));
  reconciler.setDesired(wish([wanted('data', ['first', 'web'])]));
  await callsIn(10);
  // What a CSIDriver object says is for the next pod.
  const spec = { ...csi('data'), podInfoOnMount: true };
  reconciler.setDesired(wish([{ ...wanted('data', ['first', 'web', 'next']), spec }]));
  await callsIn(10);
  assert.deepEqual(plugins.calls.slice(-2), ['publish web/pv-data', 'publish next/pv-data']);
  plugins.fault = (kind, subject) => (kind === 'publish' && subject.startsWith('web') ? failure : undefined);
  answer();
  plugins.gate = undefined;
  await callsIn(10);
  plugins.fault = () => undefined;
  await callsIn(10_000);
  return world;
}

test('a call that is answered has ended, though the wish for its volume changed while it was made', async () => {
  const { host, reconciler, callsIn, known } = await wishedOtherwiseMeanwhile(undefined);
  assert.equal(known()?.tombstones, undefined);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  assert.deepEqual([known(), host.files.size], [undefined, 0]);
});

test('one that is not answered is given back once, though the wish for its volume changed meanwhile', async () => {
  const { host, reconciler, callsIn, known } = await wishedOtherwiseMeanwhile(UNANSWERED);
  assert.deepEqual(
    known()?.tombstones?.map(({ publication, open }) => [publication?.pod.uid, open]),
    [['web', undefined]],
  );
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), GIVEN_BACK);
  assert.deepEqual([known(), host.files.size], [undefined, 0]);
});

test('the proof that ends a quarantine does not wait for a call that was answered', async () => {
  const { plugins, reconciler, callsIn } = await wishedOtherwiseMeanwhile(undefined);
  await reconciler.quarantine(id);
  await callsIn(10_000);
  assert.ok(plugins.calls.some((call) => call.startsWith('clean')));
  assert.deepEqual(reconciler.obstacles(), []);
});

test('a call that is being made is due at no time, however old the one before it', async () => {
  const { known } = await takenDown('publish', UNANSWERED);
  const volume = known() ?? assert.fail('its record stays');
  const [late] = volume.tombstones ?? [];
  assert.ok(late?.untilMs);
  assert.equal(nextDueMs(volume), late.untilMs);
  assert.equal(nextDueMs({ ...volume, tombstones: [{ ...late, open: true }] }), undefined);
});

test('what the kernel shows meanwhile is given back at once, and more may come', async () => {
  const { host, callsIn, known } = await takenDown('publish', UNANSWERED, 60_000);
  const target = layout.mountPoint(csi('data'), place('web', 'data'));
  host.entries.push(mountAt(target, LATE_MOUNT_ID));
  assert.deepEqual(await callsIn(61_000), GIVEN_BACK);
  host.entries.length = 0;
  assert.equal(known()?.tombstones?.length, 1);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), GIVEN_BACK);
  assert.equal(known(), undefined);
});

test('wanted again it is set up at once, and what stands when the time is over is left as it is', async () => {
  const { reconciler, callsIn, known } = await takenDown('publish', UNANSWERED);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  assert.deepEqual(await callsIn(1_000), ['stage data', 'publish web/pv-data']);
  assert.equal(known()?.tombstones?.length, 1, 'an OK says nothing of the call before');
  assert.deepEqual(await callsIn(LATE_EFFECT_MS * 2), []);
  assert.equal(known()?.tombstones, undefined);
});

test('an OK in between does not hide that the older call comes after the next teardown', async () => {
  const { reconciler, callsIn, known } = await takenDown('publish', UNANSWERED);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await callsIn(1_000);
  reconciler.setDesired(wish([]));
  assert.deepEqual(await callsIn(1_000), GIVEN_BACK);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), GIVEN_BACK);
  assert.equal(known(), undefined);
});

test('another pod waits for nothing, and keeps what it has when the time is over', async () => {
  const { reconciler, callsIn, known, plugins } = await takenDown('publish', UNANSWERED);
  reconciler.setDesired(wish([wantedAs('ReadWriteOncePod', 'data', ['next'])]));
  assert.deepEqual(await callsIn(1_000), ['stage data', 'publish next/pv-data']);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), ['unpublish web/pv-data']);
  assert.deepEqual([...plugins.world], ['staged data', 'next/pv-data']);
  assert.equal(known()?.tombstones, undefined);
});

/** Pods of one volume that come and go one after the other, whose publish nobody heard the end of. */
async function comeAndGo(world: ReturnType<typeof bench>, pods: readonly string[]): Promise<void> {
  world.failing('publish', UNANSWERED);
  for (const pod of pods) {
    world.reconciler.setDesired(wish([wanted('data', ['other', pod])]));
    await world.callsIn(10);
    world.reconciler.setDesired(wish([wanted('data', ['other'])]));
    await world.callsIn(10);
  }
  world.plugins.fault = () => undefined;
}

function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `web-${index}`);
}

test('of many pods of one volume none is forgotten: each place is given back once more', async () => {
  const world = bench();
  world.reconciler.setDesired(wish([wanted('data', ['other'])]));
  await world.callsIn(100);
  const pods = numbered(100);
  await comeAndGo(world, pods);
  const calls = await world.callsIn(2 * LATE_EFFECT_MS);
  const given = calls.filter((call) => call.startsWith('unpublish'));
  assert.deepEqual([...given].sort(), pods.map((pod) => `unpublish ${pod}/pv-data`).sort());
  assert.equal(world.known()?.tombstones, undefined);
});

test('while more calls than can be remembered may still come, a new pod waits and is told so', async () => {
  const world = bench();
  world.reconciler.setDesired(wish([wanted('data', ['other'])]));
  await world.callsIn(100);
  await comeAndGo(world, numbered(TOMBSTONES_MAX));
  const before = world.plugins.calls.length;
  world.reconciler.setDesired(wish([wanted('data', ['other', 'new', 'web-1'])]));
  await world.callsIn(1_000);
  // What one of them asked for already is remembered anyway.
  assert.deepEqual(world.plugins.calls.slice(before), ['publish web-1/pv-data']);
  const reason = world.reconciler.obstacles().find(({ publication }) => publication === 'new/pv-data');
  assert.deepEqual([reason?.kind, reason?.code], ['blocked', 'late-effect']);
  await world.callsIn(LATE_EFFECT_MS);
  assert.equal(world.known()?.publications.get(place('new', 'data').key)?.presence.kind, 'present');
});

test('of a volume for one pod it is given back though its pod came again: another has it (RC-18)', async () => {
  const { reconciler, callsIn, plugins } = await takenDown('publish', UNANSWERED);
  reconciler.setDesired(wish([wantedAs('ReadWriteOncePod', 'data', ['next'])]));
  await callsIn(1_000);
  reconciler.setDesired(wish([wantedAs('ReadWriteOncePod', 'data', ['web', 'next'])]));
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), ['unpublish web/pv-data']);
  assert.deepEqual([...plugins.world], ['staged data', 'next/pv-data']);
  reconciler.setDesired(wish([wantedAs('ReadWriteOncePod', 'data', ['web'])]));
  assert.deepEqual(await callsIn(1_000), ['unpublish next/pv-data', 'publish web/pv-data']);
});

/** Wanted by one pod as a device, where `wanted` is of files. */
function wantedAsDevice(pod: string): DesiredVolume {
  return { ...wanted('data', [pod]), spec: { ...csi('data'), mode: 'Block' } };
}

/** Given up as files, taken down, and standing as a device for another pod by now. */
async function standingOtherwise(verb: 'publish' | 'stage', resyncMs = SELDOM_MS) {
  const world = await takenDown(verb, UNANSWERED, resyncMs);
  world.reconciler.setDesired(wish([wantedAsDevice('next')]));
  assert.deepEqual(await world.callsIn(1_000), ['stage data', 'publish next/pv-data']);
  return world;
}

test('what was asked of it as files is given back as that at the end beside the device that it is by now', async () => {
  const { reconciler, callsIn, known, plugins } = await standingOtherwise('publish');
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), ['unpublish web/pv-data']);
  const { spec, publication } = plugins.made.at(-1) ?? assert.fail('a call was made');
  assert.deepEqual([spec, publication], [csi('data'), place('web', 'data')]);
  assert.deepEqual([...plugins.world], ['staged data', 'next/pv-data']);
  assert.deepEqual([...(known()?.publications.keys() ?? [])], ['next/pv-data']);
  assert.equal(known()?.tombstones, undefined);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), []);
  reconciler.setDesired(wish([]));
  assert.deepEqual(await callsIn(1_000), ['unpublish next/pv-data', 'unstage data']);
  assert.equal(known(), undefined);
});

test('one that cannot be given back is tried again, and stays written down until then', async () => {
  const { callsIn, known, failing, plugins, record } = await standingOtherwise('publish');
  failing('unpublish', ANSWERED);
  const tries = await callsIn(LATE_EFFECT_MS + 2_000);
  assert.ok(tries.length > 1, tries.join());
  assert.deepEqual([...new Set(tries)], ['unpublish web/pv-data']);
  assert.deepEqual([record().tombstones?.length, known()?.publications.size], [1, 1]);
  plugins.fault = () => undefined;
  assert.deepEqual(await callsIn(10_000), ['unpublish web/pv-data']);
  assert.deepEqual([record().tombstones, known()?.tombstones], [undefined, undefined]);
});

test('what the kernel shows of it is given back at once beside the device, and more may come', async () => {
  const { host, callsIn, known } = await standingOtherwise('publish', 60_000);
  host.entries.push(mountAt(layout.mountPoint(csi('data'), place('web', 'data')), LATE_MOUNT_ID));
  const calls = await callsIn(61_000);
  host.entries.length = 0;
  assert.ok(calls.includes('unpublish web/pv-data'), calls.join());
  assert.equal(known()?.tombstones?.length, 1);
  const later = await callsIn(LATE_EFFECT_MS);
  assert.ok(later.includes('unpublish web/pv-data'), later.join());
  assert.equal(known()?.tombstones, undefined);
});

test('a wall clock that is set while it is given back beside the device ends its time no sooner (INV-29)', async () => {
  const { host, plugins, callsIn, known } = await standingOtherwise('publish', 60_000);
  host.entries.push(mountAt(layout.mountPoint(csi('data'), place('web', 'data')), LATE_MOUNT_ID));
  let open = (): void => {};
  plugins.gate = new Promise((resolve) => {
    open = resolve;
  });
  const givenIn = async (ms: number) => (await callsIn(ms)).filter((call) => call.startsWith('unpublish'));
  assert.deepEqual(await givenIn(61_000), ['unpublish web/pv-data']);
  host.entries.length = 0;
  host.wallStepMs = 3 * 86_400_000;
  await callsIn(61_000);
  open();
  plugins.gate = undefined;
  assert.deepEqual(await givenIn(61_000), []);
  assert.equal(known()?.tombstones?.length, 1);
  assert.deepEqual(await givenIn(LATE_EFFECT_MS), ['unpublish web/pv-data']);
  assert.equal(known()?.tombstones, undefined);
});

test('a reboot makes it due beside the device, too', async () => {
  const { record } = await standingOtherwise('publish');
  const table = createMountTable([]);
  const recovered = recover({ records: [record()], table, shown: new Map(), bootId: 'boot-2', layout });
  const { reconciler, callsIn, known, plugins } = bench(recovered);
  reconciler.setDesired(wish([wantedAsDevice('next')]));
  const calls = await callsIn(5_000);
  assert.deepEqual(calls.toSorted(), ['publish next/pv-data', 'stage data', 'unpublish web/pv-data']);
  const given = plugins.made.find(({ kind }) => kind === 'unpublish');
  assert.equal(given?.spec.kind === 'csi' && given.spec.mode, 'Filesystem');
  assert.equal(known()?.tombstones, undefined);
});

test('a stage of it as files waits until the device is down: its driver may take the one for the other', async () => {
  const { reconciler, callsIn, known } = await standingOtherwise('stage');
  assert.deepEqual(await callsIn(LATE_EFFECT_MS * 2), []);
  assert.equal(known()?.tombstones?.length, 1);
  reconciler.setDesired(wish([]));
  assert.deepEqual(await callsIn(1_000), ['unpublish next/pv-data', 'unstage data', 'unstage data']);
  assert.equal(known(), undefined);
});

test('of one pod, what was asked as files and what was asked as a device are both given back', async () => {
  const { reconciler, callsIn, failing, plugins, known } = await takenDown('publish', UNANSWERED);
  failing('publish', UNANSWERED);
  reconciler.setDesired(wish([wantedAsDevice('web')]));
  await callsIn(1_000);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  plugins.fault = () => undefined;
  await callsIn(LATE_EFFECT_MS);
  const before = plugins.made.length;
  await callsIn(LATE_EFFECT_MS);
  assert.equal(plugins.made.length, before);
  const late = plugins.made.slice(-4).filter(({ kind }) => kind === 'unpublish');
  const modes = late.map(({ spec }) => spec.kind === 'csi' && spec.mode);
  assert.deepEqual(modes.toSorted(), ['Block', 'Filesystem']);
  assert.equal(known(), undefined);
});

test('asked for twice as the same, with something else between, it is waited for until the later is over', async () => {
  const { reconciler, callsIn, failing, plugins, known } = bench();
  const asIs = wanted('data', ['web']);
  const otherwise = { ...asIs, spec: { ...csi('data'), mountOptions: ['noatime'] } };
  failing('stage', UNANSWERED);
  for (const [volume, ms] of [
    [asIs, 1_000],
    [otherwise, LATE_EFFECT_MS / 2],
    [asIs, 1_000],
    [otherwise, 1_000],
  ] as const) {
    reconciler.setDesired(wish([volume]));
    await callsIn(ms);
    reconciler.setDesired(wish([]));
    await callsIn(1_000);
  }
  plugins.fault = () => undefined;
  assert.equal(known()?.tombstones?.length, 2);
  await callsIn(LATE_EFFECT_MS - 4_500);
  const before = plugins.made.length;
  await callsIn(5_000);
  const last = plugins.made
    .slice(before)
    .map(({ kind, spec }) => [kind, spec.kind === 'csi' && spec.mountOptions]);
  assert.deepEqual(last, [
    ['unstage', []],
    ['unstage', ['noatime']],
  ]);
  assert.equal(known(), undefined);
});

test('a quarantine of one that was attached and staged otherwise since ends, too', async () => {
  const { reconciler, callsIn, failing, plugins, known } = bench();
  plugins.needs = { attach: true, stage: true, expand: false };
  failing('stage', UNANSWERED);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await callsIn(100);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([wantedAsDevice('next')]));
  await callsIn(1_000);
  assert.deepEqual(await reconciler.quarantine(id), { ok: true, value: undefined });
  const calls = await callsIn(LATE_EFFECT_MS * 2);
  assert.ok(
    calls.some((call) => call.startsWith('clean')),
    calls.join(),
  );
  assert.equal(known()?.tombstones, undefined);
  assert.deepEqual(calls.slice(-2), ['stage data', 'publish next/pv-data']);
});

test('it outlives a restart, and a call that was open then counts as one that nobody heard of', async () => {
  const first = bench();
  let recorded: VolumeRecord | undefined;
  first.plugins.fault = (kind) => {
    if (kind === 'publish') recorded = first.record();
    return undefined;
  };
  first.reconciler.setDesired(wish([wanted('data', ['web'])]));
  await first.callsIn(1_000);
  assert.deepEqual(
    recorded?.tombstones?.map(({ open }) => open),
    [true],
  );
  assert.equal(first.record().tombstones, undefined, 'it was answered');
  assert.ok(recorded);
  const recovered = (bootId: string) =>
    recover({ records: [recorded as VolumeRecord], table: undefined, shown: new Map(), bootId, layout });
  const second = bench(recovered('boot-1'));
  second.reconciler.setDesired(wish([]));
  assert.deepEqual(await second.callsIn(1_000), GIVEN_BACK);
  assert.equal(second.record().tombstones?.length, 1);
  assert.deepEqual(await second.callsIn(LATE_EFFECT_MS), GIVEN_BACK);
  assert.equal(second.host.files.size, 0);
});

test('a reboot ends every call, and what one made before is given back, though nothing is mounted', async () => {
  for (const verb of ['publish', 'stage'] as const) {
    const { record } = await takenDown(verb, UNANSWERED);
    const input = { table: createMountTable([]), shown: new Map(), layout };
    const recovered = recover({ ...input, records: [record()], bootId: 'boot-2' });
    const { reconciler, plugins, host, known } = bench(recovered);
    reconciler.setDesired(wish([]));
    await host.advance(1_000);
    assert.deepEqual(plugins.calls, verb === 'publish' ? GIVEN_BACK : ['unstage data']);
    assert.deepEqual([known(), host.files.size], [undefined, 0], 'nothing can come any more');
  }
});

test('D-68: a reboot has all of it given back at once, also what was asked as files and as a device', async () => {
  const { reconciler, callsIn, failing, record } = await takenDown('publish', UNANSWERED);
  failing('publish', UNANSWERED);
  reconciler.setDesired(wish([wantedAsDevice('next')]));
  await callsIn(1_000);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  const input = { table: createMountTable([]), shown: new Map(), layout };
  const rebooted = bench(recover({ ...input, records: [record()], bootId: 'boot-2' }));
  rebooted.reconciler.setDesired(wish([]));
  await rebooted.callsIn(5_000);
  const given = rebooted.plugins.made.filter(({ kind }) => kind === 'unpublish');
  const places = given.map(
    ({ spec, publication }) => `${spec.kind === 'csi' && spec.mode} ${publication?.pod.uid}`,
  );
  assert.deepEqual(places.toSorted(), ['Block next', 'Filesystem web']);
  assert.deepEqual([rebooted.known(), rebooted.host.files.size], [undefined, 0], 'nothing can come any more');
});

test('of what a reboot left, a pod that wants the place again has it set up as ever', async () => {
  const { record } = await takenDown('publish', UNANSWERED);
  const input = { table: createMountTable([]), shown: new Map(), layout };
  const { reconciler, plugins, host, known } = bench(
    recover({ ...input, records: [record()], bootId: 'boot-2' }),
  );
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(1_000);
  assert.deepEqual(plugins.calls, ['stage data', 'publish web/pv-data']);
  assert.equal(known()?.tombstones, undefined);
});

test('what came while no agent was running is given back at the start', async () => {
  const { record } = await takenDown('publish', UNANSWERED);
  const target = layout.mountPoint(csi('data'), place('web', 'data'));
  const table = createMountTable([mountAt(target, LATE_MOUNT_ID)]);
  const records = [record()];
  const recovered = recover({ records, table, shown: new Map(), bootId: 'boot-1', layout });
  const { reconciler, callsIn } = bench(recovered);
  reconciler.setDesired(wish([]));
  assert.deepEqual(await callsIn(1_000), GIVEN_BACK);
});

test('a detach that was given up may come after it was attached again: it is attached once more', async () => {
  const { plugins, reconciler, callsIn, failing, known } = bench();
  plugins.needs = { attach: true, stage: true, expand: false };
  const want = wish([wanted('data', ['web'])]);
  reconciler.setDesired(want);
  await callsIn(1_000);
  failing('detach', UNANSWERED);
  reconciler.setDesired(wish([]));
  await callsIn(100);
  plugins.fault = () => undefined;
  reconciler.setDesired(want);
  assert.deepEqual(await callsIn(1_000), ['attach data', 'stage data', 'publish web/pv-data']);
  assert.deepEqual(await callsIn(LATE_EFFECT_MS), ['attach data']);
  assert.equal(known()?.tombstones, undefined);
});

/** Attached under another node id than an attach of before, which was given up. */
async function attachedElsewhere() {
  const world = bench();
  const { plugins, reconciler, callsIn, failing } = world;
  plugins.needs = { attach: true, node: 'node-1', stage: true, expand: false };
  failing('attach', UNANSWERED);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await callsIn(100);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  plugins.fault = () => undefined;
  plugins.needs = { attach: true, node: 'node-2', stage: true, expand: false };
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  assert.deepEqual(await callsIn(1_000), ['attach data', 'stage data', 'publish web/pv-data']);
  const detached = () => plugins.made.filter(({ kind }) => kind === 'detach').map(({ node }) => node);
  return { ...world, detached };
}

test('DR-17: an attach that was given up is detached once more, under the id that it named', async () => {
  const { reconciler, callsIn, detached, known } = await attachedElsewhere();
  assert.deepEqual(await callsIn(2 * LATE_EFFECT_MS), [], 'what the pod has is not that one');
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  assert.deepEqual(detached(), ['node-1', 'node-2', 'node-1']);
  assert.equal(known(), undefined);
});

test('DR-17: so it is after a quarantine, whose proof does not wait for what goes with the volume', async () => {
  const { reconciler, callsIn, detached, known } = await attachedElsewhere();
  assert.ok((await reconciler.quarantine(id)).ok);
  const calls = await callsIn(2 * LATE_EFFECT_MS);
  assert.deepEqual([known()?.quarantine, calls.at(-1)], [undefined, 'publish web/pv-data']);
  reconciler.setDesired(wish([]));
  await callsIn(1_000);
  assert.deepEqual(detached(), ['node-1', 'node-2', 'node-1']);
  assert.equal(known(), undefined);
});

test('the proof that ends a quarantine waits, and says for what', async () => {
  const { reconciler, callsIn, failing, plugins } = bench();
  failing('publish', UNANSWERED);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await callsIn(100);
  assert.ok((await reconciler.quarantine(id)).ok);
  await callsIn(5_000);
  assert.deepEqual(plugins.calls.slice(-2), GIVEN_BACK);
  const [obstacle] = reconciler.obstacles().filter(({ operation }) => operation === 'clean');
  assert.deepEqual([obstacle?.kind, obstacle?.code], ['blocked', 'late-effect']);
  assert.match(
    obstacle?.message ?? '',
    /^publish for pod default\/web was given up .* may still take effect$/,
  );
  plugins.fault = () => undefined;
  const later = await callsIn(LATE_EFFECT_MS + 10_000);
  assert.deepEqual(later.slice(0, 3), [...GIVEN_BACK, 'clean 7:1']);
  assert.deepEqual(later.slice(-2), ['stage data', 'publish web/pv-data']);
});
