import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spanText } from '../../../mount/text/duration.ts';
import { nearest } from '../../../mount/text/nearest.ts';
import { printable } from '../../../mount/text/printable.ts';
import { type Look, renderTable, shorten, wrap } from '../../../mount/text/table.ts';

const LOOK: Look = { widthMax: undefined, colour: false, unicode: true };
const COLUMNS = [
  { title: 'NAME', charactersMin: 6 },
  { title: 'COUNT', align: 'right' },
  { title: 'STATE' },
] as const;
const ROWS = [
  [{ text: 'a-rather-long-name' }, { text: '7' }, { text: 'ok', colour: 'green' }],
  [{ text: 'b' }, { text: '1234567' }, { text: '' }],
] as const;

test('columns are aligned and no line ends in blanks', () => {
  assert.deepEqual(renderTable(COLUMNS, ROWS, LOOK), [
    'NAME                  COUNT  STATE',
    'a-rather-long-name        7  ok',
    'b                   1234567',
  ]);
});

test('a line that is too long is taken from the column that may shrink, down to its least width', () => {
  assert.deepEqual(renderTable(COLUMNS, ROWS, { ...LOOK, widthMax: 26 }), [
    'NAME          COUNT  STATE',
    'a-rather-…        7  ok',
    'b           1234567',
  ]);
  assert.equal(renderTable(COLUMNS, ROWS, { ...LOOK, widthMax: 5 })[1], 'a-rat…        7  ok');
});

test('colour changes no width', () => {
  const plain = renderTable(COLUMNS, ROWS, { ...LOOK, widthMax: 26 });
  const coloured = renderTable(COLUMNS, ROWS, { ...LOOK, widthMax: 26, colour: true });
  assert.equal(coloured[1]?.includes('\u001b[32mok\u001b[0m'), true);
  assert.deepEqual(
    coloured.map((line) => line.replaceAll(/\u001b\[\d*m/g, '').trimEnd()),
    plain,
  );
});

test('a line below is wrapped, and hangs under its text', () => {
  const rows = [{ below: { text: '└ one two three four five six' }, indent: 2 }];
  assert.deepEqual(renderTable([{ title: 'T' }], rows, { ...LOOK, widthMax: 25 }).slice(1), [
    '  └ one two three four',
    '    five six',
  ]);
  assert.equal(renderTable([{ title: 'T' }], rows, LOOK)[1], '  └ one two three four five six');
});

test('text is shortened by characters, never within one', () => {
  assert.equal(shorten('grüße-😀😀😀', 8, LOOK), 'grüße-😀…');
  assert.equal(shorten('abcdef', 5, { unicode: false }), 'ab...');
  assert.equal(shorten('abcdef', 2, { unicode: false }), 'ab');
  assert.deepEqual(wrap('a bb averyverylongword c', 6), ['a bb', 'averyverylongword', 'c']);
});

test('spans are told in the two largest units', () => {
  const spans = [0, 999, 1_000, 59_999, 60_000, 192_000, 3_600_000, 7_500_000, 86_400_000, 950_400_000].map(
    spanText,
  );
  assert.deepEqual(spans, ['0ms', '999ms', '1s', '59s', '1m', '3m12s', '1h', '2h5m', '1d', '11d']);
  assert.equal(spanText(-5), '0ms');
});

test('the nearest word is found within a third of its length, swaps included', () => {
  assert.equal(nearest('scoket', ['socket', 'root']), 'socket');
  assert.equal(nearest('Root', ['socket', 'root']), 'root');
  assert.equal(nearest('colour', ['format', 'level']), undefined);
  assert.equal(nearest('x'.repeat(10_000), ['x']), undefined);
});

test('no character that could move a cursor or turn text round is left', () => {
  assert.equal(
    printable('a\u001b[31m\r\n\u009b\u202e\u2066\u2028\ufeff\ud800z', 200),
    'a\\u001b[31m\\u000d\\u000a\\u009b\\u202e\\u2066\\u2028\\ufeff\\ud800z',
  );
  assert.equal(printable('grüße 😀 日本', 200), 'grüße 😀 日本');
});

test('text is cut to its bytes, with a sign, and never within a character', () => {
  assert.equal(printable('x'.repeat(10), 10), 'x'.repeat(10));
  assert.equal(printable('x'.repeat(11), 10), `${'x'.repeat(7)}…`);
  for (const text of ['😀'.repeat(40), 'é'.repeat(80), '\u0000'.repeat(50)]) {
    const cut = printable(text, 50);
    assert.equal(Buffer.byteLength(cut) <= 50, true);
    assert.doesNotMatch(cut, /\ufffd|\p{Cs}/u);
  }
});
