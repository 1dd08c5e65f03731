/** Mounts that nobody explains, and the volumes that may turn out to explain them. Pure. */
import type { PodUid, VolumeId, VolumeSpec } from '../plugins/volume.ts';
import type { ActualState } from './actual-state.ts';
import type { DesiredState } from './desired-state.ts';

/**
 * The frozen pods as they are for this orphan: it may be what a volume that is wanted, or not yet down, has mounted,
 * and then that volume decides about the place. One in quarantine is not set up again before all is down.
 */
export function frozenForOrphan(
  orphan: VolumeId,
  actual: ActualState,
  desired: DesiredState,
): ReadonlySet<PodUid> {
  const frozen = new Set(desired.frozenPods);
  const others = [
    ...[...desired.volumes.values()].filter(({ spec }) => !isInQuarantine(spec, actual, desired)),
    ...[...actual.values()].filter(({ spec }) => spec.id !== orphan),
  ];
  for (const [key, { spec }] of actual.get(orphan)?.publications ?? []) {
    if (others.some(({ publications }) => publications.has(key))) frozen.add(spec.pod.uid);
  }
  return frozen;
}

function isInQuarantine(spec: VolumeSpec, actual: ActualState, desired: DesiredState): boolean {
  return spec.kind === 'csi' && (desired.outOfService || actual.get(spec.id)?.quarantine !== undefined);
}

/** What was taken for an orphan turned out to be a publication that is surely there. */
export function isExplained(orphan: VolumeId, actual: ActualState): boolean {
  const volumes = [...actual.values()].filter(({ spec }) => spec.kind !== 'orphan');
  return [...(actual.get(orphan)?.publications.keys() ?? [])].every((key) =>
    volumes.some(({ publications }) => publications.get(key)?.presence.kind === 'present'),
  );
}
