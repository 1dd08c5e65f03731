/** The length of a text in UTF-8, asked the cheap way. Pure. */

/** No character of a string has more than three bytes: most texts need no count. */
export function hasAtMostBytes(text: string, bytesMax: number): boolean {
  return text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax;
}
