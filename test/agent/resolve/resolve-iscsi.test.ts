/** iSCSI volumes as people write them, in PersistentVolumes and in pods, and what nobody may write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VolumeId } from '../../../plugins/volume.ts';
import { desired, volumeOf } from '../desired.ts';
import { claimSource, claimYaml, onlyRejection, podYaml, secretYaml, wishOf } from '../manifests.ts';

const IQN = 'iqn.2026-11.example:store.disk1';
const ID = `kubernetes.io/iscsi/10.0.0.1:3260:${IQN}:1` as VolumeId;
const SOURCE = `targetPortal: 10.0.0.1, iqn: '${IQN}', lun: 1`;

const inPod = (source = SOURCE, name = 'web'): string => podYaml(name, { data: `iscsi: {${source}}` });

function volumeYaml(source = SOURCE, spec = ''): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-data}
spec: {accessModes: [ReadWriteOncePod], iscsi: {${source}}, ${spec}}
`;
}

test('written in a pod it is that disk of that target', () => {
  const source = `${SOURCE}, portals: ['[2001:DB8::2]:3261', 10.0.0.1, Store.Example], fsType: xfs, readOnly: true`;
  const { spec, publications } = volumeOf(desired(inPod(source)), ID);
  assert.deepEqual(spec, {
    kind: 'iscsi',
    id: ID,
    portal: '10.0.0.1:3260',
    iqn: IQN,
    lun: 1,
    iface: 'default',
    portals: ['[2001:db8::2]:3261', 'store.example:3260'],
    fsType: 'xfs',
    mountOptions: [],
    readOnly: true,
    chap: { discovery: false, session: false },
    accessModes: [],
  });
  const places = [...publications.values()].map(({ spec: place }) => [place.specName, place.readOnly]);
  assert.deepEqual(places, [['data', true]]);
});

test('a PersistentVolume is called by its name, and its claim may be read-only in a pod', () => {
  const documents = [podYaml('web', { v: claimSource('data', true) }), claimYaml('data')];
  const options = 'mountOptions: [noatime]';
  const source = `${SOURCE}, iscsiInterface: fast`;
  const { spec, publications } = volumeOf(desired(...documents, volumeYaml(source, options)), ID);
  assert.ok(spec.kind === 'iscsi');
  assert.deepEqual([spec.iface, spec.mountOptions, spec.readOnly], ['fast', ['noatime'], false]);
  assert.deepEqual(spec.accessModes, ['ReadWriteOncePod']);
  const places = [...publications.values()].map(({ spec: place }) => [place.specName, place.readOnly]);
  assert.deepEqual(places, [['pv-data', true]]);
});

test('two pods that name one disk have one volume, or the second has to wait or is refused', () => {
  const two = volumeOf(desired(inPod(), inPod(SOURCE, 'api')), ID);
  assert.equal(two.publications.size, 2);
  const refused = (source: string): string => {
    const [first] = desired(inPod(), inPod(source, 'api')).unresolved;
    return `${first?.failure.code}: ${first?.failure.message}`;
  };
  assert.match(refused(`${SOURCE}, fsType: xfs`), /^spec-invalid: .*another fsType/);
  assert.match(refused(`${SOURCE}, readOnly: true`), /^volume-in-use: /);
});

test('every field that is wrong is refused by its name, with what would be right', () => {
  const rejected = (source: string): string => onlyRejection(wishOf({ 'web.yaml': inPod(source) }));
  const rest = `iqn: '${IQN}', lun: 0`;
  for (const portal of [
    '',
    '-p',
    'a b',
    'a:0',
    'a:65536',
    'a:b',
    '10.0.0.1:3260,1',
    'fe80::1',
    '[::1',
    'a/b',
    'g::1',
  ])
    assert.match(
      rejected(`targetPortal: ${JSON.stringify(portal)}, ${rest}`),
      /^spec\.volumes\[0\]\.iscsi\.targetPortal: .*such as 10\.0\.0\.1:3260/,
      portal,
    );
  for (const iqn of [
    '',
    'iqn',
    'iqn.2026-1.x:y',
    'iqn.2026-11.x:a/b',
    'iqn.2026-11.x:a b',
    'eui.12',
    '-T',
    '../x',
    'iqn.2026-11.a/b',
  ])
    assert.match(
      rejected(`targetPortal: a, iqn: ${JSON.stringify(iqn)}, lun: 0`),
      /^spec\.volumes\[0\]\.iscsi\.iqn: .*iqn\.<year>/,
      iqn,
    );
  assert.match(
    rejected(`targetPortal: a, iqn: 'iqn.2026-11.x:${'y'.repeat(250)}', lun: 0`),
    /iqn: is too long/,
  );
  for (const lun of ['-1', '256', '1.5', '"1"'])
    assert.match(
      rejected(`targetPortal: a, iqn: '${IQN}', lun: ${lun}`),
      /\.lun: expected a number from 0 to 255/,
      lun,
    );
  assert.match(rejected(`targetPortal: a, iqn: '${IQN}'`), /\.lun: is missing/);
  assert.match(rejected(`targetPortal: a, ${rest}, portals: ['-x']`), /iscsi\.portals\[0\]: /);
  assert.match(
    rejected(`targetPortal: a, ${rest}, iscsiInterface: ../x`),
    /iscsiInterface: .*such as default/,
  );
  assert.match(
    rejected(`targetPortal: a, ${rest}, initiatorName: 'iqn.2026-11.me'`),
    /initiatorName: is not supported.*iscsiInterface/,
  );
  assert.match(rejected(`targetPortal: a, ${rest}, chapAuthSession: true`), /secretRef: is missing/);
});

test('devices, and volumes of another node, are refused with the reason', () => {
  const documents = [podYaml('web', { v: claimSource('data') }), claimYaml('data')];
  const elsewhere =
    'nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [' +
    '{key: kubernetes.io/hostname, operator: In, values: [elsewhere]}]}]}}';
  const { blocked } = volumeOf(desired(...documents, volumeYaml(SOURCE, elsewhere)), ID);
  assert.equal(blocked?.code, 'wrong-topology');
});

const CHAP = `${SOURCE}, chapAuthSession: true, chapAuthDiscovery: true, secretRef: {name: chap}`;
const KEYS = {
  'discovery.sendtargets.auth.username': 'me',
  'discovery.sendtargets.auth.password': 'one',
  'node.session.auth.username': 'me',
  'node.session.auth.password': 'two',
};

test('CHAP takes the secret of the pod’s namespace, or what is in the way is told without any value', () => {
  const { secrets, blocked, spec } = volumeOf(desired(inPod(CHAP), secretYaml('chap', KEYS)), ID);
  assert.equal(blocked, undefined);
  assert.deepEqual(secrets.stage?.reveal(), KEYS);
  assert.ok(!JSON.stringify(spec).includes('two'));
  const blockedBy = (...more: readonly string[]): string => {
    const failure = volumeOf(desired(inPod(CHAP), ...more), ID).blocked;
    return `${failure?.code} ${failure?.blocker}: ${failure?.message}`;
  };
  assert.match(blockedBy(), /^reference-missing default\/chap: Secret default\/chap does not exist/);
  const { 'node.session.auth.password': _, ...less } = KEYS;
  assert.match(
    blockedBy(secretYaml('chap', less)),
    /^spec-invalid default\/chap: .*the key node\.session\.auth\.password is missing/,
  );
  const forged = blockedBy(
    secretYaml('chap', { ...KEYS, 'node.session.auth.password': 'x\nnode.startup = automatic' }),
  );
  assert.match(forged, /^spec-invalid .*node\.session\.auth\.password is no word/);
  assert.ok(!forged.includes('automatic'));
});

test('a PersistentVolume names the namespace of its secret', () => {
  const documents = [podYaml('web', { v: claimSource('data') }), claimYaml('data')];
  const source = CHAP.replace('{name: chap}', '{name: chap, namespace: vault}');
  const { blocked } = volumeOf(desired(...documents, volumeYaml(source), secretYaml('chap', KEYS)), ID);
  assert.equal(blocked?.blocker, 'vault/chap');
});
