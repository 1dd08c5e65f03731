/** Mounts that nobody explains, and the volumes that may turn out to explain them. Pure. */
import type { Failure } from '../../mount/failure.ts';
import { driverOf, isOrphan, orphanPathOf } from '../../plugins/kinds/volume-questions.ts';
import { podOf, type PublicationKey, type VolumeId, type VolumeSpec } from '../../plugins/volume.ts';
import type { ActualState, ActualVolume } from './actual-state.ts';
import type { BeliefView } from './belief.ts';
import { type DesiredState, wantedAt } from './desired-state.ts';
import { type Operation, publicationOf } from './operation.ts';

/**
 * The places of this orphan that another volume decides about, each with the reason for people: it may be what a volume
 * that is wanted there, or not yet down there, has mounted. One in quarantine is not set up again before all is down.
 * Two orphans of one place, as a mount and the bind of a part of it, do not wait for each other.
 */
export function contestedPlaces(
  orphan: VolumeId,
  belief: BeliefView,
  desired: DesiredState,
): ReadonlyMap<PublicationKey, Failure> {
  const { volumes: actual } = belief;
  const contested = new Map<PublicationKey, Failure>();
  for (const key of actual.get(orphan)?.publications.keys() ?? []) {
    const wanted = wantedAt(desired.volumes, key).find(({ spec }) => !isInQuarantine(spec, actual, desired));
    const other = wanted ?? explainedAt(key, belief)[0];
    if (other !== undefined) contested.set(key, contestedBy(other.spec.id));
  }
  return contested;
}

/** What is believed to be, or perhaps to be, in the place, and is no orphan. */
function explainedAt(key: PublicationKey, belief: BeliefView): readonly ActualVolume[] {
  return belief
    .ofPod(podOf(key))
    .filter(({ spec, publications }) => publications.has(key) && !isOrphan(spec));
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

/**
 * Why what is staged of nobody knows which volume stays: no driver can be asked, and what an umount(8) leaves below it,
 * a mapping or a session, nobody else could end. Undefined: it is no such orphan.
 */
export function whyLeftStaged(orphan: ActualVolume | undefined): Failure | undefined {
  const path = orphan && orphanPathOf(orphan.spec);
  if (path === undefined || orphan?.staged.kind === 'absent') return undefined;
  const message =
    `no record and no paper tells which volume is staged at ${path}, so no driver can be asked to unstage it ` +
    'and it is left as it is: unmount it when nothing on this machine needs it, or write a pod that wants its volume';
  return { code: 'mount-foreign', message, effect: 'none', blocker: path };
}

/** What was taken for an orphan turned out to be a publication that is surely there. */
export function isExplained(orphan: VolumeId, belief: BeliefView): boolean {
  const volume = belief.volumes.get(orphan);
  if (whyLeftStaged(volume) !== undefined) return false;
  return [...(volume?.publications.keys() ?? [])].every((key) =>
    explainedAt(key, belief).some(({ publications }) => publications.get(key)?.presence.kind === 'present'),
  );
}

/** The orphans that the end of this operation may explain, or leave the place to. */
export function orphansBeside(operation: Operation, belief: BeliefView): readonly VolumeId[] {
  const place = publicationOf(operation);
  if (place === undefined) return [];
  const beside = belief.ofPod(podOf(place)).map(({ spec }) => spec);
  return beside.filter(isOrphan).map(({ id }) => id);
}
