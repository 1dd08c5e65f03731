/** The step of an operation as it is told: since when, and whether it takes longer than it should. Pure. */
import { assertNever } from '../../mount/failure.ts';
import type { Step } from '../../plugins/step.ts';

export type ToldStep = Step & {
  /** Host clock. */
  readonly sinceMs: number;
  /** Host clock: the step began, or gave its last sign of life. */
  readonly signMs: number;
};

/** A step is overdue when it has given no sign for so many times what its longest effect may take. */
const OVERDUE_DEADLINES = 2;

/**
 * `effectDeadlineMs`: of one effect of our own. Who waits for its turn is never overdue; who it waits for may be. An
 * effect past its deadline was killed, so one that is overdue cannot be killed, or is followed by others as slow.
 */
export function isOverdue(step: ToldStep, nowMs: number, effectDeadlineMs: number): boolean {
  const deadlineMs = deadlineOf(step, effectDeadlineMs);
  return deadlineMs !== undefined && nowMs - step.signMs > OVERDUE_DEADLINES * deadlineMs;
}

/** Undefined: it has none. */
function deadlineOf(step: Step, effectDeadlineMs: number): number | undefined {
  switch (step.kind) {
    case 'queued':
      return undefined;
    case 'called':
      return step.deadlineMs;
    case 'working':
      return step.deadlineMs ?? effectDeadlineMs;
    case 'verifying':
    case 'recording':
      return effectDeadlineMs;
    default:
      return assertNever(step);
  }
}

/** What follows "stage is running: ". */
export function stepText(step: Step): string {
  switch (step.kind) {
    case 'queued':
      return `it waits behind ${step.behind}`;
    case 'called':
      return `${step.rpc} was called, and the driver has not answered`;
    case 'verifying':
      return `the driver has answered ${step.rpc}, and the kernel is asked what is true`;
    case 'working':
      return 'it is at work on this machine itself';
    case 'recording':
      return 'its record is being written';
    default:
      return assertNever(step);
  }
}
