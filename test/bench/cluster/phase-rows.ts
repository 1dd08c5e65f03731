/** What pods of nodes of a cluster took, phase by phase, node beside node, as a table. Pure. */
import { percentile } from '../statistics.ts';
import type { Burst } from './measure-burst.ts';
import type { PhaseTimes } from './phases.ts';
import type { RequestCount } from './request-count.ts';

export interface Measured {
  readonly node: string;
  /** One pod with one volume, as often as there are entries. */
  readonly singles: readonly PhaseTimes[];
  readonly burst: Burst;
}

interface Side {
  readonly node: string;
  readonly times: PhaseTimes;
}

interface Row {
  readonly title: string;
  readonly of: (times: PhaseTimes) => readonly number[];
}

const ROWS: readonly Row[] = [
  { title: 'bound -> VolumeAttachment made', of: ({ made }) => made },
  { title: 'bound -> on volumesInUse', of: ({ reported }) => reported },
  { title: 'bound -> attached', of: ({ attached }) => attached },
  { title: 'bound -> on volumesAttached', of: ({ listed }) => listed },
  { title: 'bound -> mounted', of: ({ mounted }) => mounted },
  { title: '  of that: the node, once it may', of: sinceGranted },
  { title: 'containers ended -> unmounted', of: ({ unmounted }) => unmounted },
  { title: 'containers ended -> off volumesInUse', of: ({ unreported }) => unreported },
  { title: 'containers ended -> detached', of: ({ detached }) => detached },
];

/** The node may mount when the attachment is attached and its own object lists the volume. */
function sinceGranted({ attached, listed, mounted }: PhaseTimes): readonly number[] {
  return mounted.map((ms, pod) => ms - Math.max(attached[pod] ?? Number.NaN, listed[pod] ?? Number.NaN));
}

const TITLE_COLUMNS = 40;
const COLUMNS = 18;

/** Median and most of the pods, in milliseconds; of two nodes how many times the second has the first one's median. */
export function phaseLines(title: string, sides: readonly Side[]): readonly string[] {
  const head = sides.map(({ node }) => node.padStart(COLUMNS)).join('');
  return [
    `${title}; ms, median (most)`.padEnd(TITLE_COLUMNS) + head + (sides.length === 2 ? RATIO : ''),
    ...ROWS.map((row) => {
      const all = sides.map(({ times }) => row.of(times));
      const cells = all.map((ms) => `${whole(percentile(ms, 50))} (${whole(Math.max(...ms))})`);
      const [first = Number.NaN, second] = all.map((ms) => percentile(ms, 50));
      const ratio = second === undefined ? '' : ratioText(second / first).padStart(RATIO.length);
      return row.title.padEnd(TITLE_COLUMNS) + cells.map((cell) => cell.padStart(COLUMNS)).join('') + ratio;
    }),
  ];
}

const RATIO = '   ratio';

export function phaseTable(nodes: readonly Measured[]): string {
  const of = (timesOf: (measured: Measured) => PhaseTimes): readonly Side[] =>
    nodes.map((one) => ({ node: one.node, times: timesOf(one) }));
  return [
    ...phaseLines(
      'one pod, one volume',
      of(({ singles }) => together(singles)),
    ),
    '',
    ...phaseLines(
      'all pods at once',
      of(({ burst }) => burst.times),
    ),
    ...nodes.flatMap(({ node, burst }) => ['', `${node}, all pods at once`, ...wayLines(burst)]),
  ].join('\n');
}

/** What both ways have cost, and what was asked for. */
export function wayLines({ up, idle, down }: Burst): readonly string[] {
  return Object.entries({ up, idle, down }).flatMap(([name, way]) =>
    way === undefined
      ? []
      : [`${name}: ${whole(way.cpuMs)} ms of processor time; ${requestsText(way.requests)}`],
  );
}

function together(all: readonly PhaseTimes[]): PhaseTimes {
  const of = (phase: keyof PhaseTimes): readonly number[] => all.flatMap((one) => one[phase]);
  return {
    reported: of('reported'),
    made: of('made'),
    attached: of('attached'),
    listed: of('listed'),
    mounted: of('mounted'),
    unmounted: of('unmounted'),
    unreported: of('unreported'),
    detached: of('detached'),
  };
}

function requestsText(requests: RequestCount): string {
  if (Object.keys(requests).length === 0) return 'nothing asked';
  const all = Object.entries(requests).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return all.map(([what, count]) => `${what} ${count}`).join(', ');
}

function whole(ms: number): string {
  return Number.isFinite(ms) ? ms.toFixed(0) : '-';
}

function ratioText(ratio: number): string {
  return Number.isFinite(ratio) ? ratio.toFixed(2) : '-';
}
