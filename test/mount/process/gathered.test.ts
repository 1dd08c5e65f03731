import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGathered } from '../../../mount/process/gathered.ts';

const AFTER_MS = 50;

/** A clock whose timers fire when they are told to. */
function handClock() {
  const timers = new Set<() => void>();
  return {
    timer(delayMs: number, fire: () => void) {
      assert.equal(delayMs, AFTER_MS);
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
