import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../mount/failure.ts';
import type { DeviceNumber } from '../../mount/host.ts';
import { createMountTable } from '../../mount/mount-table.ts';
import type { PodUid, VolumeId } from '../../plugins/volume.ts';
import { type ActualVolume, onTheGround, RESTARTED } from '../../reconciler/model/actual-state.ts';
import type { Reconstruction } from '../../reconciler/recovery/reconstruct.ts';
import { parseRecord, recordOf } from '../../reconciler/recovery/record.ts';
import { recover } from '../../reconciler/recovery/recover.ts';
import { createBench, layout, READ_WHOLE } from './bench.ts';
import { settled } from './bench-host.ts';
import { actual, bytes, csi, DRIVER, place, wanted, wantedAs, wantedOfSize, wish } from './world.ts';

const refused: Failure = { code: 'driver-refused', message: 'no', effect: 'none' };
const timedOut: Failure = { code: 'driver-deadline', message: 'late', effect: 'unknown' };

test('a wanted volume is staged and published, a released one comes down, and no record stays', async () => {
  const { host, plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  assert.deepEqual([...plugins.world], ['staged data', place('web', 'data').key]);
  assert.equal(host.files.size, 1);
  reconciler.setDesired(wish([]));
  await settled();
  assert.deepEqual([...plugins.world], []);
  assert.equal(host.files.size, 0);
  assert.equal(reconciler.actual().size, 0);
  assert.deepEqual(plugins.calls, [
    'stage data',
    'publish web/pv-data',
    'unpublish web/pv-data',
    'unstage data',
  ]);
});

test('the record names a rung before its first effect (D-7)', async () => {
  const { host, plugins, reconciler } = createBench();
  let recorded: string | undefined;
  plugins.fault = (kind) => {
    if (kind === 'stage') recorded = [...host.files.values()][0];
    return undefined;
  };
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  const record = parseRecord(recorded ?? '');
  assert.ok(record.ok);
  assert.equal(record.value.staged, 'unsure');
});

test('without a record nothing is done to the world', async () => {
  const { host, plugins, reconciler } = createBench();
  host.failWrites = { code: 'disk-full', message: 'full', effect: 'none' };
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  assert.deepEqual([plugins.calls, [...plugins.world]], [[], []]);
  assert.equal(reconciler.obstacles()[0]?.code, 'record-write');
  host.failWrites = undefined;
  await host.advance(1_000);
  assert.ok(plugins.world.has(place('web', 'data').key));
});

test('a failed stage with an unknown effect is undone when the volume is not wanted (RC-04, A-056)', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = (kind) => (kind === 'stage' ? timedOut : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  assert.deepEqual([...plugins.world], ['staged data']);
  reconciler.setDesired(wish([]));
  await host.advance(100);
  assert.deepEqual([...plugins.world], []);
  assert.equal(host.files.size, 0);
});

test('a refusal without effect teaches nothing: the volume stays on the ground and is tried again later', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = (kind) => (kind === 'stage' ? refused : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  assert.equal(reconciler.actual().size, 0);
  const [obstacle] = reconciler.obstacles();
  assert.deepEqual(
    [obstacle?.kind, obstacle?.code, obstacle?.attempts],
    ['waiting-retry', 'driver-refused', 1],
  );
  plugins.fault = () => undefined;
  await host.advance(1_000);
  assert.ok(plugins.world.has('staged data'));
});

test('while it is tried again, what the tries before ran into is still told, until one ends well', async () => {
  const { host, plugins, reconciler } = createBench();
  const busy: Failure = { code: 'driver-busy', message: 'another has it', effect: 'none', blocker: 'pid 7' };
  plugins.fault = (kind) => (kind === 'stage' ? busy : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  let open = (): void => {};
  plugins.gate = new Promise((resolve) => {
    open = resolve;
  });
  await host.advance(1_000);
  const [retry, ...others] = reconciler.obstacles();
  assert.deepEqual(others, []);
  assert.deepEqual(
    [retry?.kind, retry?.attempts, retry?.lastFailure?.code, retry?.lastFailure?.blocker],
    ['running', 1, 'driver-busy', 'pid 7'],
  );
  plugins.fault = () => undefined;
  plugins.gate = undefined;
  open();
  await settled();
  assert.deepEqual(reconciler.obstacles(), []);
  assert.ok(plugins.world.has(place('web', 'data').key));
});

test('a driver that returns wakes its volumes at once, not after the back-off (ST-21)', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = () => timedOut;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(60_000);
  plugins.fault = () => undefined;
  reconciler.wake({ kind: 'driver', driver: DRIVER });
  await settled();
  assert.ok(plugins.world.has(place('web', 'data').key));
});

test('a driver that comes and goes every second does not have its volumes tried every time (DR-25)', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = () => timedOut;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(10_000);
  plugins.calls.length = 0;
  for (let second = 0; second < 30; second += 1) {
    reconciler.wake({ kind: 'driver', driver: DRIVER });
    await host.advance(1_000);
  }
  assert.ok(plugins.calls.length <= 18, `${plugins.calls.length} calls`);
  plugins.fault = () => undefined;
  await host.advance(10_000);
  assert.ok(plugins.world.has(place('web', 'data').key), 'the last return is not forgotten');
});

test('INV-30: a stage that is refused waits longer each time, though the attach before it is done again', async () => {
  const { host, plugins, reconciler, told } = createBench();
  plugins.needs = { attach: true, stage: true, expand: false };
  const unmet: Failure = { code: 'driver-precondition', message: 'not attached', effect: 'none' };
  plugins.fault = (kind) => (kind === 'stage' ? unmet : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(60_000);
  const stages = plugins.calls.filter((call) => call.startsWith('stage'));
  assert.ok(stages.length > 1 && stages.length <= 12, `${stages.length} calls`);
  const pairs = stages.flatMap((call) => ['attach data', call]);
  assert.deepEqual(plugins.calls.slice(0, pairs.length), pairs, 'the attach is done again before each');
  const [obstacle] = reconciler.obstacles();
  assert.equal(obstacle?.operation, 'stage');
  assert.deepEqual([obstacle?.attempts, obstacle?.sinceMs], [stages.length, 0]);
  assert.equal(told.filter((event) => event === 'operation failed').length, 1);
});

test('one failing pod does not delay another pod of the same volume (ST-14)', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = (kind, subject) => (kind === 'publish' && subject.startsWith('bad') ? timedOut : undefined);
  reconciler.setDesired(wish([wanted('data', ['bad'])]));
  await host.advance(30_000);
  reconciler.setDesired(wish([wanted('data', ['bad', 'good'])]));
  await settled();
  assert.equal(
    reconciler.actual().get(csi('data').id)?.publications.get(place('good', 'data').key)?.presence.kind,
    'present',
  );
});

test('an operation that waited for a slot asks again before it acts', async () => {
  const { plugins, reconciler } = createBench();
  let open: () => void = () => {};
  plugins.gate = new Promise((resolve) => {
    open = resolve;
  });
  reconciler.setDesired(wish(['a', 'b', 'c', 'd', 'late'].map((handle) => wanted(handle, ['web']))));
  await settled();
  assert.equal(plugins.calls.length, 4);
  reconciler.setDesired(wish([]));
  open();
  plugins.gate = undefined;
  await settled();
  assert.ok(!plugins.calls.includes('stage late'));
  assert.deepEqual([...plugins.world], []);
});

test('UNIMPLEMENTED is not tried again by time, only when the driver changes (A-035)', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = () => ({ code: 'driver-unimplemented', message: 'no', effect: 'none' });
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(50_000);
  assert.equal(plugins.calls.length, 1);
  assert.equal(reconciler.obstacles()[0]?.kind, 'waiting-change');
  reconciler.wake({ kind: 'driver', driver: DRIVER });
  await settled();
  assert.equal(plugins.calls.length, 2);
});

test('what a restart leaves unsure is done again when wanted and undone when not (A-057, A-065)', async () => {
  const kept = actual('kept', { staged: 'unsure', pods: { web: 'unsure' } });
  const gone = actual('gone', { staged: 'unsure', pods: { old: 'unsure' } });
  const { plugins, reconciler } = createBench({
    recovered: new Map([
      [kept.spec.id, kept],
      [gone.spec.id, gone],
    ]),
  });
  await settled();
  assert.equal(plugins.calls.length, 0);
  reconciler.setDesired(wish([wanted('kept', ['web'])]));
  await settled();
  assert.deepEqual(
    plugins.calls.filter((call) => call.includes('kept')),
    ['stage kept', 'publish web/pv-kept'],
  );
  assert.deepEqual(
    plugins.calls.filter((call) => call.includes('gone')),
    ['unpublish old/pv-gone', 'unstage gone'],
  );
});

test('a mount that somebody took away is noticed at resync and made again (MT-14)', async () => {
  const { host, plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.calls.length = 0;
  await host.advance(60_001);
  assert.deepEqual(plugins.calls, ['stage data', 'publish web/pv-data']);
});

test('a plugin that finds the staged mount gone makes us look at once, not at the next resync', async () => {
  const { host, plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.calls.length = 0;
  plugins.fault = (kind) => {
    const staged = plugins.calls.includes('stage data');
    return kind === 'publish' && !staged
      ? { code: 'staged-not-mounted', message: '', effect: 'none' }
      : undefined;
  };
  reconciler.setDesired(wish([wanted('data', ['web', 'more'])]));
  await host.advance(2_000);
  assert.ok(plugins.calls.includes('stage data'));
  const more = reconciler.actual().get(csi('data').id)?.publications.get(place('more', 'data').key);
  assert.equal(more?.presence.kind, 'present');
});

test('a stage whose mount is gone is undone and repeated, and its attachment is not doubted', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.needs = { attach: true, stage: true, expand: false };
  plugins.fault = (kind) =>
    kind === 'stage' && plugins.calls.filter((call) => call === 'stage data').length < 2
      ? { code: 'staged-not-mounted', message: '', effect: 'unknown' }
      : undefined;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(2_000);
  assert.deepEqual(plugins.calls, [
    'attach data',
    'stage data',
    'unstage data',
    'stage data',
    'publish web/pv-data',
  ]);
});

for (const lifecycle of ['Ephemeral', 'Persistent'] as const) {
  const what = lifecycle === 'Ephemeral' ? 'is taken down to the end' : 'is kept';
  test(`wanted again, what a driver has ended and left mounted ${what}: ${lifecycle}`, async () => {
    const { host, plugins, records, reconciler } = createBench();
    plugins.needs = { attach: false, stage: false, expand: false };
    const spec = { ...csi('data'), lifecycle };
    const wanting = wish([{ ...wanted('data', ['web']), spec }]);
    reconciler.setDesired(wanting);
    await settled();
    const left = { code: 'unpublished-still-mounted', message: '', effect: 'unknown', ended: true } as const;
    plugins.fault = (kind) => (kind === 'unpublish' ? left : undefined);
    reconciler.setDesired(wish([]));
    // On the disk when the operation ends: the record writer, which writes a little later, may be closed by then.
    await settled();
    const loaded = await records.load();
    assert.ok(loaded.ok);
    const [entry] = loaded.value.records[0]?.publications ?? [];
    assert.equal(entry?.ended, lifecycle === 'Ephemeral' ? true : undefined);
    plugins.calls.length = 0;
    plugins.fault = () => undefined;
    reconciler.setDesired(wanting);
    await host.advance(2_000);
    assert.deepEqual(
      plugins.calls,
      lifecycle === 'Ephemeral' ? ['unpublish web/pv-data', 'publish web/pv-data'] : ['publish web/pv-data'],
    );
  });
}

const ORPHAN = 'mooring/orphan/x' as VolumeId;

/** A mount of which nobody knows whose it is, where the pod is to have the volume. */
function orphanAt(pod: string, handle: string): Reconstruction {
  const spec = place(pod, handle, '');
  const path = layout.target(csi(handle), spec);
  const found = { spec, presence: RESTARTED, generation: undefined, mount: undefined };
  const needs = { attach: false, stage: false, expand: false };
  const volume = onTheGround({ kind: 'orphan', id: ORPHAN, path }, needs);
  const publications = new Map([[spec.key, found]]);
  return {
    volumes: [{ ...volume, publications }],
    gone: [],
    placesRead: true,
    driversHidden: false,
    unreadPlaces: [],
    complete: false,
    unknown: undefined,
  };
}

test('an orphan mount is left alone while a wanted volume has that place, and taken down after', async () => {
  const { plugins, reconciler } = createBench();
  plugins.needs = undefined;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  reconciler.takeReconstructed(orphanAt('web', 'data'));
  plugins.needs = { attach: false, stage: false, expand: false };
  reconciler.wake({ kind: 'operator' });
  await settled();
  assert.deepEqual(plugins.calls, ['publish web/pv-data']);
  assert.ok(plugins.world.has(place('web', 'data').key));
  reconciler.setDesired(wish([]));
  await settled();
  assert.equal(reconciler.actual().size, 0);
  assert.deepEqual([...plugins.world], []);
});

test('an orphan that waits for a volume says which, and one that somebody took down is forgotten', async () => {
  const { plugins, reconciler } = createBench();
  plugins.needs = undefined;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  reconciler.takeReconstructed(orphanAt('web', 'data'));
  await settled();
  const told = () => reconciler.obstacles().find(({ volume }) => volume === ORPHAN);
  assert.deepEqual(
    [told()?.kind, told()?.code, told()?.blocker],
    ['frozen', 'mount-foreign', csi('data').id],
  );
  reconciler.takeReconstructed({ ...READ_WHOLE, gone: [ORPHAN] });
  await settled();
  assert.deepEqual([told(), reconciler.actual().has(ORPHAN)], [undefined, false]);
  assert.deepEqual(plugins.calls, []);
});

test('what is staged of nobody knows whom is told with what a person can do, and not taken down', async () => {
  const { plugins, reconciler } = createBench();
  const path = layout.stagingPath(csi('lost'));
  const needs = { attach: false, stage: true, expand: false };
  const volume = { ...onTheGround({ kind: 'orphan', id: ORPHAN, path }, needs), staged: RESTARTED };
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  reconciler.takeReconstructed({ ...READ_WHOLE, complete: false, volumes: [volume] });
  await settled();
  const told = () => reconciler.obstacles().find((one) => one.volume === ORPHAN);
  assert.deepEqual(
    [told()?.kind, told()?.operation, told()?.code, told()?.blocker],
    ['gate-closed', 'unstage', 'mount-foreign', path],
  );
  assert.match(told()?.message ?? '', /unmount it/);
  reconciler.setDesired(wish([]));
  await settled();
  assert.deepEqual([...reconciler.actual().keys()], [ORPHAN], 'another volume came up and down beside it');
  assert.ok(!plugins.calls.some((call) => call.includes(ORPHAN)), plugins.calls.join(', '));
  reconciler.takeReconstructed({ ...READ_WHOLE, gone: [ORPHAN] });
  await settled();
  assert.deepEqual([told(), reconciler.actual().size], [undefined, 0]);
});

test('an idle reconciler makes no pass', async () => {
  const { host, reconciler } = createBench();
  reconciler.setDesired(wish([]));
  await settled();
  const before = reconciler.passes();
  await host.advance(59_000);
  assert.equal(reconciler.passes(), before);
});

test('stopping starts nothing new, waits for what runs, and takes nothing down (INV-39)', async () => {
  const { host, plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  let open: () => void = () => {};
  plugins.gate = new Promise((resolve) => {
    open = resolve;
  });
  reconciler.setDesired(wish([wanted('data', ['web']), wanted('more', ['web'])]));
  await settled();
  const stopped = reconciler.stop(5_000);
  open();
  await stopped;
  await host.advance(10);
  assert.ok(plugins.world.has(place('web', 'data').key));
  assert.ok(plugins.world.has('staged more'));
  assert.ok(!plugins.world.has(place('web', 'more').key));
});

const GROWS = { attach: false, stage: true, expand: true };

async function mounted(size: number) {
  const made = createBench();
  made.plugins.needs = GROWS;
  made.reconciler.setDesired(wish([wantedOfSize('data', ['web'], size)]));
  await settled();
  return made;
}

test('a volume whose wanted size grows is expanded once, and what it has is written down (A-069)', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  assert.ok(!plugins.calls.includes('expand data'), 'nobody says that it is smaller');
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 20)]));
  await host.advance(1_000);
  assert.equal(plugins.calls.filter((one) => one === 'expand data').length, 1);
  assert.equal(reconciler.actual().get(csi('data').id)?.sizeBytes, bytes(20));
  const record = parseRecord([...host.files.values()][0] ?? '');
  assert.ok(record.ok);
  assert.equal(record.value.sizeBytes, '20');
});

test('A-069, DR-16: what was published without a stage is grown without one, whatever its driver can do', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.needs = { ...GROWS, stage: false };
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 10)]));
  await settled();
  plugins.needs = GROWS;
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 20)]));
  await host.advance(1_000);
  const named = plugins.made.flatMap(({ kind, isStageNamed }) => (kind === 'expand' ? [isStageNamed] : []));
  assert.deepEqual(named, [false], 'never staged, it has no path where it is staged');
  assert.equal(reconciler.actual().get(csi('data').id)?.needs.stage, false, 'nothing was staged');
  // The next pod has it staged, and from then on the path is one.
  reconciler.setDesired(wish([wantedOfSize('data', ['more', 'web'], 20)]));
  await host.advance(1_000);
  reconciler.setDesired(wish([wantedOfSize('data', ['more', 'web'], 30)]));
  await host.advance(1_000);
  const next = plugins.made.findLast(({ kind }) => kind === 'expand');
  assert.deepEqual(
    [next?.isStageNamed, reconciler.actual().get(csi('data').id)?.sizeBytes],
    [true, bytes(30)],
  );
});

test('A-071: an expansion refused as in use is asked again only after unpublish, not by time or size', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  plugins.fault = (kind) =>
    kind === 'expand' ? { code: 'expand-in-use', message: 'in use', effect: 'none' } : undefined;
  const asked = () => plugins.calls.filter((one) => one === 'expand data').length;
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 20)]));
  await host.advance(3_600_000);
  reconciler.wake({ kind: 'operator' });
  reconciler.setDesired(wish([wantedOfSize('data', ['web', 'more'], 30)]));
  await host.advance(3_600_000);
  assert.equal(asked(), 1);
  assert.ok(plugins.world.has(place('more', 'data').key), 'the refusal delays no pod');
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([wantedOfSize('data', [], 30)]));
  await host.advance(10);
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 30)]));
  await host.advance(1_000);
  assert.equal(reconciler.actual().get(csi('data').id)?.sizeBytes, bytes(30));
});

test('A-071: what was refused while a pod went slowly is asked for again after it, before the next pod', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.needs = GROWS;
  const ofSize = (count: number, pod: string) => {
    const size = { bytes: bytes(count), knownBytes: bytes(10), held: undefined };
    return { ...wantedAs('ReadWriteOncePod', 'data', [pod]), size };
  };
  reconciler.setDesired(wish([ofSize(10, 'web')]));
  await settled();
  plugins.fault = (kind) => {
    if (kind === 'expand') return { code: 'expand-in-use', message: 'in use', effect: 'none' };
    return kind === 'unpublish' ? { ...timedOut, effect: 'none' } : undefined;
  };
  reconciler.setDesired(wish([ofSize(20, 'next')]));
  await host.advance(30_000);
  assert.ok(plugins.calls.includes('expand data'));
  plugins.fault = () => undefined;
  await host.advance(60_000);
  assert.ok(plugins.world.has(place('next', 'data').key), 'the next pod has it');
  assert.equal(reconciler.actual().get(csi('data').id)?.sizeBytes, bytes(20));
});

test('A-071: what a growth was refused for ends with the quarantine that took the volume down', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  plugins.fault = (kind) =>
    kind === 'expand' ? { code: 'expand-in-use', message: 'in use', effect: 'none' } : undefined;
  const size = { bytes: bytes(20), knownBytes: bytes(10), held: undefined };
  const want = [{ ...wanted('data', ['web']), size }];
  reconciler.setDesired(wish(want));
  await host.advance(1_000);
  reconciler.setDesired(wish(want, { outOfService: true }));
  await host.advance(5_000);
  assert.deepEqual([...plugins.world], [], 'it is down');
  plugins.fault = () => undefined;
  reconciler.setDesired(wish(want));
  await host.advance(1_000);
  assert.ok(plugins.world.has(place('web', 'data').key), 'the pod has it again');
  assert.equal(reconciler.actual().get(csi('data').id)?.sizeBytes, bytes(20));
});

test('A-071: a growth that was refused ends when the volume is down, though it is wanted all the time', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  plugins.needs = GROWS;
  const dead = { code: 'file-system-dead', message: 'shut down', effect: 'none' } as const;
  let deaths = 1;
  plugins.fault = (kind) => {
    if (kind === 'expand') return { code: 'expand-infeasible', message: 'no', effect: 'none' };
    if (kind !== 'publish' || deaths === 0) return undefined;
    deaths -= 1;
    return dead;
  };
  const size = { bytes: bytes(20), knownBytes: bytes(10), held: undefined };
  reconciler.setDesired(wish([{ ...wanted('other', ['web']), size }]));
  await host.advance(60_000);
  assert.ok(plugins.calls.includes('unstage other'), 'it was down');
  assert.ok(plugins.world.has(place('web', 'other').key), 'and given to its pod');
});

test('A-071: that it is in use is on disk before anything else is done, so a crash forgets no answer', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  await host.advance(1_000);
  plugins.fault = (kind) =>
    kind === 'expand' ? { code: 'expand-in-use', message: 'in use', effect: 'none' } : undefined;
  reconciler.setDesired(wish([wantedOfSize('data', ['web'], 20)]));
  await settled();
  const record = parseRecord([...host.files.values()][0] ?? '');
  assert.ok(record.ok);
  assert.equal(record.value.refusedExpansion?.because, 'in-use', 'not a clock tick has passed');
});

test('a republish that was not answered leaves the place as it is, and is asked for again by back-off', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  const again = wantedOfSize('data', ['web'], 10);
  const publications = new Map(
    [...again.publications].map(([key, one]) => [key, { ...one, generation: '1' }]),
  );
  plugins.fault = (kind) => (kind === 'publish' ? { ...timedOut, effect: 'none' } : undefined);
  const asked = () => plugins.calls.filter((one) => one === 'publish web/pv-data').length;
  const place0 = () => reconciler.actual().get(csi('data').id)?.publications.get(place('web', 'data').key);
  reconciler.setDesired(wish([{ ...again, publications }]));
  await settled();
  assert.deepEqual([asked(), place0()?.presence.kind], [2, 'present']);
  await host.advance(400);
  assert.equal(asked(), 2, 'not before its time');
  await host.advance(400);
  assert.deepEqual([asked(), place0()?.presence.kind], [3, 'present']);
  plugins.fault = () => undefined;
  await host.advance(8_000);
  assert.deepEqual([place0()?.generation, reconciler.obstacles()], ['1', []]);
});

for (const [device, calls] of [
  ['8:32', ['stage data', 'publish web/pv-data', 'unpublish web/pv-data', 'unstage data']],
  ['7:1', ['stage data', 'publish web/pv-data', 'unpublish web/pv-data']],
] as const) {
  test(`a frozen orphan on device ${device} keeps only a volume staged from it from being unstaged`, async () => {
    const { plugins, reconciler } = createBench({ isRead: false });
    reconciler.setDesired(wish([wanted('data', ['web'])]));
    await settled();
    const frozenPods = new Set(['lost' as PodUid]);
    reconciler.setDesired(wish([], { frozenPods }));
    const path = layout.target(csi('x'), place('lost', 'x'));
    const unknown = { mounts: [{ path, device, root: '/' }], unread: [], table: createMountTable([]) };
    reconciler.takeReconstructed({ ...orphanAt('lost', 'x'), unknown });
    await settled();
    assert.deepEqual(plugins.calls, calls);
    const why = reconciler.obstacles().find(({ operation }) => operation === 'unstage');
    assert.equal(why?.blocker, calls.length === 4 ? undefined : path);
  });
}

test('a failing expansion of a volume in use delays neither a new pod nor a stage (KV-F3)', async () => {
  const { host, plugins, reconciler } = await mounted(10);
  plugins.fault = (kind) => (kind === 'expand' ? timedOut : undefined);
  reconciler.setDesired(wish([wantedOfSize('data', ['web', 'more'], 20)]));
  await host.advance(2_000);
  assert.ok(plugins.world.has(place('more', 'data').key));
  assert.ok(
    reconciler.obstacles().some(({ operation, kind }) => operation === 'expand' && kind !== 'running'),
  );
});

test('RC-18, A-063: of two pods with a ReadWriteOncePod volume one waits until the other is surely out', async () => {
  const { host, plugins, reconciler } = createBench();
  reconciler.setDesired(wish([wantedAs('ReadWriteOncePod', 'data', ['a', 'b'])]));
  await settled();
  assert.deepEqual(plugins.calls, ['stage data', 'publish a/pv-data']);
  plugins.fault = (kind) => (kind === 'unpublish' ? timedOut : undefined);
  reconciler.setDesired(wish([wantedAs('ReadWriteOncePod', 'data', ['b'])]));
  await host.advance(2_000);
  assert.ok(!plugins.calls.includes('publish b/pv-data'), 'the first may still have it');
  assert.equal(reconciler.obstacles().find(({ code }) => code === 'volume-in-use')?.blocker, 'default/a');
  plugins.fault = () => undefined;
  await host.advance(20_000);
  assert.ok(plugins.world.has(place('b', 'data').key));
});

const inUse: Failure = { code: 'device-in-use', message: 'pid 1', effect: 'none' };

test('an operator puts a volume in quarantine: it comes down, is proven clean, and is set up again', async () => {
  const { host, plugins, reconciler } = createBench();
  const id = csi('data').id;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  plugins.fault = (kind) => (kind === 'clean' ? inUse : undefined);
  assert.ok((await reconciler.quarantine(id)).ok);
  const record = parseRecord([...host.files.values()][0] ?? '');
  assert.equal(record.ok && record.value.quarantine?.reason, 'operator');
  await host.advance(5_000);
  assert.deepEqual([...plugins.world], []);
  assert.ok(plugins.calls.includes('clean 7:1'), 'the device it was mounted from is searched for');
  assert.ok(reconciler.obstacles().some(({ code }) => code === 'device-in-use'));
  assert.ok(reconciler.actual().has(id), 'it is remembered until it is clean');
  plugins.fault = () => undefined;
  await host.advance(10_000);
  assert.ok(plugins.world.has(place('web', 'data').key));
  assert.equal(reconciler.actual().get(id)?.quarantine, undefined);
});

test('a node out of service cleans its volumes and sets none up until the mark is gone', async () => {
  const { host, plugins, reconciler } = createBench();
  const want = [wanted('data', ['web'])];
  reconciler.setDesired(wish(want));
  await settled();
  reconciler.setDesired(wish([...want, wanted('more', ['web'])], { outOfService: true }));
  await host.advance(5_000);
  assert.deepEqual([...plugins.world], []);
  assert.equal(reconciler.actual().get(csi('data').id)?.quarantine?.verified, true);
  reconciler.setDesired(wish(want));
  await host.advance(1_000);
  assert.ok(plugins.world.has(place('web', 'data').key));
});

test('a lost attachment means quarantine, and afterwards it is attached again before it is used', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.needs = { attach: true, stage: true, expand: false };
  const want = wanted('data', ['web']);
  reconciler.setDesired(wish([want]));
  await settled();
  reconciler.setDesired(wish([want], { lostAttachments: new Set([want.spec.id]) }));
  await host.advance(100);
  reconciler.setDesired(wish([want]));
  await host.advance(5_000);
  assert.deepEqual(plugins.calls.slice(3), [
    'unpublish web/pv-data',
    'unstage data',
    'clean 7:1',
    'attach data',
    'stage data',
    'publish web/pv-data',
  ]);
});

test('a volume that no pod wants any more, and that does not come down, is lost as any other', async () => {
  const { host, plugins, reconciler } = createBench();
  const want = wanted('data', ['web']);
  const { id } = want.spec;
  reconciler.setDesired(wish([want]));
  await settled();
  plugins.fault = (kind) =>
    kind === 'unpublish' ? { code: 'mount-busy', message: '', effect: 'none' } : undefined;
  reconciler.setDesired(wish([]));
  await host.advance(100);
  const lostAttachments = new Set([id]);
  reconciler.setDesired(wish([], { lostAttachments }));
  await host.advance(100);
  assert.equal(reconciler.actual().get(id)?.quarantine?.reason, 'attachment-lost');
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([want], { lostAttachments }));
  await host.advance(60_000);
  assert.deepEqual(plugins.calls.slice(-2), ['unstage data', 'clean 7:1'], 'the pod that comes back waits');
  reconciler.setDesired(wish([want]));
  await host.advance(1_000);
  assert.deepEqual(plugins.calls.slice(-2), ['stage data', 'publish web/pv-data']);
});

test('what is found of a volume after the proof comes down, and the proof is made again', async () => {
  const quarantine = {
    reason: 'attachment-lost',
    sinceWallMs: 1,
    devices: ['7:1' as DeviceNumber],
    verified: true,
  } as const;
  const clean: ActualVolume = { ...actual('data', {}), quarantine };
  const { id } = clean.spec;
  const { host, plugins, reconciler } = createBench({ recovered: new Map([[id, clean]]) });
  reconciler.setDesired(wish([], { lostAttachments: new Set([id]) }));
  await host.advance(1_000);
  assert.deepEqual(plugins.calls, [], 'it was proven clean');
  const found = {
    ...actual('data', { staged: 'unsure', pods: { old: 'unsure' } }),
    isInherited: true as const,
  };
  reconciler.takeReconstructed({ ...READ_WHOLE, volumes: [found] });
  await host.advance(1_000);
  assert.deepEqual(plugins.calls, ['unpublish old/pv-data', 'unstage data', 'clean 7:1']);
  reconciler.setDesired(wish([]));
  await host.advance(1_000);
  assert.deepEqual([reconciler.actual().size, host.files.size], [0, 0]);
});

test('a volume that was never here is not in quarantine because it is not attached', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.needs = { attach: true, stage: true, expand: false };
  const blocked = { code: 'not-attached', message: 'said', effect: 'none' } as const;
  const want = wanted('data', ['web']);
  reconciler.setDesired(wish([{ ...want, blocked }], { lostAttachments: new Set([want.spec.id]) }));
  await host.advance(1_000);
  assert.deepEqual([plugins.calls, reconciler.actual().size], [[], 0]);
  assert.deepEqual(
    reconciler.obstacles().map(({ kind, code }) => [kind, code]),
    [['blocked', 'not-attached']],
  );
  reconciler.setDesired(wish([want]));
  await host.advance(1_000);
  assert.deepEqual(plugins.calls, ['attach data', 'stage data', 'publish web/pv-data']);
});

test('a quarantine by the wish is not left while a source that may still say so cannot be read', async () => {
  const { host, reconciler } = createBench();
  const want = wanted('data', ['web']);
  const inQuarantine = () => reconciler.actual().get(csi('data').id)?.quarantine;
  reconciler.setDesired(wish([want]));
  await settled();
  reconciler.setDesired(wish([want], { lostAttachments: new Set([want.spec.id]) }));
  await host.advance(5_000);
  assert.equal(inQuarantine()?.verified, true);
  reconciler.setDesired(wish([want], { unknownOrigins: new Set(['attachment.yaml']) }));
  await host.advance(5_000);
  assert.equal(inQuarantine()?.reason, 'attachment-lost');
  reconciler.setDesired(wish([want]));
  await host.advance(1_000);
  assert.equal(inQuarantine(), undefined);
});

test('a quarantine outlives a crash, and ends with the boot', async () => {
  const quarantine = { reason: 'operator', sinceWallMs: 1, devices: [], verified: false } as const;
  const record = recordOf({ ...actual('data', { staged: 'present' }), quarantine }, 'boot-1');
  const recovered = (bootId: string) =>
    recover({ records: [record], table: undefined, shown: new Map(), bootId, layout }).get(csi('data').id)
      ?.quarantine;
  assert.deepEqual(recovered('boot-1'), quarantine);
  assert.equal(recovered('boot-2'), undefined);
});

test('an operator may end a quarantine without proof, but not one that the wish stands for', async () => {
  const { host, plugins, reconciler } = createBench();
  const id = csi('data').id;
  plugins.fault = (kind) => (kind === 'clean' ? inUse : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  await reconciler.quarantine(id);
  await host.advance(1_000);
  assert.ok((await reconciler.endQuarantine(id)).ok);
  await host.advance(1_000);
  assert.ok(plugins.world.has(place('web', 'data').key));
  assert.ok(!(await reconciler.endQuarantine(id)).ok);
  reconciler.setDesired(wish([wanted('data', ['web'])], { outOfService: true }));
  await host.advance(1_000);
  assert.ok(!(await reconciler.endQuarantine(id)).ok);
  assert.ok(!(await reconciler.quarantine('kubernetes.io/csi/none^x' as VolumeId)).ok);
});

test('a quarantine that ends while its proof waits for a turn leaves nothing behind (seed 48165)', async () => {
  const { host, plugins, reconciler } = createBench();
  const id = csi('data').id;
  const others = ['a', 'b', 'c', 'd'].map((handle) => wanted(handle, ['web']));
  let open = (): void => {};
  plugins.gate = new Promise((resolve) => {
    open = resolve;
  });
  reconciler.setDesired(wish([...others, wanted('data', ['web'], refused)]));
  await settled();
  assert.ok((await reconciler.quarantine(id)).ok);
  await settled();
  assert.ok(
    reconciler.running().some(({ operation, phase }) => operation.kind === 'clean' && phase === 'queued'),
  );
  reconciler.setDesired(wish(others));
  assert.ok((await reconciler.endQuarantine(id)).ok);
  plugins.gate = undefined;
  open();
  await host.advance(1_000);
  assert.equal(reconciler.actual().get(id), undefined);
  assert.equal(host.files.size, others.length);
});

test('a quarantine that has ended on the disk has ended, though its record could not be erased', async () => {
  const { host, plugins, records, reconciler } = createBench();
  const id = csi('data').id;
  plugins.fault = (kind) => (kind === 'clean' ? inUse : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  await reconciler.quarantine(id);
  reconciler.setDesired(wish([]));
  await host.advance(1_000);
  host.failRemovals = { code: 'input-output', message: 'refused', effect: 'unknown' };
  assert.ok((await reconciler.endQuarantine(id)).ok);
  const loaded = await records.load();
  assert.ok(loaded.ok);
  assert.equal(loaded.value.records[0]?.quarantine, undefined);
  assert.equal(reconciler.actual().get(id), undefined);
});

test('what is told of a quarantine begins and ends with it, though its record is still being written', async () => {
  const { host, plugins, records, reconciler } = createBench();
  const id = csi('data').id;
  plugins.fault = (kind) => (kind === 'clean' ? inUse : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  const { save } = records;
  let written = (): void => {};
  const heldFrom = (first: number): void => {
    let count = 0;
    const disk = new Promise<void>((resolve) => {
      written = resolve;
    });
    records.save = async (...volume) => {
      count += 1;
      if (count >= first) await disk;
      return save.call(records, ...volume);
    };
  };
  const tells = () => reconciler.obstacles().some(({ kind, code }) => [kind, code].includes('quarantined'));

  heldFrom(1);
  const begun = reconciler.quarantine(id);
  await settled();
  assert.ok(reconciler.obstacles().length > 0, 'what it keeps from being set up is told');
  written();
  await begun;
  await host.advance(1_000);

  heldFrom(2);
  const ended = reconciler.endQuarantine(id);
  await settled();
  assert.equal(reconciler.actual().get(id)?.quarantine, undefined, 'on the disk it has ended');
  assert.ok(!tells(), 'seed 5719');
  written();
  assert.ok((await ended).ok);
});
