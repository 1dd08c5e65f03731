/** Walks of one tree that take turns: who is not wanted any more waits for nobody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createOwnershipTurns } from '../../../mount/agent-side/ownership-turns.ts';

test('who was cancelled before it began to wait does not wait for the walk before', async () => {
  const turns = createOwnershipTurns();
  const turn = { key: 'directory 1:2', gid: 1, signal: new AbortController().signal, onWaiting: () => {} };
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const first = turns.run(turn, () => ended);
  let settled: unknown = 'it waits';
  const cancelled = turns
    .run({ ...turn, signal: AbortSignal.abort() }, async () => 'it ran')
    .then((ran) => {
      settled = ran;
    });
  await nextTurn();
  const whileTheFirstRuns = settled;
  end();
  await Promise.all([first, cancelled]);
  assert.equal(whileTheFirstRuns, undefined);
  assert.equal(await turns.run(turn, async () => 'the next one ran'), 'the next one ran');
});
