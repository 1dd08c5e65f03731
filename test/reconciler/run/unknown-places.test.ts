/** What keeps a dead file system mounted where nobody is known to have set it up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deathFailure } from '../../../plugins/guard/dead-file-system.ts';
import { stagingPathOf } from '../../../plugins/kinds/volume-questions.ts';
import { createBench, layout, mountAt } from '../bench.ts';
import { csi, place, wanted, wish } from '../world.ts';

const HOUR_MS = 3_600_000;

test('a file system that is made anew in vain is given back where it is mounted unknown to any record', async () => {
  const { host, plugins, reconciler } = createBench({ resyncMs: 1_000 });
  const volume = csi('data');
  const [target, other] = ['web', 'other'].map((pod) => layout.mountPoint(volume, place(pod, 'data')));
  const staging = stagingPathOf(volume, layout);
  assert.ok(target !== undefined && other !== undefined && staging !== undefined);
  const dead = deathFailure(staging, 'input-output', 'unknown', '7:1');
  // It lives on in the mount of a call of which every record was lost; the driver's unpublish takes that off.
  host.entries.push(mountAt(target));
  plugins.fault = (kind) => {
    if (kind === 'unpublish') host.entries.splice(0, 1, mountAt(staging, 7), mountAt(target), mountAt(other));
    return kind === 'stage' && host.entries.length === 1 ? dead : undefined;
  };
  reconciler.setDesired(wish([wanted('data', ['web', 'other'])]));
  await host.advance(HOUR_MS);
  const ways = plugins.calls.filter((call) => call.startsWith('unpublish') || call.startsWith('publish'));
  assert.deepEqual(ways, ['unpublish web/pv-data', 'publish web/pv-data', 'publish other/pv-data']);
  assert.deepEqual(reconciler.obstacles(), []);
  await reconciler.stop(0);
});

for (const fsType of ['tmpfs', 'ext4'])
  test(`${fsType} of somebody where a pod is to have a dead file system keeps no other pod from it`, async () => {
    const { host, plugins, reconciler } = createBench({ resyncMs: 1_000 });
    const target = layout.mountPoint(csi('data'), place('web', 'data'));
    const dead = deathFailure(target, 'input-output', 'unknown', '7:1');
    const theirs = { ...mountAt(target), device: '0:44', fsType };
    host.entries.push(theirs);
    let lives = 0;
    plugins.fault = (kind, subject) => {
      if (kind === 'stage') lives += 1;
      if (kind === 'stage' && lives < 9) return dead;
      const isTheirs = subject.startsWith('web') && (kind === 'publish' || kind === 'unpublish');
      return isTheirs ? { code: 'mount-foreign', message: 'a stranger', effect: 'none' } : undefined;
    };
    reconciler.setDesired(wish([wanted('data', ['web', 'other'])]));
    await host.advance(60_000);
    assert.ok(plugins.world.has('other/pv-data'), [...plugins.world].join());
    assert.deepEqual(host.entries, [theirs]);
    await reconciler.stop(0);
  });

test('before the places in the pods are read nothing is taken from a pod that may have it (RC-18)', async () => {
  const { host, plugins, reconciler } = createBench({ resyncMs: 1_000, isRead: false });
  const target = layout.mountPoint(csi('data'), place('web', 'data'));
  const dead = deathFailure(target, 'input-output', 'unknown', '7:1');
  host.entries.push(mountAt(target));
  plugins.fault = (kind) => (kind === 'stage' ? dead : undefined);
  reconciler.setDesired(wish([wanted('data', ['web'])]));
  await host.advance(60_000);
  assert.deepEqual(
    plugins.calls.filter((call) => call.startsWith('unpublish')),
    [],
  );
  await reconciler.stop(0);
});
