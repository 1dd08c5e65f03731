/** A large wish is read in slices: what is asked meanwhile is answered meanwhile, and nothing sees half of a wish. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { getFromAgent } from '../../../agent/cli/api-client.ts';
import { createApiServer } from '../../../agent/api/api-server.ts';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import { statusOf } from '../../../agent/status/status.ts';
import type { DesiredObjects } from '../../../agent/source/desired-objects.ts';
import { createDesiredObjectsReader } from '../../../agent/node/desired-objects-reader.ts';
import { createSlices } from '../../../mount/process/slices.ts';
import { type ActualVolume, onTheGround } from '../../../reconciler/model/actual-state.ts';
import type { DesiredState } from '../../../reconciler/model/desired-state.ts';
import { csi } from '../../reconciler/world.ts';
import { STAND_ALONE } from '../desired.ts';
import { podYaml, wishOf } from '../manifests.ts';
import { LAYOUT, NO_MANIFESTS, path, richFacts } from '../status-fixture.ts';
import { CLOCK } from '../../../agent/drive/rig/machine.ts';

function wishOfPods(count: number): DesiredObjects {
  const pods = Array.from({ length: count }, (_, index) => podYaml(`p${index}`, { tmp: 'emptyDir: {}' }));
  return wishOf({ 'all.yaml': pods.join('---\n') });
}

interface Bench {
  readonly reader: ReturnType<typeof createDesiredObjectsReader>;
  /** What was taken over, in order. */
  readonly taken: {
    wish: DesiredObjects;
    desired: DesiredState;
    found: readonly ActualVolume[];
    current: DesiredObjects;
  }[];
  want(wish: DesiredObjects): void;
}

function bench(wish: DesiredObjects, onTaken: () => void = () => {}): Bench {
  let newest = wish;
  const taken: Bench['taken'] = [];
  const reader = createDesiredObjectsReader({
    clock: CLOCK,
    slices: createSlices({ clock: CLOCK, piecesMax: 4 }),
    newest: () => newest,
    desire: (one) => desire(one, STAND_ALONE),
    take: (one, desired, found) => {
      taken.push({ wish: one, desired, found, current: reader.current() });
      onTaken();
    },
  });
  return { reader, taken, want: (next) => (newest = next) };
}

test('the status socket answers while a large wish is being read', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mooring-reader-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const socket = join(folder, 's.sock');
  const events: string[] = [];
  const { reader, taken } = bench(wishOfPods(900), () => events.push('taken'));
  const { desired } = richFacts();
  const server = createApiServer({
    socket: path(socket),
    watch: () => () => {},
    status: (revision) => statusOf(richFacts(), LAYOUT, revision),
    quarantine: {
      quarantine: async () => assert.fail('nobody asked for it'),
      endQuarantine: async () => assert.fail('nobody asked for it'),
      actual: () => new Map(),
      desired: () => desired,
    },
    mounts: () => undefined,
    releases: { released: () => {}, forceRelease: () => {} },
    manifests: NO_MANIFESTS,
    metrics: () => '',
    onChange: () => () => {},
    clock: CLOCK,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    runtime: 'test',
    healthy: async () => true,
    instance: 'test',
  });
  assert.ok((await server.listen()).ok);
  t.after(() => server.close());
  reader.read();
  const answer = await getFromAgent({ socket, path: '/v1/status', kind: 'Status', timeoutMs: 60_000 });
  events.push(answer.kind);
  await reader.settled();
  assert.deepEqual(events, ['ok', 'taken']);
  assert.equal(taken[0]?.desired.volumes.size, 900);
});

test('what is desired is of one wish: a newer one is read after it, and not seen before', async () => {
  const [first, second] = [wishOfPods(40), wishOfPods(60)];
  const { reader, taken, want } = bench(first);
  reader.read();
  assert.equal(reader.current().pods.size, 0);
  want(second);
  reader.read();
  await reader.settled();
  assert.deepEqual(
    taken.map(({ wish, desired }) => [wish === first, wish === second, desired.volumes.size]),
    [
      [true, false, 40],
      [false, true, 60],
    ],
  );
  assert.deepEqual(
    taken.map(({ wish, current }) => wish === current),
    [true, true],
  );
});

test('what was found joins in the turn in which the wish is taken that was read with it, and once', async () => {
  const events: string[] = [];
  const { reader, taken } = bench(wishOfPods(40), () => events.push('taken'));
  const found = [onTheGround(csi('data'), { attach: false, stage: false, expand: false })];
  reader.read();
  reader.read({ found, join: () => events.push('joined') });
  await reader.settled();
  assert.deepEqual(events, ['taken', 'taken', 'joined']);
  assert.deepEqual(
    taken.map((one) => one.found),
    [[], found],
  );
});

test('a burst of changes is read at a pace, and at once where it is whole or somebody joins', () => {
  const timers = new Set<() => void>();
  let nowMs = 0;
  const clock = {
    nowMs: () => nowMs,
    timer: (delayMs: number, fire: () => void) => {
      assert.ok(delayMs > 0 && delayMs <= 1_000, `${delayMs} ms`);
      timers.add(fire);
      return () => timers.delete(fire);
    },
  };
  const part: DesiredObjects = { ...wishOfPods(1), complete: false };
  let newest = part;
  const taken: DesiredObjects[] = [];
  const reader = createDesiredObjectsReader({
    clock,
    slices: createSlices({ clock: CLOCK }),
    newest: () => newest,
    *desire(one) {
      nowMs += 100;
      return yield* desire(one, STAND_ALONE);
    },
    take: (one) => taken.push(one),
  });
  reader.read();
  assert.equal(taken.length, 1);
  reader.read();
  reader.read();
  assert.deepEqual([taken.length, timers.size], [1, 1], 'it waits');
  let hasJoined = false;
  reader.read({ found: [], join: () => (hasJoined = true) });
  assert.deepEqual([taken.length, timers.size, hasJoined], [2, 0, true]);
  newest = { ...part, complete: true };
  reader.read();
  assert.deepEqual([taken.length, timers.size], [3, 0], 'the whole is not waited for');
  newest = { ...newest };
  reader.read();
  assert.deepEqual([taken.length, timers.size], [3, 1]);
  for (const fire of timers) fire();
  assert.equal(taken.at(-1), newest);
  nowMs += 10_000;
  reader.read();
  assert.equal(taken.length, 5, 'who was quiet waits for nobody');
});
