import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHistogram } from '../../../agent/timing/histogram.ts';
import { readExposition } from '../metrics/exposition.ts';

const FORM = { name: 'spans_seconds', help: 'Spans.', bounds: [0.1, 1] };

test('a bucket has all that took no longer, a bound belongs to its bucket, and the last has all', () => {
  const spans = createHistogram(FORM);
  for (const seconds of [0.1, 0.5, 70]) spans.observe({ what: 'a' }, seconds);
  const { samples, types } = readExposition(spans.text());
  assert.equal(types.get('spans_seconds'), 'histogram');
  const buckets = samples.filter(({ name }) => name === 'spans_seconds_bucket');
  assert.deepEqual(
    buckets.map(({ labels, value }) => [labels['le'], value]),
    [
      ['0.1', 1],
      ['1', 2],
      ['+Inf', 3],
    ],
  );
  assert.equal(samples.find(({ name }) => name === 'spans_seconds_count')?.value, 3);
  assert.equal(samples.find(({ name }) => name === 'spans_seconds_sum')?.value, 70.6);
});

test('whatever values a label has, there are no more than 2,000 series, and those that there are go on', () => {
  const spans = createHistogram(FORM);
  for (let index = 0; index < 5_000; index += 1) spans.observe({ what: `"${index}\n` }, 1);
  spans.observe({ what: '"0\n' }, 1);
  const counts = readExposition(spans.text()).samples.filter(({ name }) => name === 'spans_seconds_count');
  assert.equal(counts.length, 2_000);
  assert.equal(counts[0]?.value, 2);
});

test('without labels it is one series', () => {
  const spans = createHistogram(FORM);
  spans.observe({}, 0.5);
  assert.match(spans.text(), /^spans_seconds_bucket\{le="1"\} 1$/m);
  assert.match(spans.text(), /^spans_seconds_count 1$/m);
});
