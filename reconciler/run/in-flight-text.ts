/** What is told of an operation that is planned: that it waits, behind whom, or what it is doing. Pure. */
import type { Setback } from './setbacks.ts';
import type { VolumeInFlight } from './volume-operation.ts';
import type { Obstacle } from '../model/obstacle.ts';
import { publicationOf } from '../model/operation.ts';
import { isOverdue, stepText } from '../model/told-step.ts';

/** `running` only while something of it is under way: begun, it may wait for the turn of its call. */
export function tellInFlight(
  { operation, phase, lane, sinceMs, begunMs, step, progress, setback }: VolumeInFlight,
  nowMs: number,
  effectDeadlineMs: number,
): Obstacle {
  const { kind } = operation;
  const common = {
    volume: operation.volume,
    publication: publicationOf(operation),
    operation: kind,
    code: undefined,
    step,
    overdue: isOverdue(step, nowMs, effectDeadlineMs),
    ...triesBefore(setback),
  } as const;
  if (phase === 'queued') {
    const message = `${kind} waits for a free place in lane ${lane}`;
    return { kind: 'waiting-turn', message, blocker: lane, sinceMs, ...common };
  }
  if (step.kind === 'queued') {
    const message = `${kind} waits behind ${step.behind}`;
    return { kind: 'waiting-turn', message, blocker: step.behind, sinceMs: step.sinceMs, ...common };
  }
  const message = `${kind} is running: ${progress ?? stepText(step)}`;
  return { kind: 'running', message, blocker: undefined, sinceMs: begunMs ?? sinceMs, ...common };
}

/** The times and tries of an obstacle that is not waiting for a next try. */
export function triesBefore(
  setback: Setback | undefined,
): Pick<Obstacle, 'nextRetryMs' | 'attempts' | 'lastFailure'> {
  return { nextRetryMs: undefined, attempts: setback?.attempts ?? 0, lastFailure: setback?.failure };
}
