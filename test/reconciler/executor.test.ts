import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { VolumeId } from '../../plugins/volume.ts';
import type { Outcome } from '../../reconciler/actual-state.ts';
import { backOffMs } from '../../reconciler/back-off.ts';
import { createExecutor, type Finished } from '../../reconciler/executor.ts';
import { createObstacleBook } from '../../reconciler/obstacle-book.ts';
import { tellInFlight } from '../../reconciler/in-flight-text.ts';
import { conflicts, type Operation } from '../../reconciler/operation.ts';
import { createBenchHost, settled } from './bench-host.ts';
import { place } from './world.ts';

const volume = 'data' as VolumeId;
const stage: Operation = { kind: 'stage', volume };
const publish = (pod: string): Operation => ({
  kind: 'publish',
  volume,
  publication: place(pod, 'data').key,
});

function bench(outcomeOf: (operation: Operation) => Outcome | Promise<Outcome>, width = 4) {
  const host = createBenchHost();
  const finished: Finished[] = [];
  const retried: VolumeId[] = [];
  const executor = createExecutor({
    clock: host,
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneOf: ({ volume: id }) => (id.startsWith('slow') ? 'slow' : 'fast'),
    laneWidth: () => width,
    isStillWanted: () => true,
    perform: async (operation) => outcomeOf(operation),
    onFinished: (one) => finished.push(one),
    onStep: () => {},
    onRetry: (id) => retried.push(id),
  });
  return { host, executor, finished, retried };
}

const done: Outcome = { kind: 'done', learnt: {} };
const failed: Outcome = {
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

test('a hung lane does not hold another lane (S0-1)', async () => {
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

test('a failure backs its key off, the way down stays free, and the timer asks for a retry', async () => {
  const { host, executor, retried } = bench(() => failed);
  executor.submit(stage);
  await settled();
  assert.equal(executor.submit(stage).kind, 'backing-off');
  assert.equal(executor.submit({ kind: 'unstage', volume }).kind, 'started');
  await host.advance(501);
  assert.ok(retried.includes(volume));
  assert.equal(executor.submit(stage).kind, 'started');
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

test('forgiveness forgets the back-off', async () => {
  const { executor } = bench(() => failed);
  executor.submit(stage);
  await settled();
  executor.forgive(volume);
  assert.equal(executor.submit(stage).kind, 'started');
});

test('back-off grows to its cap and never overflows, for any number of failures', () => {
  fc.assert(
    fc.property(fc.nat(100_000), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, chance) => {
      const waitMs = backOffMs(failures, { firstMs: 500, maxMs: 120_000 }, chance);
      assert.ok(waitMs >= (failures === 0 ? 0 : 400) && waitMs <= 144_000);
    }),
  );
  assert.deepEqual(
    [1, 2, 3, 20].map((n) => backOffMs(n, { firstMs: 500, maxMs: 120_000 }, 0.5)),
    [500, 1_000, 2_000, 120_000],
  );
});

test('what failed for good, but was forgiven while it ran, is tried again: the cause may be gone already', async () => {
  for (const forgiven of [false, true]) {
    const ended: { now?: (outcome: Outcome) => void } = {};
    const { host, executor, retried } = bench(() => {
      return new Promise((resolve) => {
        ended.now = resolve;
      });
    });
    executor.submit(stage);
    await settled();
    if (forgiven) executor.forgive(volume);
    ended.now?.({ kind: 'failed', failure: { code: 'driver-unimplemented', message: '', effect: 'none' } });
    await settled();
    await host.advance(10_000);
    assert.deepEqual(retried, forgiven ? [volume] : []);
  }
});
