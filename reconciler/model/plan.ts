/**
 * The whole policy: for one volume, what to do next and why the rest has to wait. Pure: no await, no clock, no log.
 *
 * A volume climbs attach, stage, publish and descends the same way back, one rung at a time, so any step may be the
 * last one before a crash. Teardown first, and of a place that its driver has ended to the end: wanted again, it is
 * set up anew and never over what was left there.
 */
import type { Failure } from '../../mount/failure.ts';
import { isDevice } from '../../plugins/kinds/volume-questions.ts';
import type { Needs } from '../../plugins/plugin.ts';
import {
  isSameSubpaths,
  RECONSTRUCTED,
  type PublicationKey,
  type PublicationSpec,
  type VolumeId,
} from '../../plugins/volume.ts';
import { type ActualVolume, isOnTheGround, type Presence, type QuarantineReason } from './actual-state.ts';
import { whyAttachmentUnknown } from './attachment-identity.ts';
import type { DesiredPublication, DesiredState, DesiredVolume } from './desired-state.ts';
import type { Wait } from './obstacle.ts';
import type { Operation, OperationKind } from './operation.ts';
import { quarantineFailure } from './quarantine.ts';
import { isGrowthDue } from './growth.ts';
import { podsThatMustWait } from './single-pod.ts';
import { isStageDead } from './sickness.ts';
import { lateFailure, placesBeside, tombstonesOf } from './tombstone.ts';
import {
  isToBeGivenBack,
  needsRestage,
  placesThatCannotBeServed,
  restageFailure,
  type Today,
} from './staged-spec.ts';

/** When teardown may act; the safety gates are data the planner cannot overlook. */
export interface Gate
  extends Pick<DesiredState, 'complete' | 'frozenPods' | 'unknownOrigins'>,
    Partial<Pick<DesiredState, 'attachmentUids' | 'heldPods'>> {
  /**
   * The layout on disk has been read since the start, and this volume is surely published nowhere that nobody knows of:
   * it must not be unstaged under such a publication (INV-1).
   */
  readonly layoutRead: boolean;
  /** Why `layoutRead` is false, when more is known than that it was not read yet. */
  readonly possibleUse?: Failure | undefined;
  /** The places in the pods were read from the layout: before, a pod may have a volume that no record tells (RC-18). */
  readonly placesRead: boolean;
  /** Places that wait, with the reason: an orphan's that another volume decides about, an emptyDir's that go last. */
  readonly contested?: ReadonlyMap<PublicationKey, Failure>;
}

/**
 * Each place that a call is in doubt of has a tombstone. With so many no other place is begun, so that none has to be
 * forgotten; those that are begun by then may make it more.
 */
const TOMBSTONES_MAX = 256;

export interface VolumePlan {
  readonly operations: readonly Operation[];
  readonly waits: readonly Wait[];
}

export interface PlanInput {
  readonly volume: VolumeId;
  readonly desired: DesiredVolume | undefined;
  readonly actual: ActualVolume | undefined;
  /** What today's driver says; undefined while it is not registered. */
  readonly needs: Needs | undefined;
  readonly gate: Gate;
  /** Why it must not be used on this node; it is taken down, wanted or not, and whatever the gate says of its pods. */
  readonly quarantine: QuarantineReason | undefined;
}

export function planVolume(input: PlanInput): VolumePlan {
  const operations: Operation[] = [];
  const waits: Wait[] = [];
  const today = todayOf(input);
  if (input.actual !== undefined) {
    if (input.quarantine === undefined) descend(input, input.actual, today, operations, waits);
    else cleanUp(input, input.actual, operations, waits);
    giveBackBeside(input, input.actual, operations, waits);
  }
  if (input.desired !== undefined) climb(input, input.desired, today, operations, waits);
  return { operations, waits };
}

function descend(
  input: PlanInput,
  actual: ActualVolume,
  today: Today,
  operations: Operation[],
  waits: Wait[],
): void {
  const { volume, desired, gate } = input;
  const wait = (kind: Wait['kind'], operation: OperationKind, publication?: PublicationKey): void => {
    const pod = publication === undefined ? undefined : actual.publications.get(publication)?.spec.pod.uid;
    const hold = pod === undefined ? undefined : gate.heldPods?.get(pod);
    const contest = publication === undefined ? undefined : gate.contested?.get(publication);
    const possibleUse = publication === undefined && gate.complete ? gate.possibleUse : undefined;
    const failure = kind === 'frozen' ? (hold ?? contest) : possibleUse;
    waits.push({ kind, operation, publication, failure });
  };
  for (const [publication, { spec }] of actual.publications) {
    const isKept =
      desired?.publications.has(publication) && !isToBeGivenBack(desired, actual, publication, today);
    if (isKept) continue;
    const held = heldBack(gate, spec);
    if (held !== undefined) wait(held, 'unpublish', publication);
    else if (input.needs === undefined) wait('waiting-driver', 'unpublish', publication);
    else operations.push({ kind: 'unpublish', volume, publication });
  }
  const kind = actual.staged.kind !== 'absent' ? 'unstage' : 'detach';
  const isWanted = desired !== undefined && !needsRestage(desired, actual, today);
  if (isWanted || actual.publications.size > 0 || isOnTheGround(actual)) return;
  if (!gate.complete || !gate.layoutRead) wait('gate-closed', kind);
  else if (input.needs === undefined) wait('waiting-driver', kind);
  else operations.push({ kind, volume });
}

/** No pod was told of these places since the volume was down the last time, so no wish keeps them. */
function giveBackBeside(
  { volume, needs }: PlanInput,
  actual: ActualVolume,
  operations: Operation[],
  waits: Wait[],
): void {
  const next = placesBeside(actual).map(
    ({ key }): Operation => ({ kind: 'unpublish', volume, publication: key, beside: true }),
  );
  if (needs === undefined) waits.push(...waitingFor(next, 'waiting-driver', undefined));
  else operations.push(...next);
}

/** A volume in quarantine comes down to the last rung but the attachment, and then the proof is made. */
function cleanUp(input: PlanInput, actual: ActualVolume, operations: Operation[], waits: Wait[]): void {
  const { volume, gate } = input;
  const next: readonly Operation[] =
    actual.publications.size > 0
      ? [...actual.publications.keys()].map((publication) => ({ kind: 'unpublish', volume, publication }))
      : stepsOfCleaning(volume, actual);
  const [first] = next;
  if (first === undefined) return;
  const late = first.kind === 'clean' ? lateFailure(actual) : undefined;
  // What comes after the proof would be used behind it.
  if (late !== undefined) waits.push(...waitingFor(next, 'blocked', late));
  // Before, it may be staged and nobody knows.
  else if (first.kind !== 'unpublish' && !gate.layoutRead)
    waits.push(...waitingFor(next, 'gate-closed', gate.possibleUse));
  else if (first.kind !== 'clean' && input.needs === undefined)
    waits.push(...waitingFor(next, 'waiting-driver', undefined));
  else operations.push(...next);
}

function stepsOfCleaning(volume: VolumeId, actual: ActualVolume): readonly Operation[] {
  if (actual.staged.kind !== 'absent') return [{ kind: 'unstage', volume }];
  return actual.quarantine?.verified === false ? [{ kind: 'clean', volume }] : [];
}

function todayOf({ needs, gate, actual }: PlanInput): Today {
  const mayGo: Today['mayGo'] = ({ spec }) => heldBack(gate, spec) === undefined;
  return { needs, mayGo, mayRenew: gate.complete && [...(actual?.publications.values() ?? [])].every(mayGo) };
}

/** Unknown is not unwanted (D-8): why this publication may not be taken down now. */
function heldBack(gate: Gate, spec: PublicationSpec): 'gate-closed' | 'frozen' | undefined {
  if (!gate.complete) return 'gate-closed';
  // What was found on disk may come from any source that cannot be read now.
  const { origin, pod } = spec;
  const isUnknown = origin === RECONSTRUCTED ? gate.unknownOrigins.size > 0 : gate.unknownOrigins.has(origin);
  const isContested = gate.contested?.has(spec.key) ?? false;
  const isHeld = gate.heldPods?.has(pod.uid) ?? false;
  return isUnknown || isContested || isHeld || gate.frozenPods.has(pod.uid) ? 'frozen' : undefined;
}

function climb(
  input: PlanInput,
  desired: DesiredVolume,
  today: Today,
  operations: Operation[],
  waits: Wait[],
): void {
  const { actual } = input;
  if (actual !== undefined && input.quarantine === undefined && needsRestage(desired, actual, today)) {
    const places = [...desired.publications.keys()].filter((key) => !actual.publications.has(key));
    const [held] = waits;
    for (const publication of places) {
      const failure = restageFailure(desired, actual, publication, today, held);
      waits.push({ kind: 'blocked', operation: 'publish', publication, failure });
    }
    return;
  }
  // Without its driver the rungs of the last time tell what would come next.
  const { next, refused } = nextClimb(input, desired, { ...today, needs: input.needs ?? actual?.needs });
  waits.push(...refused);
  if (next.length === 0) return;
  const blocked = desired.blocked ?? whyAttachmentUnknown(input.gate, actual);
  if (input.quarantine !== undefined)
    waits.push(...waitingFor(next, 'quarantined', quarantineFailure(input.quarantine)));
  else if (blocked !== undefined) waits.push(...waitingFor(next, 'blocked', blocked));
  else if (input.needs === undefined) waits.push(...waitingFor(next, 'waiting-driver', undefined));
  else operations.push(...next);
}

interface Climb {
  readonly next: readonly Operation[];
  /** The pods that come too late for a volume that is for one pod alone, or stands otherwise than it is wanted. */
  readonly refused: readonly Wait[];
}

function nextClimb({ volume, actual, gate }: PlanInput, desired: DesiredVolume, today: Today): Climb {
  const missing = [...desired.publications.values()].filter((wanted) => {
    const { key } = wanted.spec;
    const isGivenBack = actual !== undefined && isToBeGivenBack(desired, actual, key, today);
    return !isThere(wanted, actual) && !isGivenBack;
  });
  const cannotBeServed = placesThatCannotBeServed(desired, actual);
  const comesLater = podsThatMustWait(desired, actual, gate.placesRead);
  // What may be gone for good is kept as it is: it gets nothing new, least of all a file system on a blank disk.
  const mustWait = (place: PublicationSpec): Failure | undefined =>
    gate.heldPods?.get(place.pod.uid) ??
    cannotBeServed(place) ??
    comesLater(place) ??
    whyNotRemembered(actual, place);
  const refused = missing.flatMap(({ spec }): readonly Wait[] => {
    const failure = mustWait(spec);
    return failure === undefined
      ? []
      : [{ kind: 'blocked', operation: 'publish', publication: spec.key, failure }];
  });
  const arriving = missing.filter(({ spec }) => mustWait(spec) === undefined);
  // Found on disk as what it is not wanted as: nobody knows how it would be set up again.
  if (actual?.reconstructed === true && arriving.length === 0 && refused.length > 0)
    return { next: [], refused };
  const isDue = (needed: boolean | undefined, presence: Presence | undefined): boolean => {
    return (
      needed === true &&
      (presence?.kind === 'unsure' || (presence?.kind !== 'present' && arriving.length > 0))
    );
  };
  // Nothing is set up from a dead stage; who has it surely may be refreshed, which takes nothing away.
  if (isStageDead(actual)) return { next: publishOf(volume, arriving), refused };
  const isStageDue = isDue(today.needs?.stage, actual?.staged);
  // A stage that came late, when the volume was detached already, is repeated with the attachment or not at all.
  const isDetached = today.needs?.attach === true && actual?.attached.kind !== 'present';
  if (isDue(today.needs?.attach, actual?.attached) || (isStageDue && isDetached))
    return { next: [{ kind: 'attach', volume }], refused };
  if (isStageDue) return { next: [{ kind: 'stage', volume }], refused };
  const publish = publishOf(volume, arriving);
  const growth = isGrowthDue(today.needs, desired, actual);
  // Before the first place, a volume too small is grown first; one that is used is grown beside what else there is.
  if (growth === 'first') return { next: [{ kind: 'expand', volume }], refused };
  return { next: growth === 'beside' ? [...publish, { kind: 'expand', volume }] : publish, refused };
}

/** Why no call for this place may be made that would have to be remembered beside all the others. */
function whyNotRemembered(volume: ActualVolume | undefined, { key }: PublicationSpec): Failure | undefined {
  const tombstones = volume === undefined ? [] : tombstonesOf(volume);
  if (tombstones.length < TOMBSTONES_MAX || tombstones.some(({ publication }) => publication?.key === key))
    return undefined;
  const message =
    `${tombstones.length} calls of this volume were given up without an answer and may still take effect; ` +
    'no other pod gets it before some of them have ended';
  return { code: 'late-effect', message, effect: 'none' };
}

function publishOf(volume: VolumeId, places: readonly DesiredPublication[]): readonly Operation[] {
  return places.map(({ spec }) => ({ kind: 'publish', volume, publication: spec.key }));
}

/** A device has no parts, whatever is wished while it stands. */
function isThere(wanted: DesiredPublication, volume: ActualVolume | undefined): boolean {
  const actual = volume?.publications.get(wanted.spec.key);
  if (volume === undefined || actual?.presence.kind !== 'present') return false;
  const isWhole = isDevice(volume.spec) || isSameSubpaths(actual.spec, wanted.spec);
  return actual.generation === wanted.generation && isWhole;
}

function waitingFor(
  next: readonly Operation[],
  kind: Wait['kind'],
  failure: Failure | undefined,
): readonly Wait[] {
  return next.map((operation) => ({
    kind,
    operation: operation.kind,
    publication: 'publication' in operation ? operation.publication : undefined,
    failure,
  }));
}
