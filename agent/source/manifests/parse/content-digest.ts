/** What makes two objects the same: a digest of all they say, in any order of keys. Never shown, never on disk. */
import { createHash } from 'node:crypto';
import { Sensitive } from '../../../../plugins/secret/sensitive.ts';

/** Compared instead of the objects, so that a large file that says the same again costs the agent nothing. */
export function contentDigest(value: unknown): string {
  const hash = createHash('sha256');
  const said = new Said((piece) => hash.update(piece));
  feed(said, value);
  said.end();
  return hash.digest('base64');
}

/** Text is gathered: a call of the hash for each word costs more than all that is hashed. */
class Said {
  readonly #tell: (piece: string | Uint8Array) => void;
  #text = '';

  constructor(tell: (piece: string | Uint8Array) => void) {
    this.#tell = tell;
  }

  text(piece: string): void {
    this.#text += piece;
    if (this.#text.length > GATHERED_MAX) this.end();
  }

  bytes(piece: Uint8Array): void {
    this.end();
    this.#tell(piece);
  }

  end(): void {
    if (this.#text !== '') this.#tell(this.#text);
    this.#text = '';
  }
}

/** Counted in characters; a longer piece is hashed as it comes. */
const GATHERED_MAX = 65_536;

/** Each value begins with its kind and its length, so that no two are written alike. */
function feed(said: Said, value: unknown): void {
  if (value instanceof Sensitive) feed(said, value.reveal());
  else if (value instanceof Uint8Array) {
    said.text(`b${value.length}:`);
    said.bytes(value);
  } else if (typeof value === 'string') said.text(`s${value.length}:${value}`);
  else if (typeof value !== 'object' || value === null) said.text(`v${typeof value}${String(value)};`);
  else if (Array.isArray(value)) {
    said.text(`a${value.length}:`);
    for (const one of value) feed(said, one);
  } else {
    const entries: readonly (readonly [string, unknown])[] =
      value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value);
    said.text(`o${entries.length}:`);
    for (const [key, one] of entries.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      feed(said, key);
      feed(said, one);
    }
  }
}
