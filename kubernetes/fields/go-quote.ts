/** Text between double quotes as Go's `%q` writes it: so the kubelet writes the values of labels and annotations. */

/** What Go prints as it is: letters, marks, numbers, punctuation, symbols and the ASCII space (unicode.IsPrint). */
const PRINTED = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const SURROGATE = /^\p{Surrogate}$/u;
const SHORT: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '"': '\\"',
  '\\': '\\\\',
};

/** On one line, whatever the text is. A lone surrogate is not text, and becomes U+FFFD as in UTF-8. */
export function goQuote(text: string): string {
  return `"${[...text].map(quotedCharacter).join('')}"`;
}

function quotedCharacter(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  if (PRINTED.test(character)) return character;
  if (SURROGATE.test(character)) return '\ufffd';
  const code = character.codePointAt(0) ?? 0;
  const hex = (digits: number): string => code.toString(16).padStart(digits, '0');
  if (code < 0x20 || code === 0x7f) return `\\x${hex(2)}`;
  return code < 0x1_0000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
}
