/** What pods of a cluster's node took, phase by phase, as a table. Pure. */
import { percentile } from '../statistics.ts';
import type { Burst } from './measure-burst.ts';
import type { PhaseTimes } from './phases.ts';
import type { RequestCount } from './request-count.ts';

export interface Measured {
  /** One pod with one volume, as often as there are entries. */
  readonly singles: readonly PhaseTimes[];
  readonly burst: Burst;
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
const COLUMNS = 16;

/** Median and most of the pods, in milliseconds. */
export function phaseLines(title: string, times: PhaseTimes): readonly string[] {
  return [
    `${title}; ms, median (most)`,
    ...ROWS.map((row) => {
      const ms = row.of(times);
      const cell = `${whole(percentile(ms, 50))} (${whole(Math.max(...ms))})`;
      return row.title.padEnd(TITLE_COLUMNS) + cell.padStart(COLUMNS);
    }),
  ];
}

export function phaseTable({ singles, burst }: Measured): string {
  return [
    ...phaseLines('one pod, one volume', together(singles)),
    '',
    ...phaseLines('all pods at once', burst.times),
    '',
    ...wayLines(burst),
  ].join('\n');
}

/** What both ways have cost, and what was asked for. */
export function wayLines({ up, down }: Burst): readonly string[] {
  return [
    `up: ${whole(up.cpuMs)} ms of processor time; ${requestsText(up.requests)}`,
    `down: ${whole(down.cpuMs)} ms of processor time; ${requestsText(down.requests)}`,
  ];
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
  const all = Object.entries(requests).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return all.map(([what, count]) => `${what} ${count}`).join(', ');
}

function whole(ms: number): string {
  return Number.isFinite(ms) ? ms.toFixed(0) : '-';
}
