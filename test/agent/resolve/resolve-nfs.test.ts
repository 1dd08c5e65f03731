/** NFS volumes as people write them, in PersistentVolumes and in pods, and what nobody may write (CVE-2020-8555). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desired, volumeOf } from '../desired.ts';
import { nfsVolume } from '../../../plugins/nfs/nfs-traits.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import { mountArguments } from '../../../mount/agent-side/tools/mount-arguments.ts';
import { claimSource, claimYaml, onlyRejection, path, podYaml, wishOf } from '../manifests.ts';

const UID = 'uid-web' as PodUid;

function inline(source: string) {
  const documents = [podYaml('web', { data: `nfs: ${source}` })];
  const state = desired(...documents);
  return { state, id: nfsVolume(UID, 'data').id };
}

function volumeYaml(nfs: string, spec = ''): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-data}
spec: {accessModes: [ReadWriteMany], nfs: ${nfs}, ${spec}}
`;
}

test('written in a pod it is the directory of that server, for that pod', () => {
  const { state, id } = inline('{server: store.example, path: /data//x/, readOnly: true}');
  const { spec, publications } = volumeOf(state, id);
  assert.ok(spec.kind === 'nfs');
  assert.deepEqual([spec.source, spec.name, spec.mountOptions], ['store.example:/data/x', 'data', []]);
  assert.deepEqual(
    [...publications.values()].map(({ spec: place }) => [place.specName, place.readOnly]),
    [['data', true]],
  );
});

test('a PersistentVolume has mount options, and is called by its name; the claim in the pod may be read-only', () => {
  const documents = [
    podYaml('web', { v: claimSource('data', true) }),
    claimYaml('data'),
    volumeYaml('{server: store, path: /}', 'mountOptions: [nfsvers=4.2, hard]'),
  ];
  const { spec, publications } = volumeOf(desired(...documents), nfsVolume(UID, 'pv-data').id);
  assert.ok(spec.kind === 'nfs');
  assert.deepEqual([spec.source, spec.mountOptions], ['store:/', ['nfsvers=4.2', 'hard']]);
  assert.deepEqual(
    [...publications.values()].map(({ spec: place }) => place.readOnly),
    [true],
  );
});

test('addresses of IPv6 are in brackets, however they were written', () => {
  for (const server of ["'2001:DB8::1'", "'[2001:db8::1]'"]) {
    const { state, id } = inline(`{server: ${server}, path: /data}`);
    const { spec } = volumeOf(state, id);
    assert.equal(spec.kind === 'nfs' && spec.source, '[2001:db8::1]:/data');
  }
});

test('a server may have an underscore in its name, and a dot at the end, as for a kubelet', () => {
  for (const server of ['nas_01', 'nas_01.example', 'store.example.']) {
    const { state, id } = inline(`{server: ${server}, path: /data}`);
    const { spec } = volumeOf(state, id);
    const source = spec.kind === 'nfs' ? spec.source : '';
    assert.equal(source, `${server}:/data`);
    const mounted = mountArguments({ fsType: 'nfs', source, target: path('/v'), options: [] });
    assert.ok(mounted.ok, source);
  }
});

const SERVERS = [
  ...[
    '-o',
    '-ro',
    'a,b',
    'a b',
    'a:/b',
    'a:b',
    'a/b',
    '',
    '.',
    '127.1',
    '999.1.1.1',
    'a%b',
    '[a]',
    '[::1',
    'a\nb',
  ],
  ...[
    '169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    '[fe80::1]',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
  ],
];
const PATHS = ['data', '', '../x', '/a/../b', '/a\nb', '/a\u0007b', `/${'x'.repeat(1_100)}`];

test('a server that is an option, several words or of one link is refused, and a path that leads away', () => {
  const rejected = (server: string, path: string): string => {
    const source = `nfs: {server: ${JSON.stringify(server)}, path: ${JSON.stringify(path)}}`;
    return onlyRejection(wishOf({ 'web.yaml': podYaml('web', { data: source }) }));
  };
  for (const server of SERVERS)
    assert.match(rejected(server, '/data'), /^spec\.volumes\[0\]\.nfs\.server: /, server);
  for (const path of PATHS) assert.match(rejected('store', path), /^spec\.volumes\[0\]\.nfs\.path: /, path);
});

test('devices, and volumes of another node, are refused with the reason', () => {
  const claim = claimYaml('data', undefined, 'namespace: default');
  const elsewhere =
    'nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [' +
    '{key: kubernetes.io/hostname, operator: In, values: [elsewhere]}]}]}}';
  const documents = [
    podYaml('web', { v: claimSource('data') }),
    claim,
    volumeYaml('{server: s, path: /}', elsewhere),
  ];
  const { blocked } = volumeOf(desired(...documents), nfsVolume(UID, 'pv-data').id);
  assert.equal(blocked?.code, 'wrong-topology');
});

test('two volumes of one pod at one place in it are the same, or the second is refused', () => {
  const claims = [claimYaml('data'), volumeYaml('{server: s, path: /}')];
  const twice = podYaml('web', { a: claimSource('data'), b: claimSource('data') });
  assert.deepEqual(desired(twice, ...claims).unresolved, []);
  const beside = podYaml('web', { v: claimSource('data'), 'pv-data': 'nfs: {server: s, path: /other}' });
  const [refused] = desired(beside, ...claims).unresolved;
  assert.equal(refused?.failure.code, 'spec-invalid');
  assert.match(refused?.failure.message ?? '', /with another source/);
});
