import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plannedPlaces, plannedStage } from '../../../agent/plan/planned-action.ts';
import type { VolumePair } from '../../../agent/status/status-places.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import type { DesiredVolume } from '../../../reconciler/model/desired-state.ts';
import { planVolume } from '../../../reconciler/model/plan.ts';
import { actual, csi, wanted } from '../../reconciler/world.ts';

const NEEDS = { attach: false, stage: true, expand: false };
const OPEN = { complete: true, layoutRead: true, placesRead: true };

/** As the planner sees them: what becomes of the stage, and of each place. */
function planned(
  desired: DesiredVolume | undefined,
  known: ActualVolume | undefined,
  gate: { readonly complete?: boolean; readonly frozenPods?: ReadonlySet<never> } = {},
  driver: 'registered' | 'absent' = 'registered',
) {
  const needs = driver === 'absent' ? undefined : NEEDS;
  const pair: VolumePair = { spec: csi('data'), wanted: desired, actual: known };
  const plan = planVolume({
    ...{ volume: pair.spec.id, desired, actual: known, needs, quarantine: known?.quarantine?.reason },
    gate: { ...OPEN, frozenPods: new Set(), unknownOrigins: new Set(), ...gate },
  });
  const places = plannedPlaces(pair, plan).map(({ place, action }) => `${place.pod.uid}: ${action}`);
  return { stage: plannedStage(pair, plan)?.action, places };
}

test('what is not there is mounted; what is proven is kept; what may be there is taken over by the same calls', () => {
  const web = wanted('data', ['web']);
  assert.deepEqual(planned(web, undefined), { stage: undefined, places: ['web: mount'] });
  const standing = actual('data', { staged: 'present', pods: { web: 'present' } });
  assert.deepEqual(planned(web, standing), { stage: 'keep', places: ['web: keep'] });
  const found = actual('data', { staged: 'unsure', pods: { web: 'unsure' } });
  assert.deepEqual(planned(web, found), { stage: 'repeat', places: ['web: repeat'] });
  const half = actual('data', { staged: 'present', pods: { web: 'unsure' } });
  assert.deepEqual(planned(web, half), { stage: 'keep', places: ['web: repeat'] });
});

test('what nobody wants goes, the stage after its places; before all was read it is left alone', () => {
  const found = actual('data', { staged: 'unsure', pods: { web: 'unsure' } });
  assert.deepEqual(planned(undefined, found), { stage: 'take-down', places: ['web: take-down'] });
  const shut = { complete: false };
  assert.deepEqual(planned(undefined, found, shut), { stage: 'leave-alone', places: ['web: leave-alone'] });
  const staged = actual('data', { staged: 'present' });
  assert.deepEqual(planned(undefined, staged), { stage: 'take-down', places: [] });
  const shared = wanted('data', ['web']);
  const both = actual('data', { staged: 'present', pods: { web: 'present', old: 'present' } });
  assert.deepEqual(planned(shared, both), { stage: 'keep', places: ['web: keep', 'old: take-down'] });
});

test('without its driver nothing is done: what is there is left alone, what is not waits', () => {
  const web = wanted('data', ['web']);
  const found = actual('data', { staged: 'unsure', pods: { web: 'unsure' } });
  const expected = { stage: 'leave-alone', places: ['web: leave-alone'] };
  assert.deepEqual(planned(web, found, {}, 'absent'), expected);
  assert.deepEqual(planned(web, undefined, {}, 'absent').places, ['web: wait']);
});

test('a volume in quarantine is taken from the pod that wants it', () => {
  const reason = 'attachment-lost' as const;
  const quarantine = { reason, sinceWallMs: 0, devices: [], verified: false };
  const known = { ...actual('data', { staged: 'present', pods: { web: 'present' } }), quarantine };
  const plan = planned(wanted('data', ['web']), known);
  assert.deepEqual(plan, { stage: 'take-down', places: ['web: take-down'] });
});
