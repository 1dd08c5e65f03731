import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { endRanges, isZero, tellingRanges } from '../../../mount/device/telling-bytes.ts';

const MEBIBYTE = 1024 * 1024;
const SIZES = fc.oneof(fc.nat(64 * MEBIBYTE), fc.integer({ min: 0, max: 2 ** 45 }));

test('both ends of a device are read at any size, nothing beyond them, and no byte twice', () => {
  fc.assert(
    fc.property(SIZES, (sizeBytes) => {
      for (const ranges of [endRanges(sizeBytes), tellingRanges(sizeBytes)]) {
        assert.equal(ranges[0]?.[0], 0);
        assert.equal(ranges.at(-1)?.[1], sizeBytes);
        ranges.forEach(([from, to], index) => {
          assert.ok(from >= (ranges[index - 1]?.[1] ?? 0) && to >= from);
        });
      }
    }),
  );
});

test('a small device is read whole, and a large one where a second superblock may lie', () => {
  assert.deepEqual(tellingRanges(8 * MEBIBYTE), [[0, 8 * MEBIBYTE]]);
  const size = 100 * MEBIBYTE;
  assert.deepEqual(endRanges(size), [
    [0, 4 * MEBIBYTE],
    [96 * MEBIBYTE, size],
  ]);
  const copies = [8, 24, 64].map((at) => [at * MEBIBYTE, (at + 1) * MEBIBYTE]);
  assert.deepEqual(tellingRanges(size), [[0, 4 * MEBIBYTE], ...copies, [96 * MEBIBYTE, size]]);
});

test('one byte in any place is seen among zeros', () => {
  const lengths = fc.constantFrom(1, 512, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 4 * MEBIBYTE);
  fc.assert(
    fc.property(lengths, fc.double({ min: 0, max: 0.999, noNaN: true }), (length, where) => {
      const bytes = Buffer.alloc(length);
      assert.ok(isZero(bytes));
      bytes[Math.floor(where * length)] = 1;
      assert.ok(!isZero(bytes));
    }),
    { numRuns: 50 },
  );
});
