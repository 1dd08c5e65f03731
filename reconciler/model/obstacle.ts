/** Every wait has a reason: the one current obstacle of each publication or volume that is not where it should be. */
import { assertNever, type Failure, type FailureCode } from '../../mount/failure.ts';
import type { PublicationKey, PublicationSpec, VolumeId } from '../../plugins/volume.ts';
import type { OperationKind } from './operation.ts';
import type { ToldStep } from './told-step.ts';

/**
 * `running`: an operation is under way, in the step that is told. `waiting-retry`: it failed and will be tried
 * again. `waiting-change`: it failed in a way only a change of wish or driver can cure. `waiting-driver`: the driver is
 * not registered. `waiting-turn`: another operation of the same volume, or the driver's lane, comes first. `blocked`:
 * the wish itself lacks something. `gate-closed`: teardown waits until every source has been listed. `frozen`: teardown
 * waits because what is wanted for this pod is not known. `quarantined`: another node may have the volume; it is set up
 * again when this one is proven clean.
 */
export type ObstacleKind =
  | 'running'
  | 'waiting-retry'
  | 'waiting-change'
  | 'waiting-driver'
  | 'waiting-turn'
  | 'blocked'
  | 'gate-closed'
  | 'frozen'
  | 'quarantined';

export interface Obstacle {
  readonly kind: ObstacleKind;
  readonly volume: VolumeId;
  /** Undefined when it is about the volume as a whole. */
  readonly publication: PublicationKey | undefined;
  /** The verb that would come next. */
  readonly operation: OperationKind | undefined;
  readonly code: FailureCode | undefined;
  readonly message: string;
  readonly blocker: string | undefined;
  /** Host clock: when this obstacle (same kind and code) began. */
  readonly sinceMs: number;
  /** Host clock; undefined when no time-driven retry is planned. */
  readonly nextRetryMs: number | undefined;
  /** Failures in a row. */
  readonly attempts: number;
  /** What the operation is doing, if it is under way. */
  readonly step: ToldStep | undefined;
  /** The operation is under way, and its step has taken longer than twice its deadline. */
  readonly overdue: boolean;
  /** What the try before ran into, if the operation is under way again. */
  readonly lastFailure: Failure | undefined;
}

/** Something that should happen and may not yet. */
export interface Wait {
  readonly kind: Extract<
    ObstacleKind,
    'waiting-driver' | 'blocked' | 'gate-closed' | 'frozen' | 'quarantined'
  >;
  readonly publication: PublicationKey | undefined;
  readonly operation: OperationKind;
  readonly failure: Failure | undefined;
}

/** Why it waits. `pod`: whose place it is about, if it is about one. */
export function waitMessage({ kind, failure }: Pick<Wait, 'kind' | 'failure'>, pod: string): string {
  if (failure !== undefined) return failure.message;
  switch (kind) {
    case 'waiting-driver':
      return 'the driver is not registered on this node';
    case 'gate-closed':
      return 'nothing is taken down before every source of the wish, and the state root, have been read whole once';
    case 'frozen':
      return `what is wanted for ${pod} cannot be read now, or it is being deleted and may still run: it is kept`;
    case 'blocked':
      return 'the wish is incomplete';
    case 'quarantined':
      return 'the volume is in quarantine';
    default:
      return assertNever(kind);
  }
}

/** The pod of a place, as a reason names it; of one that was found on disk only the uid is known. */
export function podName({ pod }: PublicationSpec): string {
  return pod.name === '' ? `pod ${pod.uid}` : `${pod.namespace}/${pod.name}`;
}
