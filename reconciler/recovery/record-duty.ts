/**
 * Nothing is begun that is not written down: the next agent believes what the record says (D-7).
 *
 * On the way up always, and with room for the way down. On the way down the room is there already, so a full disk is no
 * reason. A disk that fails is, but not for ever: a volume is not kept mounted, and its pod not undeleted, because of
 * another disk. After `RECORDLESS_MS` of failed writes it is taken down by the record of before, loudly.
 */
import type { Result } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from '../model/actual-state.ts';
import type { BackOffLimits } from '../../mount/process/back-off.ts';
import type { Log } from '../../mount/process/log.ts';
import { climbs, type Operation } from '../model/operation.ts';
import type { RecordStore } from './record-store.ts';

/** Longer than a disk that is reset, a path that fails over, or a person who frees space. */
export const RECORDLESS_MS = 300_000;

/** May an operation begin, by what became of its record? `failingMs`: how long no record of the volume was written. */
export function mayBegin(operation: Operation, saved: Result<void>, failingMs: number): boolean {
  return saved.ok || (!climbs(operation.kind) && failingMs >= RECORDLESS_MS);
}

export interface RecordDutyParts {
  readonly host: Clock;
  readonly records: Pick<RecordStore, 'save' | 'saveWithRoom'>;
  readonly log: Log;
  readonly mayBegin: typeof mayBegin;
  /** How far apart the tries of what failed may be. */
  readonly backOff: Pick<BackOffLimits, 'maxMs'>;
}

/** Failures of one volume, between which no record of it was written. */
interface FailedRow {
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** Writes down that an operation begins; `ok`: it may. */
export type RecordDuty = (operation: Operation, begun: ActualVolume) => Promise<Result<void>>;

export function createRecordDuty({ host, records, log, backOff, ...policy }: RecordDutyParts): RecordDuty {
  const rows = new Map<VolumeId, FailedRow>();
  // What is still to be done is tried sooner: after a longer gap nothing was, and nobody has waited.
  const gapMsMax = Math.max(RECORDLESS_MS, 2 * backOff.maxMs);

  function noteFailure(volume: VolumeId): void {
    const lastMs = host.nowMs();
    // Those of volumes that are gone go, too.
    for (const [id, row] of rows) if (lastMs - row.lastMs > gapMsMax) rows.delete(id);
    rows.set(volume, { sinceMs: rows.get(volume)?.sinceMs ?? lastMs, lastMs });
  }

  return async (operation, begun) => {
    const { volume } = operation;
    const isClimb = climbs(operation.kind);
    const saved = await (isClimb ? records.saveWithRoom(begun) : records.save(begun));
    if (saved.ok) rows.delete(volume);
    else if (!isClimb) noteFailure(volume);
    const failingMs = host.nowMs() - (rows.get(volume)?.sinceMs ?? host.nowMs());
    if (!policy.mayBegin(operation, saved, failingMs)) return saved;
    if (!saved.ok) {
      const { code, message } = saved.failure;
      log.warn('taken down by the record of before', { volume, operation: operation.kind, code, message });
    }
    return { ok: true, value: undefined };
  };
}
