/** One run of `mooring drive` on a screen. */
import { paint, shorten } from '../../mount/text/table.ts';
import { spanText } from '../../mount/text/duration.ts';
import { printable } from '../../mount/text/printable.ts';
import { json, type Screen } from '../cli/show.ts';
import { drive } from './drive.ts';
import type { DriveOptions } from './rig/drive-options.ts';
import type { OnWait } from './rig/patience.ts';
import { driverWords, headLine, reportDocument, sumLine, verdictLines } from './report.ts';

export interface DriveShow {
  readonly options: DriveOptions;
  /** Empty; everything happens below it. */
  readonly directory: string;
  readonly output: 'table' | 'json';
  readonly screen: Screen;
  readonly brokerCommand: readonly string[];
  readonly interrupted: AbortSignal;
}

const WAIT_BYTES_MAX = 1_024;
const TOLD_AGAIN_MS = 10_000;
const LINE_START = '\r\u001b[K';

/** True when nothing failed: the exit code. */
export async function showDrive(show: DriveShow): Promise<boolean> {
  const { options, output, screen, interrupted } = show;
  const table = output === 'table';
  const look = screen.look();
  // Progress is for a terminal: the line of the duty that runs is written over by its verdict.
  const live = table && screen.rows() !== undefined;
  if (table) screen.write(`${headLine(look)}\n`);
  let begun = '';
  const onTerminal = (text: string): void => {
    screen.write(`${LINE_START}${paint(shorten(text, look.widthMax ?? text.length, look), 'dim', look)}`);
  };
  const result = await drive({
    options,
    directory: show.directory,
    brokerCommand: show.brokerCommand,
    interrupted,
    onBegin: (duty, title) => {
      begun = `${duty}  ${title} …`;
      if (live) onTerminal(begun);
    },
    onWait: live ? (wait) => onTerminal(wait === undefined ? begun : waitText(wait)) : toldBesides(screen),
    onVerdict: (verdict) => {
      if (table) screen.write(`${live ? LINE_START : ''}${verdictLines(verdict, look).join('\n')}\n`);
    },
  });
  if (live) screen.write(LINE_START);
  if (!result.ok) {
    screen.complain(`mooring: ${result.failure.message}\n`);
    return false;
  }
  const report = result.value;
  if (table) screen.write(`${sumLine(report, look)}  ${driverWords(report, options.seed, look)}\n`);
  else screen.write(json(reportDocument(report, options.seed)));
  if (interrupted.aborted) screen.complain('mooring: interrupted; not every duty was tried\n');
  return report.good && !interrupted.aborted;
}

type Wait = Exclude<Parameters<OnWait>[0], undefined>;

function waitText({ what, because, leftMs }: Wait): string {
  return printable(`waits (${spanText(leftMs)} left) for ${what}: ${because}`, WAIT_BYTES_MAX);
}

/** Where nothing is written over: a line for each thing, and again every ten seconds. */
function toldBesides(screen: Screen): OnWait {
  let told: Wait | undefined;
  return (wait) => {
    const isOld = wait !== undefined && wait.what === told?.what && told.leftMs - wait.leftMs < TOLD_AGAIN_MS;
    if (isOld) return;
    told = wait;
    if (wait !== undefined) screen.complain(`mooring: ${waitText(wait)}\n`);
  };
}
