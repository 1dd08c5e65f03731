/** Values that must never be shown: secrets of drivers and the files of secret volumes. */
import { inspect } from 'node:util';

/** A value that prints as `[redacted]` however it is logged, serialised or inspected. Only `reveal` opens it. */
export class Sensitive<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** For the one call that needs it (a gRPC field, a file write); never store what it returns. */
  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return '[redacted]';
  }

  toJSON(): string {
    return '[redacted]';
  }

  [inspect.custom](): string {
    return '[redacted]';
  }
}

export type SecretData = Sensitive<Readonly<Record<string, string>>>;

/** True when both say the same, however often they were read; undefined is no secret. */
export function isSameSecret(a: SecretData | undefined, b: SecretData | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  const [before, after] = [a.reveal(), b.reveal()];
  const keys = Object.keys(before);
  return (
    keys.length === Object.keys(after).length &&
    keys.every((key) => Object.hasOwn(after, key) && before[key] === after[key])
  );
}
