/** What makes two objects the same: a digest of all they say, in any order of keys. Never shown, never on disk. */
import { createHash, type Hash } from 'node:crypto';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';

/** Compared instead of the objects, so that a large file that says the same again costs the agent nothing. */
export function contentDigest(value: unknown): string {
  const hash = createHash('sha256');
  feed(hash, value);
  return hash.digest('base64');
}

/** Each value begins with its kind and its length, so that no two are written alike. */
function feed(hash: Hash, value: unknown): void {
  if (value instanceof Sensitive) feed(hash, value.reveal());
  else if (value instanceof Uint8Array) hash.update(`b${value.length}:`).update(value);
  else if (typeof value === 'string') hash.update(`s${value.length}:${value}`);
  else if (typeof value !== 'object' || value === null) hash.update(`v${typeof value}${String(value)};`);
  else if (Array.isArray(value)) {
    hash.update(`a${value.length}:`);
    for (const one of value) feed(hash, one);
  } else {
    const entries: readonly (readonly [string, unknown])[] =
      value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value);
    hash.update(`o${entries.length}:`);
    for (const [key, one] of entries.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      feed(hash, key);
      feed(hash, one);
    }
  }
}
