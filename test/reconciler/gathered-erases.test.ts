/** Records erased in a journal: nobody waits for it but who asks whether all is done, and who ends the agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRecords } from '../../reconciler/journal/record-forms.ts';
import { value } from '../value.ts';
import { createBench, layout } from './bench.ts';
import { settled } from './bench-host.ts';
import { wanted, wish } from './world.ts';

async function takenDown() {
  const bench = createBench({ form: 'journal' });
  const { host, records, reconciler, plugins } = bench;
  assert.ok((await records.load()).ok && (await records.takeOver()).ok);
  const found = async (): Promise<number> => {
    const next = createRecords({ form: 'journal', host, layout, log: { warn: () => {} } });
    return value(await next.load()).records.length;
  };
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(1_000);
  assert.deepEqual([reconciler.idle(), await found()], [true, 1]);
  reconciler.setDesired(wish([]));
  for (let turn = 0; turn < 10; turn += 1) await settled();
  assert.equal(plugins.world.size, 0);
  return { ...bench, found };
}

test('an operation does not wait for its erase, and the node is idle only when that is written', async () => {
  const { host, reconciler, found } = await takenDown();
  assert.deepEqual([reconciler.running().length, reconciler.actual().size], [0, 0]);
  assert.deepEqual([reconciler.idle(), await found()], [false, 1]);
  let changes = 0;
  reconciler.onChange(() => {
    changes += 1;
  });
  await host.advance(50);
  assert.deepEqual([reconciler.idle(), await found()], [true, 0]);
  assert.ok(changes > 0, 'who waits for it is told');
});

test('an agent that is stopped waits until what it has taken down is erased', async () => {
  const { host, reconciler, found } = await takenDown();
  let hasStopped = false;
  const stopped = reconciler.stop(5_000).then(() => {
    hasStopped = true;
  });
  await settled();
  assert.deepEqual([hasStopped, await found()], [false, 1]);
  await host.advance(50);
  assert.deepEqual([hasStopped, await found()], [true, 0]);
  await stopped;
});
