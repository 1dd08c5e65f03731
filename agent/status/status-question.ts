/** What a driver owes of the questions about a volume, as the status has it. Pure. */
import type { Failure } from '../../mount/failure.ts';
import type { VolumeReading } from '../node/statistics-collector.ts';
import type { PastFailure, QuestionStatus } from './volume-status.ts';

/** `when`: a time of the host's clock as the document writes it; `failed`: a failure as it does. */
export function questionOf(
  reading: VolumeReading | undefined,
  nowMs: number,
  when: (monotonicMs: number) => string,
  failed: (failure: Failure | undefined) => PastFailure | null,
): QuestionStatus | null {
  if (reading === undefined) return null;
  const { unansweredSinceMs: sinceMs, nextAskMs, failure } = reading;
  if (sinceMs === undefined && failure === undefined) return null;
  return {
    unansweredSince: sinceMs === undefined ? null : when(sinceMs),
    unansweredForMs: sinceMs === undefined ? null : Math.max(0, Math.round(nowMs - sinceMs)),
    nextAskInMs: nextAskMs === undefined ? null : Math.max(0, Math.round(nextAskMs - nowMs)),
    failure: failed(failure),
  };
}
