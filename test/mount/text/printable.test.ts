import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { printable } from '../../../mount/text/printable.ts';

test('no character that could move a cursor, turn text round or hide is left', () => {
  assert.equal(
    printable('a\u001b[31m\r\n\u009b\u202e\u2066\u2028\ufeff\ud800z', 200),
    'a\\u001b[31m\\u000d\\u000a\\u009b\\u202e\\u2066\\u2028\\ufeff\\ud800z',
  );
  assert.equal(printable('a\u200bb\u00adc\u{e0041}d', 200), 'a\\u200bb\\u00adc\\u{e0041}d');
  assert.equal(printable('grüße 😀 日本', 200), 'grüße 😀 日本');
  assert.equal(printable('a\\u001b\\"', 200), 'a\\u001b\\"');
});

test('text is cut to its bytes, with a sign, and never within a character or an escape', () => {
  assert.equal(printable('x'.repeat(10), 10), 'x'.repeat(10));
  assert.equal(printable('x'.repeat(11), 10), `${'x'.repeat(7)}…`);
  assert.equal(printable('ab\u001b[2J', 10), 'ab…');
  assert.equal(printable('abc', 2), '');
  for (const text of ['😀'.repeat(40), 'é'.repeat(80), '\u0000'.repeat(50)]) {
    const cut = printable(text, 50);
    assert.equal(Buffer.byteLength(cut) <= 50, true);
    assert.doesNotMatch(cut, /\ufffd|\p{Cs}/u);
  }
});

/** Any text, halves of surrogate pairs and all that is unsafe much more often than by chance. */
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.constantFrom(
        '\u001b',
        '\n',
        '\r\n',
        '\u0085',
        '\u2028',
        '\u2029',
        '\u202e',
        '\u2067',
        '\u061c',
        '\u200b',
      ),
      fc.constantFrom('\ud800', '\udc00', '\u{e0001}', '\ufeff', '\\', '\\u001b', '…', '😀'),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(''));
const bytesMax = fc.integer({ min: 0, max: 300 });

test('whatever goes in: one line without control, format or half characters, within its bytes', () => {
  fc.assert(
    fc.property(hostile, bytesMax, (text, max) => {
      const shown = printable(text, max);
      assert.doesNotMatch(shown, /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      assert.ok(Buffer.byteLength(shown) <= max);
      assert.equal(Buffer.from(shown).toString('utf8'), shown);
    }),
    { numRuns: 2_000 },
  );
});

test('what is printable already stays as it is, so it may be done twice', () => {
  fc.assert(
    fc.property(hostile, bytesMax, (text, max) => {
      const shown = printable(text, max);
      assert.equal(printable(shown, max), shown);
    }),
    { numRuns: 2_000 },
  );
});

test('what fits is whole: each character is there, or its escape', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const shown = printable(text, 100_000);
      const undone = shown.replace(/\\u(?:\{([0-9a-f]+)\}|([0-9a-f]{4}))/g, (_, long, short) =>
        String.fromCodePoint(Number.parseInt(long ?? short, 16)),
      );
      if (!text.includes('\\')) assert.equal(undone, text);
    }),
  );
});
