/** What a driver printed before it ended, for its author: the end of it, and above that how a crash began. */
import { shorten } from '../../../mount/text/table.ts';

const LINES_MAX = 12;
const LINE_CHARACTERS_MAX = 300;
/** A trace of Go is longer than what is shown, and begins with what it is about. */
const CRASH = /^(?:panic|fatal error): /;

export function lastWords(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0) return 'it printed nothing';
  const last = lines.slice(-LINES_MAX);
  const crash = lines.slice(0, -LINES_MAX).findLast((line) => CRASH.test(line));
  const shown = crash === undefined ? last : [crash, '…', ...last];
  const words = shown.map((line) => `\n  ${shorten(line, LINE_CHARACTERS_MAX, { unicode: true })}`);
  return `it printed last:${words.join('')}`;
}
