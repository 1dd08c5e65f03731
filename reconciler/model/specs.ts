/** Every volume that is wanted or believed to be here, by its specification; the wish's own where there is one. */
import { driverOf } from '../../plugins/kinds/volume-questions.ts';
import type { VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import type { ActualState } from './actual-state.ts';
import type { DesiredState } from './desired-state.ts';

export function specs(
  actual: ActualState,
  desired: Pick<DesiredState, 'volumes'>,
): ReadonlyMap<VolumeId, VolumeSpec> {
  const all = new Map<VolumeId, VolumeSpec>();
  for (const [id, { spec }] of actual) all.set(id, spec);
  for (const [id, { spec }] of desired.volumes) all.set(id, spec);
  return all;
}

export function isOf(spec: VolumeSpec, driver: string): boolean {
  return driverOf(spec) === driver;
}
