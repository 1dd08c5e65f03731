/** Numbered steps with ticks and times, for people on a terminal and in a log alike. */
import { stdout } from 'node:process';

export interface Narrator {
  headline(text: string, below: string): void;
  /** Begins a step; its own rejection is told and thrown on. */
  step(title: string, tell: (tick: Tick) => Promise<void>): Promise<void>;
  /** Lines of somebody else, as they are. */
  quote(text: string): void;
  closing(good: boolean, text: string): void;
}

/** One thing that was seen to be so; `detail` is smaller print. */
export type Tick = (text: string, detail?: string) => void;

const COLUMNS = 88;
const COLOURS = { bold: '1', dim: '2', red: '31', green: '32', cyan: '36' } as const;

/** Says nothing more of a step once `interrupted`: what fails then fails because of it. */
export function createNarrator(interrupted: AbortSignal): Narrator {
  const {
    NO_COLOR: noColour = '',
    TERM: terminal,
    LC_ALL: all,
    LC_CTYPE: type,
    LANG: language,
  } = process.env;
  const colours = stdout.isTTY && noColour === '' && terminal !== 'dumb';
  // A pipe or a CI log is not asked for its character set; nearly all of them know UTF-8.
  const unicode = !stdout.isTTY || /utf-?8/i.test(all || type || language || '');
  const good = unicode ? '✓' : '+';
  const bad = unicode ? '✗' : '!';
  let steps = 0;
  let tickedMs = performance.now();

  function paint(text: string, colour: keyof typeof COLOURS): string {
    return colours ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text;
  }

  /** `text` on the left, the time since the last tick on the right. */
  function timed(text: string, painted: string): void {
    const nowMs = performance.now();
    const time = spanText(nowMs - tickedMs);
    tickedMs = nowMs;
    const blanks = ' '.repeat(Math.max(2, COLUMNS - [...text].length - time.length));
    stdout.write(`${painted}${blanks}${paint(time, 'dim')}\n`);
  }

  return {
    headline(text, below) {
      stdout.write(`\n${paint(text, 'bold')}\n${paint(below, 'dim')}\n`);
    },
    async step(title, tell) {
      steps += 1;
      stdout.write(`\n${paint(String(steps).padStart(2), 'cyan')}  ${paint(title, 'bold')}\n`);
      tickedMs = performance.now();
      try {
        await tell((text, detail = '') => {
          if (interrupted.aborted) return;
          const more = detail === '' ? '' : `  ${detail}`;
          timed(`    ${good} ${text}${more}`, `    ${paint(good, 'green')} ${text}${paint(more, 'dim')}`);
        });
      } catch (error) {
        if (!interrupted.aborted)
          stdout.write(
            `    ${paint(bad, 'red')} ${error instanceof Error ? error.message : String(error)}\n`,
          );
        throw error;
      }
    },
    quote(text) {
      const lines = text
        .trimEnd()
        .split('\n')
        .map((line) => `      ${line}`.trimEnd());
      stdout.write(`\n${lines.join('\n')}\n\n`);
      tickedMs = performance.now();
    },
    closing(isGood, text) {
      stdout.write(`\n${paint(isGood ? good : bad, isGood ? 'green' : 'red')} ${paint(text, 'bold')}\n\n`);
    },
  };
}

export function spanText(ms: number): string {
  return ms < 1_000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}
