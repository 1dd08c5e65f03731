/** Volumes that show fields of their own pod: as they are read, refused and written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desired, desiredWith, filesOf, only, publicationOf } from '../desired.ts';
import { onlyRejection, wishOf } from '../manifests.ts';

interface PodParts {
  readonly annotations?: string;
  readonly limits?: string;
  readonly requests?: string;
  readonly source?: string;
}

/** A pod `web` with labels and one volume; the items in flow style. */
function podWith(
  items: string,
  { annotations = '', limits = '', requests = '', source = '' }: PodParts = {},
) {
  return `apiVersion: v1
kind: Pod
metadata: {name: web, uid: uid-web, labels: {app: shop, tier: front}, annotations: {${annotations}}}
spec:
  containers:
  - {name: main, volumeMounts: [{name: v, mountPath: /v}], resources: {limits: {${limits}}, requests: {${requests}}}}
  - name: plain
  initContainers: [{name: before, resources: {limits: {memory: 1Gi}}}]
  ephemeralContainers: [{name: late}]
  volumes: [{name: v, downwardAPI: {${source}items: [${items}]}}]
`;
}

const field = (path: string, fieldPath: string): string =>
  `{path: ${path}, fieldRef: {fieldPath: "${fieldPath}"}}`;
const resource = (what: string, divisor = '', containerName = 'main'): string =>
  `{path: r, resourceFieldRef: {containerName: ${containerName}, resource: ${what}` +
  `${divisor === '' ? '' : `, divisor: ${divisor}`}}}`;

const shown = (yaml: string) => filesOf(publicationOf(desired(yaml)));
const refused = (yaml: string): string => onlyRejection(wishOf({ 'one.yaml': yaml }));

test('fields of the pod are files under their paths, with their modes', () => {
  const items = [
    field('who/name', 'metadata.name'),
    `{path: ./labels, mode: 0600, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}`,
    field('note', "metadata.annotations['note']"),
    field('absent', "metadata.labels['absent']"),
  ];
  const volume = only(
    desired(
      podWith(items.join(', '), { annotations: 'note: hello', source: 'defaultMode: 0440, ' }),
    ).volumes.values(),
  );
  assert.deepEqual(
    [volume.spec.kind, volume.spec.id],
    ['downward-api', 'kubernetes.io/downward-api/uid-web/v'],
  );
  assert.deepEqual(filesOf(only(volume.publications.values())), {
    'who/name': '440 web',
    labels: '600 app="shop"\ntier="front"',
    note: '440 hello',
    absent: '440 ',
  });
});

test('resources are rounded up to whole divisors', () => {
  const limits = 'cpu: 1500m, memory: 100Mi, ephemeral-storage: 1G, hugepages-2Mi: 4Mi';
  const value = (item: string): string | undefined =>
    shown(podWith(item, { limits, requests: 'cpu: 250m' }))['r'];
  assert.equal(value(resource('limits.cpu')), '644 2');
  assert.equal(value(resource('limits.cpu', '1m')), '644 1500');
  assert.equal(value(resource('limits.cpu', '"0"')), '644 2');
  assert.equal(value(resource('requests.cpu', '1m')), '644 250');
  assert.equal(value(resource('limits.memory')), '644 104857600');
  assert.equal(value(resource('limits.memory', '1Mi')), '644 100');
  assert.equal(value(resource('limits.memory', '1M')), '644 105');
  assert.equal(value(resource('limits.ephemeral-storage', '1Gi')), '644 1');
  assert.equal(value(resource('limits.hugepages-2Mi', '1Mi')), '644 4');
  assert.equal(value(resource('limits.memory', '1Gi', 'before')), '644 1', 'an init container');
});

test('a request that is missing is the limit, and a limit that is missing what the node gives', () => {
  const node = (allocatable: string): string =>
    `apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {${allocatable}}}\n`;
  const value = (item: string, parts: PodParts = {}, ...others: readonly string[]): string | undefined => {
    const capacity = { cpu: 4_000n, memory: 8_000_000n };
    const state = desiredWith({ capacity }, [podWith(item, parts), ...others].join('---\n'));
    return filesOf(publicationOf(state))['r'];
  };
  assert.equal(value(resource('requests.memory'), { limits: 'memory: 64Mi' }), '644 67108864');
  assert.equal(value(resource('requests.memory')), '644 0');
  assert.equal(value(resource('limits.cpu', '1m')), '644 4000');
  assert.equal(value(resource('limits.memory', '1M'), { limits: 'memory: 0' }), '644 8');
  assert.equal(value(resource('limits.ephemeral-storage')), '644 0', 'nobody knows');
  assert.equal(value(resource('limits.hugepages-2Mi')), '644 0', 'never overcommitted');
  assert.equal(value(resource('limits.cpu', '1m'), {}, node('cpu: 3920m')), '644 3920');
  assert.equal(
    value(resource('limits.memory', '1M'), {}, node('cpu: 3920m')),
    '644 8',
    'as the machine has it',
  );
});

test('the generation changes with what is shown, and with nothing else', () => {
  const generation = (yaml: string): string => publicationOf(desired(yaml)).generation;
  const note = field('note', "metadata.annotations['note']");
  const before = generation(podWith(note, { annotations: 'note: a' }));
  assert.equal(generation(podWith(note, { annotations: 'note: a, other: b', limits: 'cpu: 1' })), before);
  assert.notEqual(generation(podWith(note, { annotations: 'note: b' })), before);
  assert.notEqual(
    generation(podWith(field('nota', "metadata.annotations['note']"), { annotations: 'note: a' })),
    before,
  );
  assert.notEqual(
    generation(podWith(note, { annotations: 'note: a', source: 'defaultMode: 0400, ' })),
    before,
  );
});

test('of two items with one path the later one counts', () => {
  assert.deepEqual(shown(podWith(`${field('a/b', 'metadata.name')}, ${field('a//b', 'metadata.uid')}`)), {
    'a/b': '644 uid-web',
  });
});

test('what cannot be right is refused with its field, its value and what would be right', () => {
  const at = 'spec.volumes[0].downwardAPI.items';
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      field('../up', 'metadata.name'),
      /items\[0\]\.path: expected a relative path without "\.\.".*"\.\.\/up"/,
    ],
    [field('/abs', 'metadata.name'), /items\[0\]\.path: expected a relative path .*"\/abs"/],
    [field('..data', 'metadata.name'), /items\[0\]\.path: expected a relative path .*"\.\.data"/],
    [
      `${field('a', 'metadata.name')}, ${field('a/b', 'metadata.uid')}`,
      /items: one path is a directory of another/,
    ],
    [field('a', 'spec.nodeName'), /fieldRef\.fieldPath: expected metadata\.name, .*"spec\.nodeName"/],
    ['{path: a}', /items\[0\]: has neither fieldRef and resourceFieldRef; expected one of them/],
    [
      '{path: a, fieldRef: {apiVersion: v2, fieldPath: metadata.name}}',
      /apiVersion: expected v1, found "v2"/,
    ],
    ['{path: a, mode: 01000, fieldRef: {fieldPath: metadata.name}}', /mode: expected permission bits/],
    [resource('limits.gpu'), /resourceFieldRef\.resource: expected limits or requests .*"limits\.gpu"/],
    [resource('limits.memory', '2Mi'), /divisor: expected 1 or a prefix .*"2Mi"/],
    [resource('limits.cpu', '1k'), /divisor: expected 1 or 1m, found "1k"/],
    [resource('limits.cpu', '', 'other'), /containerName: "other" is not the name of a container/],
    [resource('limits.cpu', '', 'late'), /containerName: "late" is not the name of a container/],
    ['{path: a, resourceFieldRef: {resource: limits.cpu}}', /containerName: is missing/],
  ];
  for (const [items, right] of cases) {
    const message = refused(podWith(items));
    assert.match(message, right);
    assert.ok(message.startsWith(at), message);
  }
});

test('an amount or an annotation that cannot be right matters only to a pod that shows it', () => {
  const odd = { annotations: 'note: 1', limits: 'memory: much' };
  assert.deepEqual(shown(podWith(field('a', 'metadata.name'), odd)), { a: '644 web' });
  assert.match(
    refused(podWith(resource('limits.memory'), odd)),
    /resources\.limits\.memory: expected an amount/,
  );
  assert.match(
    refused(podWith(field('a', 'metadata.annotations'), odd)),
    /metadata\.annotations\.note: expected a string/,
  );
});
