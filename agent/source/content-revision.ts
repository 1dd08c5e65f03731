/** Versions of Secrets and ConfigMaps: told by what is in them, however often a source makes the same object anew. */
import { Buffer } from 'node:buffer';
import type { Sliced } from '../../mount/process/slices.ts';
import type { ConfigMap, ObjectKey, Secret, Stamped } from '../../kubernetes/objects/objects.ts';

/** An object with the version of its content. */
export type Revised<T> = Stamped<T> & {
  /** Grows whenever the content of this object changes; two contents never share one. Never a hash of the content. */
  readonly revision: number;
  /** It was immutable and says something else now, which does not count. */
  readonly isChangeIgnored?: true;
};

export type ContentObject = Secret | ConfigMap;

export interface ContentRevisions<T extends ContentObject> {
  /**
   * All objects that there are now, in the place of those of the last call. One with the content that its key had there
   * keeps its revision, and one that was immutable there keeps its content, too, whatever it says now, unless another
   * one of that name is meant, by its uid; of one that has not changed at all the same object is answered again.
   */
  revise(objects: ReadonlyMap<ObjectKey, Stamped<T>>): Sliced<ReadonlyMap<ObjectKey, Revised<T>>>;
}

interface Known<T> {
  readonly seen: Stamped<T>;
  readonly revised: Revised<T>;
}

/** What has not changed costs a look at a map: so many of them are still a short piece of work. */
const PIECE_OBJECTS = 128;

/** `next`: each answer is greater than the one before. */
export function createContentRevisions<T extends ContentObject>(next: () => number): ContentRevisions<T> {
  let known: ReadonlyMap<ObjectKey, Known<T>> = new Map();
  return {
    *revise(objects) {
      const now = new Map<ObjectKey, Known<T>>();
      for (const [key, object] of objects) {
        now.set(key, know(object, known.get(key), next));
        if (now.size % PIECE_OBJECTS === 0) yield;
      }
      known = now;
      return new Map([...now].map(([key, { revised }]) => [key, revised]));
    },
  };
}

function know<T extends ContentObject>(
  seen: Stamped<T>,
  before: Known<T> | undefined,
  next: () => number,
): Known<T> {
  if (before?.seen === seen) return before;
  // As by the API server: what was immutable once stays as it was until it is deleted; by then another one may have its
  // name.
  if (before?.revised.immutable === true && before.revised.uid === seen.uid)
    return { seen, revised: keptAs(before.revised, seen) };
  const isSame = before !== undefined && isSameContent(bytesOf(before.revised), bytesOf(seen));
  const revision = isSame ? before.revised.revision : next();
  return { seen, revised: Object.assign({}, seen, { revision }) };
}

function keptAs<T extends ContentObject>(before: Revised<T>, seen: Stamped<T>): Revised<T> {
  const { isChangeIgnored: _, ...kept } = before;
  const { origin, place } = seen;
  const isSame = isSameContent(bytesOf(before), bytesOf(seen));
  return Object.assign({}, kept, { origin, place }, isSame ? {} : { isChangeIgnored: true }) as Revised<T>;
}

function bytesOf(object: ContentObject): ReadonlyMap<string, Uint8Array> {
  return object.kind === 'Secret' ? object.data.reveal() : object.data;
}

function isSameContent(a: ReadonlyMap<string, Uint8Array>, b: ReadonlyMap<string, Uint8Array>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, bytes] of a) {
    const other = b.get(key);
    if (other === undefined || Buffer.compare(bytes, other) !== 0) return false;
  }
  return true;
}
