/** What somebody still has is not taken down, and goes as soon as it is seen that he has ended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { PlaceHolder } from '../../../mount/holder/place-holder.ts';
import { type AbsolutePath, parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { orphanAt } from '../../../plugins/kinds/found-volume.ts';
import type { PodUid, VolumeId } from '../../../plugins/volume.ts';
import type { ActualState } from '../../../reconciler/model/actual-state.ts';
import { createReconstructed, reconstructedPublication } from '../../../reconciler/recovery/reconstructed.ts';
import { createReconciler } from '../../../reconciler/reconciler.ts';
import { createRecordStore } from '../../../reconciler/recovery/record-store.ts';
import { createBenchHost, settled } from '../bench-host.ts';
import { createBenchPlugin } from '../bench-plugin.ts';
import { READ_WHOLE } from '../bench.ts';
import { csi, wanted, wish } from '../world.ts';

const root = parseAbsolutePath('/state') ?? assert.fail();
const COPY_HOLD_MS = 60_000;
const RUNS: PlaceHolder = { pid: 7, command: 'sh', path: '/data', how: 'bound' };

/** Volumes of one pod each that stand, and that nobody wants any more when the test says so. */
async function standing(...handles: readonly string[]) {
  return standingBeside({ recovered: new Map(), holders: [] }, ...handles);
}

interface Beside {
  readonly recovered: ActualState;
  readonly holders: readonly PlaceHolder[];
}

/** What every try to take a volume down ends with, when the test says so. */
const REFUSED: Failure = { code: 'driver-failed', message: 'not yet', effect: 'unknown' };

async function standingBeside({ recovered, holders }: Beside, ...handles: readonly string[]) {
  const host = createBenchHost();
  const looks: (readonly AbsolutePath[])[] = [];
  let answer: Result<readonly PlaceHolder[]> = ok(holders);
  host.findPlaceHolders = async (places) => {
    looks.push(places);
    return answer.ok ? ok(places.map(() => (answer.ok ? answer.value : []))) : answer;
  };
  const plugins = createBenchPlugin();
  const layout = createLayout(root);
  const silent = (): void => {};
  const reconciler = createReconciler({
    host,
    layout,
    plugins,
    records: createRecordStore(host, layout),
    recovered,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    backOff: { firstMs: 60_000, maxMs: 60_000 },
    laneWidth: () => 4,
    resyncMs: 3_600_000,
  });
  reconciler.takeReconstructed(READ_WHOLE);
  const wishAll = async (): Promise<void> => {
    reconciler.setDesired(wish(handles.map((handle) => wanted(handle, ['web']))));
    await settled();
  };
  await wishAll();
  return {
    ...{ host, reconciler, looks, wishAll },
    say(next: Result<readonly PlaceHolder[]>) {
      answer = next;
    },
    refuse() {
      plugins.fault = (kind) => (kind === 'unpublish' ? REFUSED : undefined);
    },
    async drop() {
      reconciler.setDesired(wish([]));
      await settled();
    },
    published: () => plugins.calls.filter((call) => call.startsWith('publish')),
    unpublished: () => plugins.calls.filter((call) => call.startsWith('unpublish')).length,
    reason: () => reconciler.obstacles().find(({ publication }) => publication !== undefined),
  };
}

test('who still has a volume keeps it, is told, and it goes within seconds of his end', async () => {
  const { host, say, drop, unpublished, reason } = await standing('data');
  say(ok([RUNS]));
  await drop();
  assert.deepEqual([reason()?.kind, reason()?.code], ['waiting-retry', 'volume-held']);
  assert.equal(reason()?.blocker, 'pid 7 (sh) has it at /data in its own mount namespace');
  assert.match(reason()?.message ?? '', /mooring release \S+ --force/);
  await host.advance(300_000);
  assert.equal(unpublished(), 0);
  say(ok([]));
  await host.advance(2_000);
  assert.equal(unpublished(), 1);
});

test('another volume does not get the place of one that somebody still has', async () => {
  const { host, reconciler, say, published, unpublished } = await standing('data');
  say(ok([RUNS]));
  // The PersistentVolume was made anew under its name, with another handle.
  const next = { ...wanted('data', ['web']), spec: { ...csi('other'), specName: 'pv-data' } };
  reconciler.setDesired(wish([next]));
  await settled();
  await host.advance(90_000);
  assert.deepEqual([published().length, unpublished()], [1, 0]);
  const why = reconciler.obstacles().find(({ volume }) => volume === next.spec.id);
  assert.deepEqual([why?.operation, why?.code], ['publish', 'volume-held']);
  assert.match(why?.message ?? '', /the place is that of volume pv-data .*data.* still/);
  const stays = reconciler.obstacles().find(({ volume }) => volume !== next.spec.id);
  assert.match(
    stays?.message ?? '',
    /^the pod does not want this volume any more, and somebody still has it/,
  );
  // An operator's word is about a pod that is not wanted any more.
  assert.doesNotMatch(stays?.message ?? '', /--force/);
  say(ok([]));
  // It is looked again each second, and who waits for the place has it at once.
  await host.advance(1_500);
  assert.deepEqual([published().length, unpublished()], [2, 1]);
});

test('when the whole pod is not wanted any more, the way out is told within seconds', async () => {
  const { host, reconciler, say, drop, reason } = await standing('data');
  say(ok([RUNS]));
  reconciler.setDesired(wish([wanted('other', ['web'])]));
  await settled();
  await host.advance(2_000);
  assert.match(reason()?.message ?? '', /^the pod does not want this volume any more/);
  await drop();
  await host.advance(2_000);
  assert.match(reason()?.message ?? '', /mooring release \S+ --force/);
});

test('the way out that is told means this pod alone, also while another one of its name is wanted', async () => {
  const { host, reconciler, say, drop, reason } = await standing('data');
  say(ok([RUNS]));
  await drop();
  // By namespace and name it is refused from now on: that can mean both.
  const next = wanted('other', ['again']);
  const named = [...next.publications].map(
    ([key, one]) => [key, { ...one, spec: { ...one.spec, pod: { ...one.spec.pod, name: 'web' } } }] as const,
  );
  reconciler.setDesired(wish([{ ...next, publications: new Map(named) }]));
  await host.advance(2_000);
  assert.match(reason()?.message ?? '', /or for "mooring release web --force"$/);
});

test('what is mounted and nobody explains is held as well: a record may be lost while containers run', async () => {
  const layout = createLayout(root);
  const place = reconstructedPublication('web' as PodUid, 'data');
  const found = createReconstructed(new Map());
  const path = layout.volumeDirectory({ id: 'kubernetes.io/iscsi/x' as VolumeId }, place);
  found.place(orphanAt(path), false, place);
  const beside = { recovered: found.all(), holders: [RUNS] };
  const { say, host, unpublished, looks, reason } = await standingBeside(beside);
  await host.advance(2_000);
  assert.deepEqual([unpublished(), looks.at(-1)], [0, [path]]);
  assert.equal(reason()?.code, 'volume-held');
  say(ok([]));
  await host.advance(2_000);
  assert.equal(unpublished(), 1);
});

test('who comes in his place is told', async () => {
  const { host, say, drop, reason } = await standing('data');
  say(ok([RUNS]));
  await drop();
  say(ok([{ ...RUNS, pid: 8, how: 'uses' }]));
  await host.advance(2_000);
  assert.equal(reason()?.blocker, 'pid 8 (sh) uses /data');
});

test('a look that fails says nothing, so the volume stays', async () => {
  const { host, say, drop, unpublished, reason } = await standing('data');
  say(fail({ code: 'deadline-passed', message: 'too many processes', effect: 'none' }));
  await drop();
  assert.deepEqual([unpublished(), reason()?.code], [0, 'deadline-passed']);
  assert.match(reason()?.message ?? '', /cannot be seen, so it stays: too many processes/);
  say(ok([]));
  await host.advance(2_000);
  assert.equal(unpublished(), 1);
});

test('a copy that nobody uses keeps the volume for a minute, and no longer', async () => {
  const { host, say, drop, unpublished, reason } = await standing('data');
  say(ok([{ ...RUNS, how: 'copy' }]));
  await drop();
  assert.match(reason()?.message ?? '', /at most 60 s/);
  await host.advance(COPY_HOLD_MS - 5_000);
  assert.equal(unpublished(), 0);
  await host.advance(10_000);
  assert.equal(unpublished(), 1);
});

test("a runtime's word does not take away what somebody has, and an operator's does", async () => {
  const { say, drop, reconciler, unpublished, looks } = await standing('data');
  const web = 'web' as PodUid;
  say(ok([RUNS]));
  await drop();
  const before = looks.length;
  reconciler.released(web);
  await settled();
  assert.deepEqual([unpublished(), looks.length], [0, before + 1], 'it was looked at once');
  reconciler.forceRelease(web);
  await settled();
  assert.equal(unpublished(), 1);
});

test("an operator's word ends with the pod: when it is wanted again, who has it then keeps it", async () => {
  const { host, say, drop, wishAll, reconciler, refuse, unpublished, reason } = await standing(
    'data',
    'logs',
  );
  refuse();
  await drop();
  reconciler.forceRelease('web' as PodUid);
  await settled();
  const before = unpublished();
  // What was still there when it was wanted again needs no publish.
  await wishAll();
  say(ok([RUNS]));
  await drop();
  await host.advance(600_000);
  assert.deepEqual([unpublished(), reason()?.code], [before, 'volume-held']);
});

test("an operator's word is forgotten when nothing is left of the pod", async () => {
  const { host, say, drop, wishAll, reconciler, unpublished, reason } = await standing('data');
  reconciler.forceRelease('web' as PodUid);
  await drop();
  assert.equal(unpublished(), 1);
  await wishAll();
  say(ok([RUNS]));
  await drop();
  await host.advance(600_000);
  assert.deepEqual([unpublished(), reason()?.code], [1, 'volume-held']);
});

test('that he has ended is told once: a driver that refuses is asked after its back-off (seed 377437373)', async () => {
  const { host, reconciler, say, drop, refuse, unpublished } = await standing('data');
  say(ok([RUNS]));
  await drop();
  refuse();
  const [volume] = [...reconciler.actual().keys()];
  assert.ok(volume !== undefined);
  // What is in quarantine comes down whoever has it, so that nobody asks who it is any more.
  await reconciler.quarantine(volume);
  await settled();
  say(ok([]));
  await host.advance(30_000);
  assert.ok(unpublished() <= 2, `it was asked ${unpublished()} times in half a minute of a back-off of one`);
  await host.advance(60_000);
  assert.ok(unpublished() >= 2, 'and it is asked again');
});

test('a pod that is wanted again keeps what it has, whatever is found', async () => {
  const { host, say, drop, wishAll, unpublished, reason } = await standing('data');
  say(ok([RUNS]));
  await drop();
  await wishAll();
  say(ok([]));
  await host.advance(60_000);
  assert.deepEqual([unpublished(), reason()], [0, undefined]);
});

test('one look is for all that come down at once, and when nobody has anything there is no other', async () => {
  const handles = Array.from({ length: 440 }, (_, index) => `data-${index}`);
  const { host, drop, unpublished, looks } = await standing(...handles);
  await drop();
  await host.advance(10_000);
  assert.equal(unpublished(), 440);
  assert.equal(looks.length, 1);
  assert.equal(looks[0]?.length, 440);
});
