/** How large the files of the journal have to be, so that a full disk keeps nothing from being undone. Pure. */
import { ENTRY_OVERHEAD_BYTES, type JournalEntry, PAGE_BYTES, pagesOf } from './journal-format.ts';

/** What a small node needs; a file grows beyond it, and never shrinks. */
export const CAPACITY_BYTES = 262_144;
export const CAPACITY_BYTES_MAX = 268_435_456;
/** For the pages that small appends leave half empty. */
const SLACK_BYTES = 16_384;

/**
 * What records with bodies of so many bytes need: each of them twice, with what it grows by while its volume is taken
 * down, such as words of drivers, or places that are found. What is older goes when the journal is written anew, which
 * needs no room.
 */
export function needOf(bodiesBytes: Iterable<number>): number {
  let bytes = PAGE_BYTES + SLACK_BYTES;
  for (const one of bodiesBytes) bytes += 2 * (Math.ceil(one * 1.5) + 2 * ENTRY_OVERHEAD_BYTES);
  return pagesOf(bytes);
}

/** As `needOf`, once these entries are written. */
export function needWith(bodiesBytes: Map<string, number>, entries: readonly JournalEntry[]): number {
  for (const { key, body } of entries) {
    if (body === undefined) bodiesBytes.delete(key);
    else bodiesBytes.set(key, Buffer.byteLength(body));
  }
  return needOf(bodiesBytes.values());
}

/** Twice what is needed, so that growing is rare. Undefined: more than a file may have. */
export function capacityFor(needBytes: number, leastBytes: number): number | undefined {
  if (needBytes > CAPACITY_BYTES_MAX) return undefined;
  if (needBytes <= leastBytes) return leastBytes;
  return Math.min(Math.ceil((2 * needBytes) / leastBytes) * leastBytes, CAPACITY_BYTES_MAX);
}
