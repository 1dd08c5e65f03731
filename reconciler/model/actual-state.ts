/** What is, as far as it is known, with three values on every rung. Pure. */
import type { Failure, FailureCode } from '../../mount/failure.ts';
import type { DeviceNumber, MountIdentity } from '../../mount/host.ts';
import type { Needs, PublishContext } from '../../plugins/plugin.ts';
import type {
  Bytes,
  FsGroup,
  PodUid,
  PublicationKey,
  PublicationSpec,
  VolumeId,
  VolumeSpec,
} from '../../plugins/volume.ts';

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
   * goes before the place is set up again. Of a persistent volume it would be the right one still, but
   * where it was dead before its pod had all of its volumes.
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

/**
 * `attachment-lost`: the cluster detached it while it was here. `attachment-replaced`: and attached it anew, while what
 * stands was set up under the old attachment. `node-out-of-service`: all of this node's volumes were
 * given away. `operator`: somebody said so.
 */
export type QuarantineReason = 'attachment-lost' | 'attachment-replaced' | 'node-out-of-service' | 'operator';

export interface Quarantine {
  readonly reason: QuarantineReason;
  /** Milliseconds since the epoch, for display. */
  readonly sinceWallMs: number;
  /** What must be free of users before it is left: the devices it was mounted from when it began. */
  readonly devices: readonly DeviceNumber[];
  /** Taken down, and nobody was found to use it. */
  readonly verified: boolean;
}

/**
 * Known in this life only: before the next pod is let in the kernel is asked anyway. `stage`: new pods would be
 * published from it. `place`: a pod that has it sees it, or nobody knows (it does not answer).
 */
export interface Sickness {
  readonly failure: Failure;
  readonly of: 'stage' | 'place';
}

export interface Tombstone {
  /** What was asked. Of the way down only `detach`: what else comes late is missed where it was mounted. */
  readonly operation: 'attach' | 'stage' | 'publish' | 'detach';
  /** Where a publish was asked for. */
  readonly publication?: PublicationSpec | undefined;
  /** The `attachedNode` of an attach or a detach. */
  readonly node?: string | undefined;
  /** As its driver was told, where the volume was set up otherwise since. */
  readonly spec?: VolumeSpec | undefined;
  /** By the clock of this boot. Undefined: nothing is in doubt but the call that is open. */
  readonly untilMs?: number | undefined;
  /** The call is being made: written down before it is, for the case that nobody hears how it ends. */
  readonly open?: true | undefined;
  /**
   * A publish is given back while the volume stands as something else, beside that, because its arrival was seen
   * and more may come, or for the last time because its time is over.
   */
  readonly givenBack?: 'arrived' | 'at-last' | undefined;
}

/** The place of a tombstone, with the specification under which its driver was asked. */
export interface PlaceBeside {
  readonly spec: VolumeSpec;
  readonly publication: PublicationSpec;
}

export interface ActualVolume {
  /** As its driver was told, while anything of it stands. */
  readonly spec: VolumeSpec;
  /** Found on disk, and nothing was asked for since: of the spec only identity and places are known. */
  readonly reconstructed?: true | undefined;
  /**
   * Something of it stands, or may come late, that was set up before this life of the agent, in this boot: nobody
   * knows any more with which secrets. Not recorded.
   */
  readonly isInherited?: true | undefined;
  /** As they were when the volume was set up: teardown never asks today's driver (DR-16). */
  readonly needs: Needs;
  readonly attached: Presence;
  readonly staged: Presence;
  readonly publishContext: PublishContext | undefined;
  /** The node id under which our calls attach it, from the first one until it is detached; undefined without any. */
  readonly attachedNode?: string | undefined;
  /** The uid of the attachment under which its rungs were climbed; undefined while nobody said. */
  readonly attachmentUid?: string | undefined;
  readonly stagedMount: MountIdentity | undefined;
  /**
   * What its driver was told of a pod when it was staged, as long as it may be. Undefined: nothing may be, or nobody
   * knows (it was found on disk, came late, or is in a record of before).
   */
  readonly stagedFor?: { readonly fsGroup?: FsGroup | undefined } | undefined;
  /** `VolumeFacts.wasMountPoint`; a reboot does not end it. */
  readonly wasMountPoint?: true | undefined;
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
  readonly attachmentUid?: string | undefined;
  readonly mount?: MountIdentity | undefined;
  readonly isMountPoint?: true | undefined;
  readonly generation?: string | undefined;
  readonly sizeBytes?: Bytes | undefined;
  /** Why the file system is smaller than its device. */
  readonly ungrown?: Failure | undefined;
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

/** Something stands that was set up from what was attached, or may stand. */
export function isSetUp({ staged, publications }: ActualVolume): boolean {
  return staged.kind !== 'absent' || publications.size > 0;
}

/** Nothing of it stands, and nothing of it has to be remembered. */
export function isForgettable(volume: ActualVolume): boolean {
  return isOnTheGround(volume) && volume.quarantine === undefined && volume.tombstones === undefined;
}

/** That have it, or may have it. */
export function podsOf({
  publications,
}: {
  readonly publications: ReadonlyMap<PublicationKey, { readonly spec: PublicationSpec }>;
}): readonly PodUid[] {
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

/** Its driver has said that it is not there, and its mount still is: the driver has no numbers of it. */
export function isDisowned(presence: Presence): boolean {
  if (presence.kind !== 'unsure' || typeof presence.because === 'string') return false;
  const { code } = presence.because;
  return code === 'unpublished-still-mounted' || code === 'unstaged-still-mounted';
}

/** The kernel has shown that what was proven to be there is not there any more. */
export function isMountLost(presence: Presence): boolean {
  if (presence.kind !== 'unsure' || typeof presence.because !== 'object') return false;
  return MOUNT_LOST.has(presence.because.code);
}

const MOUNT_LOST: ReadonlySet<FailureCode> = new Set([
  'mount-lost',
  'device-changed',
  'published-not-mounted',
]);

/** What is left to be known when the place is climbed: the number of a lost mount may be given to another one. */
export function mountLeft({ presence, mount }: ActualPublication): MountIdentity | undefined {
  return isMountLost(presence) ? undefined : mount;
}

/** A place of which no pod was ever told. */
export function untoldPlace(spec: PublicationSpec, presence: Presence): ActualPublication {
  return { spec, presence, generation: undefined, mount: undefined, untold: true };
}

/** About to be climbed, and not known before. */
export function isBegun(presence: Presence): boolean {
  return presence.kind === 'unsure' && presence.because === 'begun';
}

/** `unsure` since a restart: found, and neither proven nor begun by us. */
export function isRestarted(presence: Presence): boolean {
  return presence.kind === 'unsure' && presence.because === 'restart';
}

/** Not there, as far as was known before whatever is being done now. */
export function wasAbsent(presence: Presence): boolean {
  return presence.kind === 'absent' || isBegun(presence);
}
