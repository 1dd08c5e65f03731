/**
 * Seeds that fail and are not solved yet, with what is known of them. A run of many tells them loudly and fails on any
 * other; one that no longer fails is told, too, and is to be taken out. Solved, a seed moves to regressions.ts.
 */
export const OPEN_SEEDS: ReadonlyMap<number, string> = new Map([]);
