/** The fields of pods, volumes, claims, drivers and nodes that CSI needs, as they are read and refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SeLinuxLabel } from '../../kubernetes/objects/container.ts';
import { parseExactBytes } from '../../kubernetes/fields/quantity.ts';
import {
  claimSource,
  claimYaml,
  csiDriverYaml,
  nodeYaml,
  onlyRejection,
  podUid,
  podYaml,
  volumeYaml,
  withDevices,
  withSpec,
  wishOf,
} from './manifests.ts';

function refused(yaml: string): string {
  return onlyRejection(wishOf({ 'one.yaml': yaml }));
}

function podOf(yaml: string) {
  const wish = wishOf({ 'web.yaml': yaml });
  assert.deepEqual(wish.rejected, []);
  const pod = wish.pods.get(podUid('uid-web'));
  assert.ok(pod);
  return pod;
}

const web = podYaml('web', { data: claimSource('data') });

test('the group of a pod is read with its policy, which is Always when it is not written', () => {
  const fsGroup = (context: string) => podOf(withSpec(web, `securityContext: ${context}`)).fsGroup;
  assert.deepEqual(fsGroup('{fsGroup: 0}'), { gid: 0, changePolicy: 'Always' });
  assert.deepEqual(fsGroup('{fsGroup: 2147483647, fsGroupChangePolicy: OnRootMismatch}'), {
    gid: 2_147_483_647,
    changePolicy: 'OnRootMismatch',
  });
  assert.equal(fsGroup('{fsGroupChangePolicy: OnRootMismatch}'), undefined);
});

/** One container and its own options each, all mounting the volume; `pod` are those of the pod. */
function labelOf(pod: string, ...own: readonly string[]): SeLinuxLabel | 'different' | undefined {
  const containers = own.map(
    (options, index) =>
      `{name: c${index}, volumeMounts: [{name: v, mountPath: /v}], securityContext: {${options}}}`,
  );
  return podOf(
    'apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: uid-web}\n' +
      `spec:\n  containers: [${containers.join(', ')}]\n` +
      `  volumes: [{name: v, emptyDir: {}}]\n  securityContext: {${pod}}\n`,
  ).seLinux;
}

test('KV-E6: the label of a pod is that of all its containers, and none when they differ', () => {
  const level = (one: string): string => `seLinuxOptions: {level: "${one}"}`;
  const levelOf = (...labels: Parameters<typeof labelOf>): unknown => {
    const label = labelOf(...labels);
    return typeof label === 'string' ? label : label?.level;
  };
  assert.equal(levelOf(level('s0:c1'), '', ''), 's0:c1');
  assert.equal(levelOf('', level('s0:c1'), level('s0:c1')), 's0:c1');
  assert.equal(levelOf(level('s0:c2'), level('s0:c1'), level('s0:c1')), 's0:c1');
  assert.equal(levelOf(level('s0:c1'), level('s0:c2'), ''), 'different');
  assert.equal(levelOf('', level('s0:c1'), ''), 'different');
  assert.equal(labelOf('', ''), undefined);
  assert.equal(labelOf('seLinuxOptions: {level: ""}', ''), undefined);
});

test("KV-E6: a container's own label replaces the pod's whole, as in Kubernetes", () => {
  const label = labelOf(
    'seLinuxOptions: {user: u, role: r, type: t, level: s0}',
    'seLinuxOptions: {level: s1}',
  );
  assert.deepEqual(label, { user: undefined, role: undefined, type: undefined, level: 's1' });
});

test('KV-E4: a pod that wants its files relabelled one by one has no label to mount with', () => {
  const label = 'seLinuxOptions: {level: s0}';
  const other = 'seLinuxOptions: {level: s1}';
  assert.equal(labelOf(`${label}, seLinuxChangePolicy: Recursive`, ''), undefined);
  assert.equal(labelOf(`${label}, seLinuxChangePolicy: Recursive`, '', other), undefined);
  assert.deepEqual(labelOf(`${label}, seLinuxChangePolicy: MountOption`, ''), labelOf(label, ''));
});

test('a container that mounts nothing does not decide about the label', () => {
  const debug = 'ephemeralContainers: [{name: debug, securityContext: {seLinuxOptions: {level: s9}}}]';
  const pod = withSpec(withSpec(web, 'securityContext: {seLinuxOptions: {level: s0}}'), debug);
  const { seLinux } = podOf(pod);
  assert.deepEqual(seLinux, labelOf('seLinuxOptions: {level: s0}', ''));
});

test('an inline volume is read with its defaults, and what it holds is not shown', () => {
  const source = (yaml: string) => podOf(podYaml('web', { v: yaml })).volumes[0]?.source;
  assert.deepEqual(source('csi: {driver: test.csi.example}'), {
    kind: 'csi-inline',
    driver: 'test.csi.example',
    fsType: '',
    readOnly: false,
    volumeAttributes: {},
    publishSecretName: undefined,
  });
  assert.deepEqual(source('ephemeral: {volumeClaimTemplate: {spec: {}}}'), { kind: 'own-claim' });
  const message = refused(podYaml('web', { v: 'csi: {driver: x.y, volumeAttributes: {pin: [4711]}}' }));
  assert.match(message, /^spec\.volumes\[0\]\.csi\.volumeAttributes\.pin: expected a string, found a list;/);
  assert.doesNotMatch(
    refused(podYaml('web', { v: 'csi: {driver: x.y, volumeAttributes: {pin: 4711}}' })),
    /4711/,
  );
});

test('a refused field of a pod is named, with what would be right', () => {
  const cases: readonly (readonly [yaml: string, rejection: RegExp])[] = [
    [
      withSpec(web, 'securityContext: {fsGroup: -1}'),
      /^spec\.securityContext\.fsGroup: expected a group id from 0 to 2147483647, found the number -1/,
    ],
    [withSpec(web, 'securityContext: {fsGroup: 2147483648}'), /^spec\.securityContext\.fsGroup: /],
    [withSpec(web, 'securityContext: {fsGroup: "5"}'), /^spec\.securityContext\.fsGroup: .*found "5"/],
    [
      withSpec(web, 'securityContext: {fsGroup: 1, fsGroupChangePolicy: Never}'),
      /fsGroupChangePolicy: "Never" is not one of Always, OnRootMismatch/,
    ],
    [
      withSpec(web, `securityContext: {seLinuxOptions: {level: 's0",x="'}}`),
      /^spec\.securityContext\.seLinuxOptions\.level: expected an SELinux level/,
    ],
    [
      withSpec(web, 'securityContext: {seLinuxOptions: {type: "a:b"}}'),
      /seLinuxOptions\.type: expected an SELinux type/,
    ],
    [
      withSpec(web, 'securityContext: {seLinuxChangePolicy: Maybe}'),
      /seLinuxChangePolicy: "Maybe" is not one of/,
    ],
    [podYaml('web', { v: 'csi: {}' }), /^spec\.volumes\[0\]\.csi\.driver: is missing/],
    [podYaml('web', { v: 'csi: {driver: ../x}' }), /csi\.driver: expected the name of a CSI driver/],
    [podYaml('web', { v: 'csi: {driver: x.y, fsType: "a b"}' }), /csi\.fsType: expected a file system/],
    [
      podYaml('web', { v: 'csi: {driver: x.y, nodePublishSecretRef: {}}' }),
      /nodePublishSecretRef\.name: is missing/,
    ],
    [podYaml('web', { v: 'ephemeral: {}' }), /ephemeral\.volumeClaimTemplate\.spec: is missing/],
  ];
  for (const [yaml, rejection] of cases) assert.match(refused(yaml), rejection, yaml);
});

test('a volume is used as files or as a device, never as both, and only a claim as a device', () => {
  const both = web.replace(
    '    volumeMounts:',
    '    volumeDevices: [{name: data, devicePath: /dev/x}]\n    volumeMounts:',
  );
  assert.match(refused(both), /volumeDevices\[0\]\.name: "data" is in volumeMounts and in volumeDevices/);
  for (const source of [
    'emptyDir: {}',
    'hostPath: {path: /dev/sda}',
    'secret: {secretName: s}',
    'configMap: {name: c}',
    'csi: {driver: x.y}',
  ]) {
    assert.match(
      refused(withDevices(podYaml('web', { data: source }))),
      /^spec\.containers\[0\]\.volumeDevices\[0\]\.name: "data" is not a claim, and only claims/,
      source,
    );
  }
  for (const source of [claimSource('c'), 'ephemeral: {volumeClaimTemplate: {spec: {}}}']) {
    assert.equal(podOf(withDevices(podYaml('web', { data: source }))).volumes[0]?.block, true, source);
  }
});

test('a PersistentVolume has its capacity, the secret to grow it, and the group of its annotation', () => {
  const yaml = volumeYaml('v', {
    spec: 'capacity: {storage: 5Gi}',
    csi: 'nodeExpandSecretRef: {namespace: a, name: b}',
    metadata: 'annotations: {pv.beta.kubernetes.io/gid: "1234"}',
  });
  const volume = wishOf({ 'v.yaml': yaml }).volumes.get('v');
  assert.deepEqual([volume?.capacityBytes, volume?.supplementalGid], ['5368709120', 1_234]);
  assert.deepEqual(volume?.source.kind === 'csi' && volume.source.expandSecret, {
    namespace: 'a',
    name: 'b',
  });
  const bare = wishOf({ 'v.yaml': volumeYaml('v') }).volumes.get('v');
  assert.deepEqual([bare?.capacityBytes, bare?.supplementalGid], [undefined, undefined]);
});

test('a group in the annotation that is none costs no pod its volume, as with the kubelet, and is told', () => {
  for (const gid of ['-5', 'root', '', '4294967296']) {
    const metadata = `annotations: {pv.beta.kubernetes.io/gid: "${gid}"}`;
    const { volumes, rejected } = wishOf({ 'v.yaml': volumeYaml('v', { metadata }) });
    assert.equal(volumes.get('v')?.supplementalGid, 'none', gid);
    const [told, ...others] = rejected;
    assert.deepEqual(
      [told?.origin, told?.subject, told?.field, others],
      ['v.yaml#1', 'PersistentVolume v', 'metadata.annotations["pv.beta.kubernetes.io/gid"]', []],
    );
    assert.match(told?.message ?? '', /^ignored: expected a group id from 0/);
  }
});

test('a claim has its owner and how far it has grown', () => {
  const status =
    '{capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}, ' +
    'allocatedResourceStatuses: {storage: NodeResizePending}}';
  const metadata =
    'ownerReferences: [{kind: Node, uid: n}, {kind: Pod, name: web, uid: uid-web, controller: true}], ' +
    'annotations: {volume.kubernetes.io/node-expansion-not-required: "true"}';
  const read = (yaml: string) => {
    const claim = wishOf({ 'c.yaml': yaml }).claims.get('default/c');
    assert.ok(claim);
    const { ownerPodUid, statusBytes, allocatedBytes, resizeStatus, nodeExpansionNotRequired } = claim;
    return [ownerPodUid, statusBytes, allocatedBytes, resizeStatus, nodeExpansionNotRequired];
  };
  assert.deepEqual(read(claimYaml('c', '{}', metadata, status)), [
    'uid-web',
    '1073741824',
    '2147483648',
    'NodeResizePending',
    true,
  ]);
  assert.deepEqual(read(claimYaml('c', '{}')), [undefined, undefined, undefined, '', false]);
});

test('a refused field of a volume, a claim or a driver is named, with what would be right', () => {
  const size = 'a size that is not negative and less than 8Ei, such as 10Gi';
  const cases: readonly (readonly [yaml: string, rejection: RegExp])[] = [
    [
      volumeYaml('v', { spec: 'capacity: {storage: -1Gi}' }),
      new RegExp(`^spec\\.capacity\\.storage: expected ${size}, found "-1Gi"`),
    ],
    [
      volumeYaml('v', { spec: 'capacity: {storage: 8Ei}' }),
      /^spec\.capacity\.storage: expected .* found "8Ei"/,
    ],
    [
      volumeYaml('v', { spec: 'capacity: {storage: 9007199254740993}' }),
      /^spec\.capacity\.storage: .* too large to be exact; put it in quotes/,
    ],
    [
      volumeYaml('v', { csi: 'nodeExpandSecretRef: {name: b}' }),
      /^spec\.csi\.nodeExpandSecretRef\.namespace: is missing/,
    ],
    [claimYaml('c', '{}', '', '{capacity: {storage: big}}'), /^status\.capacity\.storage: expected a size/],
    [
      claimYaml('c', '{}', '', '{allocatedResourceStatuses: {storage: "a b"}}'),
      /^status\.allocatedResourceStatuses\.storage: expected a status/,
    ],
    [
      claimYaml('c', '{}', 'ownerReferences: [{kind: Pod, controller: true}]'),
      /^metadata\.ownerReferences\[0\]\.uid: is missing/,
    ],
    [
      csiDriverYaml('x.y', '{fsGroupPolicy: Sometimes}'),
      /^spec\.fsGroupPolicy: "Sometimes" is not one of ReadWriteOnceWithFSType, File, None/,
    ],
    [
      csiDriverYaml('x.y', '{volumeLifecycleModes: [Eternal]}'),
      /^spec\.volumeLifecycleModes\[0\]: "Eternal" is not one of Persistent, Ephemeral/,
    ],
    [
      csiDriverYaml('x.y', '{volumeLifecycleModes: [Ephemeral, null]}'),
      /^spec\.volumeLifecycleModes\[1\]: is missing; expected one of Persistent, Ephemeral/,
    ],
    [csiDriverYaml('x.y', '{requiresRepublish: yes}'), /^spec\.requiresRepublish: expected true or false/],
    [
      csiDriverYaml('x.y', '{tokenRequests: [{audience: a}, {audience: a}]}'),
      /^spec\.tokenRequests\[1\]\.audience: "a" is the audience of an earlier request/,
    ],
    [
      csiDriverYaml('x.y', '{tokenRequests: [{}, {audience: ""}]}'),
      /^spec\.tokenRequests\[1\]\.audience: "" is the audience/,
    ],
    [
      csiDriverYaml('x.y', '{tokenRequests: [{expirationSeconds: 60}]}'),
      /^spec\.tokenRequests\[0\]\.expirationSeconds: expected seconds from 600/,
    ],
    [nodeYaml('n', '{key: x}'), /^spec\.taints: expected a list/],
  ];
  for (const [yaml, rejection] of cases) assert.match(refused(yaml), rejection, yaml);
});

test('a CSIDriver object says what the API server would have it say where it is silent', () => {
  const read = (spec: string) => {
    const driver = wishOf({ 'd.yaml': csiDriverYaml('x.y', spec) }).drivers.get('x.y');
    assert.ok(driver);
    const { kind: _kind, name: _name, origin: _origin, place: _place, ...said } = driver;
    return said;
  };
  assert.deepEqual(read('{}'), {
    attachRequired: true,
    podInfoOnMount: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    lifecycleModes: ['Persistent'],
    requiresRepublish: false,
    tokenRequests: [],
    seLinuxMount: false,
    serviceAccountTokenInSecrets: false,
  });
  const all =
    '{attachRequired: false, podInfoOnMount: true, fsGroupPolicy: None, ' +
    'volumeLifecycleModes: [Ephemeral, Persistent, Ephemeral], ' +
    'requiresRepublish: true, tokenRequests: [{audience: a, expirationSeconds: 3600}, {}], ' +
    'seLinuxMount: true, serviceAccountTokenInSecrets: true}';
  assert.deepEqual(read(all), {
    attachRequired: false,
    podInfoOnMount: true,
    fsGroupPolicy: 'None',
    lifecycleModes: ['Ephemeral', 'Persistent'],
    requiresRepublish: true,
    tokenRequests: [
      { audience: 'a', expirationSeconds: 3_600 },
      { audience: '', expirationSeconds: undefined },
    ],
    seLinuxMount: true,
    serviceAccountTokenInSecrets: true,
  });
});

test('a Node object is its name and its mark', () => {
  const wish = wishOf({ 'n.yaml': nodeYaml('node-1', '[{key: node.kubernetes.io/out-of-service}]') });
  assert.deepEqual([wish.nodes.get('node-1')?.outOfService, wish.rejected], [true, []]);
  const twice = wishOf({ 'a.yaml': nodeYaml('node-1', '[]'), 'b.yaml': nodeYaml('node-1', '[]') });
  assert.equal(twice.rejected[0]?.subject, 'Node node-1');
});

test('exact sizes are whole bytes of int64, rounded up', () => {
  const sizes: readonly (readonly [string, string | undefined])[] = [
    ['0', '0'],
    ['1.5Ki', '1536'],
    ['100m', '1'],
    ['.5', '1'],
    ['1e3', '1000'],
    ['1500e-3', '2'],
    ['1E', '1000000000000000000'],
    ['1Ei', '1152921504606846976'],
    ['9007199254740993', '9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['9223372036854775808', undefined],
    ['8Ei', undefined],
    ['9e99', undefined],
    ['-1', undefined],
    ['', undefined],
  ];
  for (const [text, bytes] of sizes) assert.equal(parseExactBytes(text), bytes, text);
});
