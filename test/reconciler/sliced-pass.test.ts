/** A pass over many volumes is left in the middle: what changes meanwhile counts for those that are planned later. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAbsolutePath } from '../../mount/host.ts';
import { createSlices } from '../../mount/slices.ts';
import { createLayout } from '../../plugins/layout.ts';
import { createReconciler } from '../../reconciler/reconciler.ts';
import { createRecordStore } from '../../reconciler/record.ts';
import { createBenchHost, settled } from './bench-host.ts';
import { createBenchPlugin } from './bench-plugin.ts';
import { place, wanted, wish } from './world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);

/** One volume in each slice. */
function bench() {
  const host = createBenchHost();
  const plugins = createBenchPlugin();
  const reconciler = createReconciler({
    host,
    layout,
    plugins,
    records: createRecordStore(host, layout),
    recovered: new Map(),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    slices: createSlices({ clock: host, piecesMax: 1 }),
    backOff: { firstMs: 500, maxMs: 8_000 },
    laneWidth: () => 4,
    resyncMs: 60_000,
  });
  reconciler.adopt({
    volumes: [],
    gone: [],
    placesRead: true,
    complete: true,
    unknown: undefined,
    unreadPlaces: [],
  });
  return { host, plugins, reconciler };
}

test('the first volume is set up before the last one is planned, and then all are', async () => {
  const { host, plugins, reconciler } = bench();
  reconciler.setDesired(wish(['a', 'b', 'c'].map((name) => wanted(name, ['web']))));
  await settled();
  assert.deepEqual(plugins.calls, ['stage a']);
  assert.equal(reconciler.idle(), false);
  await host.advance(100);
  assert.deepEqual(
    ['a', 'b', 'c'].filter((name) => plugins.world.has(place('web', name).key)),
    ['a', 'b', 'c'],
  );
  assert.deepEqual([reconciler.idle(), reconciler.obstacles()], [true, []]);
});

test('what is not wanted any more when its turn comes is not begun', async () => {
  const { host, plugins, reconciler } = bench();
  reconciler.setDesired(wish(['a', 'b', 'c'].map((name) => wanted(name, ['web']))));
  await settled();
  reconciler.setDesired(wish([wanted('a', ['web']), wanted('c', ['web'])]));
  await host.advance(1);
  assert.deepEqual(
    plugins.calls.filter((one) => one === 'stage b'),
    [],
  );
  assert.deepEqual(
    ['a', 'b', 'c'].filter((name) => plugins.world.has(place('web', name).key)),
    ['a', 'c'],
  );
});

test('a changed wish lifts a back-off though the volume has its turn later', async () => {
  const { host, plugins, reconciler } = bench();
  plugins.fault = () => ({ code: 'driver-refused', message: 'no', effect: 'none' });
  const others = ['a', 'b'].map((name) => wanted(name, ['web']));
  reconciler.setDesired(wish([...others, wanted('c', ['web'])]));
  await host.advance(10);
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([...others, wanted('c', ['web', 'db'])]));
  await host.advance(10);
  assert.deepEqual(
    ['web', 'db'].map((pod) => plugins.world.has(place(pod, 'c').key)),
    [true, true],
  );
  assert.equal(plugins.world.has(place('web', 'a').key), false);
});

test('after a stop nothing more is planned', async () => {
  const { host, plugins, reconciler } = bench();
  reconciler.setDesired(wish(['a', 'b'].map((name) => wanted(name, ['web']))));
  await settled();
  const before = [...plugins.calls];
  void reconciler.stop(0);
  await host.advance(10);
  assert.deepEqual(plugins.calls, before);
});
