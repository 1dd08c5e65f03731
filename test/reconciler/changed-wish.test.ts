import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBench } from './bench.ts';
import { place, wanted, wish } from './world.ts';

test('a changed wish lifts the back-off of its volume, and of no other', async () => {
  const { host, plugins, reconciler } = createBench();
  plugins.fault = () => ({ code: 'driver-refused', message: 'no', effect: 'none' });
  const other = wanted('a', ['web']);
  reconciler.setDesired(wish([other, wanted('b', ['web'])]));
  await host.advance(10);
  plugins.fault = () => undefined;
  reconciler.setDesired(wish([other, wanted('b', ['web', 'db'])]));
  await host.advance(10);
  assert.deepEqual(
    ['web', 'db'].map((pod) => plugins.world.has(place(pod, 'b').key)),
    [true, true],
  );
  assert.equal(plugins.world.has(place('web', 'a').key), false);
});

test('what a volume failed of is told again for the next pod, also where that one had to wait', async () => {
  const { host, plugins, reconciler, told } = createBench();
  const failures = () => told.filter((event) => event === 'operation failed').length;
  plugins.fault = () => ({ code: 'driver-refused', message: 'no', effect: 'none' });
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(1_000);
  reconciler.setDesired(wish([]));
  await host.advance(3_600_000);
  assert.equal(failures(), 1);
  const missing = { code: 'reference-missing', message: 'no such Secret', effect: 'none' } as const;
  reconciler.setDesired(wish([wanted('data', ['next'], missing)]));
  await host.advance(1_000);
  reconciler.setDesired(wish([wanted('data', ['next'])]));
  await host.advance(1_000);
  assert.equal(failures(), 2);
});
