import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGathered } from '../../../mount/process/gathered.ts';

const AFTER_MS = 50;

/** A clock whose timers fire when they are told to, and on which nothing takes time but what `pass` says. */
function handClock() {
  const timers = new Set<() => void>();
  const delaysMs: number[] = [];
  let nowMs = 0;
  return {
    delaysMs,
    nowMs: () => nowMs,
    pass(spanMs: number) {
      nowMs += spanMs;
    },
    timer(delayMs: number, fire: () => void) {
      delaysMs.push(delayMs);
      timers.add(fire);
      return () => void timers.delete(fire);
    },
    fireAll(): number {
      const due = [...timers];
      timers.clear();
      for (const fire of due) fire();
      return due.length;
    },
  };
}

test('what is asked for within a moment is done once, and what is asked for after it once more', () => {
  const clock = handClock();
  let done = 0;
  const gathered = createGathered(clock, AFTER_MS, () => {
    done += 1;
  });
  for (let asked = 0; asked < 3; asked += 1) gathered.soon();
  assert.deepEqual([clock.fireAll(), done], [1, 1]);
  gathered.soon();
  assert.deepEqual([clock.fireAll(), done], [1, 2]);
  assert.deepEqual(clock.delaysMs, [AFTER_MS, AFTER_MS]);
});

test('what takes long is done seldom, but within a second, and soon again when it is short', () => {
  const clock = handClock();
  const spansMs = [1, 10, 500, 0];
  const gathered = createGathered(clock, AFTER_MS, () => clock.pass(spansMs.shift() ?? 0));
  for (let asked = 0; asked < 5; asked += 1) {
    gathered.soon();
    clock.fireAll();
  }
  assert.deepEqual(clock.delaysMs, [AFTER_MS, AFTER_MS, 200, 1_000, AFTER_MS]);
});

for (const isAskedBefore of [true, false])
  test(`after the end nothing is done, asked for before: ${isAskedBefore}`, () => {
    const clock = handClock();
    const gathered = createGathered(clock, AFTER_MS, () => assert.fail('it was stopped'));
    if (isAskedBefore) gathered.soon();
    gathered.stop();
    gathered.soon();
    assert.equal(clock.fireAll(), 0);
  });
