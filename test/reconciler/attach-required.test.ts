/** A CSIDriver object comes, goes, or says something else about attaching while a volume stands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Needs, PluginRegistry } from '../../plugins/plugin.ts';
import type { CsiVolumeSpec } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../reconciler/model/desired-state.ts';
import { planVolume } from '../../reconciler/model/plan.ts';
import { createVolumePlanner } from '../../reconciler/volume-planner.ts';
import { actual, csi, wanted, wish } from './world.ts';

const attachable: CsiVolumeSpec = { ...csi('data'), attachRequired: true };
const plain: CsiVolumeSpec = { ...csi('data'), attachRequired: false };

/** What the planner says next; the plugin asks the specification that it is given whether to attach. */
function planned(desired: DesiredVolume | undefined, known: ActualVolume | undefined): readonly string[] {
  const needs = (spec: { readonly attachRequired?: boolean }): Needs => ({
    ...{ attach: spec.attachRequired !== false, stage: true, expand: false },
  });
  const planner = createVolumePlanner({
    plan: planVolume,
    plugins: { of: () => ({ needs, lane: () => 'lane' }) } as unknown as PluginRegistry,
    belief: { volumes: new Map(known === undefined ? [] : [[known.spec.id, known]]) },
    desired: () => wish(desired === undefined ? [] : [desired]),
    gateOf: () => ({ layoutRead: true, placesRead: true }),
    quarantineOf: () => undefined,
  });
  return planner.planOf(attachable.id).operations.map(({ kind }) => kind);
}

const wantedAs = (spec: CsiVolumeSpec, ...pods: readonly string[]): DesiredVolume => ({
  ...wanted('data', pods),
  spec,
});
const standing = (spec: CsiVolumeSpec, attached: 'present' | 'absent'): ActualVolume => ({
  ...actual('data', { attached, staged: 'present', pods: { web: 'present' } }),
  needs: { attach: attached === 'present', stage: true, expand: false },
  spec,
});

test('what stands is spoken of as it was set up: neither a pod that has it nor the next one attaches it', () => {
  const known = standing(plain, 'absent');
  assert.deepEqual(planned(wantedAs(attachable, 'web'), known), []);
  assert.deepEqual(planned(wantedAs(attachable, 'web', 'next'), known), ['publish']);
});

test('what was attached is detached, whatever its driver says by now', () => {
  const known = standing(attachable, 'present');
  assert.deepEqual(planned(wantedAs(plain, 'web'), known), []);
  assert.deepEqual(planned(undefined, known), ['unpublish']);
  const staged = { ...known, publications: new Map() };
  assert.deepEqual(planned(undefined, staged), ['unstage']);
  assert.deepEqual(planned(undefined, { ...staged, staged: { kind: 'absent' } }), ['detach']);
});

test('from the ground the new word counts', () => {
  assert.deepEqual(planned(wantedAs(attachable, 'web'), undefined), ['attach']);
  assert.deepEqual(planned(wantedAs(plain, 'web'), undefined), ['stage']);
});
