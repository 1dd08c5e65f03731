/** Nearest-rank percentiles: every figure is one that was measured. */
export function percentile(samples: readonly number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly samples: number;
}

export function spreadOf(samples: readonly number[]): Spread {
  return { p50: percentile(samples, 50), p99: percentile(samples, 99), samples: samples.length };
}
