/** The ways in which a secret comes back in the words of a driver, or of the tool below it. */
import { createSecretSearch, type SecretForm, type Span } from './secret-search.ts';
import { isSpace } from './text-reading.ts';

/** Shorter values occur in ordinary words; taking them out would only garble the message. */
const SECRET_LENGTH_MIN = 4;
const SECRET_LINE_LENGTH_MIN = 8;
/** What a driver says beyond it is not shown: a message is a sentence or two. */
export const TEXT_LENGTH_MAX = 2_048;
/** A tenth to a third of a second on a slow machine. A hundred pods with tokens on one volume have so many. */
const PARTS_MAX = 1_024;
const REDACTED = '[redacted]';

/**
 * The text with `[redacted]` for every value: as it is, escaped or quoted by any usual language to any depth, as
 * numbers of its bytes, in hexadecimal or base64, alone or within a longer text, and wherever lines end in it. The same
 * text when it holds none. At most `TEXT_LENGTH_MAX` of it is read, in time linear in text and values; a text that is
 * made to take longer, or in which too many would have to be looked for, is not shown.
 */
export function withoutSecretValues(text: string, values: Iterable<string>): string {
  const read = text.slice(0, TEXT_LENGTH_MAX);
  const search = createSecretSearch(read, read.length < text.length);
  const parts = new Set<string>();
  for (const value of values) {
    for (const part of partsOf(value)) parts.add(part);
    if (parts.size > PARTS_MAX) return REDACTED;
  }
  for (const part of parts) for (const form of formsOf(part)) search.look(form);
  const spans = search.found();
  if (spans === undefined) return REDACTED;
  return replaced(read, spans) + (read.length < text.length ? '…' : '');
}

function replaced(text: string, spans: readonly Span[]): string {
  let shown = '';
  let at = 0;
  for (const { from, to } of spans) {
    shown += text.slice(at, from) + REDACTED;
    at = to;
  }
  return shown + text.slice(at);
}

/** The whole, and each line, which may be told alone: without the indentation, which says nothing of its length. */
function* partsOf(value: string): Iterable<string> {
  const trimmed = value.trim();
  if (trimmed.length >= SECRET_LENGTH_MIN) yield trimmed;
  for (const line of trimmed.split(/\r?\n/).map((one) => one.trim())) {
    if (line.length >= SECRET_LINE_LENGTH_MIN) yield line;
  }
}

/** Characters of which the first two values of each form can be told, unless they are mostly space. */
const HEAD_LENGTH = 16;

const FORMS: readonly (readonly [SecretForm['alphabet'], (secret: string) => readonly number[]])[] = [
  ['characters', charactersOf],
  ['numbers', (secret) => [...Buffer.from(secret)]],
  ['hex', (secret) => codesOf(Buffer.from(secret).toString('hex'))],
  ['base64', (secret) => codesOf(base64At(0, Buffer.from(secret)))],
  ['base64', (secret) => codesOf(base64At(1, Buffer.from(secret)))],
  ['base64', (secret) => codesOf(base64At(2, Buffer.from(secret)))],
];

function formsOf(secret: string): readonly SecretForm[] {
  const start = secret.slice(0, HEAD_LENGTH);
  const few = start.replace(/\s/gu, '').length < SECRET_LENGTH_MIN ? secret : start;
  return FORMS.map(([alphabet, valuesOf]) => {
    return { alphabet, head: valuesOf(few), values: () => valuesOf(secret) };
  });
}

/** White space does not count, unless there is hardly anything else. */
function charactersOf(secret: string): readonly number[] {
  const codes = [...secret].map((one) => one.codePointAt(0) ?? 0);
  const dense = codes.filter((code) => !isSpace(code));
  return dense.length >= SECRET_LENGTH_MIN ? dense : codes;
}

/**
 * The digits of base64 that hang on nothing but these bytes when `offset` others are before them (three are as
 * none). A digit is 6 bits; those at the ends hold bits of what is beside.
 */
function base64At(offset: number, bytes: Uint8Array): string {
  const digits = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
  return digits.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

function codesOf(digits: string): readonly number[] {
  return [...digits].map((one) => one.charCodeAt(0));
}
