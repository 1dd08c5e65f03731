/** A manifest file as documents: YAML or JSON text in, plain values out. The one importer of `yaml`. */
import { Composer, type CST, type Document, isAlias, isMap, isScalar, isSeq, Lexer, Parser } from 'yaml';
import { fail, ok, type Result } from '../../../../mount/failure.ts';
import { readJson } from './json-text.ts';
import type { ManifestLimits } from './manifest-limits.ts';
import {
  fieldBelow,
  type Problem,
  PROBLEMS_MAX,
  quoted,
} from '../../../../kubernetes/fields/field-reader.ts';
import { resolvePlainScalar } from './plain-scalar.ts';

/** One object of a manifest: a document, or an item of a document of kind List. */
export interface ManifestDocument {
  /** Counted from 1, as `---` counts them. */
  readonly number: number;
  /** The line it begins on, counted from 1. */
  readonly line: number;
  /** `items[3]` for the item of a List; empty for a whole document. */
  readonly field: string;
  /** Null, booleans, finite numbers, strings, lists and mappings; read mappings by their own keys only. */
  readonly value: unknown;
  /** If there are any, the document is refused, and `value` (without what was refused) only tells who it is. */
  readonly problems: readonly Problem[];
}

/** Never a lone surrogate or a control character other than tab and line ends; a leading byte order mark is dropped. */
const NOT_TEXT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ufffe\uffff]|\p{Cs}/u;
/** What the parser may spend on one file; a dense file of 1 MiB has about half of this. */
const LEXEMES_MAX = 524_288;
/** Two levels of the parser's stack are the document and the scalar. */
const STACK_BELOW_DEPTH = 2;
const POLLUTING_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Pure and total: any text in, its documents or a failure `source-unreadable` that names the line; never a word of the
 * text itself, which may be a secret. Empty documents are skipped; a text without any is an empty list.
 *
 * Guarantees: no alias, merge key, tag, duplicate key or key of `Object.prototype` gets through, each refused for its
 * own document alone; time and memory are linear in the text (a bomb of 1 MiB costs seconds at worst, not hours).
 */
export function parseManifest(
  text: string,
  limits: Pick<ManifestLimits, 'fileBytesMax' | 'linesMax' | 'depthMax' | 'documentsMax'>,
): Result<readonly ManifestDocument[]> {
  if (text.length > limits.fileBytesMax) return unreadable(`it is longer than ${limits.fileBytesMax} bytes`);
  const strange = NOT_TEXT.exec(text);
  if (strange !== null) {
    const code = (strange[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return unreadable(`line ${lineAt(text, strange.index)}: the character U+${code} does not belong in text`);
  }
  if (/^\ufeff?\s*\{/.test(text)) {
    const json = readJson(text.replace(/^\ufeff/, ''), limits.depthMax);
    if (json.kind === 'value') return ok(expandList(jsonDocument(json.value, json.duplicate)));
  }
  return parseYaml(text.replace(JOINED_MARK, '$1'), limits);
}

/** Files that were joined have their marks before later documents: YAML allows it, the package reads them as text. */
const JOINED_MARK = /^(---(?:[ \t].*)?\r?\n)\ufeff/gm;

function jsonDocument(value: unknown, duplicate: string | undefined): ManifestDocument {
  const problems: Problem[] = [];
  if (duplicate !== undefined)
    problems.push({ field: '', message: `the key ${quoted(duplicate)} is given twice` });
  checkKeys(value, '', problems);
  return { number: 1, line: 1, field: '', value, problems };
}

/** Assumes a value of bounded depth. */
function checkKeys(value: unknown, field: string, problems: Problem[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    const below = Array.isArray(value) ? `${field}[${key}]` : fieldBelow(field, key);
    if (!Array.isArray(value) && POLLUTING_KEYS.has(key)) problems.push({ field: below, message: POLLUTING });
    checkKeys(child, below, problems);
  }
}

const POLLUTING = 'this key is not accepted, because programs mistake it for a property of every object';

function parseYaml(
  text: string,
  limits: Pick<ManifestLimits, 'linesMax' | 'depthMax' | 'documentsMax'>,
): Result<readonly ManifestDocument[]> {
  const heaped = heapProblem(text, limits);
  if (heaped !== undefined) return unreadable(heaped);
  const tokens = tokenize(text, limits.depthMax);
  if (!tokens.ok) return tokens;
  const documents: ManifestDocument[] = [];
  const lineOf = createLineFinder(text);
  let number = 0;
  // Keys are compared below: the library compares each with each. The failsafe schema resolves nothing by itself.
  const composer = new Composer({
    schema: 'failsafe',
    uniqueKeys: false,
    resolveKnownTags: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  for (const document of composer.compose(tokens.value)) {
    number += 1;
    if (number > limits.documentsMax) return unreadable(`it has more than ${limits.documentsMax} documents`);
    const [error] = document.errors;
    if (error !== undefined) {
      return unreadable(`line ${lineAt(text, error.pos[0])}: ${SYNTAX[error.code] ?? 'not valid YAML'}`);
    }
    documents.push(...expandList(yamlDocument(document, number, lineOf)));
  }
  return ok(documents.filter((one) => one.value !== null || one.problems.length > 0));
}

/** What can be counted before anything is understood: a line that begins with `---` is a marker wherever it stands. */
function heapProblem(
  text: string,
  { linesMax, documentsMax }: Pick<ManifestLimits, 'linesMax' | 'documentsMax'>,
): string | undefined {
  let lines = 0;
  let markers = 0;
  for (let at = 0; at >= 0; at = text.indexOf('\n', at) + 1 || -1) {
    lines += 1;
    if (text.startsWith('---', at) && /^\s?$/.test(text.charAt(at + 3))) markers += 1;
    if (lines > linesMax) return `it has more than ${linesMax} lines`;
    // One more than documents: the first may be preceded by an empty one.
    if (markers > documentsMax + 1) return `it has more than ${documentsMax} documents`;
  }
  return undefined;
}

/** Stops at the first sign of a bomb, before any tree is built. */
function tokenize(text: string, depthMax: number): Result<readonly CST.Token[]> {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    lexemes += 1;
    if (lexemes > LEXEMES_MAX) return unreadable(`it has more than ${LEXEMES_MAX} words and signs`);
    if (parser.stack.length > depthMax + STACK_BELOW_DEPTH) {
      return unreadable(`line ${lineAt(text, parser.offset)}: nested deeper than ${depthMax} levels`);
    }
  }
  for (const token of parser.end()) tokens.push(token);
  return ok(tokens);
}

function yamlDocument(
  document: Document.Parsed,
  number: number,
  lineOf: (offset: number) => number,
): ManifestDocument {
  const problems: Problem[] = [];
  const value = toValue(document.contents, '', problems);
  const start = document.contents?.range[0] ?? document.range[0];
  return { number, line: lineOf(start), field: '', value, problems };
}

function toValue(node: unknown, field: string, problems: Problem[]): unknown {
  const refuse = (message: string): null => {
    problems.push({ field, message });
    return null;
  };
  if (isAlias(node)) return refuse('aliases (*name) are not accepted; write the value out');
  if ((isScalar(node) || isMap(node) || isSeq(node)) && node.tag !== undefined) {
    return refuse('tags (!name) are not accepted');
  }
  if (isScalar(node))
    return node.type === 'PLAIN' ? resolvePlainScalar(String(node.value)) : String(node.value);
  if (isSeq(node)) return node.items.map((item, index) => toValue(item, `${field}[${index}]`, problems));
  if (!isMap(node)) return null;
  const mapping = Object.create(null) as Record<string, unknown>;
  const keys = new Set<string>();
  for (const { key, value } of node.items) {
    const name = keyText(key);
    const below = name === undefined ? field : fieldBelow(field, name);
    const problem = name === undefined ? 'a key must be plain text' : keyProblem(key, name, keys);
    if (problem !== undefined) problems.push({ field: below, message: problem });
    if (name === undefined || problem !== undefined) continue;
    keys.add(name);
    mapping[name] = toValue(value, below, problems);
  }
  return mapping;
}

/** Numbers and booleans as keys are their text, as when Kubernetes turns YAML into JSON. */
function keyText(key: unknown): string | undefined {
  if (!isScalar(key) || key.tag !== undefined) return undefined;
  const text = String(key.value);
  return key.type === 'PLAIN' && text === '' ? undefined : text;
}

function keyProblem(key: unknown, name: string, keys: ReadonlySet<string>): string | undefined {
  if (keys.has(name)) return 'this key is given twice';
  if (POLLUTING_KEYS.has(name)) return POLLUTING;
  const merge = name === '<<' && isScalar(key) && key.type === 'PLAIN';
  return merge ? 'merge keys (<<) are not accepted; write the values out' : undefined;
}

/** A List of the API is as many objects; each item answers for itself alone. */
function expandList(document: ManifestDocument): readonly ManifestDocument[] {
  const { value, problems } = document;
  if (typeof value !== 'object' || value === null || !('kind' in value) || value.kind !== 'List')
    return [document];
  const items: unknown = 'items' in value ? value.items : undefined;
  if (!Array.isArray(items)) {
    const missing: Problem = { field: 'items', message: 'expected a list of objects' };
    return [{ ...document, problems: [...problems, missing] }];
  }
  const byItem = new Map<string | undefined, Problem[]>();
  for (const problem of problems) {
    const item = /^items\[\d+\]/.exec(problem.field)?.[0];
    byItem.set(item, [...(byItem.get(item) ?? []), problem].slice(0, PROBLEMS_MAX));
  }
  const expanded = items.map((item: unknown, index) => {
    const field = `items[${index}]`;
    return { ...document, field, value: item, problems: byItem.get(field) ?? [] };
  });
  const common = byItem.get(undefined);
  return common === undefined ? expanded : [{ ...document, value: null, problems: common }, ...expanded];
}

function lineAt(text: string, offset: number): number {
  return createLineFinder(text)(offset);
}

/** Line of an offset, counted from 1; offsets are asked in growing order, so the text is walked once. */
function createLineFinder(text: string): (offset: number) => number {
  let line = 1;
  let at = text.indexOf('\n');
  return (offset) => {
    for (; at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
    return line;
  };
}

function unreadable(message: string): ReturnType<typeof fail> {
  return fail({ code: 'source-unreadable', message, effect: 'none' });
}

/** Our words for the library's codes: its own messages quote the text, which may hold a secret. */
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: 'an escape in a double-quoted string is not valid',
  BAD_INDENT: 'the indentation does not fit',
  BAD_SCALAR_START: 'a value cannot begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a mapping begins where a value is expected; check the indentation and the colons',
  BLOCK_IN_FLOW: 'a block collection inside brackets or braces',
  KEY_OVER_1024_CHARS: 'a key is longer than 1,024 characters',
  MISSING_CHAR: 'a quote, colon, comma, bracket or brace is missing',
  MULTILINE_IMPLICIT_KEY: 'a key goes over more than one line; is a colon missing?',
  MULTIPLE_ANCHORS: 'more than one anchor on one value',
  MULTIPLE_TAGS: 'more than one tag on one value',
  RESOURCE_EXHAUSTION: 'nested too deeply',
  TAB_AS_INDENT: 'a tab is used for indentation; use spaces',
  UNEXPECTED_TOKEN: 'something stands where it does not belong',
};
