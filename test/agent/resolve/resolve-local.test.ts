import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localVolumeId } from '../../../plugins/local/local-traits.ts';
import { desired, desiredWith, publicationOf, refusalOf, volumeOf } from '../desired.ts';
import {
  claimSource,
  claimYaml,
  nodeYaml,
  onlyRejection,
  podYaml,
  wishOf,
  withDevices,
} from '../manifests.ts';

const web = podYaml('web', { data: claimSource('data') });
const claim = claimYaml('data');
const ID = localVolumeId('pv-data');

function localYaml({ local = '{path: /mnt/disks/one}', spec = '' } = {}): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-data}
spec: {accessModes: [ReadWriteOnce], local: ${local}, ${spec}}
`;
}

const onNodes = (expression: string): string =>
  `nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [${expression}]}]}}`;

const labelled = (labels: string): string =>
  nodeYaml('node-1', '[]').replace('name: node-1', `name: node-1, labels: ${labels}`);

function blockedOf(...documents: readonly string[]): string {
  const { blocked } = volumeOf(desired(web, claim, ...documents), ID);
  return blocked === undefined ? 'free' : `${blocked.code}: ${blocked.message}`;
}

test('a local PersistentVolume is one volume for all pods of its claim, by its name', () => {
  const api = podYaml('api', { data: claimSource('data', true) });
  const options = 'mountOptions: [noatime]';
  const state = desired(
    web,
    api,
    claim,
    localYaml({ spec: options, local: '{path: /mnt//disks/one/, fsType: xfs}' }),
  );
  const { spec, publications } = volumeOf(state, ID);
  assert.deepEqual(spec, {
    kind: 'local',
    id: 'kubernetes.io/local-volume/pv-data',
    name: 'pv-data',
    path: '/mnt/disks/one',
    mode: 'Filesystem',
    fsType: 'xfs',
    mountOptions: ['noatime'],
    accessModes: ['ReadWriteOnce'],
  });
  assert.deepEqual(
    [...publications.values()].map(({ spec: place }) => [place.pod.name, place.specName, place.readOnly]),
    [
      ['api', 'pv-data', true],
      ['web', 'pv-data', false],
    ],
  );
});

test('a pod with a group says so for a local volume', () => {
  const grouped = `${web}  securityContext: {fsGroup: 2000}\n`;
  assert.equal(publicationOf(desired(grouped, claim, localYaml())).spec.fsGroup?.gid, 2_000);
});

test('a path that is denied is refused by its name', () => {
  const denied = localYaml({ local: '{path: /var/lib}' });
  assert.match(
    refusalOf(web, claim, denied),
    /^spec-invalid: .*pv-data: the local path \/var\/lib is denied/,
  );
});

test('a device is wanted as it is: without a file system, mount options and a group', () => {
  const block = 'volumeMode: Block';
  const pod = `${withDevices(web)}  securityContext: {fsGroup: 2000}\n`;
  const ofDevice = claimYaml('data', `{volumeName: pv-data, ${block}}`);
  const local = localYaml({
    local: '{path: /disks/x, fsType: xfs}',
    spec: `${block}, mountOptions: [noatime]`,
  });
  const state = desired(pod, ofDevice, local);
  const { spec } = volumeOf(state, ID);
  assert.ok(spec.kind === 'local');
  assert.deepEqual([spec.mode, spec.path, spec.fsType, spec.mountOptions], ['Block', '/disks/x', '', []]);
  assert.equal(publicationOf(state).spec.fsGroup, undefined);
});

test('a path that is missing or climbs is refused when it is read', () => {
  for (const local of ['{}', '{path: data}', '{path: /mnt/../etc}']) {
    const { rejected } = wishOf({ 'v.yaml': localYaml({ local }) });
    assert.match(JSON.stringify(rejected), /spec\.local\.path/, local);
  }
});

test('without a Node object the name of the node is its hostname, and other labels are not judged', () => {
  const here = onNodes('{key: kubernetes.io/hostname, operator: In, values: [node-1]}');
  const elsewhere = onNodes('{key: kubernetes.io/hostname, operator: In, values: [node-2]}');
  const zone = onNodes('{key: zone, operator: In, values: [b]}');
  assert.equal(blockedOf(localYaml()), 'free');
  assert.equal(blockedOf(localYaml({ spec: here })), 'free');
  assert.equal(blockedOf(localYaml({ spec: zone })), 'free');
  assert.match(
    blockedOf(localYaml({ spec: elsewhere })),
    /^wrong-topology: PersistentVolume pv-data is not of this node: .*hostname In node-2, and node node-1 has node-1/,
  );
});

test('the labels of the Node object decide, by every operator', () => {
  const node = labelled('{zone: a, cpus: "8", kubernetes.io/hostname: box}');
  const cases: readonly (readonly [string, boolean])[] = [
    ['{key: zone, operator: In, values: [a, b]}', true],
    ['{key: zone, operator: In, values: [b]}', false],
    ['{key: zone, operator: NotIn, values: [b]}', true],
    ['{key: zone, operator: NotIn, values: [a]}', false],
    ['{key: rack, operator: NotIn, values: [a]}', true],
    ['{key: rack, operator: In, values: [a]}', false],
    ['{key: zone, operator: Exists}', true],
    ['{key: rack, operator: Exists}', false],
    ['{key: rack, operator: DoesNotExist}', true],
    ['{key: cpus, operator: Gt, values: ["4"]}', true],
    ['{key: cpus, operator: Lt, values: ["4"]}', false],
    ['{key: kubernetes.io/hostname, operator: In, values: [box]}', true],
    ['{key: kubernetes.io/hostname, operator: In, values: [node-1]}', false],
    ['{key: zone, operator: Exists}, {key: rack, operator: Exists}', false],
  ];
  for (const [expression, isHere] of cases) {
    const said = blockedOf(node, localYaml({ spec: onNodes(expression) }));
    assert.equal(said === 'free', isHere, `${expression}: ${said}`);
  }
});

test('any term is enough, the fields of a node are among them, and an empty term is none', () => {
  const terms = (text: string): string => `nodeAffinity: {required: {nodeSelectorTerms: [${text}]}}`;
  const field = '{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}';
  const other = '{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [x]}]}';
  assert.equal(blockedOf(localYaml({ spec: terms(`${other}, ${field}`) })), 'free');
  assert.match(blockedOf(localYaml({ spec: terms(other) })), /^wrong-topology/);
  assert.match(blockedOf(localYaml({ spec: terms('{}') })), /^wrong-topology/);
});

test('a nodeAffinity without `required`, which Kubernetes refuses, is not taken for one that any node meets', () => {
  const refused = /^spec\.nodeAffinity\.required: is missing; expected nodeSelectorTerms/;
  for (const affinity of ['{}', '{preferred: []}']) {
    const wish = wishOf({ 'data.yaml': localYaml({ spec: `nodeAffinity: ${affinity}` }) });
    assert.equal(wish.rejected.length, 1, affinity);
    assert.match(onlyRejection(wish), refused);
  }
  assert.equal(blockedOf(localYaml({ spec: 'nodeAffinity: null' })), 'free');
});

test('an expression without an operator, which Kubernetes refuses, is not taken for one that says In', () => {
  const right = 'expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt';
  const rules = 'spec\\.nodeAffinity\\.required\\.nodeSelectorTerms\\[0\\]\\.matchExpressions\\[0\\]';
  const cases: readonly (readonly [expression: string, said: string])[] = [
    ['{key: zone, values: [a]}', `is missing; ${right}`],
    ['{key: zone, operator: null, values: [a]}', `is missing; ${right}`],
    [
      '{key: zone, operator: in, values: [a]}',
      `"in" is not one of ${right.slice('expected one of '.length)}`,
    ],
  ];
  for (const [expression, said] of cases) {
    const wish = wishOf({ 'data.yaml': localYaml({ spec: onNodes(expression) }) });
    assert.equal(wish.rejected.length, 1, expression);
    assert.match(onlyRejection(wish), new RegExp(`^${rules}\\.operator: ${said}`));
  }
});

test('an expression whose values do not fit its operator, which Kubernetes refuses, is refused', () => {
  const values = /^spec\.nodeAffinity\.required\.nodeSelectorTerms\[0\]\.matchExpressions\[0\]\.values: /;
  const cases: readonly (readonly [expression: string, said: RegExp])[] = [
    ['{key: zone, operator: In}', /is missing or empty; expected at least one value for In;/],
    [
      '{key: zone, operator: NotIn, values: []}',
      /is missing or empty; expected at least one value for NotIn;/,
    ],
    ['{key: zone, operator: Exists, values: [a]}', /has values; expected none with Exists;/],
    ['{key: zone, operator: DoesNotExist, values: [a]}', /has values; expected none with DoesNotExist;/],
    ['{key: cores, operator: Lt}', /expected exactly one value for Lt;/],
    ['{key: cores, operator: Gt, values: ["1", "2"]}', /expected exactly one value for Gt;/],
  ];
  for (const [expression, said] of cases) {
    const wish = wishOf({ 'data.yaml': localYaml({ spec: onNodes(expression) }) });
    assert.equal(wish.rejected.length, 1, expression);
    assert.match(onlyRejection(wish), values, expression);
    assert.match(onlyRejection(wish), said, expression);
  }
});

test('the node is called as the agent was told', () => {
  const spec = onNodes('{key: kubernetes.io/hostname, operator: In, values: [node-7]}');
  const state = desiredWith({ nodeName: 'node-7' }, web, claim, localYaml({ spec }));
  assert.equal(volumeOf(state, ID).blocked, undefined);
});
