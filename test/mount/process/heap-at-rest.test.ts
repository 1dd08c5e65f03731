import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { collectAtRest } from '../../../mount/process/heap-at-rest.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';

const MODULE = new URL('../../../mount/process/heap-at-rest.ts', import.meta.url).href;
const MB = 1_048_576;

function heap() {
  const clock = handClock();
  const listeners = new Set<() => void>();
  const seen = { usedBytes: 100 * MB, collections: 0, isIdle: true };
  const cancel = collectAtRest({
    clock,
    work: {
      onChange(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
    isIdle: () => seen.isIdle,
    usedBytes: () => seen.usedBytes,
    collect() {
      seen.collections += 1;
      seen.usedBytes = 20 * MB;
    },
  });
  return {
    clock,
    seen,
    cancel,
    change() {
      for (const listener of listeners) listener();
    },
    listeners: () => listeners.size,
  };
}

test('what a burst of work left is collected, twice, when nothing has happened for a while', async () => {
  const { clock, seen, change } = heap();
  change();
  await clock.go(600);
  change();
  await clock.go(900);
  assert.equal(seen.collections, 0, 'something happened less than a second ago');
  await clock.go(10_000);
  assert.equal(seen.collections, 2);
});

test('nothing is collected while there is something to do', async () => {
  const { clock, seen, change } = heap();
  seen.isIdle = false;
  change();
  await clock.go(60_000);
  assert.equal(seen.collections, 0);
  seen.isIdle = true;
  await clock.go(10_000);
  assert.equal(seen.collections, 2);
});

test('nothing is collected where nothing happens, nor for what little work leaves', async () => {
  const { clock, seen, change } = heap();
  await clock.go(600_000);
  assert.equal(seen.collections, 0);
  change();
  await clock.go(10_000);
  seen.usedBytes += 9 * MB;
  change();
  await clock.go(10_000);
  assert.equal(seen.collections, 2, 'less than half of what there is to keep');
  seen.usedBytes += 9 * MB;
  change();
  await clock.go(10_000);
  assert.equal(seen.collections, 4);
});

test('after the end nothing is collected', async () => {
  const { clock, seen, change, cancel, listeners } = heap();
  change();
  await clock.go(1_000);
  assert.equal(seen.collections, 1);
  cancel();
  await clock.go(60_000);
  assert.deepEqual([seen.collections, listeners()], [1, 0]);
});

test('what was garbage is given back to the machine', () => {
  const text = `import { collectAtRest } from ${JSON.stringify(MODULE)};
    const timers = [];
    let change;
    let nowMs = 0;
    collectAtRest({
      clock: { nowMs: () => nowMs, timer: (_, fire) => { timers.push(fire); return () => {}; } },
      work: { onChange: (listener) => { change = listener; return () => {}; } },
      isIdle: () => true,
    });
    let made = [];
    for (let index = 0; index < 400_000; index += 1) made.push({ index, more: { index } });
    made = undefined;
    const before = process.memoryUsage().heapTotal;
    change();
    for (nowMs = 10_000; timers.length > 0; ) {
      timers.shift()();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    process.stdout.write(String((before - process.memoryUsage().heapTotal) / 1e6));`;
  const argv = ['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', text];
  const givenBackMb = Number(execFileSync(process.execPath, argv, { encoding: 'utf8' }));
  assert.ok(givenBackMb > 15, `${givenBackMb} MB`);
});
