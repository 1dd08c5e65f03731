/** How large the files of the journal have to be, so that a full disk keeps nothing from being undone. Pure. */
import { ENTRY_OVERHEAD_BYTES, PAGE_BYTES, pagesOf } from './journal-format.ts';

/** What a small node needs; a file grows beyond it, and never shrinks. */
export const CAPACITY_BYTES = 262_144;
export const CAPACITY_BYTES_MAX = 268_435_456;
/** Small appends leave pages half empty, and this is for them. */
const SLACK_BYTES = 16_384;

/**
 * What one record needs: room twice, with what it grows by while its volume is taken down, such as words of drivers, or
 * places that are found. What is older goes when the journal is written anew, which needs no room.
 */
export function roomOf(bodyBytes: number): number {
  return 2 * (Math.ceil(bodyBytes * 1.5) + 2 * ENTRY_OVERHEAD_BYTES);
}

/** What a file needs for records that need so much room together. */
export function needOf(roomBytes: number): number {
  return pagesOf(PAGE_BYTES + SLACK_BYTES + roomBytes);
}

/** Twice what is needed, so that growing is rare. Undefined: more than a file may have. */
export function capacityFor(needBytes: number, leastBytes: number): number | undefined {
  if (needBytes > CAPACITY_BYTES_MAX) return undefined;
  if (needBytes <= leastBytes) return leastBytes;
  return Math.min(Math.ceil((2 * needBytes) / leastBytes) * leastBytes, CAPACITY_BYTES_MAX);
}
