import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_MANIFEST_LIMITS } from '../../agent/source/manifests/parse/manifest-limits.ts';
import { parseManifestParts } from '../../agent/source/manifests/parse/manifest-child.ts';
import type { ParseRequest } from '../../agent/source/manifests/parse/manifest-parser.ts';
import { createRememberingParser, IN_PROCESS_PARSER } from './in-process-parser.ts';

function requestOf(origin: string, text: string, fileBytesMax?: number): ParseRequest {
  const limits = { ...DEFAULT_MANIFEST_LIMITS, ...(fileBytesMax === undefined ? {} : { fileBytesMax }) };
  return { origin, bytes: Buffer.from(text), limits };
}

function secret(name: string, value: string): string {
  const data = { key: Buffer.from(value).toString('base64') };
  const metadata = { name, namespace: 'default' };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data });
}

test('a parser that remembers answers as one that does not, and reads only what differs', async () => {
  const parsed: string[] = [];
  const remembering = createRememberingParser((request) => {
    parsed.push(request.origin);
    return parseManifestParts(request) as readonly unknown[];
  }, 10);
  const requests = [
    requestOf('one.json', secret('one', 'first')),
    requestOf('one.json', secret('one', 'first')),
    requestOf('one.json', secret('one', 'other')),
    requestOf('two.json', secret('one', 'first')),
    requestOf('two.json', secret('one', 'first'), 1),
    requestOf('bad.json', '{'),
  ];
  for (const request of [...requests, ...requests])
    assert.deepStrictEqual(await remembering.parse(request), await IN_PROCESS_PARSER.parse(request));
  assert.deepEqual(parsed, ['one.json', 'one.json', 'two.json', 'two.json', 'bad.json']);
});

test('a parser that remembers forgets what was asked for longest ago', async () => {
  const parsed: string[] = [];
  const remembering = createRememberingParser((request) => {
    parsed.push(request.origin);
    return parseManifestParts(request) as readonly unknown[];
  }, 2);
  for (const origin of ['a', 'b', 'a', 'c', 'a', 'b']) await remembering.parse(requestOf(origin, '{}'));
  assert.deepEqual(parsed, ['a', 'b', 'c', 'b']);
});

test('what a parser that remembers answered is nobody else its answer', async () => {
  const remembering = createRememberingParser(
    (request) => parseManifestParts(request) as readonly unknown[],
    2,
  );
  const [first, second] = [requestOf('a', secret('a', 'one')), requestOf('a', secret('a', 'one'))];
  const [one, other] = [await remembering.parse(first), await remembering.parse(second)];
  assert.ok(one.ok && other.ok);
  assert.notEqual(one.value.objects[0]?.object, other.value.objects[0]?.object);
});
