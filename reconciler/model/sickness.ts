/** A file system that serves no more under a volume that stands, and what follows from that. Pure. */
import { isHeld } from './group-doubt.ts';
import { bounded, type Failure } from '../../mount/failure.ts';
import type { PublicationKey, PublicationSpec } from '../../plugins/volume.ts';
import {
  type ActualPublication,
  type ActualVolume,
  isMountLost,
  type VolumeOutcome,
} from './actual-state.ts';
import { type Operation, publicationOf } from './operation.ts';
import { podName } from './obstacle.ts';

/** After an operation: what it ran into, or that what it set up or took down is another one now. */
export function noteSickness(
  volume: ActualVolume,
  operation: Operation,
  outcome: VolumeOutcome,
): ActualVolume {
  const { kind } = operation;
  if (outcome.kind === 'failed') {
    const { failure } = outcome;
    const now = isMountGone(operation, failure) ? withoutMount(volume, operation) : volume;
    if (failure.code !== 'file-system-dead' || (kind !== 'stage' && kind !== 'publish')) return now;
    return now.needs.stage ? { ...now, sickness: { failure, of: 'stage' } } : now;
  }
  return kind === 'stage' || kind === 'unstage' ? { ...volume, sickness: undefined } : volume;
}

/**
 * What was found dead after an OK is not what had been noted there, and where nothing was mounted before the driver was
 * called it is not either: that one is gone, whatever has its number.
 */
function isMountGone({ kind }: Operation, { code, effect, wasBare }: Failure): boolean {
  if (kind !== 'publish' || effect === 'none') return false;
  return code === 'file-system-dead' || wasBare === true;
}

function withoutMount(volume: ActualVolume, operation: Operation): ActualVolume {
  const key = publicationOf(operation);
  const place = key === undefined ? undefined : volume.publications.get(key);
  if (place?.mount === undefined) return volume;
  const forgotten = { ...place, mount: undefined };
  return { ...volume, publications: new Map(volume.publications).set(place.spec.key, forgotten) };
}

/** Nothing is published from it any more; it is taken down when no pod has it, and set up anew. */
export function isStageDead(volume: ActualVolume | undefined): boolean {
  return volume?.sickness?.of === 'stage' && volume.staged.kind !== 'absent';
}

/** No pod has it: what may be left in places shows the dead one, or nothing. */
export function isFreeToRenew({ publications }: ActualVolume): boolean {
  return ![...publications.values()].some(keepsDead);
}

/**
 * Its pod was told of it, and its mount is there still as far as is known: a call that ended in doubt, or a start, has
 * taken nothing from the pod, and only it can give up what is dead. What goes anyway keeps nothing.
 */
function keepsDead(place: ActualPublication): boolean {
  const { presence, mount, untold, ended } = place;
  if (ended === true) return false;
  if (isHeld(place)) return true;
  return presence.kind === 'unsure' && untold !== true && mount !== undefined && !isMountLost(presence);
}

/**
 * A pod that never had all of its volumes never ran, so nobody holds what it has of a dead one: that goes, and the pod
 * is not told to have it meanwhile. Else it would be ready with it, or, in doubt, wait for its own end.
 */
export function withoutUnready(
  volume: ActualVolume,
  isUnready: (place: PublicationSpec) => boolean,
): ActualVolume {
  const { sickness, publications } = volume;
  if (sickness === undefined || !isStageDead(volume)) return volume;
  const given = [...publications].filter(([, place]) => keepsDead(place) && isUnready(place.spec));
  if (given.length === 0) return volume;
  const ended = given.map(([key, place]): [PublicationKey, ActualPublication] => {
    return [key, { ...place, presence: { kind: 'unsure', because: sickness.failure }, ended: true }];
  });
  return { ...volume, publications: new Map([...publications, ...ended]) };
}

/** Published and found dead, as the volume of a driver that does not stage is: only another mount can serve. */
export function isDeadPlace({ presence }: ActualPublication): boolean {
  if (presence.kind !== 'unsure' || typeof presence.because === 'string') return false;
  return presence.because.code === 'file-system-dead';
}

/** Why a pod that comes does not have what stands; undefined when it has it, or nothing is dead. */
export function deadStageFailure(
  known: ActualVolume | undefined,
  place: PublicationKey,
): Failure | undefined {
  const failure = known?.sickness?.failure;
  if (known === undefined || failure === undefined || !isStageDead(known)) return undefined;
  if (known.publications.get(place)?.presence.kind === 'present') return undefined;
  const pods = [...known.publications.values()].filter(keepsDead).map(({ spec }) => podName(spec));
  if (pods.length === 0)
    return { ...failure, message: `${failure.message}; no pod has it: it is taken down first` };
  const users = pods.join(', ');
  const message = `${failure.message}; it is set up anew when no pod has it any more: delete ${users}`;
  return bounded({ ...failure, message, blocker: users });
}
