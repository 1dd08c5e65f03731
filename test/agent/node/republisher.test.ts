import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CsiDriver, Stamped } from '../../../kubernetes/objects/objects.ts';
import { createRepublisher } from '../../../agent/node/republisher.ts';
import { createUnresolvedBook } from '../../../agent/resolve/unresolved-book.ts';
import type { FailureCode } from '../../../mount/failure.ts';
import type { UnresolvedVolume } from '../../../reconciler/model/desired-state.ts';
import { DB, WEB } from '../status-fixture.ts';

/** A clock that only goes when it is told to. */
function createClock() {
  const timers = new Map<() => void, number>();
  let now = 0;
  return {
    nowMs: () => now,
    timer: (delayMs: number, fire: () => void) => {
      timers.set(fire, now + delayMs);
      return () => timers.delete(fire);
    },
    timers: () => timers.size,
    go(byMs: number) {
      now += byMs;
      for (const [fire, dueMs] of [...timers]) {
        if (dueMs > now) continue;
        timers.delete(fire);
        fire();
      }
    },
  };
}

function wishWith(requiresRepublish: boolean) {
  const driver = { kind: 'CSIDriver', name: 'a.b', requiresRepublish } as unknown as Stamped<CsiDriver>;
  return { drivers: new Map([['a.b', driver]]) };
}

test('a wish without a driver that requires republish arms no timer', () => {
  const clock = createClock();
  const republisher = createRepublisher(clock, 90_000);
  assert.equal(republisher.epochFor(wishWith(false), assert.fail), 0);
  assert.equal(republisher.epochFor({ drivers: new Map() }, assert.fail), 0);
  assert.equal(clock.timers(), 0);
});

test('with one, a new round begins after each interval, whatever the wish does meanwhile', () => {
  const clock = createClock();
  const republisher = createRepublisher(clock, 90_000);
  const epochs: number[] = [];
  const read = (): void => {
    epochs.push(republisher.epochFor(wishWith(true), read));
  };
  read();
  clock.go(60_000);
  read();
  clock.go(30_000);
  clock.go(90_000);
  assert.deepEqual(epochs, [0, 0, 1, 2]);
  assert.equal(clock.timers(), 1);
});

test('the timer goes with the driver, and with the agent', () => {
  const clock = createClock();
  const republisher = createRepublisher(clock, 90_000);
  republisher.epochFor(wishWith(true), assert.fail);
  republisher.epochFor(wishWith(false), assert.fail);
  assert.equal(clock.timers(), 0);
  republisher.epochFor(wishWith(true), assert.fail);
  republisher.stop();
  assert.equal(clock.timers(), 0);
  republisher.epochFor(wishWith(true), assert.fail);
  assert.equal(clock.timers(), 0);
});

test('a volume is unresolved since it was first so for the same reason', () => {
  const clock = createClock();
  const book = createUnresolvedBook(clock);
  const one = (pod: typeof WEB, code: FailureCode, message = ''): UnresolvedVolume => ({
    pod,
    volumeName: 'data',
    failure: { code, message, effect: 'none' },
  });
  book.note([one(WEB, 'reference-missing')]);
  clock.go(1_000);
  book.note([one(WEB, 'reference-missing', 'said otherwise'), one(DB, 'claim-not-bound')]);
  clock.go(1_000);
  assert.equal(book.sinceMs(one(WEB, 'reference-missing')), 0);
  assert.equal(book.sinceMs(one(DB, 'claim-not-bound')), 1_000);
  book.note([one(WEB, 'claim-mismatch')]);
  assert.equal(book.sinceMs(one(WEB, 'claim-mismatch')), 2_000);
  clock.go(1_000);
  book.note([one(WEB, 'claim-mismatch'), one(DB, 'claim-not-bound')]);
  assert.equal(book.sinceMs(one(DB, 'claim-not-bound')), 3_000);
});
