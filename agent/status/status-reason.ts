/** What stands in the way of volumes and of their places, as the status has it. Pure. */
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { UnresolvedVolume } from '../../reconciler/model/desired-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import { publicationOf } from '../../reconciler/model/operation.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import type { StatusFacts } from './status-facts.ts';
import type { PodPlace } from './status-places.ts';
import { stepStatus } from './status-step.ts';
import { pastFailure, shown, shownOrNull } from './status-text.ts';
import type { Reason, StepStatus } from './volume-status.ts';

/** What each part of the document is made of. */
export interface DocumentParts {
  readonly facts: StatusFacts;
  readonly layout: Layout;
  readonly reasons: StatusReasons;
}

export class StatusReasons {
  readonly #facts: StatusFacts;
  readonly #obstacles: ReadonlyMap<VolumeId, readonly Obstacle[]>;
  readonly #running: ReadonlyMap<VolumeId, readonly VolumeInFlight[]>;

  constructor(facts: StatusFacts) {
    this.#facts = facts;
    this.#obstacles = byVolume(facts.obstacles, ({ volume }) => volume);
    this.#running = byVolume(facts.running, ({ operation }) => operation.volume);
  }

  /** A time of the host's clock as the document writes it; may be handed on by itself. */
  readonly when = (monotonicMs: number): string =>
    new Date(this.#facts.wallMs - (this.#facts.nowMs - monotonicMs)).toISOString();

  obstaclesOf(volume: VolumeId): readonly Obstacle[] {
    return this.#obstacles.get(volume) ?? [];
  }

  runningOf(volume: VolumeId): readonly VolumeInFlight[] {
    return this.#running.get(volume) ?? [];
  }

  /** What stands in the way of one place: its own obstacle first, then that of the volume as a whole. */
  obstacleOf({ volume, spec }: PodPlace): Obstacle | undefined {
    const ofVolume = this.obstaclesOf(volume.spec.id);
    return (
      mostTelling(ofVolume.filter(({ publication }) => publication === spec.key)) ??
      mostTelling(ofVolume.filter(({ publication }) => publication === undefined))
    );
  }

  /** What stands in the way of the volume as a whole. */
  reasonOfVolume(volume: VolumeId): Reason | null {
    return this.reasonOf(
      mostTelling(this.obstaclesOf(volume).filter(({ publication }) => publication === undefined)),
    );
  }

  reasonOf(obstacle: Obstacle | undefined): Reason | null {
    if (obstacle === undefined) return null;
    const { nextRetryMs } = obstacle;
    const { nowMs } = this.#facts;
    return {
      kind: obstacle.kind,
      code: obstacle.code ?? obstacle.kind,
      operation: obstacle.operation ?? null,
      message: shown(obstacle.message),
      blocker: shownOrNull(obstacle.blocker),
      ...this.#sinceAndFor(obstacle.sinceMs),
      nextRetryInMs: nextRetryMs === undefined ? null : Math.max(0, Math.round(nextRetryMs - nowMs)),
      attempts: obstacle.attempts,
      lastFailure: pastFailure(obstacle.lastFailure),
      progress: obstacle.kind === 'running' ? this.#progressOf(obstacle) : null,
      step: this.#stepOf(obstacle),
    };
  }

  reasonOfUnresolved(unresolved: UnresolvedVolume): Reason {
    const { failure } = unresolved;
    return {
      kind: 'blocked',
      code: failure.code,
      operation: null,
      message: shown(failure.message),
      blocker: shownOrNull(failure.blocker),
      ...this.#sinceAndFor(this.#facts.unresolvedSinceMs(unresolved)),
      nextRetryInMs: null,
      attempts: 0,
      lastFailure: null,
      progress: null,
      step: null,
    };
  }

  #stepOf({ step, overdue }: Pick<Obstacle, 'step' | 'overdue'>): StepStatus | null {
    return step === undefined ? null : stepStatus(step, overdue, this.#facts.nowMs, this.when);
  }

  #sinceAndFor(sinceMs: number): Pick<Reason, 'since' | 'forMs'> {
    return { since: this.when(sinceMs), forMs: Math.max(0, Math.round(this.#facts.nowMs - sinceMs)) };
  }

  #progressOf({ volume, publication, operation: kind }: Obstacle): string | null {
    const same = this.runningOf(volume).find(({ operation }) => {
      return operation.kind === kind && publicationOf(operation) === publication;
    });
    return shownOrNull(same?.progress);
  }
}

function byVolume<T extends Obstacle | VolumeInFlight>(
  all: readonly T[],
  volumeOf: (one: T) => VolumeId,
): ReadonlyMap<VolumeId, readonly T[]> {
  const groups = new Map<VolumeId, T[]>();
  for (const one of all) {
    const group = groups.get(volumeOf(one));
    if (group === undefined) groups.set(volumeOf(one), [one]);
    else group.push(one);
  }
  return groups;
}

/** That it is in quarantine is said beside; what delays the end of it is news. */
function mostTelling(obstacles: readonly Obstacle[]): Obstacle | undefined {
  return obstacles.find(({ kind }) => kind !== 'quarantined') ?? obstacles[0];
}
