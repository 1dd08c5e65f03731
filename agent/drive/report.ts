/** What `mooring drive` shows: a line per duty as it is judged, a sum at the end, or one JSON document. */
import { spanText } from '../../mount/text/duration.ts';
import { printable } from '../../mount/text/printable.ts';
import { type Colour, type Look, paint, wrap } from '../../mount/text/table.ts';
import type { DriveReport } from './drive.ts';
import { DUTY_NAMES } from './duties.ts';
import type { Verdict, VerdictKind } from './oracle/verdict.ts';

const WORDS: Readonly<Record<VerdictKind, { readonly text: string; readonly colour: Colour }>> = {
  pass: { text: 'pass', colour: 'green' },
  fail: { text: 'FAIL', colour: 'red' },
  skipped: { text: 'skipped', colour: 'dim' },
  blocked: { text: 'blocked', colour: 'yellow' },
};
const DUTY_CHARACTERS = Math.max(...DUTY_NAMES.map((name) => name.length));
const WORD_CHARACTERS = Math.max(...Object.values(WORDS).map(({ text }) => text.length));
const TIME_CHARACTERS = 6;
const GAP = '  ';
const LINE_BYTES_MAX = 2_000;
const WIDTH_MIN = 40;

export function headLine(look: Look): string {
  const cells = [
    'DUTY'.padEnd(DUTY_CHARACTERS),
    'VERDICT'.padEnd(WORD_CHARACTERS),
    'TIME'.padStart(TIME_CHARACTERS),
  ];
  return paint([...cells, 'WHAT'].join(GAP), 'bold', look);
}

/** The verdict's row, and below it what was found, in words; no line ends in blanks or a line end. */
export function verdictLines(verdict: Verdict, look: Look): readonly string[] {
  const { text, colour } = WORDS[verdict.kind];
  const row = [
    verdict.duty.padEnd(DUTY_CHARACTERS),
    paint(text, colour, look) + ' '.repeat(WORD_CHARACTERS - text.length),
    spanText(verdict.durationMs).padStart(TIME_CHARACTERS),
    `${verdict.title} ${paint(`(${verdict.source})`, 'dim', look)}`,
  ].join(GAP);
  const indent = ' '.repeat(DUTY_CHARACTERS + GAP.length);
  const width = Math.max(WIDTH_MIN, (look.widthMax ?? Number.POSITIVE_INFINITY) - indent.length - 2);
  const below = (mark: string, one: string, shade: Colour): readonly string[] =>
    wrap(printable(one, LINE_BYTES_MAX), width).map((line, index) => {
      return `${indent}${index === 0 ? mark : ' '.repeat(mark.length)}${paint(line, shade, look)}`;
    });
  return [
    row,
    ...verdict.findings.flatMap((one) => below(verdict.kind === 'fail' ? '! ' : '- ', one, colour)),
    ...verdict.remarks.flatMap((one) => below('~ ', one, 'yellow')),
  ];
}

export function sumLine({ verdicts, good }: DriveReport, look: Look): string {
  const count = (kind: VerdictKind): number => verdicts.filter((one) => one.kind === kind).length;
  const remarks = verdicts.reduce((sum, one) => sum + one.remarks.length, 0);
  const parts = [
    `${count('pass')} passed`,
    `${count('fail')} failed`,
    ...(count('blocked') === 0 ? [] : [`${count('blocked')} could not be judged`]),
    `${count('skipped')} skipped`,
    ...(remarks === 0 ? [] : [`${remarks} remarks`]),
  ];
  return paint(parts.join(', '), good ? 'green' : 'red', look);
}

/** What was driven, as it calls itself, and by which chance. */
export function driverWords({ driver }: DriveReport, seed: number, look: Look): string {
  const { name, vendorVersion } = driver;
  return paint(printable(`${name} ${vendorVersion}, seed ${seed}`, LINE_BYTES_MAX), 'dim', look);
}

/** Machines read it; sets of numbers are the capability numbers of CSI. */
export function reportDocument(report: DriveReport, seed: number): object {
  const { driver, verdicts, good } = report;
  const count = (kind: VerdictKind): number => verdicts.filter((one) => one.kind === kind).length;
  return {
    apiVersion: 'mooring/v1',
    kind: 'DriveReport',
    driver: {
      name: driver.name,
      vendorVersion: driver.vendorVersion,
      nodeId: driver.nodeId,
      services: [...driver.services],
      nodeCapabilities: [...driver.node],
      controllerCapabilities: [...driver.controller],
    },
    seed,
    good,
    counts: {
      pass: count('pass'),
      fail: count('fail'),
      blocked: count('blocked'),
      skipped: count('skipped'),
    },
    verdicts: verdicts.map(({ kind, durationMs, ...rest }) => ({
      ...rest,
      verdict: kind,
      durationMs: Math.round(durationMs),
    })),
  };
}
