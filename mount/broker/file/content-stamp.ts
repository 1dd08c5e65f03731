/** What tells a state of a file from every later one, by its times. Path brokers only. */
import type { BigIntStats } from 'node:fs';
import type { ContentStamp } from '../../host.ts';

/**
 * The change time moves with every write, and with every name that is made, moved or removed, whatever is done to the
 * time of modification; but what comes in the same tick of the clock moves nothing, so a file that is young has none.
 * Nor has one from the future.
 */
export function stampOf(stats: BigIntStats, ageMs: number): ContentStamp | undefined {
  return isYoung(stats, ageMs) ? undefined : timesOf(stats);
}

/** By the clock of this node, which may not be the one that the change time is from. */
export function isYoung({ ctimeMs }: BigIntStats, ageMs: number): boolean {
  return Date.now() - Number(ctimeMs) < ageMs;
}

/** As `stampOf`, of whatever age: what comes in the same tick has the same. */
export function timesOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): ContentStamp {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ') as ContentStamp;
}
