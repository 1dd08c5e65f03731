/**
 * What stands is spoken of as it was set up: of a volume that may be anything but down, all that its driver was told
 * stays as recorded, whatever is wished by now (CSI: one staging path, one capability; ). Pure.
 */
import { bounded, type Failure } from '../../mount/failure.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import {
  fixedFields,
  isSameValue,
  meansSame,
  placeFields,
  ruleOf,
  type SpecField,
  fieldValue,
} from '../../plugins/kinds/spec-fields.ts';
import type { Needs } from '../../plugins/plugin.ts';
import {
  RECONSTRUCTED,
  type PublicationKey,
  type PublicationSpec,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import {
  type ActualPublication,
  type ActualVolume,
  isOnTheGround,
  isRestarted,
  type Presence,
  type VolumeOutcome,
  wasAbsent,
} from './actual-state.ts';
import { isContextOther, isNodeOther } from './attachment-identity.ts';
import type { DesiredVolume } from './desired-state.ts';
import { podName, type Wait, waitMessage } from './obstacle.ts';
import { climbs, type Operation } from './operation.ts';
import { isSurplus } from './single-pod.ts';
import { deadStageFailure, isDeadPlace, isFreeToRenew, isStageDead } from './sickness.ts';

/**
 * The specification of whatever is asked on the way up. Of a volume found on disk the wish completes what is not known;
 * kinds of one pod follow it only then.
 */
export function specToClimbBy(known: ActualVolume | undefined, wanted: VolumeSpec): VolumeSpec {
  if (known === undefined || isOnTheGround(known)) return wanted;
  const { spec } = known;
  if (!traitsOf(spec).isShared) return known.reconstructed === true ? wanted : spec;
  const kept = fieldsKept(known).map((field) => [field, fieldValue(spec, field)]);
  return { ...wanted, ...Object.fromEntries(kept) };
}

/**
 * After a call: found on disk and only ever refused, its driver was told nothing that it would hold us to. `before`: as
 * the volume was when the call began.
 */
export function asTold(
  now: ActualVolume,
  before: ActualVolume,
  { kind }: Operation,
  outcome: VolumeOutcome,
): ActualVolume {
  if (outcome.kind === 'done' || outcome.failure.effect !== 'none')
    // While this was asked for, another pod may have been refused.
    return climbs(kind) && now.reconstructed === true ? { ...now, reconstructed: undefined } : now;
  if (before.reconstructed !== true) return now;
  const rungs = [now.attached, now.staged, ...[...now.publications.values()].map(({ presence }) => presence)];
  const isTold = rungs.some((one) => !wasAbsent(one) && !isRestarted(one));
  return isTold ? now : { ...now, reconstructed: true };
}

/**
 * What a stage tells its driver of a pod: as long as it may be staged already, what it told then. Where
 * nobody knows that, a pod that may have the volume comes before one that wants it.
 */
export function stageFor(
  known: ActualVolume | undefined,
  wanted: DesiredVolume,
  { tellsGroup }: Needs,
): NonNullable<ActualVolume['stagedFor']> {
  if (known?.stagedFor !== undefined && known.staged.kind !== 'absent') return known.stagedFor;
  const there = [...(known?.publications.values() ?? [])].flatMap(({ spec }) =>
    spec.origin === RECONSTRUCTED ? (wanted.publications.get(spec.key) ?? []) : { spec },
  );
  const [place] = [...there, ...wanted.publications.values()];
  return tellsGroup === true ? { fsGroup: place?.spec.fsGroup } : {};
}

/** It may be staged for a group that no pod has that wants it, and its driver makes a difference between groups. */
function isGroupOther(desired: DesiredVolume, known: ActualVolume, today: Needs | undefined): boolean {
  const { staged, stagedFor } = known;
  if (today?.tellsGroup !== true || staged.kind === 'absent' || stagedFor === undefined) return false;
  const gids = [...desired.publications.values()].map(({ spec }) => spec.fsGroup?.gid);
  return !gids.includes(stagedFor.fsGroup?.gid);
}

/** Its driver has said of one of them that it has it otherwise than it is asked for: another try hears the same. */
function isConflicting(...presences: readonly Presence[]): boolean {
  return presences.some((one) => {
    return one.kind === 'unsure' && typeof one.because === 'object' && one.because.code === 'driver-conflict';
  });
}

/**
 * Its driver says OK from its own books to a stage of which the kernel shows nothing, and would say so again: what is
 * in the books goes first (D-52). Where that may not go now, it is staged again, which a driver started anew may mend.
 */
function whyStageIsMissed({ staged }: ActualVolume, { mayRenew }: Today): Failure | undefined {
  if (!mayRenew || staged.kind !== 'unsure' || typeof staged.because === 'string') return undefined;
  const { code, effect } = staged.because;
  // With no effect it was seen before the driver was asked.
  return code === 'staged-not-mounted' && effect === 'unknown' ? staged.because : undefined;
}

/** The place of the volume that is to be published again; of a shared one it keeps what was told of it. */
export function placeToClimbBy(
  volume: VolumeSpec,
  { spec }: ActualPublication,
  wanted: PublicationSpec,
): PublicationSpec {
  if (!traitsOf(volume).isShared || spec.origin === RECONSTRUCTED) return wanted;
  const { readOnly, fsGroup } = spec;
  if (fsGroup !== undefined) return { ...wanted, readOnly, fsGroup };
  const { fsGroup: _, ...rest } = wanted;
  return { ...rest, readOnly };
}

/** What stands otherwise than it is wanted now; empty when nothing stands. */
export function fieldsWantedOtherwise(
  known: ActualVolume | undefined,
  wanted: VolumeSpec,
): readonly SpecField[] {
  if (known === undefined || isOnTheGround(known) || !traitsOf(wanted).isShared) return [];
  return fieldsKept(known).filter((field) => !meansSame(known.spec, wanted, field));
}

/** What decides today whether something is set up anew. */
export interface Today {
  /** What its driver says now. */
  readonly needs: Needs | undefined;
  readonly mayGo: (place: ActualPublication) => boolean;
  /**
   * All that is there of the volume may be taken down. Else it is set up as it was where a pod can have that: who is to
   * say that it may be taken down may wait for its pod (D-133).
   */
  readonly mayRenew: boolean;
}

/** What the volume would be set up with otherwise, in words for people; empty: it stands as it is wanted. */
function whatIsOtherwise(
  desired: DesiredVolume,
  known: ActualVolume,
  { needs: today, mayRenew }: Today,
): readonly string[] {
  return [
    ...fieldsWantedOtherwise(known, desired.spec).filter((field) => mayRenew || excludes(known, field)),
    ...(isContextOther(desired, known) ? ['publish context'] : []),
    ...(isNodeOther(today, known) ? ['node id'] : []),
    ...(mayRenew && isGroupOther(desired, known, today) ? ['fsGroup'] : []),
    ...(isConflicting(known.attached, known.staged) ? ["capability by its driver's word"] : []),
  ];
}

/**
 * It stands otherwise than it is wanted, or only in its driver's books, and no pod has it, nor may have it: it goes,
 * and is set up as it is wanted. So a wish that is mended mends a volume that could not be set up. As well when it is
 * dead, and no pod surely has it.
 */
export function needsRestage(
  desired: DesiredVolume | undefined,
  known: ActualVolume | undefined,
  today: Today,
): boolean {
  if (desired === undefined || known === undefined || desired.blocked !== undefined) return false;
  if (isStageDead(known)) return isFreeToRenew(known);
  return (
    isToldToNone(known) &&
    (whyStageIsMissed(known, today) !== undefined || whatIsOtherwise(desired, known, today).length > 0)
  );
}

/** No pod has it, nor may have it. */
function isToldToNone({ publications }: ActualVolume): boolean {
  return [...publications.values()].every(({ untold }) => untold === true);
}

/**
 * Wanted, but what is there goes first: it was ended, or no pod has it and it is not what is wanted, or beside another
 * pod's of a volume for one alone.
 */
export function isToBeGivenBack(
  desired: DesiredVolume,
  known: ActualVolume,
  key: PublicationKey,
  today: Today,
): boolean {
  const there = known.publications.get(key);
  const wanted = desired.publications.get(key);
  if (there === undefined || wanted === undefined) return false;
  if (there.ended === true || isDeadPlace(there)) return true;
  if (isStageDead(known)) return needsRestage(desired, known, today);
  if (there.untold !== true || desired.blocked !== undefined || !traitsOf(known.spec).isShared) return false;
  return (
    isSurplus(desired, known, key) ||
    needsRestage(desired, known, today) ||
    unservedField(desired, known) !== undefined ||
    isContextOther(desired, known) ||
    isConflicting(there.presence) ||
    there.spec.readOnly !== wanted.spec.readOnly ||
    (today.mayGo(there) && !isSameValue(there.spec.fsGroup, wanted.spec.fsGroup))
  );
}

/** Why a pod that comes may not have what stands, asked of its place; one that has it keeps it. */
export function placesThatCannotBeServed(
  desired: DesiredVolume,
  known: ActualVolume | undefined,
): (place: PublicationSpec) => Failure | undefined {
  if (known === undefined) return () => undefined;
  const isDead = isStageDead(known);
  // A wish that is incomplete keeps what no pod has, and is the reason.
  if (desired.blocked !== undefined && (isDead ? isFreeToRenew(known) : isToldToNone(known)))
    return () => undefined;
  if (isDead) return ({ key }) => deadStageFailure(known, key);
  const failure = unservedFailure(desired, known);
  if (failure === undefined) return () => undefined;
  // Nobody knows what one that was found on disk was told; only that it is not what is wanted.
  return ({ key }) => (known.reconstructed !== true && known.publications.has(key) ? undefined : failure);
}

/**
 * While it is renewed: why a place that nothing is at yet is not set up. `held`: why what stands does not go yet, which
 * is what the place really waits for.
 */
export function restageFailure(
  desired: DesiredVolume,
  known: ActualVolume,
  key: PublicationKey,
  today: Today,
  held: Wait | undefined,
): Failure {
  const failure = deadStageFailure(known, key) ?? renewalFailure(desired, known, today);
  if (held === undefined) return failure;
  const place = held.publication === undefined ? undefined : known.publications.get(held.publication);
  const because = waitMessage(held, place === undefined ? 'its pod' : podName(place.spec));
  return bounded({ ...failure, message: `${failure.message}, which is held back: ${because}` });
}

function renewalFailure(desired: DesiredVolume, known: ActualVolume, today: Today): Failure {
  const missed = whyStageIsMissed(known, today);
  if (missed !== undefined)
    return { ...missed, message: `${missed.message}; no pod has it: it is taken down first` };
  const what = whatIsOtherwise(desired, known, today).join(', ');
  const message = `the volume was set up with another ${what}, and no pod has it: it is taken down first`;
  return { code: 'volume-in-use', message, effect: 'none' };
}

/** The fields that stay as they are; nothing is known of a volume found on disk but where it is. */
function fieldsKept({ reconstructed, spec }: ActualVolume): readonly SpecField[] {
  return reconstructed === true ? placeFields(spec) : fixedFields(spec);
}

/** Files are no device, a label is the wrong one, and what is for one pod or for readers is not for this one. */
function unservedField(desired: DesiredVolume, known: ActualVolume): SpecField | undefined {
  return fieldsWantedOtherwise(known, desired.spec).find((field) => excludes(known, field));
}

function excludes({ spec }: ActualVolume, field: SpecField): boolean {
  return ruleOf(spec, field).excludes?.(spec) === true;
}

/** Undefined when what stands will do for a pod that comes. */
function unservedFailure(desired: DesiredVolume, known: ActualVolume): Failure | undefined {
  const { spec, publications } = known;
  const field = unservedField(desired, known);
  if (field === undefined && !isContextOther(desired, known)) return undefined;
  const users = [...publications.values()].map(({ spec: place }) => podName(place)).join(', ');
  const message = `${howOtherwise(desired, spec, field)}: delete the pods that use it first (${users})`;
  return { code: 'volume-in-use', message, effect: 'none', blocker: users };
}

/** What an attachment says may be confidential, and is not told. */
function howOtherwise(desired: DesiredVolume, spec: VolumeSpec, field: SpecField | undefined): string {
  if (field === undefined)
    return 'the volume was set up by another publish context than its attachment has now';
  const title = ruleOf(spec, field).title ?? field;
  const [a, b] = [shown(spec, field), shown(desired.spec, field)];
  return `the volume stands with ${title} ${a}, and ${title} ${b} is wanted`;
}

function shown(spec: VolumeSpec, field: SpecField): string {
  const value = fieldValue(spec, field);
  const text = Array.isArray(value) ? value.join(', ') : String(value);
  return text === '' ? 'none' : text;
}
