import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kinds } from '../../plugins/kinds/kinds.ts';
import {
  csiVolumeId,
  isDriverName,
  isObjectName,
  parsePodUid,
  podVolumeId,
  type PodUid,
  publicationKey,
} from '../../plugins/volume.ts';

/** What no name may be, because each becomes a path component, a log field or an argument. */
const HOSTILE = [
  '',
  '.',
  '..',
  '...',
  'a..b',
  '../a',
  'a/b',
  '/a',
  'a/',
  '~',
  'a~b',
  'a b',
  ' a',
  'a\n',
  '\na',
  'a\0',
  'a\u202e',
  '-a',
  'a-',
  'a,b',
  'a:b',
  'a=b',
  'ä',
  '%2e%2e',
  '$(a)',
  'a;b',
];

test('pod uids that are safe as one path component are taken', () => {
  for (const uid of [
    '0b4f8c1e-2222-4333-8444-55556666aaaa',
    'A',
    'a.b_c-1',
    'f'.repeat(128),
    '2d8b0eb2c37a43a9a2b6c0a6a4e4b8c1',
  ]) {
    assert.equal(parsePodUid(uid), uid);
  }
  for (const uid of [...HOSTILE, 'f'.repeat(129), '.a', 'a.', '_a'])
    assert.equal(parsePodUid(uid), undefined, JSON.stringify(uid));
});

test('object names follow DNS-1123', () => {
  for (const name of ['a', 'pvc-0b4f8c1e', 'kube-root-ca.crt', 'a'.repeat(253)])
    assert.ok(isObjectName(name), name);
  for (const name of [...HOSTILE, 'A', 'a_b', 'a'.repeat(254)])
    assert.ok(!isObjectName(name), JSON.stringify(name));
});

test('driver names follow the CSI domain notation, at most 63 characters', () => {
  for (const name of ['hostpath.csi.k8s.io', 'A', 'x'.repeat(63)]) assert.ok(isDriverName(name), name);
  for (const name of [...HOSTILE, 'a_b', 'x'.repeat(64)])
    assert.ok(!isDriverName(name), JSON.stringify(name));
});

test('volume ids are the unique names of the kubelet', () => {
  const pod = 'u1' as PodUid;
  assert.equal(csiVolumeId('example.com', 'vol^1'), 'kubernetes.io/csi/example.com^vol^1');
  assert.equal(podVolumeId('kubernetes.io/empty-dir', pod, 'cache'), 'kubernetes.io/empty-dir/u1/cache');
  assert.equal(podVolumeId('kubernetes.io/configmap', pod, 'cache'), 'kubernetes.io/configmap/u1/cache');
  assert.equal(publicationKey(pod, 'pvc-1'), 'u1/pvc-1');
});

test('no two kinds share a plugin name', () => {
  const names = kinds().map(({ plugin }) => plugin);
  assert.equal(new Set(names).size, names.length);
});
