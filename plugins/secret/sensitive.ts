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
