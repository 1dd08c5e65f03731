/** How long what failed waits: policy apart from the clock, so its arithmetic is tested. */

export interface BackOffLimits {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Doubling is pointless beyond this; it also keeps 2 ** n far from overflow. */
const DOUBLINGS_MAX = 30;

/** The wait after the n-th failure in a row: `firstMs`, doubling, at most `maxMs`. */
export function doubledMs(failures: number, { firstMs, maxMs }: BackOffLimits): number {
  if (failures <= 0) return 0;
  return Math.min(firstMs * 2 ** Math.min(failures - 1, DOUBLINGS_MAX), maxMs);
}

/** A wait that is longer or shorter by up to a fifth. `chance` is uniform in [0, 1). */
export function spreadMs(waitMs: number, chance: number): number {
  return waitMs * (0.8 + 0.4 * chance);
}

/** As `doubledMs`, spread so that many volumes of one driver do not come back in one beat. */
export function backOffMs(failures: number, limits: BackOffLimits, chance: number): number {
  return Math.round(spreadMs(doubledMs(failures, limits), chance));
}

export interface NextWait {
  /** Whoever refused asked for this much. */
  readonly leastMs?: number | undefined;
  /** How much of the wait is waited, from 0 to 1; by default all of it. */
  readonly share?: number;
}

/** The waits of one thing that is tried again and again until it works. */
export class Retries {
  readonly #limits: BackOffLimits;
  #failures = 0;

  constructor(limits: BackOffLimits) {
    this.#limits = limits;
  }

  /** After one more failure. */
  nextMs({ leastMs = 0, share = 1 }: NextWait = {}): number {
    this.#failures += 1;
    return Math.max(share * doubledMs(this.#failures, this.#limits), leastMs);
  }

  /** It has worked, or what is tried is something else by now. */
  reset(): void {
    this.#failures = 0;
  }
}
