/**
 * What stands is spoken of as it was set up: of a volume that may be anything but down, all that its driver was told
 * stays as recorded, whatever is wished by now (CSI: one staging path, one capability; ). Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Failure } from '../../mount/failure.ts';
import {
  type CsiVolumeSpec,
  FOUND_ON_DISK,
  type PublicationKey,
  type PublicationSpec,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import { type ActualPublication, type ActualVolume, isOnTheGround } from './actual-state.ts';
import type { DesiredVolume } from './desired-state.ts';
import { isSurplus } from './single-pod.ts';
import { deadStageFailure, isDeadPlace, isFreeToRenew, isStageDead } from './sickness.ts';

/** What the vol_data.json and its place tell of a volume that was found on disk. */
const OF_PLACE = ['mode', 'lifecycle'] as const satisfies readonly (keyof CsiVolumeSpec)[];
/** All that a driver is told, and what decides where; the rest is about the next pod, and follows the wish. */
const TOLD = [
  ...OF_PLACE,
  'fsType',
  'mountOptions',
  'volumeAttributes',
  'accessModes',
  'readOnly',
  'seLinuxContext',
  'attachRequired',
] as const satisfies readonly (keyof CsiVolumeSpec)[];

/** The field of a CsiVolumeSpec that was told, for people; it never holds a secret's content. */
export type ToldField = (typeof TOLD)[number] | 'specName';

/**
 * The specification of whatever is asked on the way up. Of a volume found on disk the wish completes what is not known;
 * kinds that no driver is told of follow it only then.
 */
export function specToClimbBy(known: ActualVolume | undefined, wanted: VolumeSpec): VolumeSpec {
  if (known === undefined || isOnTheGround(known)) return wanted;
  const { spec } = known;
  if (spec.kind !== 'csi' || wanted.kind !== 'csi') return known.guessed === true ? wanted : spec;
  const kept = fieldsKept(known, spec).map((field) => [field, spec[field]]);
  return { ...wanted, ...Object.fromEntries(kept) };
}

/** The place of a CSI volume that is to be published again: it keeps what the driver was told of it. */
export function placeToClimbBy({ spec }: ActualPublication, wanted: PublicationSpec): PublicationSpec {
  if (spec.origin === FOUND_ON_DISK) return wanted;
  const { readOnly, fsGroup } = spec;
  if (fsGroup !== undefined) return { ...wanted, readOnly, fsGroup };
  const { fsGroup: _, ...rest } = wanted;
  return { ...rest, readOnly };
}

/** What stands otherwise than it is wanted now; empty when nothing stands. */
export function fieldsWantedOtherwise(
  known: ActualVolume | undefined,
  wanted: VolumeSpec,
): readonly ToldField[] {
  if (known === undefined || isOnTheGround(known)) return [];
  const { spec } = known;
  if (spec.kind !== 'csi' || wanted.kind !== 'csi') return [];
  return fieldsKept(known, spec).filter((field) => !isSame(meaningOf(spec, field), meaningOf(wanted, field)));
}

/**
 * It stands otherwise than it is wanted, and no pod has it, nor may have it: it goes, and is set up as it is wanted. So
 * a wish that is mended mends a volume that could not be set up. As well when it is dead, and no pod surely has it.
 */
export function isToBeRenewed(desired: DesiredVolume | undefined, known: ActualVolume | undefined): boolean {
  if (desired === undefined || known === undefined || desired.blocked !== undefined) return false;
  if (isStageDead(known)) return isFreeToRenew(known);
  return (
    [...known.publications.values()].every(({ untold }) => untold === true) &&
    fieldsWantedOtherwise(known, desired.spec).length > 0
  );
}

/**
 * Wanted, but what is there goes first: it was ended, or no pod has it and it is not what is wanted, or beside another
 * pod's of a volume for one alone.
 */
export function isToBeGivenBack(desired: DesiredVolume, known: ActualVolume, key: PublicationKey): boolean {
  const there = known.publications.get(key);
  const wanted = desired.publications.get(key);
  if (there === undefined || wanted === undefined) return false;
  if (there.ended === true || isDeadPlace(there)) return true;
  if (isStageDead(known)) return isToBeRenewed(desired, known);
  if (there.untold !== true || desired.blocked !== undefined || known.spec.kind !== 'csi') return false;
  return (
    isSurplus(desired, known, key) ||
    isToBeRenewed(desired, known) ||
    unservedField(desired, known) !== undefined ||
    there.spec.readOnly !== wanted.spec.readOnly ||
    !isSame(there.spec.fsGroup, wanted.spec.fsGroup)
  );
}

/** Why a pod that comes may not have what stands, asked of its place; one that has it keeps it. */
export function placesThatCannotBeServed(
  desired: DesiredVolume,
  known: ActualVolume | undefined,
): (place: PublicationSpec) => Failure | undefined {
  if (isStageDead(known)) return ({ key }) => deadStageFailure(known, key);
  const field = known === undefined ? undefined : unservedField(desired, known);
  if (known === undefined || field === undefined) return () => undefined;
  const failure = unservedFailure(field, desired.spec as CsiVolumeSpec, known);
  // Of one found on disk nobody knows what it was told; only that it is not what is wanted.
  return ({ key }) => (known.guessed !== true && known.publications.has(key) ? undefined : failure);
}

/** While it is renewed: why a place that nothing is at yet is not set up. */
export function renewalFailure(desired: DesiredVolume, known: ActualVolume, key: PublicationKey): Failure {
  const dead = deadStageFailure(known, key);
  if (dead !== undefined) return dead;
  const fields = fieldsWantedOtherwise(known, desired.spec).join(', ');
  const message = `the volume was set up with another ${fields}, and no pod has it: it is taken down first`;
  return { code: 'volume-in-use', message, effect: 'none' };
}

/** A place of a device goes by its PersistentVolume's name, one of files by the handle. */
function fieldsKept({ guessed }: ActualVolume, { mode }: CsiVolumeSpec): readonly ToldField[] {
  const fields: readonly ToldField[] = guessed === true ? OF_PLACE : TOLD;
  return mode === 'Block' ? [...fields, 'specName'] : fields;
}

/** No CSIDriver object is as good as one that says nothing of attaching. */
function meaningOf(spec: CsiVolumeSpec, field: ToldField): unknown {
  return field === 'attachRequired' ? spec.attachRequired !== false : spec[field];
}

/** Files are no device, a label is the wrong one, and what is for one pod or for readers is not for this one. */
function unservedField(desired: DesiredVolume, known: ActualVolume): ToldField | undefined {
  const { spec } = known;
  return fieldsWantedOtherwise(known, desired.spec).find((field) => {
    if (field !== 'accessModes') return UNSERVED.has(field);
    const [only, ...more] = spec.kind === 'csi' ? spec.accessModes : [];
    return more.length === 0 && (only === 'ReadWriteOncePod' || only === 'ReadOnlyMany');
  });
}

const UNSERVED: ReadonlySet<ToldField> = new Set(['mode', 'lifecycle', 'specName', 'seLinuxContext']);

function unservedFailure(field: ToldField, wanted: CsiVolumeSpec, known: ActualVolume): Failure {
  const standing = known.spec as CsiVolumeSpec;
  const title = TITLE.get(field) ?? field;
  const [a, b] = [shown(standing, field), shown(wanted, field)];
  const pods = [...known.publications.values()].map(({ spec: { pod } }) => {
    return pod.name === '' ? `pod ${pod.uid}` : `${pod.namespace}/${pod.name}`;
  });
  const users = pods.join(', ');
  const message =
    `the volume stands with ${title} ${a}, and ${title} ${b} is wanted: ` +
    `delete the pods that use it first (${users})`;
  return { code: 'volume-in-use', message, effect: 'none', blocker: users };
}

const TITLE: ReadonlyMap<ToldField, string> = new Map([
  ['mode', 'volumeMode'],
  ['specName', 'PersistentVolume'],
  ['seLinuxContext', 'SELinux context'],
]);

function shown(spec: CsiVolumeSpec, field: ToldField): string {
  const value = field === 'accessModes' ? spec.accessModes.join(', ') : String(spec[field]);
  return value === '' ? 'none' : value;
}

/** Thousands of volumes are compared at a time, and nearly all fields are words. */
export function isSame(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && isDeepStrictEqual(a, b));
}
