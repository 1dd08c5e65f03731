/** What is believed, and written down, before an operation has its first effect. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onTheGround, PRESENT } from '../../reconciler/model/actual-state.ts';
import { begin } from '../../reconciler/model/belief-change.ts';
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
