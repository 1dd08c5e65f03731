/** The step of an operation as the status has it. Pure. */
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import { type Operation, publicationOf } from '../../reconciler/model/operation.ts';
import type { ToldStep } from '../../reconciler/model/told-step.ts';
import { printable } from '../../mount/text/printable.ts';
import type { StepStatus } from './volume-status.ts';

const OF_BYTES_MAX = 256;

/** `when`: a time of the host's clock as the document writes it. */
export function stepStatus(
  step: ToldStep,
  overdue: boolean,
  nowMs: number,
  when: (monotonicMs: number) => string,
): StepStatus {
  return {
    kind: step.kind,
    of: subjectOf(step),
    since: when(step.sinceMs),
    forMs: Math.max(0, Math.round(nowMs - step.sinceMs)),
    deadlineMs: step.kind === 'called' ? Math.round(step.deadlineMs) : null,
    overdue,
  };
}

export function countOverdue(obstacles: readonly Pick<Obstacle, 'overdue'>[]): number {
  return obstacles.filter(({ overdue }) => overdue).length;
}

/** As the obstacle of the operation says. */
export function isOverdueAsTold(operation: Operation, ofVolume: readonly Obstacle[]): boolean {
  const own = ofVolume.find((one) => {
    return one.operation === operation.kind && one.publication === publicationOf(operation);
  });
  return own?.overdue ?? false;
}

function subjectOf(step: ToldStep): string | null {
  if (step.kind === 'queued') return printable(step.behind, OF_BYTES_MAX);
  return step.kind === 'called' || step.kind === 'verifying' ? step.rpc : null;
}
