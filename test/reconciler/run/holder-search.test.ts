import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Failure, ok, type Result } from '../../../mount/failure.ts';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { createReconciler } from '../../../reconciler/reconciler.ts';
import { createRecordStore } from '../../../reconciler/recovery/record-store.ts';
import { createBenchHost, settled } from '../bench-host.ts';
import { createBenchPlugin } from '../bench-plugin.ts';
import { READ_WHOLE } from '../bench.ts';
import { wanted, wish } from '../world.ts';

const root = parseAbsolutePath('/state') ?? assert.fail();
const busy: Failure = { code: 'driver-failed', message: 'busy', effect: 'unknown', heldAt: '/state/data' };

/** Volumes that are mounted and cannot come down; each search ends when the test says so. */
async function held(...handles: readonly string[]) {
  const host = createBenchHost();
  const searches: ((found: Result<readonly string[]>) => void)[] = [];
  host.findHolders = () => new Promise((resolve) => searches.push(resolve));
  const plugins = createBenchPlugin();
  const told: string[] = [];
  const note = (event: string): unknown => told.push(event);
  const layout = createLayout(root);
  const reconciler = createReconciler({
    host,
    layout,
    plugins,
    records: createRecordStore(host, layout),
    recovered: new Map(),
    log: { debug: note, info: note, warn: note, error: note },
    backOff: { firstMs: 500, maxMs: 500 },
    laneWidth: () => 4,
    resyncMs: 60_000,
  });
  reconciler.takeReconstructed(READ_WHOLE);
  reconciler.setDesired(wish(handles.map((handle) => wanted(handle, ['web']))));
  await settled();
  plugins.fault = (kind, subject) =>
    kind === 'unpublish' ? { ...busy, heldAt: `/state/${subject.replace('/', '-')}` } : undefined;
  reconciler.setDesired(wish([]));
  await settled();
  const reason = () => reconciler.obstacles()[0];
  return { host, plugins, reconciler, searches, told, reason };
}

test('HANG-B: while it is looked for who holds a mount, for ever, a refused call is tried again on time', async () => {
  const { host, plugins, searches, reason } = await held('data');
  const tries = () => plugins.calls.filter((call) => call.startsWith('unpublish')).length;
  assert.deepEqual([tries(), reason()?.kind, reason()?.code], [1, 'waiting-retry', 'driver-failed']);
  await host.advance(10_000);
  assert.ok(tries() > 5, `${tries()} tries`);
  assert.equal(searches.length, 1, 'one search at a time');
});

test('who holds it is added to the reason when it is found, and told in the log once', async () => {
  const { host, searches, told, reason } = await held('data');
  assert.equal(reason()?.blocker, undefined);
  searches[0]?.(ok(['pid 7 (sh)', 'pid 8 (sh)']));
  await settled();
  assert.equal(reason()?.blocker, 'pid 7 (sh), pid 8 (sh)');
  assert.equal(reason()?.message, 'busy');
  await host.advance(600);
  searches[1]?.(ok(['pid 7 (sh), pid 8 (sh)']));
  await settled();
  assert.equal(reason()?.blocker, 'pid 7 (sh), pid 8 (sh)');
  assert.equal(told.filter((event) => event === 'volume held').length, 1);
});

test('what is found when the next try has failed otherwise is not said of that one', async () => {
  const { host, plugins, searches, reason } = await held('data');
  plugins.fault = (kind) =>
    kind === 'unpublish' ? { code: 'driver-busy', message: 'later', effect: 'none' } : undefined;
  await host.advance(600);
  searches[0]?.(ok(['pid 7 (sh)']));
  await settled();
  assert.deepEqual([reason()?.code, reason()?.blocker], ['driver-busy', undefined]);
});

test('searches that hang are two at most, whatever fails', async () => {
  const { host, searches } = await held('a', 'b', 'c', 'd');
  await host.advance(10_000);
  assert.equal(searches.length, 2);
});
