import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldText, parseFieldPath, type PodMetadata } from '../../kubernetes/fields/field-path.ts';
import { goQuote } from '../../kubernetes/fields/go-quote.ts';

const POD: PodMetadata = {
  name: 'web',
  namespace: 'shop',
  uid: 'uid-web',
  labels: () => new Map([['app', 'shop']]),
  annotations: () =>
    new Map([
      ['zone', 'b'],
      ['example.com/Owner', 'an "a"\nand\tb'],
      ['empty', ''],
    ]),
};

function shown(path: string): string | undefined {
  const parsed = parseFieldPath(path);
  return parsed === undefined ? undefined : fieldText(parsed, POD);
}

test('the fields of a pod are written as the kubelet writes them', () => {
  assert.equal(shown('metadata.name'), 'web');
  assert.equal(shown('metadata.namespace'), 'shop');
  assert.equal(shown('metadata.uid'), 'uid-web');
  assert.equal(shown("metadata.labels['app']"), 'shop');
  assert.equal(shown("metadata.annotations['example.com/Owner']"), 'an "a"\nand\tb');
  assert.equal(shown("metadata.annotations['absent']"), '');
  assert.equal(shown('metadata.labels'), 'app="shop"');
});

test('all annotations are lines, sorted by key, with quoted values and no line end after the last', () => {
  assert.equal(shown('metadata.annotations'), 'empty=""\nexample.com/Owner="an \\"a\\"\\nand\\tb"\nzone="b"');
  const none = parseFieldPath('metadata.labels');
  assert.equal(none && fieldText(none, { ...POD, labels: () => new Map() }), '');
});

test('what a volume cannot show, and a key that nobody can have, is no field', () => {
  for (const path of [
    '',
    'metadata',
    'metadata.names',
    'spec.nodeName',
    'status.podIP',
    "metadata.name['x']",
    "metadata.labels['']",
    "metadata.labels['-x']",
    "metadata.labels['a/b/c']",
    "metadata.labels['Example.com/x']",
    `metadata.labels['${'x'.repeat(64)}']`,
    `metadata.labels['${'x'.repeat(254)}/x']`,
    "metadata.labels['x",
  ])
    assert.equal(parseFieldPath(path), undefined, path);
  assert.ok(parseFieldPath(`metadata.labels['${'x'.repeat(253)}/${'y'.repeat(63)}']`));
});

test("text is quoted as Go's %q quotes it", () => {
  const quoted: Readonly<Record<string, string>> = {
    'plain ä 漢 ☺ 👍': '"plain ä 漢 ☺ 👍"',
    '\u0007\b\f\n\r\t\v': '"\\a\\b\\f\\n\\r\\t\\v"',
    '\\"\'': '"\\\\\\"\'"',
    '\u0000\u001b\u007f': '"\\x00\\x1b\\x7f"',
    '\u00a0\u00ad\u200b\u2028\ufeff': '"\\u00a0\\u00ad\\u200b\\u2028\\ufeff"',
    '\u{e0001}': '"\\U000e0001"',
    'lone \ud800': '"lone \ufffd"',
  };
  for (const [text, right] of Object.entries(quoted)) assert.equal(goQuote(text), right);
});
