/** The terminal or pipe of this process. */
import { printableLines } from '../../mount/text/printable.ts';
import type { Screen } from './show.ts';

export function createScreen(): Screen {
  const {
    NO_COLOR: noColour = '',
    TERM: terminal,
    LC_ALL: all,
    LC_CTYPE: type,
    LANG: language,
  } = process.env;
  return {
    look: () => ({
      widthMax: process.stdout.isTTY ? process.stdout.columns : undefined,
      colour: process.stdout.isTTY && noColour === '' && terminal !== 'dumb',
      unicode: /utf-?8/i.test(all || type || language || ''),
    }),
    rows: () => (process.stdout.isTTY ? process.stdout.rows : undefined),
    write: (text) => {
      process.stdout.write(text);
    },
    complain: (text) => {
      process.stderr.write(printableLines(text));
    },
    sleep: (delayMs) =>
      new Promise((resolve) => {
        setTimeout(resolve, delayMs);
      }),
  };
}
