/** An attachment that says something else of its volume: who has it keeps it, and behind them it is set up anew. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planVolume } from '../../reconciler/model/plan.ts';
import { createBench } from './bench.ts';
import { actual, csi, wanted, wish } from './world.ts';

const { id } = csi('data');
const BEFORE = { lun: '7' };
const AFTER = { lun: '8' };

function said(publishContext: Readonly<Record<string, string>>, pods: readonly string[], uid = 'one') {
  const volume = { ...wanted('data', pods), attachment: { uid, publishContext } };
  return wish([volume], { attachmentUids: new Map([[id, [uid]]]) });
}

function bench() {
  const { host, plugins, reconciler } = createBench();
  plugins.needs = { attach: true, stage: true, expand: false };
  const callsAfter = async (next: ReturnType<typeof wish>): Promise<readonly string[]> => {
    const before = plugins.calls.length;
    reconciler.setDesired(next);
    await host.advance(5_000);
    return plugins.calls.slice(before);
  };
  return { plugins, reconciler, callsAfter };
}

test('a pod that has it keeps it, one that comes waits, and behind the first it is set up anew', async () => {
  const { plugins, reconciler, callsAfter } = bench();
  await callsAfter(said(BEFORE, ['web']));
  assert.deepEqual(await callsAfter(said(AFTER, ['web', 'more'])), []);
  const [obstacle, ...others] = reconciler.obstacles();
  assert.deepEqual(others, []);
  assert.deepEqual([obstacle?.code, obstacle?.blocker], ['volume-in-use', 'default/web']);
  assert.match(obstacle?.message ?? '', /another publish context/);
  assert.doesNotMatch(obstacle?.message ?? '', /lun|7|8/);
  plugins.context = AFTER;
  assert.deepEqual(await callsAfter(said(AFTER, ['more'])), [
    'unpublish web/pv-data',
    'unstage data',
    'detach data',
    'attach data',
    'stage data',
    'publish more/pv-data',
  ]);
  assert.deepEqual(reconciler.actual().get(id)?.publishContext, AFTER);
  assert.deepEqual(reconciler.obstacles(), []);
});

test('in whatever order its entries come it is the same, and of another attachment nothing is compared', async () => {
  const { plugins, callsAfter } = bench();
  plugins.context = { lun: '7', path: 'a' };
  await callsAfter(said({ path: 'a', lun: '7' }, ['web']));
  assert.deepEqual(await callsAfter(said({ path: 'a', lun: '7' }, ['web', 'more'])), [
    'publish more/pv-data',
  ]);
});

test('a way down that has begun goes on: what it begins with puts the attachment in doubt', () => {
  const needs = { attach: true, stage: true, expand: false };
  const known = actual('data', { attached: 'unsure', needs });
  const gate = { ...said(AFTER, ['more']), layoutRead: true, placesRead: true };
  const desired = gate.volumes.get(id);
  const plan = (attachmentUid: string) => {
    const now = { ...known, publishContext: BEFORE, attachmentUid };
    return planVolume({ volume: id, desired, actual: now, needs, gate, quarantine: undefined }).operations;
  };
  assert.deepEqual(plan('one'), [{ kind: 'detach', volume: id }]);
  assert.deepEqual(plan('another'), [{ kind: 'attach', volume: id }]);
});
