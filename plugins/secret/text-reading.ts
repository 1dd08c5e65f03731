/**
 * The ways in which a text can be read: a character for itself, or as part of an escape of one of the languages that
 * programs are written in. Which one was meant is not decided: all readings are kept, side by side.
 */

/** It leads from one place in a text to a later one: a character, or something that may stand between two of them. */
export interface Step {
  readonly to: number;
  /** A code point, or the value of a byte among numbers; undefined: nothing, as the end of a line in a long word. */
  readonly value: number | undefined;
}

/** The steps from a place; the same ones for ever. */
export type Reading = (from: number) => readonly Step[];

/** Quotes of quotes of quotes: deeper than this nobody goes. */
const BACKSLASHES_MAX = 8;
const [SPACE, PLUS, BACKSLASH] = [32, 43, 92];

/** How a word goes on in the next line: the end of the line and the indentation; or that of a literal of a language. */
const LINE_END = /(?:\\|=)?\r?\n[ \t]*|["'][ \t]*(?:\+[ \t]*)?\r?\n[ \t]*[bru]?["']/y;
/** The blanks that a program puts there for people to read it better. */
const HEX_GAP = /[:,-][ ]?|0x/y;
const PERCENT = /%([0-9A-Fa-f]{2})/y;
/** Each escaping of an escape makes a `25` more of it, which may as well be what is meant. */
const PERCENTS = [PERCENT, /%25([0-9A-Fa-f]{2})/y, /%2525([0-9A-Fa-f]{2})/y, /%252525([0-9A-Fa-f]{2})/y];
const QUOTED_PRINTABLE = /=([0-9A-F]{2})/y;
const ENTITY = /&(?:amp;)*(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/y;
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
};
/** A quote in a word between quotes, as shells and YAML have it. */
const QUOTE = /'\\+''|'"'"'|''|""/y;
/** Behind backslashes: a number, or a letter that stands for what cannot be seen. */
const NUMBERED =
  /x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[ux]\{([0-9A-Fa-f]{1,6})\}|([0-7]{1,3})/y;
const LETTERS: Readonly<Record<string, number>> = { a: 7, b: 8, e: 27, f: 12, n: 10, r: 13, t: 9, v: 11 };
const NUMBER_GAP = /(?:[\s,;]|\\+[nrt]|\\+\r?\n)+/y;
const NUMBER = /0x([0-9A-Fa-f]{1,2})(?![0-9A-Fa-f])|-?\d{1,3}(?!\d)/y;

/** As characters, whatever they were escaped by. */
export function readCharacters(text: string): Reading {
  return remembered((from) => [...literal(text, from), ...escaped(text, from), ...lineEnd(text, from)]);
}

/** As digits of hexadecimal numbers with what is put between them. */
export function readHexDigits(text: string): Reading {
  const characters = readCharacters(text);
  return remembered((from) => {
    const gap = matchAt(HEX_GAP, text, from);
    return gap === undefined
      ? characters(from)
      : [...characters(from), { to: from + gap[0].length, value: undefined }];
  });
}

/** As a list of bytes, each a number. */
export function readNumbers(text: string): Reading {
  return remembered((from) => {
    const gap = matchAt(NUMBER_GAP, text, from);
    if (gap !== undefined) return [{ to: from + gap[0].length, value: undefined }];
    if (/[0-9A-Za-z-]/.test(text[from - 1] ?? '')) return [];
    const number = matchAt(NUMBER, text, from);
    return number === undefined ? [] : [{ to: from + number[0].length, value: Number(number[0]) & 0xff }];
  });
}

/** What an escape of one sort at this place stands for: one layer less of what may have been wrapped more than once. */
export const UNESCAPERS: readonly ((text: string, from: number) => Step | undefined)[] = [
  (text, from) => (text[from] === '%' ? bytesIn(PERCENT, text, from) : undefined),
  (text, from) => {
    if (text[from] !== '\\') return undefined;
    const [said] = numbered(text, from + 1);
    const letter = LETTERS[text[from + 1] ?? ''];
    if (said !== undefined) return said;
    return { to: from + 2, value: letter ?? text.codePointAt(from + 1) ?? BACKSLASH };
  },
];

/** Looked at once each; there is nothing behind the end. */
function remembered(read: Reading): Reading {
  const known: (readonly Step[])[] = [];
  return (from) => {
    known[from] ??= read(from);
    return known[from];
  };
}

function literal(text: string, from: number): readonly Step[] {
  const code = text.codePointAt(from);
  if (code === undefined) return [];
  return stepsTo(from + (code > 0xffff ? 2 : 1), code);
}

function lineEnd(text: string, from: number): readonly Step[] {
  const end = matchAt(LINE_END, text, from);
  return end === undefined ? [] : [{ to: from + end[0].length, value: undefined }];
}

function escaped(text: string, from: number): readonly Step[] {
  switch (text[from]) {
    case '\\':
      return [...backslashes(text, from), ...bytes(text, from)];
    case '%':
    case '=':
      return bytes(text, from);
    case '&':
      return entity(text, from);
    case "'":
    case '"': {
      const quote = matchAt(QUOTE, text, from);
      return quote === undefined ? [] : stepsTo(from + quote[0].length, text.charCodeAt(from));
    }
    default:
      return [];
  }
}

function entity(text: string, from: number): readonly Step[] {
  const found = matchAt(ENTITY, text, from);
  if (found === undefined) return [];
  const [all, decimal, hex, name] = found;
  if (name !== undefined) return stepsTo(from + all.length, ENTITIES[name]?.codePointAt(0) ?? SPACE);
  return stepsTo(from + all.length, decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal));
}

/** A backslash itself, doubled by each quoting; or an escape behind any number of them. */
function backslashes(text: string, from: number): readonly Step[] {
  let behind = from;
  while (text.charCodeAt(behind) === BACKSLASH && behind - from < BACKSLASHES_MAX) behind += 1;
  const steps: Step[] = [];
  for (let count = 1; count <= behind - from; count *= 2) steps.push({ to: from + count, value: BACKSLASH });
  steps.push(...numbered(text, behind));
  const letter = LETTERS[text[behind] ?? ''];
  if (letter !== undefined) steps.push(...stepsTo(behind + 1, letter));
  return [...steps, ...literal(text, behind), ...lineEnd(text, behind)];
}

/** Behind backslashes; a pair of surrogates before its first half. */
function numbered(text: string, from: number): readonly Step[] {
  const number = matchAt(NUMBERED, text, from);
  if (number === undefined) return [];
  const [all, ...digits] = number;
  const code = Number.parseInt(digits.join(''), digits.at(-1) === undefined ? 16 : 8);
  const to = from + all.length;
  return [...secondHalf(text, to, code), ...stepsTo(to, code)];
}

const SURROGATE = /\\+u(d[c-f][0-9a-f]{2})/iy;

/** What UTF-16 writes as a pair. */
function secondHalf(text: string, from: number, first: number): readonly Step[] {
  if (first < 0xd800 || first > 0xdbff) return [];
  const found = matchAt(SURROGATE, text, from);
  if (found === undefined) return [];
  const second = Number.parseInt(found[1] ?? '', 16);
  return [{ to: from + found[0].length, value: 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00) }];
}

const BYTES = [...PERCENTS, QUOTED_PRINTABLE, /\\{1,8}x([0-9A-Fa-f]{2})/y, /\\{1,8}([0-3][0-7]{2})/y];
const OCTAL_DIGITS = 3;

/** Bytes of UTF-8, each escaped by its number in the same way. */
function bytes(text: string, from: number): readonly Step[] {
  return BYTES.flatMap((shape) => {
    const found = bytesIn(shape, text, from);
    return found?.value === undefined ? [] : stepsTo(found.to, found.value);
  });
}

function bytesIn(shape: RegExp, text: string, from: number): Step | undefined {
  const first = byteAt(shape, text, from);
  if (first === undefined) return undefined;
  const all: number[] = [];
  let to = from;
  for (const length = lengthOf(first.value); all.length < length; ) {
    const next = byteAt(shape, text, to);
    if (next === undefined) return undefined;
    all.push(next.value);
    to = next.to;
  }
  const [character, more] = [...Buffer.from(all).toString('utf8')];
  return character === undefined || more !== undefined ? undefined : { to, value: character.codePointAt(0) };
}

/** How many bytes a character has that begins with this one; none does with some. */
function lengthOf(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

function byteAt(
  shape: RegExp,
  text: string,
  from: number,
): { readonly value: number; readonly to: number } | undefined {
  const found = matchAt(shape, text, from);
  const [all = '', digits = ''] = found ?? [];
  if (found === undefined) return undefined;
  return { value: Number.parseInt(digits, digits.length === OCTAL_DIGITS ? 8 : 16), to: from + all.length };
}

/**
 * White space counts, or does not: who prints may have broken the line, or written it otherwise; as a plus in a URL,
 * which may have been escaped in its turn.
 */
function stepsTo(to: number, value: number): readonly Step[] {
  return value === PLUS || isSpace(value)
    ? [
        { to, value },
        { to, value: undefined },
      ]
    : [{ to, value }];
}

export function isSpace(code: number): boolean {
  return code <= SPACE
    ? code === SPACE || (code >= 9 && code <= 13)
    : /\s/u.test(String.fromCodePoint(Math.min(code, 0x10ffff)));
}

function matchAt(shape: RegExp, text: string, from: number): RegExpExecArray | undefined {
  shape.lastIndex = from;
  return shape.exec(text) ?? undefined;
}
