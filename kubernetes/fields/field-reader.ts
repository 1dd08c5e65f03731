/** Reads one field of a document: it knows the name, so that a refusal says where and what would be right. */
import { printable } from '../../mount/text/printable.ts';

/** What is wrong at one place, in words for people. */
export interface Problem {
  /** `spec.volumes[2].hostPath.type`; empty for the document as a whole. */
  readonly field: string;
  /** Never holds a value below a secret's data; values are cut to 64 bytes and control characters escaped. */
  readonly message: string;
}

/** How many problems of one object are told; whoever has more learns the rest after mending these. */
export const PROBLEMS_MAX = 16;
const SHOWN_BYTES_MAX = 64;
const PLAIN_KEY = /^[A-Za-z0-9_/-]{1,64}$/;
/** A field of an API, and no key that somebody chose, as of an annotation. */
const FIELD_NAME = /^[a-z][A-Za-z]*$/;

/** The name of a key below a field: `spec.volumes`, or `data["a.b"]` for a key that is not plain. */
export function fieldBelow(field: string, key: string): string {
  if (!PLAIN_KEY.test(key)) return `${field}[${quoted(key)}]`;
  return field === '' ? key : `${field}.${key}`;
}

/** Quoted for a message: cut, and with nothing that could move a cursor or end a line. */
export function quoted(text: string): string {
  return `"${printable(text, SHOWN_BYTES_MAX)}"`;
}

function listed(values: readonly string[]): string {
  return values.map((one) => (one === '' ? '""' : one)).join(', ');
}

/**
 * Reading never throws and never stops: each method answers a value of its type, and a place that does not hold one
 * leaves a problem behind. `null` is the same as absent, as in Kubernetes; unknown fields are ignored, but for those
 * that are a known one in other capitals: of `readonly` Kubernetes says no word, and what was to be read is written.
 */
export class FieldReader {
  readonly field: string;
  readonly #value: unknown;
  readonly #problems: Problem[];
  /** Values below here are never shown. */
  readonly #hidden: boolean;
  /** The keys of the mapping by their names in small letters. */
  #lowerCased: ReadonlyMap<string, string> | undefined;

  constructor(value: unknown, field: string, problems: Problem[], hidden = false) {
    this.field = field;
    this.#value = value ?? undefined;
    this.#problems = problems;
    this.#hidden = hidden;
  }

  get present(): boolean {
    return this.#value !== undefined;
  }

  /** The same place, of which no value may be shown. */
  hide(): FieldReader {
    return new FieldReader(this.#value, this.field, this.#problems, true);
  }

  refuse(message: string): void {
    if (this.#problems.length >= PROBLEMS_MAX || this.#problems.some((one) => one.field === this.field))
      return;
    this.#problems.push({ field: this.field, message });
  }

  /** `found`, for a message: the value itself only where it may be shown. */
  shown(): string {
    const value = this.#value;
    if (typeof value === 'string') return this.#hidden ? 'a string' : quoted(value);
    if (typeof value === 'number') return this.#hidden ? 'a number' : `the number ${value}`;
    if (typeof value === 'boolean') return this.#hidden ? 'a boolean' : `the boolean ${value}`;
    if (value === undefined) return 'nothing';
    return Array.isArray(value) ? 'a list' : 'a mapping';
  }

  /** The child under a key; absent when this place is absent. */
  key(name: string): FieldReader {
    const mapping = this.#mapping();
    const isThere = mapping !== undefined && Object.hasOwn(mapping, name);
    if (mapping !== undefined && !isThere) this.#refuseInOtherCase(mapping, name);
    const value = isThere ? mapping[name] : undefined;
    return new FieldReader(value, fieldBelow(this.field, name), this.#problems, this.#hidden);
  }

  /** All children of a mapping, in the document's order. */
  entries(): readonly (readonly [string, FieldReader])[] {
    const mapping = this.#mapping();
    return mapping === undefined ? [] : Object.keys(mapping).map((key) => [key, this.key(key)] as const);
  }

  list(): readonly FieldReader[] {
    if (this.#value === undefined) return [];
    if (!Array.isArray(this.#value)) {
      this.#expected('a list');
      return [];
    }
    return this.#value.map(
      (one: unknown, index) => new FieldReader(one, `${this.field}[${index}]`, this.#problems, this.#hidden),
    );
  }

  /** A string that keeps the rule; undefined when absent or refused. `right` completes "expected …". */
  text(rule: (text: string) => boolean = () => true, right = 'a string'): string | undefined {
    const value = this.#value;
    if (value === undefined) return undefined;
    if (typeof value !== 'string') {
      this.#expected(typeof value === 'object' ? right : `${right} (put it in quotes)`);
      return undefined;
    }
    if (rule(value)) return value;
    this.#expected(right);
    return undefined;
  }

  /** Like `text`, but absence is a problem too; the empty string stands for what was refused. */
  requiredText(rule: (text: string) => boolean, right: string): string {
    if (!this.present) this.refuse(`is missing; expected ${right}`);
    return this.text(rule, right) ?? '';
  }

  oneOf<T extends string>(values: readonly T[], fallback: T): T {
    const text = this.text();
    if (text === undefined) return fallback;
    const known = values.find((one) => one === text);
    if (known === undefined) this.refuse(`${this.shown()} is not one of ${listed(values)}`);
    return known ?? fallback;
  }

  /** Like `oneOf`, but absence is a problem too; `standIn` stands for what was refused. */
  requiredOneOf<T extends string>(values: readonly T[], standIn: T): T {
    if (!this.present) this.refuse(`is missing; expected one of ${listed(values)}`);
    return this.oneOf(values, standIn);
  }

  flag(fallback: boolean): boolean {
    if (this.#value === undefined || typeof this.#value === 'boolean') return this.#value ?? fallback;
    this.#expected('true or false, without quotes');
    return fallback;
  }

  /** A whole number from `min` to `max`. */
  integer(min: number, max: number, right: string): number | undefined {
    const value = this.#value;
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    this.#expected(right);
    return undefined;
  }

  /** A string, or a number that is exact, as text: Kubernetes quantities are written either way. */
  scalarText(right: string): string | undefined {
    const value = this.#value;
    if (typeof value !== 'number') return this.text(undefined, right);
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return String(value);
    this.refuse(`${this.shown()} is too large to be exact; put it in quotes`);
    return undefined;
  }

  #refuseInOtherCase(mapping: Readonly<Record<string, unknown>>, name: string): void {
    if (!FIELD_NAME.test(name)) return;
    this.#lowerCased ??= new Map(Object.keys(mapping).map((key) => [key.toLowerCase(), key]));
    const written = this.#lowerCased.get(name.toLowerCase());
    if (written === undefined || (mapping[written] ?? undefined) === undefined) return;
    const field = fieldBelow(this.field, written);
    new FieldReader(undefined, field, this.#problems).refuse(`is no field; did you mean "${name}"?`);
  }

  #mapping(): Readonly<Record<string, unknown>> | undefined {
    const value = this.#value;
    if (value === undefined) return undefined;
    if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>;
    this.#expected('a mapping');
    return undefined;
  }

  #expected(right: string): void {
    this.refuse(`expected ${right}, found ${this.shown()}`);
  }
}
