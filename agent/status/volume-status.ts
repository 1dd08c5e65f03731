/** What the status document says of one volume, and the reasons that it gives. Part of the public API. */
import type { FailureCode } from '../../mount/failure.ts';
import type { AccessMode, CsiVolumeSpec, VolumeMode } from '../../plugins/volume.ts';
import type { ObstacleKind } from '../../reconciler/model/obstacle.ts';
import type { OperationKind } from '../../reconciler/model/operation.ts';
import type { QuarantineReason } from '../../reconciler/model/actual-state.ts';

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
  /** What the open call may take. Null: there is none open. */
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
  /** What the try before ran into, of an expansion that is under way again. */
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

/** The driver's word, or ours, for people: nothing is decided on it. The kernel's decides who may come. */
export interface HealthStatus {
  /** Left out: the driver. */
  readonly saidBy?: 'kernel' | 'agent';
  readonly status: string;
  readonly reason: string;
  readonly message: string;
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
