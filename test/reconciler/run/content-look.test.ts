import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import { createBench } from '../bench.ts';
import { settled } from '../bench-host.ts';
import { actual, csi, place, wanted, wish } from '../world.ts';

/** As a restart leaves what is proven to be mounted, and of which nobody knows what it holds. */
function restarted(): ActualVolume {
  const volume = actual('data', { staged: 'present', pods: { web: 'present' } });
  const publications = new Map(
    [...volume.publications].map(([key, one]) => [
      key,
      { ...one, generation: undefined, mount: { mountId: 8, device: '7:1' } },
    ]),
  );
  return { ...volume, publications };
}

function bench() {
  const { spec } = restarted();
  const one = createBench({ recovered: new Map([[spec.id, restarted()]]) });
  const seen = () => one.reconciler.actual().get(csi('data').id)?.publications.get(place('web', 'data').key);
  return { ...one, seen };
}

test('files that stand as they are wanted are looked at, and neither written nor noted nor told', async () => {
  const { host, plugins, reconciler, told, seen } = bench();
  let looks = 0;
  plugins.isUpToDate = async ({ mount }) => {
    looks += 1;
    return mount?.mountId === 8;
  };
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  assert.deepEqual([looks, plugins.calls, host.files.size, told], [1, [], 0, []]);
  const { presence, generation, mount } = seen() ?? assert.fail();
  assert.deepEqual([presence.kind, generation, mount?.mountId], ['present', '', 8]);
  assert.deepEqual([reconciler.idle(), reconciler.obstacles()], [true, []]);
  // What is known is not looked at again.
  await host.advance(60_001);
  assert.equal(looks, 1);
});

test('files that do not are written, with a record before', async () => {
  const { host, plugins, reconciler, told, seen } = bench();
  plugins.isUpToDate = async () => false;
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  assert.deepEqual([plugins.calls, host.files.size > 0], [['publish web/pv-data'], true]);
  assert.deepEqual([seen()?.generation, told], ['', ['volume published']]);
});

test('what is not wanted any more when it was looked at is taken down and not written', async () => {
  const { plugins, reconciler } = bench();
  let answer = (_same: boolean): void => {};
  plugins.isUpToDate = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await settled();
  reconciler.setDesired(wish([]));
  await settled();
  assert.deepEqual(plugins.calls, []);
  answer(false);
  await settled();
  assert.deepEqual(plugins.calls, ['unpublish web/pv-data', 'unstage data']);
  assert.equal(reconciler.actual().size, 0);
});
