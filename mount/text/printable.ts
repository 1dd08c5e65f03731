/**
 * The one way in which text of strangers (object names, words of drivers and tools, paths, sources of mounts) becomes
 * fit for a terminal, a log line, a status document or a metric. A format that needs more (quotes in a label, quotes in
 * a log line) adds it to what comes out of here.
 */
import { withinBytes } from './byte-bound.ts';

/**
 * What may move a cursor, colour a terminal, fake a new line, turn the reading direction ("Trojan Source",
 * CVE-2021-42574) or cannot be seen: control and format characters, the line and paragraph separators, and halves of
 * surrogate pairs, which are no characters at all.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * The text with each unsafe character as `\u001b`, or `\u{e0041}` beyond four digits; of at most `bytesMax` bytes of
 * UTF-8. Where something had to be cut the last of them are `…`.
 *
 * Guarantees: no unsafe character is left; a character, or the escape of one, is there whole or not at all; text that
 * is safe and short enough is not changed, so it is idempotent. Backslashes stay as they are: what comes out is for
 * people, and does not tell an escape from a text that looks like one.
 */
export function printable(text: string, bytesMax: number): string {
  // No character is shorter than one byte, so the rest could not be shown; a megabyte is not searched for nothing.
  const head = text.slice(0, bytesMax + 1);
  return withinBytes(head, bytesMax, (part) => part.replace(UNSAFE, escapeCharacter));
}

/** Longer lines are no text for people. */
const LINE_BYTES_MAX = 65_536;

/** As `printable` for each line of a text: line feeds stay. */
export function printableLines(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line, LINE_BYTES_MAX))
    .join('\n');
}

/** JSON that means the same and has no unsafe character but line feeds, which stand in no string. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (character) =>
    character === '\n'
      ? character
      : character.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

function escapeCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\u{${code}}`;
}
