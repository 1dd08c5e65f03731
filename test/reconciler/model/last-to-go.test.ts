/** AP-12: what an emptyDir holds is gone for good, so it goes when nothing else of its pod can be there any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../../mount/failure.ts';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import {
  podVolumeId,
  type PodUid,
  publicationKey,
  type VolumeId,
  type VolumeSpec,
} from '../../../plugins/volume.ts';
import { type ActualVolume, onTheGround, RESTARTED } from '../../../reconciler/model/actual-state.ts';
import type { Reconstruction } from '../../../reconciler/recovery/reconstruct.ts';
import { createBench, layout, READ_WHOLE } from '../bench.ts';
import { place, wanted, wish } from '../world.ts';

const WEB = 'web' as PodUid;
const NO_NEEDS = { attach: false, stage: false, expand: false };

function ofWeb(spec: VolumeSpec, name: string): ActualVolume {
  const key = publicationKey(WEB, name);
  const there = { ...place('web', name), key, specName: name };
  const entry = { spec: there, presence: RESTARTED, generation: undefined, mount: undefined };
  return { ...onTheGround(spec, NO_NEEDS), publications: new Map([[key, entry]]) };
}

const REFUSED: Failure = { code: 'driver-refused', message: 'no', effect: 'none' };
const BUSY: Failure = { code: 'mount-busy', message: 'busy', effect: 'none' };
const CACHE_ID = podVolumeId('kubernetes.io/empty-dir', WEB, 'cache');
const CACHE = ofWeb(
  { kind: 'empty-dir', id: CACHE_ID, pod: WEB, name: 'cache', medium: 'memory', sizeLimitBytes: 0 },
  'cache',
);
const KEYS = ofWeb(
  { kind: 'secret', id: podVolumeId('kubernetes.io/secret', WEB, 'keys'), pod: WEB, name: 'keys' },
  'keys',
);

/** An emptyDir of which a record tells, and whose pod nobody wants. */
async function unwanted(isRead: boolean) {
  const bench = createBench({ recovered: new Map([[CACHE_ID, CACHE]]), isRead });
  bench.reconciler.setDesired(wish([]));
  const after = async (finds?: Reconstruction, ms = 100): Promise<readonly string[]> => {
    if (finds !== undefined) bench.reconciler.takeReconstructed(finds);
    await bench.host.advance(ms);
    return bench.plugins.calls.splice(0);
  };
  const reason = () => bench.reconciler.obstacles().find(({ volume }) => volume === CACHE_ID);
  return { ...bench, after, reason };
}

test('an emptyDir waits until the disk was read: of what else its pod has there may be no record', async () => {
  const { after, reason } = await unwanted(false);
  assert.deepEqual(await after(), []);
  assert.deepEqual([reason()?.kind, reason()?.code], ['frozen', 'removed-last']);
  assert.deepEqual(await after({ ...READ_WHOLE, volumes: [KEYS] }), [
    'unpublish web/keys',
    'unpublish web/cache',
  ]);
});

test('when the disk was read and nothing else is there, it goes', async () => {
  const { after } = await unwanted(true);
  assert.deepEqual(await after(), ['unpublish web/cache']);
});

test('when the publish that it waited for ends with nothing there, it goes at once', async () => {
  const { reconciler, plugins, host } = createBench({ recovered: new Map([[CACHE_ID, CACHE]]) });
  let answer = (): void => {};
  const [key, { spec: there }] = [...CACHE.publications][0] ?? assert.fail();
  const publications = new Map([[key, { spec: there, generation: '', files: undefined, tokens: undefined }]]);
  const cache = { ...wanted('data', ['web']), spec: CACHE.spec, publications };
  reconciler.setDesired(wish([cache, wanted('data', ['other'])]));
  await host.advance(100);
  plugins.gate = new Promise<void>((resolve) => {
    answer = resolve;
  });
  reconciler.setDesired(wish([cache, wanted('data', ['other', 'web'])]));
  await host.advance(100);
  plugins.calls.splice(0);
  reconciler.setDesired(wish([wanted('data', ['other'])]));
  await host.advance(100);
  assert.deepEqual(plugins.calls, [], 'the driver has not answered yet');
  plugins.fault = (kind) => (kind === 'publish' ? REFUSED : undefined);
  answer();
  await host.advance(100);
  assert.equal(plugins.calls[0], 'unpublish web/cache');
  assert.equal(reconciler.actual().has(CACHE_ID), false);
});

/** A mount of which nobody knows whose it is, in the place of that name. */
function orphanAt(name: string): ActualVolume {
  const path = below(layout.podDirectory(WEB), 'volumes', 'kubernetes.io~csi', name, 'mount');
  return ofWeb({ kind: 'orphan', id: `mooring/orphan/${name}` as VolumeId, path }, name);
}

test('a mount that nothing explains is of the pod, too, unless it waits for the emptyDir itself', async () => {
  const { after, plugins, reason } = await unwanted(false);
  plugins.fault = (_, key) => (key === 'web/lost' ? BUSY : undefined);
  assert.deepEqual(await after({ ...READ_WHOLE, volumes: [orphanAt('lost')] }), ['unpublish web/lost']);
  assert.deepEqual([reason()?.code, reason()?.blocker], ['removed-last', 'lost']);
  plugins.fault = () => undefined;
  assert.deepEqual(await after(undefined, 1_000), ['unpublish web/lost', 'unpublish web/cache']);
  const other = await unwanted(false);
  assert.deepEqual(await other.after({ ...READ_WHOLE, volumes: [orphanAt('cache')] }), [
    'unpublish web/cache',
    'unpublish web/cache',
  ]);
});

test('when somebody else has taken that mount down, the emptyDir goes at once', async () => {
  const { after, plugins } = await unwanted(false);
  plugins.fault = (_, key) => (key === 'web/lost' ? BUSY : undefined);
  const orphan = orphanAt('lost');
  await after({ ...READ_WHOLE, complete: false, volumes: [orphan] });
  assert.deepEqual(await after({ ...READ_WHOLE, complete: false, gone: [orphan.spec.id] }, 1), [
    'unpublish web/cache',
  ]);
});

test('a place that could not be read keeps the emptyDirs of the pods that may have something there', async () => {
  const failure: Failure = { code: 'input-output', message: 'EIO', effect: 'none' };
  const csiDirectory = below(layout.plugins, 'kubernetes.io', 'csi');
  const unread = (...paths: readonly AbsolutePath[]): Reconstruction => {
    const unreadPlaces = paths.map((path) => ({ path, failure: { ...failure, blocker: path } }));
    return { ...READ_WHOLE, placesRead: false, complete: false, unreadPlaces };
  };
  const kept = [
    layout.pods,
    below(layout.podDirectory(WEB), 'volumes', 'kubernetes.io~secret'),
    layout.plugins,
    below(layout.blockDevices, 'publish', 'pv-data'),
  ];
  for (const path of kept) {
    const { after, reason } = await unwanted(false);
    assert.deepEqual(await after(unread(path)), [], path);
    assert.deepEqual([reason()?.code, reason()?.blocker], ['removed-last', path]);
    assert.deepEqual(await after(READ_WHOLE), ['unpublish web/cache']);
  }
  const others = [
    below(layout.podDirectory('web-2' as PodUid), 'volumes'),
    below(csiDirectory, 'driver.example', 'hash'),
    below(layout.blockDevices, 'staging', 'pv-data'),
  ];
  const { after } = await unwanted(false);
  assert.deepEqual(await after(unread(...others)), ['unpublish web/cache']);
});

test('what a later scan could not read counts as well, and one that learnt nothing changes nothing', async () => {
  const failure: Failure = { code: 'input-output', message: 'EIO', effect: 'none' };
  const { after, reconciler } = await unwanted(true);
  await after();
  const unreadPlaces = [{ path: layout.podDirectory(WEB), failure }];
  assert.deepEqual(await after({ ...READ_WHOLE, volumes: [CACHE], unreadPlaces, complete: false }), []);
  assert.deepEqual(await after({ ...READ_WHOLE, unreadPlaces: undefined, complete: false }), []);
  assert.deepEqual(await after(READ_WHOLE), ['unpublish web/cache']);
  assert.equal(reconciler.actual().size, 0);
});
