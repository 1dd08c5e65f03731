/** How much is read of a collection: what is made of n things in the time of n * n is seen without a clock. */

export interface ReadCount {
  reads: number;
}

/** The same array; each element that is read counts. */
export function countedArray<T>(array: readonly T[], count: ReadCount): readonly T[] {
  return new Proxy(array, {
    get(target, key) {
      if (typeof key === 'string' && /^[0-9]+$/.test(key)) count.reads += 1;
      return Reflect.get(target, key) as unknown;
    },
  });
}

/** The same map; each entry that an iteration gives counts, a look-up does not. */
export class CountedMap<Key, Value> extends Map<Key, Value> {
  readonly #count: ReadCount;

  constructor(map: ReadonlyMap<Key, Value>, count: ReadCount) {
    super(map);
    this.#count = count;
  }

  override *entries(): MapIterator<[Key, Value]> {
    for (const entry of super.entries()) {
      this.#count.reads += 1;
      yield entry;
    }
  }

  override *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  override *keys(): MapIterator<Key> {
    for (const [key] of this.entries()) yield key;
  }

  override [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }
}
