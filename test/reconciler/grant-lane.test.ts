/** Asking a cluster for a volume is no work of its driver, and takes no turn of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PluginRegistry } from '../../plugins/plugin.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { Operation } from '../../reconciler/model/operation.ts';
import { planVolume } from '../../reconciler/model/plan.ts';
import { createVolumePlanner } from '../../reconciler/volume-planner.ts';
import { actual, wanted, wish } from './world.ts';

const known = actual('data', { attached: 'present', staged: 'present', pods: { web: 'present' } });

function laneOf(kind: 'attach' | 'detach' | 'stage', grantLane: string | undefined, volume: ActualVolume) {
  const planner = createVolumePlanner({
    plan: planVolume,
    plugins: { of: () => ({ grantLane, lane: () => 'driver' }) } as unknown as PluginRegistry,
    belief: { volumes: new Map([[volume.spec.id, volume]]) },
    desired: () => wish([wanted('data', ['web'])]),
    gateOf: () => ({ layoutRead: true, placesRead: true }),
    quarantineOf: () => undefined,
  });
  return planner.laneOf({ kind, volume: volume.spec.id } satisfies Operation);
}

test('what a cluster grants is asked for, and given back, beside the calls of the driver', () => {
  const lanes = (['attach', 'detach', 'stage'] as const).map((kind) => laneOf(kind, 'cluster', known));
  assert.deepEqual(lanes, ['cluster', 'cluster', 'driver']);
});

test('what this node attached itself is detached by a call of the driver, which takes its turn', () => {
  assert.equal(laneOf('detach', 'cluster', { ...known, attachedNode: 'node-1' }), 'driver');
  assert.equal(laneOf('attach', undefined, known), 'driver');
});
