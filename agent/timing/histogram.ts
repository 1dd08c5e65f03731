/** Counters in buckets of time, in the text format of Prometheus. */
import { type Labels, labelPairs } from './family.ts';

export interface Histogram {
  /** Who observes names the labels of one series in the same order each time. */
  observe(labels: Labels, seconds: number): void;
  /** With its HELP and TYPE, whether or not there is a series. */
  text(): string;
}

export interface HistogramForm {
  readonly name: string;
  readonly help: string;
  /** Upper bounds in seconds, rising. */
  readonly bounds: readonly number[];
}

/** Upper bounds in seconds, as the kubelet has them for what it does with volumes (package `util` of pkg/volume). */
export const STORAGE_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600] as const;
/** Those that a client of Prometheus has by itself, and the kubelet for what has no others. */
export const DEFAULT_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** A node has some ten drivers with some twenty methods; more label values than that are somebody's invention. */
const SERIES_MAX = 2_000;

interface Series {
  /** How many took no longer than each bound, and longer than the one before; the last is for all that took longer. */
  readonly counts: number[];
  seconds: number;
}

/** Guarantees: at most `SERIES_MAX` series; what would be one more is not counted. */
export function createHistogram({ name, help, bounds }: HistogramForm): Histogram {
  const all = new Map<string, Series>();

  function linesOf([pairs, { counts, seconds }]: readonly [string, Series]): readonly string[] {
    let sum = 0;
    const before = pairs === '' ? '' : `${pairs},`;
    const labels = pairs === '' ? '' : `{${pairs}}`;
    const buckets = counts.map((count, index) => {
      sum += count;
      return `${name}_bucket{${before}le="${bounds[index] ?? '+Inf'}"} ${sum}`;
    });
    return [...buckets, `${name}_sum${labels} ${seconds}`, `${name}_count${labels} ${sum}`];
  }

  return {
    observe(values, seconds) {
      const labels = labelPairs(values);
      const known = all.get(labels);
      if (known === undefined && all.size >= SERIES_MAX) return;
      const series = known ?? { counts: [...bounds, 0].map(() => 0), seconds: 0 };
      if (known === undefined) all.set(labels, series);
      const found = bounds.findIndex((bound) => seconds <= bound);
      const index = found < 0 ? bounds.length : found;
      series.counts[index] = (series.counts[index] ?? 0) + 1;
      series.seconds += seconds;
    },
    text: () =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...[...all].flatMap(linesOf), ''].join('\n'),
  };
}
