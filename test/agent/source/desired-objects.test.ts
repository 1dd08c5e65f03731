/** Objects as they are read, what is refused of them and in which words, and how the files come together. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { test } from 'node:test';
import { wholly } from '../../../mount/process/slices.ts';
import {
  assembleDesiredObjects,
  createAssembly,
  type DesiredObjects,
} from '../../../agent/source/desired-objects.ts';
import { parseQuantityBytes } from '../../../kubernetes/fields/quantity.ts';
import { mountOptionProblem } from '../../../kubernetes/fields/mount-option.ts';
import {
  claimSource,
  attachmentYaml,
  claimYaml,
  configMapYaml,
  csiDriverYaml,
  onlyRejection,
  podUid,
  podYaml,
  secretYaml,
  volumeYaml,
  wishOf,
} from '../manifests.ts';

function podIn(wish: DesiredObjects, uid = 'uid-web') {
  const pod = wish.pods.get(podUid(uid));
  assert.ok(pod, JSON.stringify(wish.rejected));
  return pod;
}

test('every kind of the wish is found under its key', () => {
  const wish = wishOf({
    'all.yaml': [
      podYaml('web'),
      claimYaml('data'),
      volumeYaml('pv-data'),
      secretYaml('s', { a: 'b' }),
      configMapYaml('c', {}),
      'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: test.csi.example\n',
      csiDriverYaml('test.csi.example', '{attachRequired: false}'),
    ].join('---\n'),
  });
  assert.deepEqual(wish.rejected, []);
  assert.deepEqual([...wish.pods.keys()], ['uid-web']);
  assert.deepEqual([...wish.claims.keys(), ...wish.volumes.keys()], ['default/data', 'pv-data']);
  assert.deepEqual([...wish.secrets.keys(), ...wish.configMaps.keys()], ['default/s', 'default/c']);
  const driver = wish.drivers.get('test.csi.example');
  assert.deepEqual(
    [driver?.attachRequired, driver?.podInfoOnMount, driver?.origin],
    [false, false, 'all.yaml'],
  );
});

test('a volume that no container mounts is ignored, whatever it is', () => {
  const wish = wishOf({
    'web.yaml': `${podYaml('web', { used: 'emptyDir: {}' })}  - {name: unused, hostPath: {path: not-absolute}}\n`,
  });
  assert.deepEqual(wish.rejected, []);
  assert.deepEqual(
    podIn(wish).volumes.map((one) => one.name),
    ['used'],
  );
});

test('volumes of init and ephemeral containers count as mounted, devices as block', () => {
  const wish = wishOf({
    'web.yaml': `apiVersion: v1
kind: Pod
metadata: {name: web, uid: uid-web}
spec:
  containers: [{name: main, volumeDevices: [{name: raw, devicePath: /dev/x}]}]
  initContainers: [{name: init, volumeMounts: [{name: a, mountPath: /a}]}]
  ephemeralContainers: [{name: debug, volumeMounts: [{name: b, mountPath: /b}]}]
  volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: null, fc: {}}, {name: raw, ${claimSource('c')}}]
`,
  });
  const volumes = podIn(wish).volumes;
  assert.deepEqual(
    volumes.map(({ name, block, source }) => [name, block, source.kind]),
    [
      ['a', false, 'empty-dir'],
      ['b', false, 'unsupported'],
      ['raw', true, 'claim'],
    ],
  );
});

test('a container that has the name of an earlier one, in any list, is refused: their parts have one place', () => {
  const mount = (part: string): string => `volumeMounts: [{name: data, mountPath: /data, subPath: ${part}}]`;
  const cases: readonly (readonly [lists: string, field: string])[] = [
    [`containers: [{name: main, ${mount('a')}}, {name: main, ${mount('b')}}]`, 'containers[1]'],
    [
      `containers: [{name: main, ${mount('a')}}]\n  initContainers: [{name: main, ${mount('b')}}]`,
      'initContainers[0]',
    ],
    [
      `containers: [{name: main, ${mount('a')}}]\n  ephemeralContainers: [{name: main}]`,
      'ephemeralContainers[0]',
    ],
  ];
  for (const [lists, field] of cases) {
    const pod = `apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: uid-web}\nspec:\n  ${lists}`;
    const wish = wishOf({ 'web.yaml': `${pod}\n  volumes: [{name: data, emptyDir: {}}]\n` });
    const rejection = onlyRejection(wish);
    assert.ok(
      rejection.startsWith(`spec.${field}.name: "main" is the name of an earlier container`),
      rejection,
    );
    assert.deepEqual([wish.pods.size, [...wish.frozenPods]], [0, ['uid-web']]);
  }
});

test('a pod that mounts a volume it does not define is refused by name, and frozen', () => {
  const wish = wishOf({
    'web.yaml': podYaml('web', { data: 'emptyDir: {}' }).replace('- name: data', '- name: date'),
  });
  assert.match(
    onlyRejection(wish),
    /^spec\.containers\[0\]\.volumeMounts\[0\]\.name: "data" is not the name of/,
  );
  assert.deepEqual([wish.pods.size, [...wish.frozenPods]], [0, ['uid-web']]);
});

test('a refusal names the field, the value and what would be right', () => {
  const cases: readonly (readonly [source: string, rejection: RegExp])[] = [
    ['hostPath: {path: /x, type: Foo}', /^spec\.volumes\[0\]\.hostPath\.type: "Foo" is not one of "", Dir/],
    [
      'hostPath: {path: x}',
      /^spec\.volumes\[0\]\.hostPath\.path: expected an absolute path without "\.\.", found "x"/,
    ],
    ['hostPath: {path: /a/../b}', /^spec\.volumes\[0\]\.hostPath\.path: expected an absolute path/],
    ...['""', '-x', '"a,dst=/etc"', 'a b', '"a\\nb"'].map(
      (reference) =>
        [`image: {reference: ${reference}}`, /^spec\.volumes\[0\]\.image\.reference: expected/] as const,
    ),
    ['image: {}', /^spec\.volumes\[0\]\.image\.reference: is missing/],
    ['image: {reference: a, pullPolicy: Often}', /pullPolicy: "Often" is not one of "", Always/],
    ['emptyDir: {medium: Disk}', /^spec\.volumes\[0\]\.emptyDir\.medium: expected "", Memory, HugePages or/],
    ['emptyDir: {medium: HugePages}', /emptyDir\.medium: no container has hugepages-<size> in its resources/],
    [
      'emptyDir: {medium: HugePages-2Mi}',
      /emptyDir\.medium: no container has hugepages-2Mi in its resources/,
    ],
    [
      'emptyDir: {sizeLimit: -1Gi}',
      /sizeLimit: expected a size that is not negative, such as 64Mi, found "-1Gi"/,
    ],
    [
      'persistentVolumeClaim: {claimName: data, readOnly: yes}',
      /readOnly: expected true or false, .*found "yes"/,
    ],
    ['persistentVolumeClaim: {}', /claimName: is missing; expected a name of lower-case/],
    [
      'secret: {secretName: s, defaultMode: 01000}',
      /defaultMode: expected permission bits .*, found the number 512/,
    ],
    [
      'secret: {secretName: s, items: [{key: k, path: a}, {key: j, path: a/b}]}',
      /items: one path is a directory of another/,
    ],
    ['emptyDir: {}\n    secret: {secretName: s}', /has more than one source: emptyDir, secret/],
  ];
  for (const [source, rejection] of cases) {
    assert.match(onlyRejection(wishOf({ 'web.yaml': podYaml('web', { data: source }) })), rejection, source);
  }
});

test('a long or hostile value is cut and escaped in a refusal', () => {
  const wish = wishOf({ 'web.yaml': podYaml('web', {}, `"${'x'.repeat(500)}"`) });
  const message = onlyRejection(wish);
  assert.ok(message.length < 250, message);
  const hostile = wishOf({ 'web.yaml': podYaml('"a\\u001b[2J\\u202eb"') });
  assert.doesNotMatch(onlyRejection(hostile), /[\u001b\u202e]/);
});

test('a PersistentVolume is refused for a handle, a driver or a mount option that no driver should see', () => {
  const cases: readonly (readonly [yaml: string, rejection: RegExp])[] = [
    [volumeYaml('v', { handle: 'x'.repeat(2_049) }), /^spec\.csi\.volumeHandle: expected 1 to 2048 bytes/],
    [volumeYaml('v', { handle: 'ü'.repeat(1_025) }), /^spec\.csi\.volumeHandle: expected 1 to 2048 bytes/],
    [volumeYaml('v', { handle: 'a\\nb' }), /^spec\.csi\.volumeHandle/],
    [
      volumeYaml('v').replace('test.csi.example', '../x'),
      /^spec\.csi\.driver: expected the name of a CSI driver/,
    ],
    [nfsVolumeYaml('mountOptions: [noatime, "ro,suid"]'), /^spec\.mountOptions\[1\]: "ro,suid" is not one/],
    [nfsVolumeYaml('mountOptions: [x-mount.mkdir]'), /^spec\.mountOptions\[0\]: .* not an option that/],
    [
      nfsVolumeYaml('', '"ro,suid"'),
      /^metadata\.annotations\["volume.*mount-options"\]: "suid" is not an option that/,
    ],
    [
      volumeYaml('v', { spec: 'mountOptions: [ro, "a\\tb"]' }),
      /^spec\.mountOptions\[1\]: "a\\u0009b" has a control character/,
    ],
    [volumeYaml('v', { csi: 'nodeStageSecretRef: {name: s}' }), /nodeStageSecretRef\.namespace: is missing/],
    [
      volumeYaml('v', { csi: 'volumeAttributes: {a: 1}' }),
      /^spec\.csi\.volumeAttributes\.a: .*found a number/,
    ],
    [
      volumeYaml('v').replace('ReadWriteOnce', 'ReadWriteTwice'),
      /accessModes\[0\]: "ReadWriteTwice" is not one of/,
    ],
    [
      volumeYaml('v', { accessModes: 'ReadOnlyMany, null' }),
      /^spec\.accessModes\[1\]: is missing; expected one of ReadWriteOnce, /,
    ],
    [volumeYaml('v', { spec: 'nfs: {server: s}' }), /^spec: has more than one volume source: csi, nfs/],
  ];
  for (const [yaml, rejection] of cases)
    assert.match(onlyRejection(wishOf({ 'v.yaml': yaml })), rejection, yaml);
});

function nfsVolumeYaml(spec: string, annotated?: string): string {
  const metadata =
    annotated === undefined ? '' : `annotations: {volume.beta.kubernetes.io/mount-options: ${annotated}}`;
  return volumeYaml('v', { spec, metadata }).replace(/csi: \{[^}]*\}/, 'nfs: {server: s, path: /p}');
}

function mountOptionsOf(yaml: string): readonly string[] | undefined {
  const wish = wishOf({ 'v.yaml': yaml });
  assert.deepEqual([...wish.rejected], []);
  return wish.volumes.get('v')?.mountOptions;
}

test('mount options for a CSI driver are passed on as they are, as by the kubelet', () => {
  const options = [
    '_netdev',
    'region us-east-1',
    'prefix x/',
    '-o allow_other',
    '--file-cache-timeout-in-seconds=120',
    'file-cache:max-size-mb:-1',
    'x-systemd.automount',
    'exec',
    'a,b',
    'a="b"',
  ];
  assert.deepEqual(
    mountOptionsOf(volumeYaml('v', { spec: `mountOptions: ${JSON.stringify(options)}` })),
    options,
  );
});

test('what the node mounts itself has the options of the old annotation, when it is there', () => {
  const both = nfsVolumeYaml('mountOptions: [soft]', '"ro,nolock,_netdev"');
  assert.deepEqual(mountOptionsOf(both), ['ro', 'nolock', '_netdev']);
  assert.deepEqual(mountOptionsOf(nfsVolumeYaml('mountOptions: [soft]')), ['soft']);
  const ofDriver = volumeYaml('v', {
    spec: 'mountOptions: [soft]',
    metadata: 'annotations: {volume.beta.kubernetes.io/mount-options: "ro"}',
  });
  assert.deepEqual(mountOptionsOf(ofDriver), ['soft']);
});

test('a mount option of the node’s own mounts is one word that changes nothing but how the volume behaves', () => {
  const good = [
    'ro',
    'noatime',
    'nfsvers=4.1',
    'uid=1000',
    'dir_mode=0777',
    'context=system_u:object_r:x:s0',
    '_netdev',
  ];
  const bad = [
    '',
    ',',
    'a,b',
    'a b',
    'a\nb',
    '-o',
    'x-mount.mkdir',
    'X-mount.subdir=/x',
    'helper=x',
    'uhelper=x',
    'bind',
    'remount',
    'loop=/dev/loop0',
    'suid',
    'dev',
    'exec',
    'SUID',
    'shared',
    'a=b=c',
    'a="b"',
    "a='b'",
    'a=$(x)',
    'x'.repeat(257),
  ];
  for (const one of good) assert.equal(mountOptionProblem(one), undefined, one);
  for (const one of bad) assert.notEqual(mountOptionProblem(one), undefined, one);
});

test('a Secret is never shown, however it is printed, and stringData wins over data', () => {
  const wish = wishOf({
    's.yaml': `${secretYaml('s', { a: 'hunter3' })}data: {a: aHVudGVyMg==, b: aHVudGVyMg==}\n`,
  });
  const secret = wish.secrets.get('default/s');
  assert.doesNotMatch(
    inspect(wish, { depth: 20 }) + JSON.stringify(secret) + String(secret?.data),
    /hunter|aHVudGVy/,
  );
  const data = secret?.data.reveal();
  assert.deepEqual([String(data?.get('a')), String(data?.get('b'))], ['hunter3', 'hunter2']);
});

test('a refused Secret does not show its values', () => {
  const hidden = [
    '{a: "hunter2 !"}',
    'hunter2',
    '[hunter2]',
    '{a: [hunter2]}',
    '{"../a": hunter2}',
    '{a: !t hunter2}',
  ];
  for (const data of hidden) {
    const wish = wishOf({ 's.yaml': `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: ${data}\n` });
    assert.doesNotMatch(onlyRejection(wish), /hunter2/, data);
  }
});

test('a pod without uid has the same one in every life of the agent, and another in another file', () => {
  const anonymous = podYaml('web', {}, '');
  const [first] = wishOf({ 'a.yaml': anonymous }).pods.keys();
  const [again] = wishOf({ 'a.yaml': `# moved down\n${anonymous}` }).pods.keys();
  const [elsewhere] = wishOf({ 'b.yaml': anonymous }).pods.keys();
  assert.match(first ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  assert.equal(first, again);
  assert.notEqual(first, elsewhere);
});

test('of two objects of one name the first by file and document is taken, and the other says where it stands', () => {
  const wish = wishOf({
    'b.yaml': configMapYaml('c', { from: 'b' }),
    'a.yaml': `${configMapYaml('other', {})}---\n${configMapYaml('c', { from: 'a' })}`,
  });
  assert.equal(String(wish.configMaps.get('default/c')?.data.get('from')), 'a');
  assert.deepEqual(wish.rejected, [
    {
      origin: 'b.yaml#1',
      subject: 'ConfigMap default/c',
      message: 'a.yaml#2 has one of the same name, which is taken',
    },
  ]);
});

test('two pods of one uid, or of one name, freeze what is contradicted', () => {
  const sameUid = wishOf({ 'a.yaml': podYaml('web'), 'b.yaml': podYaml('other', {}, 'uid-web') });
  assert.equal(podIn(sameUid).reference.name, 'web');
  assert.deepEqual([...sameUid.frozenPods], ['uid-web']);
  assert.match(onlyRejection(sameUid), /it has the uid of Pod default\/web in a\.yaml#1/);
  const sameName = wishOf({ 'a.yaml': podYaml('web', {}, 'one'), 'b.yaml': podYaml('web', {}, 'two') });
  assert.deepEqual([[...sameName.pods.keys()], [...sameName.frozenPods]], [['one'], ['two']]);
});

test('a file that would take the wish beyond its bound is left out and unknown', () => {
  const files = { 'a.yaml': podYaml('a'), 'b.yaml': podYaml('b') };
  const parts = Object.keys(files).map((name) => {
    const pod = [...wishOf(files).pods.values()].filter((one) => one.origin === name);
    return { name, objects: pod, rejected: [], unknown: false, frozenPods: new Set<never>() };
  });
  const wish = wholly(
    assembleDesiredObjects([{ name: 'manifests', complete: true, parts }], createAssembly(0, 1)),
  );
  assert.deepEqual([[...wish.pods.keys()], [...wish.unknownOrigins]], [['uid-a'], ['b.yaml']]);
});

test('a document that cannot be told to be anything makes its file unknown, an object of another kind does not', () => {
  assert.deepEqual([...wishOf({ 'a.yaml': 'apiVersion: v1\nkind: Po\n' }).unknownOrigins], ['a.yaml']);
  const service = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\n';
  const other = wishOf({ 'a.yaml': `${service}---\n${podYaml('web')}` });
  assert.deepEqual([[...other.unknownOrigins], [...other.pods.keys()]], [[], ['uid-web']]);
  assert.match(onlyRejection(other), /v1 Service has no part in volumes here and is ignored/);
});

test('one of our kinds in another version of Kubernetes is refused by name, and its pod stays as it is', () => {
  const cases: readonly (readonly [file: string, rejection: RegExp])[] = [
    [
      csiDriverYaml('test.csi.example', '{attachRequired: false}').replace('/v1', '/v1beta1'),
      /^apiVersion: "storage\.k8s\.io\/v1beta1" is not storage\.k8s\.io\/v1/,
    ],
    [claimYaml('c').replace(' v1', ' storage.k8s.io/v1'), /^apiVersion: "storage\.k8s\.io\/v1" is not v1/],
    [podYaml('web').replace(' v1', ' apps/v1'), /^apiVersion: "apps\/v1" is not v1/],
  ];
  for (const [file, rejection] of cases) assert.match(onlyRejection(wishOf({ 'a.yaml': file })), rejection);
  const [, , [pod] = ['']] = cases;
  assert.deepEqual([...wishOf({ 'a.yaml': pod }).frozenPods], ['uid-web']);
});

test('an attachment in another version of Kubernetes is one that is not known: its volume is not set up', () => {
  const old = attachmentYaml('a', '{attached: false}').replace('/v1', '/v1beta1');
  const [rejected] = wishOf({ 'a.yaml': old }).rejected;
  assert.deepEqual(rejected?.attachment, { volumeName: 'pv-data', nodeName: 'node-1' });
});

test('a kind of somebody else that is called as one of ours is ignored', () => {
  const other = 'apiVersion: config.openshift.io/v1\nkind: Node\nmetadata: {name: cluster}\n';
  const wish = wishOf({ 'a.yaml': other });
  assert.match(
    onlyRejection(wish),
    /config\.openshift\.io\/v1 Node has no part in volumes here and is ignored/,
  );
  assert.deepEqual([wish.nodes.size, [...wish.unknownOrigins]], [0, []]);
});

test('what pods are made of elsewhere is told by its name, with what to write instead', () => {
  for (const kind of ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'CronJob']) {
    const text = `apiVersion: apps/v1\nkind: ${kind}\nmetadata: {name: web}\nspec: {template: {spec: {}}}\n`;
    const wish = wishOf({ 'web.yaml': text });
    assert.match(onlyRejection(wish), /apps\/v1 \w+ is ignored: no pods and no claims are made of it here/);
    assert.equal(wish.rejected[0]?.subject, `${kind} default/web`);
    assert.deepEqual([wish.pods.size, [...wish.unknownOrigins]], [0, []]);
  }
});

test('quantities are whole bytes, rounded up', () => {
  const sizes: readonly (readonly [string, number | undefined])[] = [
    ['0', 0],
    ['1', 1],
    ['64Mi', 67_108_864],
    ['1.5Ki', 1_536],
    ['1k', 1_000],
    ['1e3', 1_000],
    ['100m', 1],
    // As Kubernetes writes what has no whole number of thousandths.
    ['1073741824500u', 1_073_742],
    ['1500000000n', 2],
    ['1n', 1],
    ['0n', 0],
    ['.5', 1],
    ['1Ei', undefined],
    ['-1', undefined],
    ['1 Gi', undefined],
    ['', undefined],
    ['Gi', undefined],
    ['1GiB', undefined],
    ['0x10', undefined],
    ['1e999', undefined],
  ];
  for (const [text, bytes] of sizes) assert.equal(parseQuantityBytes(text), bytes, text);
});
