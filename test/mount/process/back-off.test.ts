import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { backOffMs, Retries } from '../../../mount/process/back-off.ts';

test('back-off grows to its cap and never overflows, for any number of failures', () => {
  fc.assert(
    fc.property(fc.nat(100_000), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, chance) => {
      const waitMs = backOffMs(failures, { firstMs: 500, maxMs: 120_000 }, chance);
      assert.ok(waitMs >= (failures === 0 ? 0 : 400) && waitMs <= 144_000);
    }),
  );
  assert.deepEqual(
    [1, 2, 3, 20].map((n) => backOffMs(n, { firstMs: 500, maxMs: 120_000 }, 0.5)),
    [500, 1_000, 2_000, 120_000],
  );
});

test('what is tried again and again waits twice as long each time, and from the beginning once it has worked', () => {
  const retries = new Retries({ firstMs: 800, maxMs: 3_000 });
  assert.deepEqual(
    [1, 2, 3, 4].map(() => retries.nextMs()),
    [800, 1_600, 3_000, 3_000],
  );
  retries.reset();
  assert.equal(retries.nextMs(), 800);
});

test('a share of the wait is waited, and never less than whoever refused asked for', () => {
  const retries = new Retries({ firstMs: 800, maxMs: 3_000 });
  assert.equal(retries.nextMs({ share: 0.5 }), 400);
  assert.equal(retries.nextMs({ share: 0, leastMs: 250 }), 250);
  assert.equal(retries.nextMs({ leastMs: 5_000 }), 5_000);
});
