/** Text of strangers (object names, driver messages, paths) made safe to show on a terminal, in a log, in one line. */

/**
 * What may move a cursor, colour a terminal, fake a new line or turn the reading direction: the control characters,
 * the line and paragraph separators, and the bidirectional controls ("Trojan Source", CVE-2021-42574).
 */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;

/**
 * The text with every unsafe character escaped as `\u001b`, cut to at most `bytesMax` bytes of UTF-8, the last of
 * them `…` when something was cut. Never splits a character.
 */
export function printable(text: string, bytesMax: number): string {
  // No character is shorter than one byte, so the rest could not be shown; a megabyte is not searched for nothing.
  const safe = text.slice(0, bytesMax + 1).replace(UNSAFE, escapeCharacter);
  return Buffer.byteLength(safe) <= bytesMax ? safe : cut(safe, bytesMax);
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const ELLIPSIS = '…';

function cut(text: string, bytesMax: number): string {
  const room = bytesMax - Buffer.byteLength(ELLIPSIS);
  let bytes = 0;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > room) break;
    kept += character;
  }
  return kept + ELLIPSIS;
}
