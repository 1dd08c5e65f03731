import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainCopy } from './plain-copy.ts';

const SAMPLES: readonly unknown[] = [
  undefined,
  null,
  'text',
  7n,
  [1, [undefined, 'two'], {}],
  { a: undefined, b: { c: [null, true] }, 'd e': -0 },
  new Map<unknown, unknown>([['key', { set: new Set([1, 'two']) }]]),
  { bytes: Uint8Array.of(0, 255) },
  Buffer.from('of a pool').subarray(3),
];

test('a plain copy is what structuredClone makes of it', () => {
  for (const sample of SAMPLES) assert.deepStrictEqual(plainCopy(sample), structuredClone(sample));
});

test('nothing of a plain copy is the original', () => {
  const original = { list: [{ bytes: Uint8Array.of(1) }], map: new Map([['key', { value: 1 }]]) };
  const copy = plainCopy(original);
  const [first] = copy.list;
  first?.bytes.fill(2);
  copy.list.push({ bytes: Uint8Array.of(3) });
  copy.map.set('other', { value: 2 });
  (copy.map.get('key') ?? { value: 0 }).value = 3;
  assert.deepStrictEqual(original, {
    list: [{ bytes: Uint8Array.of(1) }],
    map: new Map([['key', { value: 1 }]]),
  });
});

test('what would not cross between processes as it is has no plain copy', () => {
  class Opaque {
    readonly #secret = 'secret';
    reveal(): string {
      return this.#secret;
    }
  }
  for (const value of [() => 1, Symbol('one'), new Opaque(), new AbortController().signal])
    assert.throws(() => plainCopy({ value }), /no plain data/);
});
