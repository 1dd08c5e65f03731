/** CSI volumes beyond the plain one: devices, inline and ephemeral ones, and what the driver's object says of them. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { test } from 'node:test';
import { wholly } from '../../mount/process/slices.ts';
import { desire } from '../../agent/resolve/desired-state-populator.ts';
import { NO_TOKENS, type TokenSource, tokensJson } from '../../agent/source/token-source.ts';
import { csiVolumeId, inlineVolumeHandle } from '../../plugins/volume.ts';
import {
  blockedIn,
  csiSpecOf,
  DATA,
  desired,
  desiredWith,
  only,
  publicationOf,
  STAND_ALONE,
  unresolvedIn,
  volumeOf,
} from './desired.ts';
import {
  claimSource,
  claimYaml,
  csiDriverYaml,
  nodeYaml,
  onlyRejection,
  podUid,
  podYaml,
  secretYaml,
  volumeYaml,
  wishOf,
  withDevices,
  withSpec,
} from './manifests.ts';

const DRIVER = 'test.csi.example';
const BLOCK = 'volumeMode: Block';
const web = podYaml('web', { data: claimSource('data') });
const data = [claimYaml('data'), volumeYaml('pv-data')];
const blockData = [
  claimYaml('data', `{volumeName: pv-data, ${BLOCK}}`),
  volumeYaml('pv-data', { spec: `mountOptions: [noatime], ${BLOCK}`, csi: 'fsType: ext4' }),
];
const driver = (spec: string): string => csiDriverYaml(DRIVER, `{${spec}}`);

// Devices.

test('KV-D1: a block volume is a device without file system, mount options, label and group', () => {
  const init = 'initContainers: [{name: init, volumeMounts: [{name: tmp, mountPath: /tmp}]}]';
  const pod = withSpec(
    `${withDevices(web)}  - {name: tmp, emptyDir: {}}\n`,
    `securityContext: {fsGroup: 2000, seLinuxOptions: {level: "s0:c1,c2"}}\n  ${init}`,
  );
  const state = desiredWith({ seLinux: true }, pod, ...blockData, driver('seLinuxMount: true'));
  const { spec, publications } = volumeOf(state, DATA);
  assert.ok(spec.kind === 'csi');
  assert.deepEqual([spec.mode, spec.fsType, spec.mountOptions, spec.seLinuxContext], ['Block', '', [], '']);
  assert.deepEqual([only(publications.values()).spec.fsGroup, state.unresolved], [undefined, []]);
});

test('a device must be used as a device, and files as files', () => {
  assert.match(
    unresolvedIn(desired(web, ...blockData)),
    /^spec-invalid: PersistentVolume pv-data is a device .*: use volumeDevices$/,
  );
  assert.match(
    unresolvedIn(desired(withDevices(web), ...data)),
    /^spec-invalid: PersistentVolume pv-data is files .*: use volumeMounts$/,
  );
});

test('claim and PersistentVolume must agree on what the volume is', () => {
  const [blockClaim = '', blockVolume = ''] = blockData;
  const [claim = '', volume = ''] = data;
  assert.match(
    unresolvedIn(desired(withDevices(web), blockClaim, volume)),
    /^claim-mismatch: .*default\/data has volumeMode Block, and its PersistentVolume pv-data has Filesystem$/,
  );
  assert.match(unresolvedIn(desired(web, claim, blockVolume)), /^claim-mismatch: .* has Block$/);
});

test('A-062: a volume is not published once as files and once as a device', () => {
  const state = desired(
    podYaml('a', { v: claimSource('files') }),
    withDevices(podYaml('b', { v: claimSource('device') })),
    claimYaml('files'),
    claimYaml('device', `{volumeName: pv-device, ${BLOCK}}`),
    volumeYaml('pv-files', { handle: 'same' }),
    volumeYaml('pv-device', { handle: 'same', spec: BLOCK }),
  );
  assert.match(unresolvedIn(state), /^spec-invalid: PersistentVolume pv-device is .* with another mode$/);
  assert.deepEqual([...only(state.volumes.values()).publications.keys()], ['uid-a/pv-files']);
});

test('a device under two PersistentVolumes is one too many, because its paths go by their names', () => {
  const claim = (name: string): string => claimYaml(name, `{volumeName: pv-${name}, ${BLOCK}}`);
  const state = desired(
    withDevices(podYaml('a', { v: claimSource('one') })),
    withDevices(podYaml('b', { v: claimSource('two') })),
    claim('one'),
    claim('two'),
    volumeYaml('pv-one', { handle: 'same', spec: BLOCK }),
    volumeYaml('pv-two', { handle: 'same', spec: BLOCK }),
  );
  assert.match(unresolvedIn(state), /^spec-invalid: PersistentVolume pv-two .* with another specName$/);
});

test('A-062: a second pod with another file system, option, attribute or access mode is refused here', () => {
  const differences: readonly (readonly [string, Parameters<typeof volumeYaml>[1] & object])[] = [
    ['fsType', { csi: 'fsType: xfs' }],
    ['mountOptions', { spec: 'mountOptions: [noatime]' }],
    ['volumeAttributes', { csi: 'volumeAttributes: {tier: fast}' }],
    ['accessModes', { accessModes: 'ReadWriteMany' }],
    ['readOnly', { csi: 'readOnly: true' }],
  ];
  for (const [field, parts] of differences) {
    const state = desired(
      podYaml('a', { v: claimSource('a') }),
      podYaml('b', { v: claimSource('b') }),
      claimYaml('a'),
      claimYaml('b'),
      volumeYaml('pv-a', { handle: 'same' }),
      volumeYaml('pv-b', { handle: 'same', ...parts }),
    );
    assert.match(unresolvedIn(state), new RegExp(`^spec-invalid: .* with another ${field}$`));
  }
});

// Inline.

const INLINE =
  `csi: {driver: ${DRIVER}, fsType: ext4, readOnly: true, volumeAttributes: {size: 1Gi}, ` +
  'nodePublishSecretRef: {name: s}}';
const inline = podYaml('web', { scratch: INLINE });
const ephemeral = driver(
  'attachRequired: true, podInfoOnMount: true, volumeLifecycleModes: [Persistent, Ephemeral]',
);

test('KV-C11: an inline volume has the handle of the kubelet, is not attached, and lives with its pod', () => {
  const state = desired(inline, ephemeral, secretYaml('s', { password: 'hunter2' }));
  const handle = inlineVolumeHandle(podUid('uid-web'), 'scratch');
  assert.deepEqual(csiSpecOf(state), {
    kind: 'csi',
    id: csiVolumeId(DRIVER, handle),
    driver: DRIVER,
    volumeHandle: handle,
    specName: 'scratch',
    fsType: 'ext4',
    mountOptions: [],
    volumeAttributes: { size: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    readOnly: true,
    attachRequired: false,
    podInfoOnMount: true,
    mode: 'Filesystem',
    lifecycle: 'Ephemeral',
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    tokensInSecrets: false,
    seLinuxContext: '',
  });
  const { secrets, blocked, size } = only(state.volumes.values());
  assert.deepEqual([blocked, size, publicationOf(state).spec.readOnly], [undefined, undefined, true]);
  assert.deepEqual([secrets.publish?.reveal(), secrets.stage], [{ password: 'hunter2' }, undefined]);
});

test("KV-C8: the secret of an inline volume is one of the pod's namespace, and its absence blocks the volume", () => {
  const elsewhere = secretYaml('s', {}).replace('{name: s}', '{name: s, namespace: vault}');
  assert.match(
    blockedIn(desired(inline, ephemeral, elsewhere)),
    /^reference-missing: Secret default\/s does not exist$/,
  );
});

test('KV-C10: an inline volume needs a driver that says it does them', () => {
  const plain = podYaml('web', { v: `csi: {driver: ${DRIVER}}` });
  assert.match(
    blockedIn(desired(plain)),
    /^lifecycle-mode: driver test\.csi\.example .* without a CSIDriver object it has .* mode Persistent, .* Ephemeral$/,
  );
  assert.match(
    blockedIn(desired(plain, driver('podInfoOnMount: true'))),
    /^lifecycle-mode: driver test\.csi\.example .* its CSIDriver object lists the lifecycle mode Persistent, /,
  );
  assert.equal(only(desired(plain, ephemeral).volumes.values()).blocked, undefined);
});

test('KV-C10: a PersistentVolume needs a driver that does not only do inline volumes', () => {
  assert.match(
    blockedIn(desired(web, ...data, driver('volumeLifecycleModes: [Ephemeral]'))),
    /^lifecycle-mode: driver test\.csi\.example is not said to do PersistentVolumes: .* mode Ephemeral,/,
  );
  assert.equal(volumeOf(desired(web, ...data), DATA).blocked, undefined);
});

test('two inline volumes whose pod uid and name run together are not taken for one', () => {
  const state = desired(
    podYaml('one', { bc: `csi: {driver: ${DRIVER}}` }, 'a'),
    podYaml('two', { c: `csi: {driver: ${DRIVER}}` }, 'ab'),
    ephemeral,
  );
  assert.deepEqual([...only(state.volumes.values()).publications.keys()], ['a/bc']);
  assert.match(
    unresolvedIn(state),
    /^spec-invalid: the inline volume c .* of pod default\/one, .* another uid$/,
  );
});

test('a PersistentVolume does not become the inline volume of a pod by having its handle', () => {
  const handle = inlineVolumeHandle(podUid('uid-web'), 'scratch');
  const state = desired(
    podYaml('web', { scratch: `csi: {driver: ${DRIVER}}` }),
    podYaml('zeta', { v: claimSource('data') }),
    claimYaml('data'),
    volumeYaml('pv-data', { handle }),
    ephemeral,
  );
  assert.match(unresolvedIn(state), /^spec-invalid: PersistentVolume pv-data is .* another lifecycle$/);
});

// Generic ephemeral.

const own = podYaml('web', { scratch: 'ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}' });
const ownedBy = (uid: string, more = 'kind: Pod, controller: true'): string =>
  claimYaml('web-scratch', '{volumeName: pv-data}', `ownerReferences: [{name: web, uid: ${uid}, ${more}}]`);

test("KV-C12: an ephemeral volume is the claim of the pod's and the volume's name, owned by the pod", () => {
  const state = desired(own, ownedBy('uid-web'), volumeYaml('pv-data'));
  assert.equal(csiSpecOf(state).lifecycle, 'Persistent');
  assert.deepEqual([...volumeOf(state, DATA).publications.keys()], ['uid-web/pv-data']);
});

test("KV-C12: a claim that is another pod's, or nobody's, is not taken, and both are named", () => {
  for (const [claim, owner] of [
    [ownedBy('uid-earlier'), 'of the pod with uid uid-earlier'],
    [ownedBy('uid-web', 'kind: Pod'), 'of no pod'],
    [ownedBy('uid-web', 'kind: StatefulSet, controller: true'), 'of no pod'],
    [claimYaml('web-scratch', '{volumeName: pv-data}'), 'of no pod'],
  ] as const) {
    assert.match(
      unresolvedIn(desired(own, claim, volumeYaml('pv-data'))),
      new RegExp(
        `^claim-mismatch: .* default/web-scratch is ${owner}, .* of pod default/web \\(uid uid-web\\)`,
      ),
    );
  }
});

test('KV-C12: a missing claim of an ephemeral volume is named with what to write where no cluster makes it', () => {
  assert.match(
    unresolvedIn(desired(own)),
    /^reference-missing: .* default\/web-scratch .* stand-alone nobody does: .* uid: uid-web, controller: true\}\]$/,
  );
  const long = 'p'.repeat(253);
  const longest = podYaml(
    long,
    { ['v'.repeat(63)]: 'ephemeral: {volumeClaimTemplate: {spec: {}}}' },
    'u'.repeat(128),
  );
  const namespaced = longest.replace('metadata:\n', `metadata:\n  namespace: ${'n'.repeat(63)}\n`);
  assert.match(unresolvedIn(desired(namespaced)), /^reference-missing/);
});

// What the driver wants to be told.

test('A-022, KV-C13: the group of the pod is passed on, and who applies it is for the driver and its policy', () => {
  const pod = withSpec(web, 'securityContext: {fsGroup: 2000, fsGroupChangePolicy: OnRootMismatch}');
  const state = desired(pod, ...data, driver('fsGroupPolicy: File'));
  assert.deepEqual(publicationOf(state).spec.fsGroup, { gid: 2_000, changePolicy: 'OnRootMismatch' });
  assert.equal(csiSpecOf(state).fsGroupPolicy, 'File');
  assert.equal('fsGroup' in publicationOf(desired(web, ...data)).spec, false);
});

test('the group of the pod is for its emptyDirs and secrets too, and never for what belongs to the host', () => {
  const pod = withSpec(
    podYaml('web', { a: 'emptyDir: {}', b: 'secret: {secretName: s}', c: 'hostPath: {path: /srv}' }),
    'securityContext: {fsGroup: 0}',
  );
  const groups = [...desired(pod, secretYaml('s', {})).volumes.values()].map(({ spec, publications }) => {
    return [spec.kind, only(publications.values()).spec.fsGroup?.gid];
  });
  assert.deepEqual(groups, [
    ['empty-dir', 0],
    ['secret', 0],
    ['host-path', undefined],
  ]);
});

test('KV-C9: volumes of a driver that wants it are published again in each epoch, others never', () => {
  const generation = (republishEpoch: number, ...documents: readonly string[]): string =>
    publicationOf(desiredWith({ republishEpoch }, ...documents)).generation;
  const wants = driver('requiresRepublish: true, volumeLifecycleModes: [Persistent, Ephemeral]');
  const plain = podYaml('web', { v: `csi: {driver: ${DRIVER}}` });
  assert.equal(generation(7, web, ...data, wants), 'republish-7');
  assert.equal(generation(8, plain, wants), 'republish-8');
  assert.equal(generation(7, web, ...data, driver('requiresRepublish: false')), '');
  assert.equal(generation(7, web, ...data), '');
});

const TOKENS = driver(
  'tokenRequests: [{audience: vault}, {expirationSeconds: 600}], serviceAccountTokenInSecrets: true',
);

/** Has tokens for the pods of these names. */
function tokensOf(...pods: readonly string[]): TokenSource {
  return {
    ...NO_TOKENS,
    tokensFor: (pod, requests) => {
      if (!pods.includes(pod.name)) return NO_TOKENS.tokensFor(pod, requests);
      const token = { token: `hunter2-${pod.name}`, expirationTimestamp: '2026-01-01T00:00:00Z' };
      return { kind: 'tokens', json: tokensJson(new Map(requests.map(({ audience }) => [audience, token]))) };
    },
  };
}

test('KV-C7: tokens are asked for the pod, sealed, and written as the kubelet writes them', () => {
  const state = desiredWith({ tokens: tokensOf('web') }, web, ...data, TOKENS);
  const token = { token: 'hunter2-web', expirationTimestamp: '2026-01-01T00:00:00Z' };
  const json = publicationOf(state).tokens?.reveal() ?? '';
  assert.deepEqual(JSON.parse(json), { vault: token, '': token });
  assert.equal(csiSpecOf(state).tokensInSecrets, true);
  assert.doesNotMatch(inspect(state, { depth: 20 }) + JSON.stringify([...state.volumes]), /hunter2/);
});

test('KV-C7: without an issuer of tokens a volume that needs them is blocked, and the message says which', () => {
  assert.match(
    blockedIn(desired(web, ...data, TOKENS)),
    /^token-missing: .* service account default\/default, .* tokenRequests .* \(audiences: vault, the API server\)$/,
  );
  assert.equal(volumeOf(desired(web, ...data, driver('tokenRequests: []')), DATA).blocked, undefined);
});

test('KV-C7: a pod without tokens neither holds up its neighbour nor loses what it has', () => {
  for (const served of ['a', 'b']) {
    const pods = [podYaml('a', { v: claimSource('data') }), podYaml('b', { v: claimSource('data') })];
    const state = desiredWith({ tokens: tokensOf(served) }, ...pods, ...data, TOKENS);
    const { blocked, publications } = volumeOf(state, DATA);
    assert.deepEqual([blocked, [...publications.keys()]], [undefined, [`uid-${served}/pv-data`]]);
    assert.match(unresolvedIn(state), /^token-missing/);
    assert.notEqual(only(state.unresolved).pod.name, served);
  }
});

// SELinux.

const labelled = (name: string, options: string): string =>
  withSpec(podYaml(name, { v: claimSource('data') }), `securityContext: {seLinuxOptions: {${options}}}`);
const LABELS = driver('seLinuxMount: true');
const LEVEL = 'level: "s0:c1,c2"';

test('KV-E4: a volume is mounted with the label of its pod where machine and driver can', () => {
  const context = (seLinux: boolean, options: string, ...more: readonly string[]): string =>
    csiSpecOf(desiredWith({ seLinux }, labelled('web', options), ...data, ...more)).seLinuxContext;
  assert.equal(context(true, LEVEL, LABELS), 'system_u:object_r:container_file_t:s0:c1,c2');
  assert.equal(context(false, LEVEL, LABELS), '');
  assert.equal(context(true, LEVEL, driver('seLinuxMount: false')), '');
  assert.equal(context(true, LEVEL), '');
  assert.equal(context(true, 'type: spc_t', LABELS), '');
});

test('KV-E4: role and type of a process are not those of its files, user and level are', () => {
  const pod = labelled('web', `user: staff_u, role: system_r, type: spc_t, ${LEVEL}`);
  const { seLinuxContext } = csiSpecOf(desiredWith({ seLinux: true }, pod, ...data, LABELS));
  assert.equal(seLinuxContext, 'staff_u:object_r:container_file_t:s0:c1,c2');
});

test('KV-E4: an inline volume has no context, as it has no mount options', () => {
  const modes = driver('seLinuxMount: true, volumeLifecycleModes: [Ephemeral]');
  const pod = withSpec(
    podYaml('web', { v: `csi: {driver: ${DRIVER}}` }),
    `securityContext: {seLinuxOptions: {${LEVEL}}}`,
  );
  assert.equal(csiSpecOf(desiredWith({ seLinux: true }, pod, modes)).seLinuxContext, '');
});

test('KV-E5: pods of one label share a volume, and one of another label, or of none, waits and says for whom', () => {
  const of = (second: string) =>
    desiredWith({ seLinux: true }, labelled('a', LEVEL), second, ...data, LABELS);
  assert.equal(volumeOf(of(labelled('b', `${LEVEL}, type: x_t`)), DATA).publications.size, 2);
  const other = of(labelled('b', 'level: "s0:c3"'));
  assert.match(
    unresolvedIn(other),
    /^volume-in-use: .* pv-data is wanted with SELinux .*:s0:c3, and pod default\/a has it with SELinux .*:s0:c1,c2:/,
  );
  assert.equal(only(other.unresolved).failure.blocker, 'default/a');
  const { spec: refused } = only(other.unresolved);
  assert.match(refused?.kind === 'csi' ? refused.seLinuxContext : '', /:s0:c3$/);
  assert.deepEqual([...volumeOf(other, DATA).publications.keys()], ['uid-a/pv-data']);
  assert.match(
    unresolvedIn(of(podYaml('b', { v: claimSource('data') }))),
    /^volume-in-use: .* wanted with no SELinux context,/,
  );
});

test('KV-E6: a pod whose containers have different labels has the volume without one, and that is told', () => {
  const own = `securityContext: {seLinuxOptions: {${LEVEL}}}`;
  const first = (options: string): string =>
    `initContainers: [{name: first, volumeMounts: [{name: v, mountPath: /v}]${options}}]`;
  const told = (seLinux: boolean, container: string, ...more: readonly string[]): unknown => {
    const pod = withSpec(podYaml('web', { v: claimSource('data') }), container);
    const { spec, publications } = volumeOf(desiredWith({ seLinux }, pod, ...data, ...more), DATA);
    assert.equal(spec.kind === 'csi' && spec.seLinuxContext, '');
    return only([...publications.values()]).hasDifferentLabels;
  };
  const different = first(`, ${own}`);
  assert.equal(told(true, different, LABELS), true);
  assert.equal(told(true, first(''), LABELS), undefined);
  assert.equal(told(false, different, LABELS), undefined);
  assert.equal(told(true, different), undefined);
});

// The node.

test('the mark out-of-service counts on the Node object of this machine, and on no other', () => {
  const mark = '[{key: node.kubernetes.io/out-of-service, value: nodeshutdown, effect: NoExecute}]';
  assert.equal(desired(nodeYaml('node-1', mark)).outOfService, true);
  assert.equal(desired(nodeYaml('node-2', mark)).outOfService, false);
  assert.equal(desired(nodeYaml('node-1', '[{key: other}]')).outOfService, false);
});

// Access modes.

test('KV-E2: ReadWriteOncePod stands alone, as in Kubernetes: beside another mode nobody would keep it', () => {
  const both = wishOf({
    'volume.yaml': volumeYaml('pv-data', { accessModes: 'ReadWriteOncePod, ReadWriteOnce' }),
  });
  assert.match(onlyRejection(both), /^spec.accessModes: ReadWriteOncePod cannot be beside other modes/);
  const claim = claimYaml('data', '{volumeName: pv-data, accessModes: [ReadWriteMany, ReadWriteOncePod]}');
  assert.match(onlyRejection(wishOf({ 'claim.yaml': claim })), /^spec.accessModes: ReadWriteOncePod cannot/);
});

test('a claim that wants what its PersistentVolume does not allow is not served by it', () => {
  const claim = (modes: string) => claimYaml('data', `{volumeName: pv-data, accessModes: [${modes}]}`);
  assert.equal(
    unresolvedIn(desired(web, claim('ReadWriteOncePod'), volumeYaml('pv-data'))),
    'claim-mismatch: PersistentVolumeClaim default/data wants accessModes ReadWriteOncePod, ' +
      'and its PersistentVolume pv-data has ReadWriteOnce',
  );
  const several = volumeYaml('pv-data', { accessModes: 'ReadWriteOnce, ReadOnlyMany' });
  assert.deepEqual(desired(web, claim('ReadOnlyMany'), several).unresolved, []);
  assert.match(
    onlyRejection(wishOf({ 'claim.yaml': claim('ReadWriteTwice') })),
    /^spec.accessModes\[0\]: "ReadWriteTwice" is not one of/,
  );
});

test('a wish that says the same of a secret again gives the same secret: nothing is tried again for it', () => {
  const wish = wishOf({
    'all.yaml': [
      web,
      claimYaml('data'),
      volumeYaml('pv-data', { csi: 'nodeStageSecretRef: {name: login, namespace: default}' }),
      secretYaml('login', { password: 'x' }),
    ].join('---\n'),
  });
  const [before, after] = [1, 2].map(() => volumeOf(wholly(desire(wish, STAND_ALONE)), DATA).secrets.stage);
  assert.ok(before !== undefined);
  assert.equal(before, after);
});
