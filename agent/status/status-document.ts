/**
 * The shape of the status document, version mooring/v1, as docs/API.md describes it: every key is always there, what
 * is not known is null. Keys may be added within v1; none changes its meaning or goes.
 */
import type { FailureCode } from '../../mount/failure.ts';
import type { AccessMode, CsiVolumeSpec, VolumeMode } from '../../plugins/volume.ts';
import type { OperationKind } from '../../reconciler/model/operation.ts';
import type { ObstacleKind } from '../../reconciler/model/obstacle.ts';
import type { QuarantineReason } from '../../reconciler/model/quarantine.ts';

/**
 * `mounted`: the pod can use it. `mounting`: on its way up. `waiting`: will be tried again by itself. `blocked`: only
 * a change of the wish or the driver helps, or the end of a quarantine. `unmounting`: not wanted any more, or in
 * quarantine, on its way down. `kept`: not wanted any more as far as is known, but left alone until that is certain.
 */
export type VolumeState = 'mounted' | 'mounting' | 'waiting' | 'blocked' | 'unmounting' | 'kept';

/** `unsure`: may or may not be there; done again if wanted, undone if not. */
export type RungState = 'present' | 'absent' | 'unsure' | 'not-needed';

/** What a try ran into that is over. */
export interface PastFailure {
  readonly code: FailureCode;
  readonly message: string;
  readonly blocker: string | null;
}

/** What an operation that was begun, or has its place in a lane, is doing. */
export interface StepStatus {
  /**
   * `queued`: nothing of it is under way. `called`: the driver has not answered. `verifying`: it has, and the kernel is
   * asked. `working`: our own effects. `recording`: its record is being written.
   */
  readonly kind: 'queued' | 'called' | 'verifying' | 'working' | 'recording';
  /** `queued`: who comes first. `called`, `verifying`: the call, by CSI's name. Otherwise null. */
  readonly of: string | null;
  /** ISO 8601, UTC. */
  readonly since: string;
  readonly forMs: number;
  /** Of the call. Null: there is none open. */
  readonly deadlineMs: number | null;
  /** It has taken longer than twice its deadline, without a sign of life. */
  readonly overdue: boolean;
}

export interface Reason {
  readonly kind: ObstacleKind;
  /** A failure code of docs/OPERATING.md, or the kind where nothing failed. */
  readonly code: string;
  /** The verb that would come next. */
  readonly operation: OperationKind | null;
  readonly message: string;
  /** Who or what stands in the way. */
  readonly blocker: string | null;
  /** ISO 8601, UTC. */
  readonly since: string | null;
  readonly forMs: number | null;
  /** Null: not by time, only when its cause changes. */
  readonly nextRetryInMs: number | null;
  /** Failures in a row. */
  readonly attempts: number;
  /** Of one that is under way again: what the try before ran into. */
  readonly lastFailure: PastFailure | null;
  /** What a long operation is doing now, as far as it says. */
  readonly progress: string | null;
  /** Null: nothing of it is planned at the moment. */
  readonly step: StepStatus | null;
}

/** What keeps the volume from being used on this node: another one may have it. */
export interface QuarantineStatus {
  readonly reason: QuarantineReason;
  /** ISO 8601, UTC. Null: it stands by the wish alone, and nothing of the volume was here. */
  readonly since: string | null;
  /** Taken down, and nobody on this machine was found to use its devices. */
  readonly verified: boolean;
  /** The wish still says so: it does not end before that does, clean or not. */
  readonly standing: boolean;
}

/**
 * `none`: as large as it should be, or nobody knows. `pending`: will be grown by itself. `in-progress`: being grown.
 * `held`: the wish says why not. `infeasible`: the driver never makes it this large. `in-use`: not before nothing of it
 * is published any more. `claim-larger`: as large as its PersistentVolume says, and a claim asks for more.
 */
export type ExpansionState =
  | 'none'
  | 'pending'
  | 'in-progress'
  | 'held'
  | 'infeasible'
  | 'in-use'
  | 'claim-larger';

export interface ExpansionStatus {
  readonly state: ExpansionState;
  readonly message: string | null;
}

/** Decimal digits; null: the driver does not say. */
export interface UsageStatus {
  readonly total: string | null;
  readonly used: string | null;
  readonly available: string | null;
}

export interface StatisticsStatus {
  readonly bytes: UsageStatus | null;
  readonly inodes: UsageStatus | null;
  /** How long ago the driver said so. */
  readonly ageMs: number;
}

export interface LateEffectStatus {
  readonly operation: 'attach' | 'stage' | 'publish' | 'detach';
  /** namespace/name, or the uid where no name is known; null when it is about the volume as a whole. */
  readonly pod: string | null;
  /** Null: the call is being made. */
  readonly until: string | null;
}

/** What the driver owes of the questions how full a volume is and how it is, or why it could not say. */
export interface QuestionStatus {
  /** ISO 8601, UTC. When the first question in a row was asked that was not answered; null: it answers. */
  readonly unansweredSince: string | null;
  readonly unansweredForMs: number | null;
  /** When it is asked again. Null: in its turn; while one is unanswered, not before that one has ended. */
  readonly nextAskInMs: number | null;
  /** Why the newest question had no answer. */
  readonly failure: PastFailure | null;
}

/** The driver's word, for people: nothing is decided on it. The kernel's decides who may come. */
export interface HealthStatus {
  /** Left out: the driver. */
  readonly saidBy?: 'kernel';
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

export interface PodVolumeStatus {
  /** PersistentVolume name, or the pod's own volume name. */
  readonly name: string;
  readonly id: string | null;
  readonly plugin: string | null;
  readonly driver: string | null;
  readonly wanted: boolean;
  readonly state: VolumeState;
  readonly rungs: { readonly attached: RungState; readonly staged: RungState; readonly published: RungState };
  readonly readOnly: boolean;
  /** Where the pod's containers find it; of a block volume the link to the device. */
  readonly path: string | null;
  /** The supplemental group that the pod must run with to use it (annotation of the PersistentVolume). */
  readonly supplementalGid: number | null;
  /** The manifest file that asked for it; null: it was found on disk. */
  readonly origin: string | null;
  /** Null when nothing is in the way. */
  readonly reason: Reason | null;
}

export interface PodStatus {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** False: gone from the wish, its volumes are on their way down. */
  readonly wanted: boolean;
  /** All its volumes are mounted. */
  readonly ready: boolean;
  readonly volumes: readonly PodVolumeStatus[];
}

export interface VolumeStatus {
  readonly id: string;
  readonly plugin: string;
  readonly driver: string | null;
  readonly name: string;
  readonly wanted: boolean;
  /** Found on disk, and nobody wants it. */
  readonly stranger: boolean;
  readonly mode: VolumeMode;
  /** Null for volumes that no CSI driver has. */
  readonly lifecycle: CsiVolumeSpec['lifecycle'] | null;
  readonly accessModes: readonly AccessMode[];
  readonly rungs: { readonly attached: RungState; readonly staged: RungState };
  readonly stagingPath: string | null;
  /** namespace/name of pods, sorted. */
  readonly wantedBy: readonly string[];
  readonly publishedTo: readonly string[];
  readonly running: readonly {
    readonly operation: OperationKind;
    readonly phase: 'queued' | 'running';
    readonly since: string;
    readonly progress: string | null;
    readonly step: StepStatus;
  }[];
  /** Fields of the wish that what stands was set up otherwise than: they take effect when it is set up again. */
  readonly changed: readonly string[];
  /** Bytes in decimal digits; `current`: on this node, as far as is known. */
  readonly size: { readonly wanted: string | null; readonly current: string | null };
  readonly expansion: ExpansionStatus;
  /** Calls that were given up without an answer and may still take effect; what comes is given back to the driver. */
  readonly lateEffects: readonly LateEffectStatus[];
  /** Null: it is not in quarantine. */
  readonly quarantine: QuarantineStatus | null;
  /** Null: the driver was not asked yet, or cannot say. */
  readonly statistics: StatisticsStatus | null;
  /** Null: the newest question about it was answered well, or there was none. */
  readonly question: QuestionStatus | null;
  /** Null: the driver was not asked yet, or cannot say. Empty: it says that all is well. */
  readonly health: readonly HealthStatus[] | null;
  readonly reason: Reason | null;
}

export interface DriverStatus {
  /** Null: refused before it said its name. */
  readonly name: string | null;
  readonly state: 'registered' | 'refused';
  readonly version: string | null;
  readonly nodeId: string | null;
  readonly socket: string;
  readonly registeredAt: string | null;
  /** Null: no limit, or not known. */
  readonly volumesMax: number | null;
  /** CSI's names; `unknown(99)` for a number this build does not know. `controller` null: it has no such service. */
  readonly capabilities: {
    readonly node: readonly string[];
    readonly controller: readonly string[] | null;
  } | null;
  /** Volumes of this driver the node has something of. */
  readonly volumes: number;
  /** Volumes, and the storage behind it, about which it was asked and has not answered. */
  readonly unanswered: number;
  /** Of the storage behind it, as it says. Null: not asked yet, or it cannot say. Empty: all is well. */
  readonly health: readonly HealthStatus[] | null;
  readonly reason: string | null;
  /** Failure code of the reason; null where nothing failed. */
  readonly code: string | null;
}

/** Pods that are kept for some seconds although their manifests are gone, because it may be a mistake. */
export interface VanishingStatus {
  /** Uids. */
  readonly pods: readonly string[];
  readonly since: string;
  /** When it is believed, unless they come back; 0: with the next listing. */
  readonly believedInMs: number;
}

/** Pods whose manifests vanished while nobody looked: kept for some minutes, because it may be a mistake. */
export interface VanishedStatus {
  /** Uids. */
  readonly pods: readonly string[];
  /** Of the first of them. */
  readonly since: string;
  /** When the last of them is believed to be gone, unless it comes back. */
  readonly believedInMs: number;
}

/** Another directory in the place of that of the manifests: nothing of it is read, and nothing is taken down. */
export interface ReplacedStatus {
  readonly directory: string;
  /** For people. */
  readonly was: string;
  readonly is: string;
  /** What `POST /v1/manifests` takes as `accept`. */
  readonly sight: string;
  readonly since: string;
}

export interface StatusDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Status';
  readonly revision: string;
  readonly agent: {
    readonly node: string;
    readonly version: string;
    readonly commit: string;
    readonly root: string;
    readonly startedAt: string;
    readonly now: string;
    readonly uptimeMs: number;
    /** False until every source has been listed once: until then nothing is torn down. */
    readonly complete: boolean;
  };
  readonly summary: {
    readonly pods: number;
    readonly podsWanted: number;
    readonly podsReady: number;
    /** Volumes; the six states below count (pod, volume) pairs. */
    readonly volumes: number;
    readonly mounted: number;
    readonly mounting: number;
    readonly waiting: number;
    readonly blocked: number;
    readonly unmounting: number;
    readonly kept: number;
    readonly operationsRunning: number;
    readonly operationsQueued: number;
    /** Of the running ones: their step takes longer than twice its deadline. */
    readonly operationsOverdue: number;
    readonly driversRegistered: number;
    readonly driversRefused: number;
    readonly objectsRejected: number;
    readonly sourcesUnknown: number;
    readonly unreadableRecords: number;
    readonly abandonedCalls: number;
    /** Volumes in quarantine, volumes of which a driver says that something is wrong, volumes found on disk. */
    readonly quarantined: number;
    readonly unhealthy: number;
    /** Volumes whose driver has not answered how they are. */
    readonly unanswered: number;
    readonly strangers: number;
  };
  readonly pods: readonly PodStatus[];
  readonly volumes: readonly VolumeStatus[];
  /** Ids of the volumes that were found on disk and that nobody wants: they are taken down. */
  readonly strangers: readonly string[];
  readonly drivers: readonly DriverStatus[];
  readonly sources: {
    readonly rejected: readonly {
      /** The file, and after `#` the document in it counted from 1. */
      readonly origin: string;
      /** `Pod default/web`, as far as it could be read. */
      readonly subject: string | null;
      readonly field: string | null;
      readonly message: string;
    }[];
    /** Sources that cannot be read now; what came from them is kept as it is. */
    readonly unknown: readonly string[];
    /** Too many pods vanished from the manifests at once to be believed; null when that is not so. */
    readonly vanishing: VanishingStatus | null;
    /** Of these the manifests went while no agent ran, or its directory was another one; null when there are none. */
    readonly vanished: VanishedStatus | null;
    /** Null: the manifests are read from the directory that they were always read from. */
    readonly replaced: ReplacedStatus | null;
  };
  /** Records of volumes that could not be read back; their volumes are found by the mounts they left. */
  readonly unreadableRecords: readonly {
    readonly file: string;
    readonly code: string;
    readonly message: string;
  }[];
}
