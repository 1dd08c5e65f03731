import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallReport } from '../../../plugins/step.ts';
import type { VolumeId } from '../../../plugins/volume.ts';
import type { VolumeOutcome } from '../../../reconciler/model/actual-state.ts';
import { createVolumeExecutor, type VolumeFinished } from '../../../reconciler/run/volume-operation.ts';
import { createObstacleBook } from '../../../reconciler/run/obstacle-book.ts';
import { tellInFlight } from '../../../reconciler/run/in-flight-text.ts';
import { conflicts, type Operation } from '../../../reconciler/model/operation.ts';
import { createBenchHost, settled } from '../bench-host.ts';
import { place } from '../world.ts';

const volume = 'data' as VolumeId;
const stage: Operation = { kind: 'stage', volume };
const publish = (pod: string): Operation => ({
  kind: 'publish',
  volume,
  publication: place(pod, 'data').key,
});

type Perform = (operation: Operation, report: CallReport) => VolumeOutcome | Promise<VolumeOutcome>;

function bench(outcomeOf: Perform, width = 4) {
  const host = createBenchHost();
  const finished: VolumeFinished[] = [];
  const retried: VolumeId[] = [];
  const executor = createVolumeExecutor({
    clock: host,
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneOf: ({ volume: id }) => (id.startsWith('slow') ? 'slow' : 'fast'),
    laneWidth: () => width,
    isStillWanted: () => true,
    perform: async (operation, report) => outcomeOf(operation, report),
    onFinished: (one) => finished.push(one),
    onStep: () => {},
    onRetry: (id) => retried.push(id),
  });
  return { host, executor, finished, retried };
}

const done: VolumeOutcome = { kind: 'done', learnt: {} };
const failed: VolumeOutcome = {
  kind: 'failed',
  failure: { code: 'driver-failed', message: '', effect: 'unknown' },
};

test('two operations conflict when they share the volume and not two different places of it', () => {
  assert.ok(conflicts(stage, publish('a')));
  assert.ok(conflicts(publish('a'), publish('a')));
  assert.ok(!conflicts(publish('a'), publish('b')));
  assert.ok(!conflicts(stage, { kind: 'stage', volume: 'other' as VolumeId }));
});

test('a conflicting operation is refused as busy while the first one runs', async () => {
  const { executor } = bench(() => new Promise(() => {}));
  assert.equal(executor.submit(stage).kind, 'started');
  await settled();
  const { kind, ...rest } = executor.submit(publish('a'));
  assert.deepEqual([kind, 'with' in rest && rest.with], ['busy', stage]);
});

test('one that has failed and waits behind another now tells what it ran into', async () => {
  const { host, executor } = bench(({ kind }) => (kind === 'publish' ? failed : new Promise(() => {})));
  executor.submit(publish('a'));
  await settled();
  executor.submit(stage);
  const submission = executor.submit(publish('a'));
  assert.ok(submission.kind === 'busy');
  const book = createObstacleBook(host, (one) => tellInFlight(one, host.nowMs(), 30_000));
  book.replace(volume, [{ from: 'executor', operation: publish('a'), submission }]);
  const [waiting] = book.list([]);
  assert.deepEqual(
    [waiting?.kind, waiting?.attempts, waiting?.lastFailure?.code],
    ['waiting-turn', 1, 'driver-failed'],
  );
});

test('INV-28: a hung lane does not hold another lane', async () => {
  const { executor, finished } = bench(
    ({ volume: id }) => (id.startsWith('slow') ? new Promise(() => {}) : done),
    1,
  );
  executor.submit({ kind: 'stage', volume: 'slow-1' as VolumeId });
  executor.submit({ kind: 'stage', volume: 'slow-2' as VolumeId });
  executor.submit(stage);
  await settled();
  assert.deepEqual(
    finished.map(({ operation }) => operation.volume),
    ['data'],
  );
});

/** `hung` looks at what hangs, `slow` waits for its driver; everything else is done at once. */
function lendingBench(onHung: (report: CallReport) => void = () => {}, width = 1) {
  const ends = new Map<string, () => void>();
  const { host, executor } = bench(({ volume: id }, report) => {
    if (id === 'other') return done;
    if (id === 'slow') report.step({ kind: 'called', rpc: 'NodeStageVolume', deadlineMs: 120_000 });
    else onHung(report);
    return new Promise((resolve) => ends.set(id, () => resolve(done)));
  }, width);
  const submit = (id: string) => executor.submit({ kind: 'stage', volume: id as VolumeId }).kind;
  const lendAfter = async (ms: number): Promise<void> => {
    await host.advance(ms);
    executor.lendTurns();
    await settled();
  };
  const inFlight = () => executor.inFlight().map(({ operation: { volume: id }, phase }) => `${id} ${phase}`);
  return { submit, lendAfter, inFlight, ends };
}

test('issue 7, 12: one that hangs in a look of ours for a minute lends its turn, and keeps its key', async () => {
  const { submit, lendAfter, inFlight, ends } = lendingBench();
  submit('hung');
  submit('other');
  await lendAfter(59_000);
  assert.deepEqual(inFlight(), ['hung running', 'other queued']);
  await lendAfter(1_000);
  assert.deepEqual(inFlight(), ['hung running']);
  assert.equal(submit('hung'), 'busy');
  ends.get('hung')?.();
  await settled();
  assert.deepEqual([submit('again'), submit('more')], ['started', 'started']);
  await settled();
  assert.deepEqual(inFlight(), ['again running', 'more queued'], 'it was lent, not given');
});

test('a call of a driver lends its turn to nobody, nor does a walk that goes on', async () => {
  const waiting = lendingBench();
  waiting.submit('slow');
  waiting.submit('slower');
  await waiting.lendAfter(100_000);
  assert.deepEqual(waiting.inFlight(), ['slow running', 'slower queued']);
  const reports: CallReport[] = [];
  const { submit, lendAfter, inFlight } = lendingBench((report) => reports.push(report));
  submit('walked');
  submit('other');
  await settled();
  for (const seen of [1, 2, 3]) {
    reports[0]?.progress(`${seen} entries seen`);
    await lendAfter(40_000);
  }
  assert.deepEqual(inFlight(), ['walked running', 'other queued']);
  reports[0]?.progress('3 entries seen');
  await lendAfter(20_000);
  assert.deepEqual(inFlight(), ['walked running'], 'the same words again are no sign of life');
});

test('issue 7, 12: one that waits behind another call of its volume for a minute lends its turn', async () => {
  const reports: CallReport[] = [];
  const { submit, lendAfter, inFlight, ends } = lendingBench((report) => reports.push(report), 2);
  for (const id of ['called', 'behind', 'other']) submit(id);
  await settled();
  const call = { kind: 'called', rpc: 'NodePublishVolume', deadlineMs: 120_000 } as const;
  reports[0]?.step(call);
  reports[1]?.step({ kind: 'queued', behind: 'NodePublishVolume, and 1 more that wait' });
  await lendAfter(40_000);
  reports[1]?.step({ kind: 'queued', behind: 'NodePublishVolume' });
  await lendAfter(19_000);
  assert.deepEqual(inFlight(), ['called running', 'behind running', 'other queued']);
  await lendAfter(1_000);
  const left = ['called running', 'behind running'];
  assert.deepEqual(inFlight(), left, 'that another one comes first by now is no sign of life');
  reports[1]?.step(call);
  ends.get('called')?.();
  await settled();
  for (const id of ['next', 'more']) submit(id);
  await settled();
  const now = ['behind running', 'next running', 'more queued'];
  assert.deepEqual(inFlight(), now, 'it was lent, not given');
});

test('INV-30: a failure backs its key off, the way down stays free, and the timer asks for a retry', async () => {
  const { host, executor, retried } = bench(() => failed);
  executor.submit(stage);
  await settled();
  assert.equal(executor.submit(stage).kind, 'backing-off');
  assert.equal(executor.submit({ kind: 'unstage', volume }).kind, 'started');
  await host.advance(501);
  assert.ok(retried.includes(volume));
  assert.equal(executor.submit(stage).kind, 'started');
});

test('a detach that waits for a change keeps no unstage of what came late, and does not end with it', async () => {
  const refused = { code: 'driver-unimplemented', message: '', effect: 'none' } as const;
  const { executor } = bench(({ kind }) => (kind === 'detach' ? { kind: 'failed', failure: refused } : done));
  executor.submit({ kind: 'detach', volume });
  await settled();
  assert.equal(executor.submit({ kind: 'detach', volume }).kind, 'backing-off');
  assert.equal(executor.submit({ kind: 'unstage', volume }).kind, 'started');
  await settled();
  assert.equal(executor.submit({ kind: 'detach', volume }).kind, 'backing-off');
});

const UNDONE: readonly (readonly [failed: Operation, done: Operation])[] = [
  [
    { kind: 'detach', volume },
    { kind: 'attach', volume },
  ],
  [{ kind: 'unstage', volume }, stage],
  [{ kind: 'unpublish', volume, publication: place('a', 'data').key }, publish('a')],
  [
    { kind: 'detach', volume },
    { kind: 'unstage', volume },
  ],
];

for (const [down, other] of UNDONE)
  test(`what failed of the last ${down.kind} is over with the next ${other.kind}`, async () => {
    const { executor } = bench(({ kind }) => (kind === down.kind ? failed : done));
    executor.submit(down);
    await settled();
    assert.equal(executor.submit(down).kind, 'backing-off');
    executor.submit(other);
    await settled();
    assert.equal(executor.submit(down).kind, 'started');
    await settled();
    const submission = executor.submit(down);
    assert.equal(submission.kind === 'backing-off' && submission.attempts, 1);
  });

test('a timer that fires a little early is still a retry: clock and timer do not agree to the tenth', async () => {
  const { host, executor, retried } = bench(() => failed);
  executor.submit(stage);
  await settled();
  host.earlyMs = 0.1;
  await host.advance(499.95);
  assert.deepEqual(retried, [volume]);
  assert.equal(executor.submit(stage).kind, 'started');
});

test('a reset forgets the back-off', async () => {
  const { executor } = bench(() => failed);
  executor.submit(stage);
  await settled();
  executor.resetBackOff(volume);
  assert.equal(executor.submit(stage).kind, 'started');
});

test('what failed for good, but was reset while it ran, is tried again: the cause may be gone already', async () => {
  for (const wasReset of [false, true]) {
    const ended: { now?: (outcome: VolumeOutcome) => void } = {};
    const { host, executor, retried } = bench(() => {
      return new Promise((resolve) => {
        ended.now = resolve;
      });
    });
    executor.submit(stage);
    await settled();
    if (wasReset) executor.resetBackOff(volume);
    ended.now?.({ kind: 'failed', failure: { code: 'driver-unimplemented', message: '', effect: 'none' } });
    await settled();
    await host.advance(10_000);
    assert.deepEqual(retried, wasReset ? [volume] : []);
  }
});
