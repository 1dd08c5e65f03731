/** How long a failed operation waits: policy apart from the clock, so its arithmetic is tested. */

export interface BackOffLimits {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Doubling is pointless beyond this; it also keeps 2 ** n far from overflow. */
const DOUBLINGS_MAX = 30;

/**
 * The wait after the n-th failure in a row: `firstMs`, doubling, at most `maxMs`, then spread by up to a fifth either
 * way so that many volumes of one driver do not come back in one beat.
 * `chance` is uniform in [0, 1).
 */
export function backOffMs(failures: number, limits: BackOffLimits, chance: number): number {
  if (failures <= 0) return 0;
  const plain = Math.min(limits.firstMs * 2 ** Math.min(failures - 1, DOUBLINGS_MAX), limits.maxMs);
  return Math.round(plain * (0.8 + 0.4 * chance));
}
