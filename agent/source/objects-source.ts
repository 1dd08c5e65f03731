/** The port of whatever says what is wanted: a directory of manifests, an API server, or several of them at once. */
import type { Failure, Result } from '../../mount/failure.ts';
import type { AbsolutePath, Cancel } from '../../mount/host.ts';
import type { PodReference, PodUid } from '../../plugins/volume.ts';
import type { Stamped, ApiObject } from '../../kubernetes/objects/objects.ts';
import type { ClusterReport } from './cluster-report.ts';
import type { AttachmentSubject } from '../../kubernetes/objects/read-attachment.ts';

/** Something in a source that is not taken, and why. For people; holds no secret. */
export interface Rejection {
  /** The file, and after `#` the document in it counted from 1: `web.yaml#2`. */
  readonly origin: string;
  /** `Pod default/web`, as far as it could be read. */
  readonly subject?: string;
  /** `spec.volumes[2].hostPath.type`. */
  readonly field?: string;
  readonly message: string;
  /** What a VolumeAttachment that is not taken is about: it is not known whether that volume is attached. */
  readonly attachment?: AttachmentSubject;
  /** The pod of a cluster that waits because of it: it has an object there, by which that is told. */
  readonly pod?: WaitingPod;
  /** How many volumes it has; undefined: that cannot be read. */
  readonly podVolumes?: number;
  /** It is being read, or is known in a moment, which ends in one way or another: nothing is the matter. */
  readonly isPassing?: true;
}

export type WaitingPod = Pick<PodReference, 'namespace' | 'name' | 'uid'>;

/** A part of a source that is known or unknown by itself: one file, or all that an API server says. */
export interface SourcePart {
  /** Differs from that of any other part, of other sources too: what is unknown is told by it. */
  readonly name: string;
  readonly objects: readonly Stamped<ApiObject>[];
  readonly rejected: readonly Rejection[];
  /** It cannot be read now; its objects are what it said last. */
  readonly unknown: boolean;
  /** Nothing of it was ever known, and what it says will be in a moment. */
  readonly isAwaited?: true;
  /** Nothing of it was ever known, because it cannot be read. */
  readonly isUnread?: boolean;
  /** Pods of which it is not known what is wanted. */
  readonly frozenPods: ReadonlySet<PodUid>;
  /**
   * Pods that it shows, whatever it says of them: that one is being deleted, that its containers have ended. Whoever
   * leaves it out has seen those of its objects alone.
   */
  readonly shownPods?: ReadonlySet<PodUid>;
}

/** Pods that are still wanted although their source has dropped them, because too many of them went at once. */
export interface MassRemoval {
  readonly pods: ReadonlySet<PodUid>;
  /** Host clock: when the first of them was seen to be gone. */
  readonly sinceMs: number;
  /** Host clock: when the last of them is believed to be gone, unless it has come back. */
  readonly untilMs: number;
}

/** What a source has to tell people beside its objects; nothing is decided by it. */
export interface SourceReport {
  readonly massRemoval?: MassRemoval;
  readonly cluster?: ClusterReport;
  /** Something of the source as a whole, in a sentence. */
  readonly remark?: string;
}

/** All that one source says at one moment. */
export interface SourceReading {
  /** False until all of it has been read once. */
  readonly complete: boolean;
  readonly parts: readonly SourcePart[];
  /** Why the source as a whole cannot be read now: what it said last stays wanted. */
  readonly doubt?: Failure | undefined;
  /** Undefined when there is nothing to tell. */
  readonly report?: SourceReport | undefined;
}

export type Stake = 'nothing' | 'unknown' | 'something';

/** What a source may ask about this node before it believes that something is gone. */
export interface NodeSight {
  /**
   * What is read by mistake could take from a pod: `something` when pods are wanted, something stands, or a record
   * cannot be read, of which nobody knows what stands; `unknown` while pods have directories and the layout on disk is
   * not read.
   */
  stake(): Stake;
  /** How many pods have something here, and no source has shown them in this life. */
  missing(): number;
  /** A failure says who lies over what this node keeps at `path`: what is not seen there may be there all the same. */
  refuseStranger(path: AbsolutePath): Promise<Result<void>>;
}

/** A directory in the place of the one that a source was read from. */
export interface ReplacedDirectory {
  readonly directory: string;
  /** Told to people. */
  readonly was: string;
  readonly is: string;
  /** Names what is there now: an operator's word is about it and no other. */
  readonly sight: string;
  /** Host clock: when it was seen first. */
  readonly sinceMs: number;
}

/** What a source keeps in case that it is gone by mistake, and an operator's word on it. */
export interface SourceKeeping {
  /** Undefined while the source is read from where it was always read from. */
  replaced(): ReplacedDirectory | undefined;
  /**
   * The directory of this sight is the right one from now on. Durable when it settles `ok`; `reference-missing` when
   * another one is there, or none that is in doubt.
   */
  accept(sight: string): Promise<Result<void>>;
  /** These pods are gone: what of them is kept is kept no longer. */
  forget(pods: readonly PodUid[]): void;
}

/**
 * Guarantees: what is read is read level-triggered, so that the last reading says all there is; a source that cannot be
 * read says again what it said last, and that it is in doubt. Objects may be made anew for each reading: whether one
 * has changed is told by what is in it.
 */
export interface ObjectsSource {
  /** Unlike that of any other source or part. For people: the path of a directory, the address of a server. */
  readonly name: string;
  /** Settles after the first reading, whether it succeeded or not (`complete` says so), and `onChange` was called. */
  start(node: NodeSight): Promise<void>;
  /** Nothing is read and no listener is called any more. */
  stop(): void;
  /** The reading of this moment. */
  current(): SourceReading;
  /** Called after `current()` has changed; best never for a reading that says the same again. */
  onChange(listener: () => void): Cancel;
  /** Only of a source that can be taken for another one, or lose what it said by mistake. */
  readonly keeping?: SourceKeeping;
}
