/** Secrets and ConfigMaps of an API server, which are as large as it likes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readObject } from '../../kubernetes/objects/read-object.ts';

const BYTES = 12_000_000;

function secretOf(text: string) {
  const metadata = { name: 'large', namespace: 'default' };
  return readObject({ apiVersion: 'v1', kind: 'Secret', metadata, data: { key: text } }, 'store');
}

test('a Secret of many megabytes is read, or refused, and stops nobody', () => {
  const bytes = Buffer.alloc(BYTES, 'mooring');
  const read = secretOf(bytes.toString('base64'));
  assert.ok(read.kind === 'object' && read.object.kind === 'Secret');
  assert.equal(Buffer.compare(read.object.data.reveal().get('key') ?? Buffer.alloc(0), bytes), 0);
  assert.equal(secretOf(`${bytes.toString('base64')}!`).kind, 'refused');
});

test('base64 is refused unless its groups and its padding are whole', () => {
  for (const text of ['', 'YQ==', 'YWI=', 'YWJj', 'YWJj\nYQ=='])
    assert.equal(secretOf(text).kind, 'object', text);
  for (const text of [
    'Y',
    'YQ',
    'YQ=',
    'YWI',
    '=',
    '====',
    'Y===',
    'YQ==YQ==',
    'YQ==\u0000',
    'Y-_/',
    'YWJj YQ==',
  ])
    assert.equal(secretOf(text).kind, 'refused', text);
});
