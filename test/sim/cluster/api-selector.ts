/** Field and label selectors of lists and watches. Pure. */
import { at, type Json, metadataOf } from './json-object.ts';
import type { ApiTarget } from './api-path.ts';

export type Selector =
  | { readonly ok: true; readonly isSelected: (object: Json) => boolean }
  | { readonly ok: false; readonly message: string };

const TERM = /^(!?)([\w./-]+)(?:(==|=|!=)(.*))?$/;

interface Term {
  readonly key: string;
  readonly isNot: boolean;
  /** Undefined: only whether there is one is asked. */
  readonly value: string | undefined;
}

export function readSelector({ query, fieldLabels }: Pick<ApiTarget, 'query' | 'fieldLabels'>): Selector {
  const fields = termsOf(query.get('fieldSelector') ?? '');
  const labels = termsOf(query.get('labelSelector') ?? '');
  if (fields === undefined || labels === undefined)
    return { ok: false, message: 'unable to parse the selector' };
  const known = new Set(['metadata.name', 'metadata.namespace', ...fieldLabels]);
  const unknown = fields.find(({ key }) => !known.has(key));
  if (unknown !== undefined) return { ok: false, message: `field label not supported: ${unknown.key}` };
  return {
    ok: true,
    isSelected: (object) =>
      fields.every((term) => holds(term, fieldOf(object, term.key))) &&
      labels.every((term) => holds(term, labelOf(object, term.key))),
  };
}

function termsOf(text: string): readonly Term[] | undefined {
  const terms = text === '' ? [] : text.split(',').map(termOf);
  return terms.every((one) => one !== undefined) ? terms : undefined;
}

function termOf(text: string): Term | undefined {
  const [whole, no, key = '', operator, value] = TERM.exec(text) ?? [];
  if (whole === undefined || (no === '!' && operator !== undefined)) return undefined;
  return { key, isNot: no === '!' || operator === '!=', value: operator === undefined ? undefined : value };
}

function holds({ isNot, value }: Term, found: string | undefined): boolean {
  return (value === undefined ? found !== undefined : found === value) !== isNot;
}

/** An absent field is empty. */
function fieldOf(object: Json, path: string): string {
  const keys = path.split('.');
  const found = at(object, ...keys.slice(0, -1))[keys.at(-1) ?? ''];
  return typeof found === 'string' ? found : '';
}

function labelOf(object: Json, key: string): string | undefined {
  const found = at(metadataOf(object), 'labels')[key];
  return typeof found === 'string' ? found : undefined;
}
