/** What is, as far as it is known: three values on every rung, and one door through which belief changes. */
import { assert, type Failure, type FailureCode } from '../../mount/failure.ts';
import type { MountIdentity } from '../../mount/host.ts';
import { isInline } from '../../plugins/kinds/volume-questions.ts';
import type { Needs, PublishContext } from '../../plugins/plugin.ts';
import {
  type Bytes,
  isMoreThan,
  type PodUid,
  type PublicationKey,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import { doubtGroups } from './group-doubt.ts';
import { climbs, isBeside, type Operation, publicationOf } from './operation.ts';
import { noteDevices, type Quarantine } from './quarantine.ts';
import type { Sickness } from './sickness.ts';
import { placeToClimbBy } from './staged-spec.ts';
import { type Tombstone, withGivenBack } from './tombstone.ts';

/**
 * `unsure` is neither `present`, so climbing repeats the verb, nor `absent`, so descending undoes it: no special case
 * anywhere. Because: every verb is idempotent.
 */
export type Presence =
  | { readonly kind: 'absent' }
  | { readonly kind: 'present' }
  | { readonly kind: 'unsure'; readonly because: Failure | 'restart' | 'begun' };

export const ABSENT: Presence = { kind: 'absent' };
export const PRESENT: Presence = { kind: 'present' };
export const BEGUN: Presence = { kind: 'unsure', because: 'begun' };
export const RESTARTED: Presence = { kind: 'unsure', because: 'restart' };

export interface ActualPublication {
  readonly spec: PublicationSpec;
  readonly presence: Presence;
  /** The generation it was published with; undefined when that is not known. */
  readonly generation: string | undefined;
  readonly mount: MountIdentity | undefined;
  /**
   * The driver of an inline volume has said that it is not published here any more, which ends the volume, and the
   * place is not clean yet. Whatever the driver says later, what may be mounted there shows data that was deleted. It
   * goes before the place is set up again. Of a persistent volume it would be the right one still.
   */
  readonly ended?: true;
  /**
   * Begun and never yet answered OK: no pod was ever told that it is there, so it may go although it is wanted. An OK
   * may be younger than the record, so after a restart the kernel must show nothing there, too.
   */
  readonly untold?: true;
}

/** An expansion that is not to be tried again by itself. */
export interface RefusedExpansion {
  readonly toBytes: Bytes;
  /** `in-use`: not while anything of it is published (CSI: MUST NOT retry). `infeasible`: never to this size. */
  readonly because: 'in-use' | 'infeasible';
  readonly message: string;
}

export interface ActualVolume {
  /** As its driver was told, while anything of it stands. */
  readonly spec: VolumeSpec;
  /** Found on disk, and nothing was asked for since: of the spec only identity and places are known. */
  readonly reconstructed?: true | undefined;
  /** As they were when the volume was set up: teardown never asks today's driver (DR-16). */
  readonly needs: Needs;
  readonly attached: Presence;
  readonly staged: Presence;
  readonly publishContext: PublishContext | undefined;
  /** The node id it was attached under. */
  readonly attachedNode?: string | undefined;
  /** The uid of the attachment under which its rungs were climbed; undefined while nobody said. */
  readonly attachmentUid?: string | undefined;
  readonly stagedMount: MountIdentity | undefined;
  /** No entry is `absent`: an absent publication is left out. */
  readonly publications: ReadonlyMap<PublicationKey, ActualPublication>;
  /** The size it has on this node, as far as we made it or were told; undefined while nothing of it stands. */
  readonly sizeBytes: Bytes | undefined;
  readonly refusedExpansion: RefusedExpansion | undefined;
  readonly quarantine: Quarantine | undefined;
  /** Its file system serves no more; not recorded. */
  readonly sickness?: Sickness | undefined;
  /** Calls that were given up and may still take effect; never empty. */
  readonly tombstones?: readonly Tombstone[] | undefined;
}

export type ActualState = ReadonlyMap<VolumeId, ActualVolume>;

/** What a successful verb taught. */
export interface Learnt {
  readonly publishContext?: PublishContext | undefined;
  readonly attachedNode?: string | undefined;
  readonly mount?: MountIdentity | undefined;
  readonly generation?: string | undefined;
  readonly sizeBytes?: Bytes | undefined;
  /** All was found as it is wanted, and nothing was done. */
  readonly isUnchanged?: true;
}

export type VolumeOutcome =
  | { readonly kind: 'done'; readonly learnt: Learnt }
  /** `toBytes`: of an expansion, the size that was asked for. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly toBytes?: Bytes | undefined };

export function onTheGround(spec: VolumeSpec, needs: Needs): ActualVolume {
  return {
    spec,
    needs,
    attached: ABSENT,
    staged: ABSENT,
    publishContext: undefined,
    stagedMount: undefined,
    publications: new Map(),
    sizeBytes: undefined,
    refusedExpansion: undefined,
    quarantine: undefined,
  };
}

export function isOnTheGround({ attached, staged, publications }: ActualVolume): boolean {
  return attached.kind === 'absent' && staged.kind === 'absent' && publications.size === 0;
}

/** Nothing of it stands, and nothing of it has to be remembered. */
export function isForgettable(volume: ActualVolume): boolean {
  return isOnTheGround(volume) && volume.quarantine === undefined && volume.tombstones === undefined;
}

/** That have it, or may have it. */
export function podsOf({ publications }: ActualVolume): readonly PodUid[] {
  return [...publications.values()].map(({ spec }) => spec.pod.uid);
}

/** A driver has ended it somewhere, and the place is not clean. */
function hasEnded(volume: ActualVolume): boolean {
  return [...volume.publications.values()].some(({ ended }) => ended === true);
}

/**
 * Between the two something was learnt that no repeated call would tell again: that a driver has ended an inline
 * volume, or that a growth must not be asked for again.
 */
export function isToldOnce(before: ActualVolume, now: ActualVolume): boolean {
  return hasEnded(now) || now.refusedExpansion !== before.refusedExpansion;
}

function presenceOf(volume: ActualVolume, operation: Operation): Presence {
  const key = publicationOf(operation);
  if (key !== undefined) return volume.publications.get(key)?.presence ?? ABSENT;
  return operation.kind === 'stage' || operation.kind === 'unstage' ? volume.staged : volume.attached;
}

/**
 * The volume as it must be believed from the moment an operation may have an effect: a rung about to be climbed is
 * `unsure` before the first effect, and so it is in the record (D-7).
 */
export function begin(
  known: ActualVolume,
  operation: Operation,
  publication: PublicationSpec | undefined,
): ActualVolume {
  // From now on its driver has been told, and of what the spec says.
  const isAsked = climbs(operation.kind) && known.reconstructed === true;
  const volume = isAsked ? { ...known, reconstructed: undefined } : known;
  switch (operation.kind) {
    case 'expand':
    case 'clean':
      return volume;
    case 'attach':
      return volume.attached.kind === 'absent' ? { ...volume, attached: BEGUN } : volume;
    case 'stage':
      return volume.staged.kind === 'absent' ? { ...volume, staged: BEGUN } : volume;
    case 'publish': {
      assert(publication !== undefined, 'a publish operation names its publication');
      const there = volume.publications.get(operation.publication);
      const entry: ActualPublication =
        there === undefined
          ? { spec: publication, presence: BEGUN, generation: undefined, mount: undefined, untold: true }
          : { ...there, spec: placeToClimbBy(volume.spec, there, publication) };
      return withPublication(volume, entry);
    }
    case 'unstage':
      return volume.staged.kind === 'present' ? { ...volume, staged: BEGUN } : volume;
    case 'detach':
      return volume.attached.kind === 'present' ? { ...volume, attached: BEGUN } : volume;
    case 'unpublish': {
      if (isBeside(operation)) return volume;
      const there = volume.publications.get(operation.publication);
      if (there?.presence.kind !== 'present') return volume;
      return withPublication(volume, { ...there, presence: BEGUN });
    }
  }
}

/**
 * The only way belief changes after an operation. `before` is the volume as it was when the operation began.
 * A failure with effect `none` puts the rung back to what it was; one with effect `unknown` makes it unsure. A failure
 * that says that the rung below is not what we believed makes that one unsure: it is done again first.
 */
export function learn(
  believed: ActualVolume,
  before: ActualVolume,
  operation: Operation,
  outcome: VolumeOutcome,
): ActualVolume {
  const now =
    outcome.kind === 'failed'
      ? doubtBelow(guessedAgain(believed, before, outcome.failure), operation, outcome.failure)
      : believed;
  const reached =
    outcome.kind === 'failed'
      ? afterFailure(before, believed, operation, outcome.failure)
      : afterSuccess(operation);
  const learnt = outcome.kind === 'done' ? outcome.learnt : {};
  switch (operation.kind) {
    case 'expand':
      return learnExpansion(now, outcome);
    case 'clean':
      return outcome.kind === 'done' && now.quarantine !== undefined
        ? { ...now, quarantine: { ...now.quarantine, verified: true } }
        : now;
    case 'attach':
      return {
        ...now,
        attached: reached,
        publishContext: learnt.publishContext ?? now.publishContext,
        attachedNode: learnt.attachedNode ?? now.attachedNode,
      };
    case 'detach':
      return {
        ...now,
        attached: reached,
        publishContext: reached.kind === 'absent' ? undefined : now.publishContext,
        attachedNode: reached.kind === 'absent' ? undefined : now.attachedNode,
      };
    case 'stage':
      return noteDevices({
        ...now,
        staged: reached,
        stagedMount: outcome.kind === 'done' ? knownMount(now.stagedMount, learnt.mount) : now.stagedMount,
        sizeBytes: now.sizeBytes ?? learnt.sizeBytes,
      });
    case 'unstage':
      return sizeForgotten({
        ...now,
        staged: reached,
        stagedMount: reached.kind === 'absent' ? undefined : now.stagedMount,
      });
    case 'publish':
      return sizeForgotten(learnPublication(now, operation.publication, reached, outcome));
    case 'unpublish': {
      if (isBeside(operation))
        return outcome.kind === 'done' ? withGivenBack(believed, before, operation.publication) : believed;
      const left = sizeForgotten(learnPublication(now, operation.publication, reached, outcome));
      const gone = reached.kind === 'absent' ? before.publications.get(operation.publication) : undefined;
      return doubtGroups(left, gone);
    }
  }
}

function learnExpansion(now: ActualVolume, outcome: VolumeOutcome): ActualVolume {
  if (outcome.kind === 'done') {
    const { sizeBytes = now.sizeBytes } = outcome.learnt;
    const grew =
      sizeBytes !== undefined && (now.sizeBytes === undefined || isMoreThan(sizeBytes, now.sizeBytes));
    return { ...now, sizeBytes: grew ? sizeBytes : now.sizeBytes, refusedExpansion: undefined };
  }
  const { code, message } = outcome.failure;
  const { toBytes } = outcome;
  if (toBytes === undefined || (code !== 'expand-in-use' && code !== 'expand-infeasible')) return now;
  const because = code === 'expand-in-use' ? 'in-use' : 'infeasible';
  return { ...now, refusedExpansion: { toBytes, because, message } };
}

/** A size is only known of what stands or may yet come, and "in use" ends with the last place. */
function sizeForgotten(volume: ActualVolume): ActualVolume {
  if (volume.publications.size > 0) return volume;
  const { refusedExpansion: refused, staged, tombstones } = volume;
  const refusedExpansion = refused?.because === 'in-use' ? undefined : refused;
  const isGone = staged.kind === 'absent' && tombstones === undefined;
  return { ...volume, refusedExpansion, sizeBytes: isGone ? undefined : volume.sizeBytes };
}

/** Found on disk and only ever refused: its driver was told nothing that it would hold us to. */
function guessedAgain(now: ActualVolume, before: ActualVolume, failure: Failure): ActualVolume {
  if (before.reconstructed !== true || failure.effect !== 'none') return now;
  const rungs = [now.attached, now.staged, ...[...now.publications.values()].map(({ presence }) => presence)];
  const isTold = rungs.some((one) => !wasAbsent(one) && !isRestarted(one));
  return isTold ? now : { ...now, reconstructed: true };
}

/** What the kernel (first two) or the driver (CSI: FAILED_PRECONDITION) holds against the rung below. */
const SHAKES_BELOW: ReadonlySet<FailureCode> = new Set([
  'staged-not-mounted',
  'device-changed',
  'driver-precondition',
]);

function doubtBelow(volume: ActualVolume, operation: Operation, failure: Failure): ActualVolume {
  if (!SHAKES_BELOW.has(failure.code)) return volume;
  const doubted: Presence = { kind: 'unsure', because: failure };
  if (operation.kind === 'publish' && volume.staged.kind === 'present') return { ...volume, staged: doubted };
  // What the driver says of a stage may be about the attachment; what the kernel says is about the stage itself.
  const isShaken = operation.kind === 'stage' && failure.code === 'driver-precondition';
  if (isShaken && volume.attached.kind === 'present') return { ...volume, attached: doubted };
  return volume;
}

function learnPublication(
  now: ActualVolume,
  key: PublicationKey,
  reached: Presence,
  outcome: VolumeOutcome,
): ActualVolume {
  const known = now.publications.get(key);
  if (known === undefined) return now;
  if (reached.kind === 'absent') {
    const publications = new Map(now.publications);
    publications.delete(key);
    return { ...now, publications };
  }
  if (outcome.kind === 'done') {
    const { generation, mount, sizeBytes } = outcome.learnt;
    const { untold: _, ...place } = known;
    const published = withPublication(now, {
      ...place,
      presence: reached,
      generation,
      mount: knownMount(known.mount, mount),
    });
    return noteDevices({ ...published, sizeBytes: now.sizeBytes ?? sizeBytes });
  }
  const isEnded = isInline(now.spec) && outcome.failure.ended === true;
  return withPublication(now, { ...known, presence: reached, ...(isEnded ? { ended: true } : {}) });
}

/** All that is known of the mount that was known, if what was found is the same one. */
function knownMount(
  known: MountIdentity | undefined,
  found: MountIdentity | undefined,
): MountIdentity | undefined {
  const isSame =
    known?.mountId === found?.mountId &&
    known?.device === found?.device &&
    known?.blockDevice === found?.blockDevice;
  return isSame && known !== undefined ? { ...known, ...found } : found;
}

function afterSuccess(operation: Operation): Presence {
  return operation.kind === 'attach' || operation.kind === 'stage' || operation.kind === 'publish'
    ? PRESENT
    : ABSENT;
}

function afterFailure(
  before: ActualVolume,
  now: ActualVolume,
  operation: Operation,
  failure: Failure,
): Presence {
  if (failure.effect !== 'none') return { kind: 'unsure', because: failure };
  const was = presenceOf(before, operation);
  // Found on disk while the operation ran: it was there before, and only we did not know.
  return was.kind === 'absent' && isRestarted(presenceOf(now, operation)) ? RESTARTED : was;
}

/** `unsure` since a restart: found, and neither proven nor begun by us. */
function isRestarted(presence: Presence): boolean {
  return presence.kind === 'unsure' && presence.because === 'restart';
}

/** Somebody else's mount lies over it: what is below is what was proven, and nothing was done to it. */
export function isCovered(presence: Presence): boolean {
  return (
    presence.kind === 'unsure' && typeof presence.because === 'object' && isCoverFailure(presence.because)
  );
}

/** A verb that ran into it leaves the rung as it was, so only a look at the table puts this into a presence. */
export function isCoverFailure({ code, effect }: Failure): boolean {
  return effect === 'none' && (code === 'mount-foreign' || code === 'mount-stacked');
}

/** About to be climbed, and not known before. */
export function isBegun(presence: Presence): boolean {
  return presence.kind === 'unsure' && presence.because === 'begun';
}

/** Not there, as far as was known before whatever is being done now. */
export function wasAbsent(presence: Presence): boolean {
  return presence.kind === 'absent' || isBegun(presence);
}

function withPublication(volume: ActualVolume, entry: ActualPublication): ActualVolume {
  return { ...volume, publications: new Map(volume.publications).set(entry.spec.key, entry) };
}
