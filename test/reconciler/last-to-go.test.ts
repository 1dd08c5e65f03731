/** AP-12: what an emptyDir holds is gone for good, so it goes when nothing else of its pod can be there any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podVolumeId, type PodUid, publicationKey, type VolumeSpec } from '../../plugins/volume.ts';
import { type ActualVolume, onTheGround, RESTARTED } from '../../reconciler/actual-state.ts';
import type { LayoutFinds } from '../../reconciler/adopt.ts';
import { createBench } from './bench.ts';
import { place, wish } from './world.ts';

const WEB = 'web' as PodUid;
const NO_NEEDS = { attach: false, stage: false, expand: false };
const READ: LayoutFinds = { volumes: [], gone: [], placesRead: true, complete: true, unknown: undefined };

function ofWeb(spec: VolumeSpec, name: string): ActualVolume {
  const key = publicationKey(WEB, name);
  const there = { ...place('web', name), key, specName: name };
  const entry = { spec: there, presence: RESTARTED, generation: undefined, mount: undefined };
  return { ...onTheGround(spec, NO_NEEDS), publications: new Map([[key, entry]]) };
}

const CACHE_ID = podVolumeId('empty-dir', WEB, 'cache');
const CACHE = ofWeb(
  { kind: 'empty-dir', id: CACHE_ID, pod: WEB, name: 'cache', medium: 'memory', sizeLimitBytes: 0 },
  'cache',
);
const KEYS = ofWeb(
  { kind: 'secret', id: podVolumeId('secret', WEB, 'keys'), pod: WEB, name: 'keys' },
  'keys',
);

/** An emptyDir of which a record tells, and whose pod nobody wants. */
async function unwanted(isRead: boolean) {
  const bench = createBench({ recovered: new Map([[CACHE_ID, CACHE]]), isRead });
  bench.reconciler.setDesired(wish([]));
  const after = async (finds?: LayoutFinds): Promise<readonly string[]> => {
    if (finds !== undefined) bench.reconciler.adopt(finds);
    await bench.host.advance(100);
    return bench.plugins.calls.splice(0);
  };
  const reason = () => bench.reconciler.obstacles().find(({ volume }) => volume === CACHE_ID);
  return { ...bench, after, reason };
}

test('an emptyDir waits until the disk was read: of what else its pod has there may be no record', async () => {
  const { after, reason } = await unwanted(false);
  assert.deepEqual(await after(), []);
  assert.deepEqual([reason()?.kind, reason()?.code], ['frozen', 'removed-last']);
  assert.deepEqual(await after({ ...READ, volumes: [KEYS] }), ['unpublish web/keys', 'unpublish web/cache']);
});

test('when the disk was read and nothing else is there, it goes', async () => {
  const { after } = await unwanted(true);
  assert.deepEqual(await after(), ['unpublish web/cache']);
});
