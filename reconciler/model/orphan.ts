/** Mounts that nobody explains, and the volumes that may turn out to explain them. Pure. */
import type { Failure } from '../../mount/failure.ts';
import { driverOf, isOrphan } from '../../plugins/kinds/volume-questions.ts';
import type { PublicationKey, VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import type { ActualState } from './actual-state.ts';
import type { DesiredState } from './desired-state.ts';

/**
 * The places of this orphan that another volume decides about, each with the reason for people: it may be what a volume
 * that is wanted there, or not yet down there, has mounted. One in quarantine is not set up again before all is down.
 * Two orphans of one place, as a mount and the bind of a part of it, do not wait for each other.
 */
export function contestedPlaces(
  orphan: VolumeId,
  actual: ActualState,
  desired: DesiredState,
): ReadonlyMap<PublicationKey, Failure> {
  const others = [
    ...[...desired.volumes.values()].filter(({ spec }) => !isInQuarantine(spec, actual, desired)),
    ...[...actual.values()].filter(({ spec }) => !isOrphan(spec)),
  ];
  const contested = new Map<PublicationKey, Failure>();
  for (const key of actual.get(orphan)?.publications.keys() ?? []) {
    const other = others.find(({ publications }) => publications.has(key));
    if (other !== undefined) contested.set(key, contestedBy(other.spec.id));
  }
  return contested;
}

function contestedBy(volume: VolumeId): Failure {
  const message =
    `nothing tells whose this is, and ${volume} is to be in this place or still is: ` +
    'it may be what a container uses, and goes when that volume is published here or not wanted here any more';
  return { code: 'mount-foreign', message, effect: 'none', blocker: volume };
}

function isInQuarantine(spec: VolumeSpec, actual: ActualState, desired: DesiredState): boolean {
  return (
    driverOf(spec) !== undefined && (desired.outOfService || actual.get(spec.id)?.quarantine !== undefined)
  );
}

/** What was taken for an orphan turned out to be a publication that is surely there. */
export function isExplained(orphan: VolumeId, actual: ActualState): boolean {
  const volumes = [...actual.values()].filter(({ spec }) => !isOrphan(spec));
  return [...(actual.get(orphan)?.publications.keys() ?? [])].every((key) =>
    volumes.some(({ publications }) => publications.get(key)?.presence.kind === 'present'),
  );
}
