/** What is believed, and written down, before an operation has its first effect. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Effect } from '../../mount/failure.ts';
import type { PublicationSpec, Subpath, VolumeSpec } from '../../plugins/volume.ts';
import { type ActualVolume, onTheGround, PRESENT } from '../../reconciler/model/actual-state.ts';
import { begin, learn } from '../../reconciler/model/belief-change.ts';
import { csi, place } from './world.ts';

const SPEC = csi('a');
const PLACE = place('web', 'a');
const NEEDS = { attach: true, stage: true, expand: false };
const volume = SPEC.id;

test('A-065, A-056: each rung counts as tried from before the call, so that a crash in it has it undone', () => {
  const ground = onTheGround(SPEC, NEEDS);
  assert.equal(begin(ground, { kind: 'attach', volume }, undefined).attached.kind, 'unsure');
  assert.equal(begin(ground, { kind: 'stage', volume }, undefined).staged.kind, 'unsure');
  const publish = { kind: 'publish', volume, publication: PLACE.key } as const;
  const [entry] = begin(ground, publish, PLACE).publications.values();
  assert.deepEqual([entry?.spec, entry?.presence.kind], [PLACE, 'unsure']);
});

test('A-065: a place that is being taken away is no longer surely there, and not yet gone', () => {
  const published = { spec: PLACE, presence: PRESENT, generation: '', mount: undefined };
  const here = {
    ...onTheGround(SPEC, NEEDS),
    attached: PRESENT,
    staged: PRESENT,
    publications: new Map([[PLACE.key, published]]),
  };
  const unpublish = { kind: 'unpublish', volume, publication: PLACE.key } as const;
  assert.equal(begin(here, unpublish, undefined).publications.get(PLACE.key)?.presence.kind, 'unsure');
  assert.equal(begin(here, { kind: 'unstage', volume }, undefined).staged.kind, 'unsure');
  assert.equal(begin(here, { kind: 'detach', volume }, undefined).attached.kind, 'unsure');
});

const OLD = { container: 'main', index: 1, path: 'old' };
const NEW = { container: 'main', index: 1, path: 'new' };

function published(spec: VolumeSpec, subpaths: readonly Subpath[]): ActualVolume {
  const entry = { spec: { ...PLACE, subpaths }, presence: PRESENT, generation: '', mount: undefined };
  return { ...onTheGround(spec, NEEDS), staged: PRESENT, publications: new Map([[PLACE.key, entry]]) };
}

test('which parts are bound is in doubt from before the verb, and known again when it has done nothing', () => {
  const publish = { kind: 'publish', volume, publication: PLACE.key } as const;
  const before = published(SPEC, [OLD]);
  const begun = begin(before, publish, { ...PLACE, subpaths: [NEW] });
  const place = begun.publications.get(PLACE.key);
  assert.deepEqual([place?.presence.kind, place?.spec.subpaths], ['unsure', [NEW]]);
  const failed = (effect: Effect) => {
    const failure = { code: 'driver-unreachable', message: 'gone', effect } as const;
    return learn(begun, before, publish, { kind: 'failed', failure }).publications.get(PLACE.key);
  };
  assert.deepEqual([failed('none')?.presence.kind, failed('none')?.spec.subpaths], ['present', [OLD]]);
  assert.deepEqual([failed('unknown')?.presence.kind, failed('unknown')?.spec.subpaths], ['unsure', [NEW]]);
  const done = learn(begun, before, publish, { kind: 'done', learnt: { generation: '' } });
  assert.deepEqual(done.publications.get(PLACE.key)?.spec.subpaths, [NEW]);
  assert.deepEqual(begin(before, publish, before.publications.get(PLACE.key)?.spec), before);
});

test('that a volume had parts is remembered until it is down, and a device has none', () => {
  const publish = { kind: 'publish', volume, publication: PLACE.key } as const;
  const partsIn = (one: ActualVolume, wanted: PublicationSpec) =>
    begin(one, publish, wanted).publications.get(PLACE.key)?.spec.subpaths;
  assert.deepEqual(partsIn(published(SPEC, [OLD]), PLACE), []);
  assert.deepEqual(partsIn(published({ ...SPEC, mode: 'Block' }, []), { ...PLACE, subpaths: [NEW] }), []);
});
