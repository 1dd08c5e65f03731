/** The length of a text in UTF-8, and texts of at most so many bytes. Pure. */

/** No unit of a string has more than three bytes, so most texts need no count. */
export function hasAtMostBytes(text: string, bytesMax: number): boolean {
  return text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax;
}

const ELLIPSIS = '…';

/**
 * What `write` makes of the text when it has at most `bytesMax` bytes; otherwise what it makes of as many characters
 * from the beginning as fit, and `…`. Assumes: `write` goes character by character. Where there is no room for `…`
 * nothing is left.
 */
export function withinBytes(
  text: string,
  bytesMax: number,
  write: (text: string) => string = (unchanged) => unchanged,
): string {
  const whole = write(text);
  if (hasAtMostBytes(whole, bytesMax)) return whole;
  let room = bytesMax - Buffer.byteLength(ELLIPSIS);
  if (room < 0) return '';
  let kept = '';
  for (const character of text) {
    const written = write(character);
    room -= Buffer.byteLength(written);
    if (room < 0) break;
    kept += written;
  }
  return kept + ELLIPSIS;
}
