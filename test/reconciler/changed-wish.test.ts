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
