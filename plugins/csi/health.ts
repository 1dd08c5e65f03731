/** What drivers say about the health of volumes and of the storage behind them, put in words. Pure. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { HealthStatement } from '../plugin.ts';
import {
  type NodeGetStorageHealthResponse,
  type NodeGetVolumeHealthResponse,
  StorageHealthErrorType,
  type VolumeCondition,
  VolumeHealthErrorType,
} from './wire/generated/csi.ts';
import { printable } from '../../mount/text/printable.ts';
import { shown } from './wire/status.ts';

/** More of them than this nobody reads; the first ones are kept. */
const STATEMENTS_MAX = 16;
/** So many are looked at, of which some may say the same: to look for secrets in each takes its time. */
const ENTRIES_MAX = 64;
/** A CamelCase word; it is a label of a metric, too. */
const REASON_BYTES_MAX = 128;

const VOLUME_WORDS: ReadonlyMap<number, string> = new Map([
  [VolumeHealthErrorType.DEGRADED, 'degraded'],
  [VolumeHealthErrorType.INACCESSIBLE, 'inaccessible'],
  [VolumeHealthErrorType.DATA_LOSS, 'data-loss'],
]);

const STORAGE_WORDS: ReadonlyMap<number, string> = new Map([
  [StorageHealthErrorType.STORAGE_DEGRADED, 'storage-degraded'],
  [StorageHealthErrorType.STORAGE_UNREACHABLE, 'storage-unreachable'],
]);

/** What may be shown of a text: it may hold secrets. */
type Say = (text: string) => string;

/** Empty: all is well. `driver-answer-invalid`: it speaks of another volume. */
export function volumeHealth(
  { volumeHealth }: NodeGetVolumeHealthResponse,
  volumeHandle: string,
  say: Say,
): Result<readonly HealthStatement[]> {
  const entries = volumeHealth?.healthStatuses ?? [];
  if (volumeHealth === undefined || entries.length === 0) return ok([]);
  if (volumeHealth.volumeId !== volumeHandle) {
    const other = printable(volumeHealth.volumeId, REASON_BYTES_MAX);
    const message = `NodeGetVolumeHealth was asked about one volume and answered about "${other}"`;
    return fail({ code: 'driver-answer-invalid', message, effect: 'none' });
  }
  return ok(statements(entries, VOLUME_WORDS, say));
}

/** What is wrong with all the storage behind the driver. Empty: all is well. */
export function storageHealth(
  { backendHealth }: NodeGetStorageHealthResponse,
  say: Say,
): readonly HealthStatement[] {
  return statements(backendHealth, STORAGE_WORDS, say);
}

/** The 1.12 condition, which 1.13 has no field for any more. Undefined: the driver sent none. */
export function conditionHealth(
  condition: VolumeCondition | undefined,
  say: Say,
): readonly HealthStatement[] | undefined {
  if (condition === undefined) return undefined;
  return condition.abnormal
    ? [{ status: 'abnormal', reason: '', message: shown(say(condition.message)) }]
    : [];
}

interface Entry {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

/** One for each status and reason, as CSI has it; types of later versions are shown by their number. */
function statements(
  entries: readonly Entry[],
  words: ReadonlyMap<number, string>,
  say: Say,
): readonly HealthStatement[] {
  const found = new Map<string, HealthStatement>();
  for (const entry of entries.slice(0, ENTRIES_MAX)) {
    const status = words.get(entry.status) ?? `unknown(${entry.status})`;
    const reason = printable(say(entry.reason), REASON_BYTES_MAX);
    const key = `${status} ${reason}`;
    if (!found.has(key)) found.set(key, { status, reason, message: shown(say(entry.message)) });
    if (found.size === STATEMENTS_MAX) break;
  }
  return [...found.values()];
}
