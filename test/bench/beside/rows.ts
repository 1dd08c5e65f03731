/** What was measured beside the kubelet as rows: median and spread over the rounds, ratio, target. Pure. */
import { percentile } from '../statistics.ts';
import type { FigureId, Round } from './round.ts';

/** The rounds of both subjects, in the order in which they were measured. */
export interface Rounds {
  readonly kubelet: readonly Round[];
  readonly mooring: readonly Round[];
}

export interface Range {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export interface Row {
  readonly id: string;
  readonly title: string;
  readonly unit: 'ms' | 'MB';
  readonly kubelet: Range;
  readonly mooring: Range;
  /** The kubelet's over Mooring's, round by round: the load of the machine was nearly the same in both. */
  readonly ratio: Range;
  /** What Mooring's median is to be at most; and how many times ahead. */
  readonly target?: { readonly most: number; readonly ratio?: number; readonly met: boolean };
}

interface RowWish {
  readonly id: FigureId;
  readonly title: string;
  readonly unit?: 'MB';
  readonly most?: number;
  readonly ratio?: number;
  /** Milliseconds taken off Mooring's figure. */
  readonly less?: number;
}

export function rowsOf(rounds: Rounds, idleSeconds: number, settleMs: number): readonly Row[] {
  const wishes: readonly (RowWish & { readonly key?: string })[] = [
    { id: 'one.book.p50', title: '1 pod, 1 CSI volume, book p50', most: 8 },
    { id: 'one.book.p99', title: '  p99', most: 20 },
    { id: 'one.gate.p50', title: '  gate p50', most: 10 },
    { id: 'secret.book.p50', title: '1 secret, book p50', most: 8 },
    { id: 'hundred.book.p50', title: '100 pods at once, book p50', most: 300, ratio: 1.3 },
    { id: 'hundred.book.p99', title: '  p99', most: 450, ratio: 1.3 },
    { id: 'node.up', title: '110 pods x 4 volumes set up', most: 1_000 },
    { id: 'node.up.cpu', title: '  CPU of that', most: 2_500 },
    { id: 'node.down', title: '110 pods x 4 volumes drained', most: 600 },
    { id: 'node.down.cpu', title: '  CPU of that', most: 900 },
    { id: 'one.down.p50', title: '1 pod, end -> unmounted, p50' },
    {
      id: 'one.down.p50',
      key: 'one.down.settled',
      title: `  without Mooring's settle_ms (${settleMs})`,
      most: 10,
      less: settleMs,
    },
    { id: 'restart', title: 'restart with 440 volumes -> told', most: 400 },
    { id: 'memory.process', title: 'RSS of the process at 440 volumes', unit: 'MB' },
    { id: 'memory.tree', title: 'PSS of the tree at 440 volumes', unit: 'MB', most: 110 },
    {
      id: 'idle.cpu',
      title: `CPU of the tree idle for ${idleSeconds} s`,
      // The target is set for 20 s.
      most: (50 * idleSeconds) / 20,
    },
  ];
  return wishes.map((wish) => rowOf(rounds, wish));
}

function rowOf({ kubelet, mooring }: Rounds, wish: RowWish & { readonly key?: string }): Row {
  const { id, key = id, title, unit = 'ms', most, ratio: ahead, less = 0 } = wish;
  const theirs = kubelet.map((round) => round[id]);
  const ours = mooring.map((round) => round[id] - less);
  const ratio = rangeOf(theirs.map((value, index) => value / (ours[index] ?? Number.NaN)));
  const range = rangeOf(ours);
  const met = most !== undefined && range.median <= most && ratio.median >= (ahead ?? 0);
  return {
    id: key,
    title,
    unit,
    kubelet: rangeOf(theirs),
    mooring: range,
    ratio,
    ...(most === undefined
      ? {}
      : { target: { most, ...(ahead === undefined ? {} : { ratio: ahead }), met } }),
  };
}

function rangeOf(values: readonly number[]): Range {
  return { median: percentile(values, 50), least: Math.min(...values), most: Math.max(...values) };
}

const TITLE_COLUMNS = 38;
const RANGE_COLUMNS = 24;

export function rowTable(rows: readonly Row[]): string {
  const head = [
    'median (least-most) of the rounds'.padEnd(TITLE_COLUMNS),
    ...['kubelet', 'Mooring', 'kubelet / Mooring'].map((one) => one.padStart(RANGE_COLUMNS)),
    '  target',
  ].join('');
  return [head, ...rows.map(lineOf)].join('\n');
}

function lineOf({ title, unit, kubelet, mooring, ratio, target }: Row): string {
  const cells = [kubelet, mooring, ratio].map((range) => rangeText(range).padStart(RANGE_COLUMNS));
  return `${`${title}, ${unit}`.padEnd(TITLE_COLUMNS)}${cells.join('')}  ${targetText(target)}`.trimEnd();
}

function targetText(target: Row['target']): string {
  if (target === undefined) return '';
  const ahead = target.ratio === undefined ? '' : `, ${target.ratio} times`;
  return `<= ${target.most}${ahead} ${target.met ? 'met' : 'MISSED'}`;
}

function rangeText({ median, least, most }: Range): string {
  return `${digits(median)} (${digits(least)}-${digits(most)})`;
}

/** Three digits that mean something, and all of a larger number. */
function digits(value: number): string {
  if (!Number.isFinite(value)) return '-';
  return Math.abs(value) < 10
    ? value.toFixed(2)
    : Math.abs(value) < 100
      ? value.toFixed(1)
      : value.toFixed(0);
}
