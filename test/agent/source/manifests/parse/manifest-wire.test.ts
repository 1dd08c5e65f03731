import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseManifestParts } from '../../../../../agent/source/manifests/parse/manifest-child.ts';
import { DEFAULT_MANIFEST_LIMITS } from '../../../../../agent/source/manifests/parse/manifest-limits.ts';
import { fromParts } from '../../../../../agent/source/manifests/parse/manifest-wire.ts';

/** Far above what a node has; a part has 4,000 values, and a configMap of this test some 20. */
const MANY = 2_000;

function partsOf(items: readonly object[]): readonly unknown[] {
  const bytes = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  return parseManifestParts({ origin: 'a.json', bytes, limits: DEFAULT_MANIFEST_LIMITS });
}

const configMap = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { key: 'value' },
});

const refused = { apiVersion: 'v1', kind: 'Pod', metadata: { name: '%' } };

test('what a small file says comes in one part', () => {
  const parts = partsOf([configMap('one'), configMap('two'), refused]);
  const { objects, rejected } = fromParts(parts);
  assert.deepEqual([parts.length, objects.length, rejected.length], [1, 2, 1]);
});

test('what a large one says comes in several, in its order, and none of them is large', () => {
  const names = Array.from({ length: MANY }, (_, index) => `map-${index}`);
  const parts = partsOf(names.map(configMap));
  const { objects } = fromParts(parts);
  assert.deepEqual(
    objects.map(({ object }) => (object.kind === 'ConfigMap' ? object.name : object.kind)),
    names,
  );
  const sizes = parts.map(
    (part) => fromParts([parts[0], ...(part === parts[0] ? [] : [part])]).objects.length,
  );
  const first = sizes[0] ?? 0;
  const others = sizes.slice(1).map((size) => size - first);
  assert.ok(parts.length > 4 && others.length > 0);
  assert.ok(
    [first, ...others].every((size) => size > 0 && size < MANY / 4),
    sizes.join(' '),
  );
});

test('what says much of what it refuses leaves the objects to other parts', () => {
  const parts = partsOf([...Array.from({ length: MANY }, () => refused), configMap('one')]);
  const { objects, rejected } = fromParts(parts);
  assert.ok(rejected.length > 0);
  assert.equal(objects.length, 1);
});
