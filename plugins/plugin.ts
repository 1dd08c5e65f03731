/** What a kind of volume must be able to do. The reconciler knows volumes only through this. */
import type { Failure, Result } from '../mount/failure.ts';
import type { DeviceNumber, MountIdentity } from '../mount/host.ts';
import type { SecretData, Sensitive } from './secret/sensitive.ts';
import type { ExpectedPlace } from '../mount/expected-place.ts';
import type { CallReport } from './step.ts';
import type { Bytes, FsGroup, PluginName, PublicationSpec, VolumeSpec } from './volume.ts';

/** Which rungs of the ladder a volume has below `publish`. */
export interface Needs {
  readonly attach: boolean;
  readonly stage: boolean;
  /** The driver can grow it on the node (NodeExpandVolume). No rung: asked of today's driver only. */
  readonly expand: boolean;
  /** The node id that an attachment made by a call of ours would be made under today; undefined where none is. */
  readonly node?: string | undefined;
  /** A stage made today tells the driver the group of the pod (CSI VOLUME_MOUNT_GROUP). */
  readonly tellsGroup?: boolean;
}

/** Opaque to us, immutable, and passed to stage and publish (CSI ControllerPublishVolume). */
export type PublishContext = Readonly<Record<string, string>>;

/** What attaching taught. */
export interface Attached {
  readonly publishContext: PublishContext | undefined;
  /** Which attachment it is, where each has an identity of its own. */
  readonly attachmentUid?: string | undefined;
}

/** What staging taught. */
export interface Staged {
  /** The mount found at the staging path; undefined for a driver that stages without mounting. */
  readonly stagedMount: MountIdentity | undefined;
  /** Why its file system is smaller than its device; it is served as it is. */
  readonly ungrown?: Failure | undefined;
  /** The path that somebody else provides is a mount point, and has to be one as long as the volume stands. */
  readonly isMountPoint?: true;
}

/** What was learnt while climbing and must survive a restart. */
export interface VolumeFacts {
  readonly needs: Needs;
  readonly publishContext: PublishContext | undefined;
  /** The node id it was attached under by a call of ours, or may be: a driver may come back with another. */
  readonly attachedNode?: string | undefined;
  /** An attachment of it that somebody else made has been seen, whatever stands. */
  readonly isGranted?: true;
  /** The attachment under which something of it stands; undefined where nothing stands, or nobody said. */
  readonly standsUnder?: string | undefined;
  readonly stagedMount: MountIdentity | undefined;
  /** When it was staged, in this boot or one before, its path was a mount point of the machine. */
  readonly wasMountPoint?: true;
  /** As `PublicationCall.isDoubted`, of the staged mount. */
  readonly isStageDoubted?: true;
  /** Some of it stands, or may, that was set up in an earlier life of the agent: nobody knows with which secrets. */
  readonly isInherited?: true;
  /** A call that was given up may still make something of it, however far it is down. */
  readonly mayComeLate?: true;
}

/** Driver secrets as resolved from the wish; undefined where the volume names none. */
export interface VolumeSecrets {
  readonly controllerPublish: SecretData | undefined;
  readonly stage: SecretData | undefined;
  readonly publish: SecretData | undefined;
  readonly expand: SecretData | undefined;
  /** The volume may have been set up with others, which nobody knows any more. */
  readonly mayBeMore?: true;
  /** Each publish brings tokens, or may bring some. */
  readonly tokens?: true;
}

export const NO_SECRETS: VolumeSecrets = {
  controllerPublish: undefined,
  stage: undefined,
  publish: undefined,
  expand: undefined,
};

/**
 * The files of a volume whose content the wish brings: path below the volume root to content and mode; in place of a
 * file a directory that something is mounted on.
 */
export type VolumeFiles = Sensitive<
  ReadonlyMap<string, { readonly content: Uint8Array; readonly mode: number; readonly isMountPoint?: true }>
>;

/** A call about the whole volume; what it does is shown as the reason of the wait. */
export interface VolumeCall extends CallReport {
  readonly spec: VolumeSpec;
  readonly facts: VolumeFacts;
  readonly secrets: VolumeSecrets;
  /** False once the world has moved on while the call waited its turn: answer `no-longer-wanted`, do nothing. */
  readonly stillWanted: () => boolean;
  /** The group of the pod the call is made for; of the volume's stage, that of the first time. */
  readonly fsGroup: FsGroup | undefined;
  /** By a `stage` or `publish` that `looksFirst`: what is to be there before it does anything. */
  readonly expectedAll?: readonly ExpectedPlace[];
  /** The volume is in quarantine: drivers that were opted in are told to prefer success to data (CSI pull 477). */
  readonly force: boolean;
}

/**
 * Another volume of the same name in the same pod, as it was set up: the kind of a volume was changed under its name,
 * or the volume of a claim is called like one of the pod. What the layout has by name alone may be either's.
 */
export interface Namesake {
  readonly spec: VolumeSpec;
  readonly publication: PublicationSpec;
}

/** A call about one place of the volume in one pod. */
export interface PublicationCall extends VolumeCall {
  readonly publication: PublicationSpec;
  /** What was proven there in this boot; undefined: nothing, or it is not known. */
  readonly mount: MountIdentity | undefined;
  /**
   * Whether that is there still was in doubt before this call. Then the number of a mount alone proves nothing: the
   * kernel gives that of one that is gone to the next.
   */
  readonly isDoubted?: true;
  /** Those that there are by now; absent: none. */
  readonly namesakes?: () => readonly Namesake[];
  /** The places of other pods at which the volume surely is by now; absent: none. */
  readonly companions?: () => readonly PublicationSpec[];
  /** What is to be there before anything is done, which a plugin that `looksItself` sees to. */
  readonly expected?: ExpectedPlace;
  /** Present when the wish has files for it; teardown never needs them. */
  readonly files: VolumeFiles | undefined;
  /** It is there already, whole: only what the driver or the wish have new is to be brought in. */
  readonly refresh: boolean;
  /** JSON of the service account tokens the driver asked for (CSIDriver.spec.tokenRequests). */
  readonly tokens: Sensitive<string> | undefined;
}

/** A call that grows the volume: after stage, or after publish for a driver that does not stage. */
export interface ExpandCall extends VolumeCall {
  /** A place where it is published; undefined while it is only staged. */
  readonly publication: PublicationSpec | undefined;
  /** What was proven at that place in this boot; undefined: nothing, or it is not known. */
  readonly mount: MountIdentity | undefined;
  readonly toBytes: Bytes;
}

/** A question about a volume that is there: never waits for its turn, never goes beside a call that changes it. */
export interface StatisticsCall {
  readonly spec: VolumeSpec;
  readonly facts: VolumeFacts;
  /** A place where it is published or was tried to be; undefined: only staged, or tried to be. */
  readonly publication: PublicationSpec | undefined;
  /** What was proven there in this boot, and its driver does not deny; undefined: nothing, or it is not known. */
  readonly mount: MountIdentity | undefined;
  /** Asked when the turn has come: has nothing of ours changed at that place since the question was put? */
  readonly stillThere: () => boolean;
  /** They are not sent, and taken out of what the driver says. */
  readonly secrets: VolumeSecrets;
}

/** One line of `NodeGetVolumeStats`: undefined where the driver does not say. */
export interface UsageNumbers {
  readonly total: Bytes | undefined;
  readonly used: Bytes | undefined;
  readonly available: Bytes | undefined;
}

/** A driver's word on how the volume is; for people and metrics, never for decisions. */
export interface HealthStatement {
  /** Absent: the driver. */
  readonly saidBy?: 'agent';
  /** CSI 1.13: `degraded`, `inaccessible`, `data-loss`, `unknown(<number>)`; 1.12 `VolumeCondition`: `abnormal`. */
  readonly status: string;
  /** CamelCase word of the driver; empty in 1.12. */
  readonly reason: string;
  readonly message: string;
}

export interface VolumeStatistics {
  /** Undefined: the driver cannot say. */
  readonly bytes: UsageNumbers | undefined;
  readonly inodes: UsageNumbers | undefined;
  /** Undefined: the driver has no health capability. Empty: it says that all is well. */
  readonly health: readonly HealthStatement[] | undefined;
  /** Why there are no numbers of a volume whose health was told. */
  readonly failure?: Failure | undefined;
}

/**
 * Guarantees: every verb is idempotent, settles only when its effect has ended, never throws for input or the world,
 * and asks the kernel before it answers: `ok` from a climbing verb means the mount (or directory) is there, `ok` from
 * a descending verb means nothing of it is left, its directories included. A failure with effect `none` promises
 * that what was there before the call is still there, unchanged.
 *
 * Descending verbs need nothing but their call: no secret, no API object, no capability of today's driver (INV-14).
 */
export interface VolumePlugin {
  readonly name: PluginName;
  /** `publish` and `unpublish` look at `expected` before they do anything, and fail with `isUnexpected`. */
  readonly looksItself?: true;
  /** `stage` and `publish` look at `expectedAll` before they do anything, and fail with `isUnexpected`. */
  readonly looksFirst?: (spec: VolumeSpec) => boolean;
  /** Undefined while it cannot be known, because the driver is not registered. */
  needs(spec: VolumeSpec): Needs | undefined;
  /** The bulkhead it runs in: a hung driver fills only its own lane. */
  lane(spec: VolumeSpec): string;
  /** That of the rung `attach` where somebody else grants it: then no driver is asked. */
  readonly grantLane?: string | undefined;
  attach(call: VolumeCall): Promise<Result<Attached>>;
  detach(call: VolumeCall): Promise<Result<void>>;
  stage(call: VolumeCall): Promise<Result<Staged>>;
  unstage(call: VolumeCall): Promise<Result<void>>;
  /** Also refreshes: publishing again with other files replaces the content as one generation. */
  publish(call: PublicationCall): Promise<Result<{ readonly mount: MountIdentity | undefined }>>;
  unpublish(call: PublicationCall): Promise<Result<void>>;
  /**
   * Would a publish find every file as the call wants it, and change nothing? Looks only; false where that is not sure.
   * Absent: the wish brings no files for this kind.
   */
  readonly isUpToDate?: (call: PublicationCall) => Promise<boolean>;
  /**
   * Grows the file system (or tells the driver of the device) to at least `toBytes`.
   * `expand-in-use`: not while it is used, never to be repeated before it was unpublished (CSI NodeExpandVolume
   * FAILED_PRECONDITION). `expand-infeasible`: not to this size, ever.
   */
  readonly expand?: (call: ExpandCall) => Promise<Result<void>>;
  /** `busy`: another call of this volume is open, and a question must not wait behind it nor go beside it. */
  readonly statistics?: (call: StatisticsCall) => Promise<Result<VolumeStatistics | 'busy'>>;
  /** There is something to be asked of this volume; absent: of each one. */
  readonly hasStatistics?: (spec: VolumeSpec) => boolean;
  /**
   * After unpublish and unstage, for a volume in quarantine: `ok` only when nobody on this machine can still write to
   * one of these devices, in any mount namespace. `device-in-use` names who can.
   */
  readonly verifyClean?: (devices: readonly DeviceNumber[]) => Promise<Result<void>>;
}

export interface PluginRegistry {
  /** Total over the kinds: every spec has its plugin. */
  of(spec: VolumeSpec): VolumePlugin;
}
