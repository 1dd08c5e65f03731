import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSpanMs, spanText } from '../../../mount/text/duration.ts';

test('a span is read as it is written, and a number alone is seconds', () => {
  for (const ms of [0, 850, 41_000, 192_000, 7_500_000, 10 * 86_400_000])
    assert.equal(parseSpanMs(spanText(ms)), ms, spanText(ms));
  assert.equal(parseSpanMs('90'), 90_000);
  assert.equal(parseSpanMs('1h2m3s4ms'), 3_723_004);
});

test('what is no span, or longer than a timer can wait, is none', () => {
  for (const text of ['', 's', '5x', '5 m', '-5s', '1.5s', '1h30', '5m\n', '25d', '99999999999'])
    assert.equal(parseSpanMs(text), undefined, text);
});
