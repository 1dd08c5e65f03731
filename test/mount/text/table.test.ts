import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spanText } from '../../../mount/text/duration.ts';
import { nearest } from '../../../mount/text/nearest.ts';
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
