import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBench } from './bench.ts';
import { settled } from './bench-host.ts';
import { actual, place, wanted, wish } from './world.ts';

const standing = actual('old', { staged: 'present', pods: { gone: 'present' } });

test('a reconciler that only plans begins nothing, and says what would come next', async () => {
  const recovered = new Map([[standing.spec.id, standing]]);
  const { host, plugins, reconciler } = createBench({ recovered, plansOnly: true });
  const news = wanted('data', ['web']);
  reconciler.setDesired(wish([news]));
  await settled();
  assert.deepEqual(plugins.calls, []);
  assert.equal(host.files.size, 0);
  assert.deepEqual(reconciler.running(), []);
  const { id } = news.spec;
  assert.deepEqual(reconciler.planOf(id).operations, [{ kind: 'stage', volume: id }]);
  const volume = standing.spec.id;
  assert.deepEqual(reconciler.planOf(volume).operations, [
    { kind: 'unpublish', volume, publication: place('gone', 'old').key },
  ]);
});
