/** From objects to volumes and publications: resolution, and what stops only what it must. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { test } from 'node:test';
import fc from 'fast-check';
import { wholly } from '../../../mount/process/slices.ts';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import {
  csiVolumeId,
  type EmptyDirVolumeSpec,
  parsePodUid,
  podVolumeId,
  type VolumeId,
} from '../../../plugins/volume.ts';
import type { DesiredPublication, DesiredState } from '../../../reconciler/model/desired-state.ts';
import {
  csiSpecOf,
  DATA,
  desired,
  desiredWith,
  only,
  STAND_ALONE,
  unresolvedIn,
  volumeOf,
} from '../desired.ts';
import {
  claimSource,
  claimYaml,
  configMapYaml,
  csiDriverYaml,
  podUid,
  onlyRejection,
  podYaml,
  secretYaml,
  volumeYaml,
  wishOf,
} from '../manifests.ts';

function contentOf(publication: DesiredPublication): Readonly<Record<string, string>> {
  const files = publication.files?.reveal() ?? new Map<string, never>();
  return Object.fromEntries(
    [...files].map(([name, { content, mode }]) => {
      return [name, `${mode.toString(8)} ${Buffer.from(content).toString()}`];
    }),
  );
}

const web = podYaml('web', { data: claimSource('data') });

test('a pod reaches its CSI volume through claim and PersistentVolume', () => {
  const state = desired(
    podYaml('web', { data: claimSource('data', true) }),
    claimYaml('data'),
    volumeYaml('pv-data', {
      csi: 'fsType: ext4, volumeAttributes: {tier: fast}',
      spec: 'mountOptions: [noatime]',
    }),
    csiDriverYaml('test.csi.example', '{podInfoOnMount: true}'),
  );
  const volume = volumeOf(state, DATA);
  assert.deepEqual(volume.spec, {
    kind: 'csi',
    id: DATA,
    driver: 'test.csi.example',
    volumeHandle: 'handle-pv-data',
    specName: 'pv-data',
    fsType: 'ext4',
    mountOptions: ['noatime'],
    volumeAttributes: { tier: 'fast' },
    accessModes: ['ReadWriteOnce'],
    readOnly: false,
    attachRequired: true,
    podInfoOnMount: true,
    mode: 'Filesystem',
    lifecycle: 'Persistent',
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    tokensInSecrets: false,
    seLinuxContext: '',
  });
  assert.deepEqual(
    [...volume.publications.values()],
    [
      {
        spec: {
          key: 'uid-web/pv-data',
          pod: { uid: 'uid-web', name: 'web', namespace: 'default', serviceAccount: 'default' },
          specName: 'pv-data',
          readOnly: true,
          origin: 'all.yaml',
        },
        volumeNames: ['data'],
        generation: '',
        files: undefined,
        tokens: undefined,
      },
    ],
  );
  assert.deepEqual([volume.size, state.lostAttachments.size, state.outOfService], [undefined, 0, false]);
  assert.deepEqual([volume.blocked, state.unresolved, state.frozenPods.size], [undefined, [], 0]);
});

test('without a CSIDriver object it is not known whether attach is required', () => {
  const { spec } = volumeOf(desired(web, claimYaml('data'), volumeYaml('pv-data')), DATA);
  assert.equal(spec.kind === 'csi' ? spec.attachRequired : 'not csi', undefined);
});

test('a binding holds from either side, and both sides must not contradict each other', () => {
  const byClaimRef = volumeYaml('pv-data', { spec: 'claimRef: {namespace: default, name: data}' });
  const other = volumeYaml('pv-data', { spec: 'claimRef: {namespace: other, name: data}' });
  const earlier = volumeYaml('pv-data', { spec: 'claimRef: {namespace: default, name: data, uid: one}' });
  const unbound = claimYaml('data', '{}');
  assert.equal(desired(web, unbound, byClaimRef).volumes.size, 1);
  assert.equal(desired(web, claimYaml('data'), byClaimRef).volumes.size, 1);
  assert.equal(desired(web, claimYaml('data', '{}', 'uid: one'), earlier).volumes.size, 1);
  assert.equal(desired(web, claimYaml('data'), earlier).volumes.size, 1);
  assert.match(
    unresolvedIn(desired(web, unbound, volumeYaml('pv-data'))),
    /^claim-not-bound: .*default\/data/,
  );
  assert.match(
    unresolvedIn(desired(web, claimYaml('data'), other)),
    /^claim-mismatch: .*pv-data.*other\/data/,
  );
  const later = claimYaml('data', '{}', 'uid: two');
  assert.match(unresolvedIn(desired(web, later, earlier)), /^claim-mismatch: .*another uid/);
  const second = volumeYaml('pv-2', { spec: 'claimRef: {namespace: default, name: data}' });
  assert.match(
    unresolvedIn(desired(web, unbound, byClaimRef, second)),
    /^claim-mismatch: .*pv-data and pv-2/,
  );
});

test('of two claims that name one volume without claimRef only the first is served', () => {
  const state = desired(
    web,
    podYaml('thief', { data: claimSource('late') }),
    claimYaml('data'),
    claimYaml('late', '{volumeName: pv-data}'),
    volumeYaml('pv-data'),
  );
  assert.deepEqual([...volumeOf(state, DATA).publications.keys()], ['uid-web/pv-data']);
  assert.match(unresolvedIn(state), /^claim-mismatch: .*default\/data,/);
});

test('what is missing is named, and the pods that miss nothing go on', () => {
  const other = [podYaml('other', { tmp: 'emptyDir: {}' })];
  const noClaim = desired(web, ...other);
  assert.match(
    unresolvedIn(noClaim),
    /^reference-missing: PersistentVolumeClaim default\/data does not exist/,
  );
  assert.equal(noClaim.volumes.size, 1);
  const noVolume = desired(web, claimYaml('data'), ...other);
  assert.match(
    unresolvedIn(noVolume),
    /^reference-missing: PersistentVolume pv-data of .*\/data does not exist/,
  );
});

test('a claim that is being deleted is missing once it is no longer protected', () => {
  const deleted = 'deletionTimestamp: "2026-01-01T00:00:00Z"';
  const leaving = desired(web, claimYaml('data', undefined, deleted), volumeYaml('pv-data'));
  assert.match(unresolvedIn(leaving), /^reference-missing: .*being deleted/);
  const guarded = `${deleted}, finalizers: [kubernetes.io/pvc-protection]`;
  assert.equal(desired(web, claimYaml('data', undefined, guarded), volumeYaml('pv-data')).volumes.size, 1);
});

test('a volume that is being deleted is missing once it is no longer protected', () => {
  const deleted = 'deletionTimestamp: "2026-01-01T00:00:00Z"';
  const volume = (metadata: string) => desired(web, claimYaml('data'), volumeYaml('pv-data', { metadata }));
  assert.match(
    unresolvedIn(volume(deleted)),
    /^reference-missing: PersistentVolume pv-data is being deleted/,
  );
  const guarded = `${deleted}, finalizers: [kubernetes.io/pv-protection]`;
  assert.equal(volume(guarded).volumes.size, 1);
});

test('a claim in another namespace is another claim', () => {
  const elsewhere = claimYaml('data', undefined, 'namespace: other');
  assert.match(unresolvedIn(desired(web, elsewhere, volumeYaml('pv-data'))), /^reference-missing/);
});

test('kinds that are not supported say so by their name', () => {
  const fc =
    'apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-data}\n' +
    'spec: {accessModes: [ReadWriteMany], fc: {lun: 1}}\n';
  assert.match(
    unresolvedIn(desired(web, claimYaml('data'), fc)),
    /^kind-unsupported: .*pv-data: volumes of kind fc are not supported/,
  );
  for (const kind of ['fc', 'gitRepo', 'futureKind']) {
    const state = desired(podYaml('web', { v: `${kind}: {}` }));
    assert.match(unresolvedIn(state), new RegExp(`^kind-unsupported: volumes of kind ${kind} are`));
  }
});

test('what Kubernetes dropped is refused with what to use instead, in a pod and in a PersistentVolume', () => {
  const dropped = {
    awsElasticBlockStore: 'CSI driver ebs.csi.aws.com',
    gcePersistentDisk: 'CSI driver pd.csi.storage.gke.io',
    azureDisk: 'CSI driver disk.csi.azure.com',
    azureFile: 'CSI driver file.csi.azure.com',
    cinder: 'CSI driver cinder.csi.openstack.org',
    vsphereVolume: 'CSI driver csi.vsphere.vmware.com',
    glusterfs: 'CSI driver kadalu',
    rbd: 'CSI driver rbd.csi.ceph.com',
    cephfs: 'CSI driver cephfs.csi.ceph.com',
    quobyte: 'CSI driver csi.quobyte.com',
    scaleIO: 'CSI driver csi-vxflexos.dellemc.com',
    portworxVolume: 'CSI driver pxd.portworx.com',
    flocker: 'another storage',
    storageos: 'another storage',
    photonPersistentDisk: 'another storage',
    gitRepo: 'an emptyDir, and an init container',
    flexVolume: 'CSI driver of whoever made',
  };
  for (const [kind, instead] of Object.entries(dropped)) {
    const said = new RegExp(`volumes of kind ${kind} are gone from Kubernetes: use .*${instead}`);
    const state = desired(podYaml('web', { v: `${kind}: {}` }));
    assert.match(unresolvedIn(state), said);
    assert.deepEqual([...state.frozenPods], ['uid-web'], kind);
    const persistent =
      'apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-data}\n' +
      `spec: {accessModes: [ReadWriteOnce], ${kind}: {}}\n`;
    assert.match(unresolvedIn(desired(web, claimYaml('data'), persistent)), said);
  }
});

test('an image is a volume of its pod, read-only, and its reference is checked', () => {
  const state = desired(podYaml('web', { v: 'image: {reference: "[::1]:5000/a/b:1", pullPolicy: Never}' }));
  const volume = only(state.volumes.values());
  assert.deepEqual(volume.spec, {
    kind: 'image',
    id: podVolumeId('kubernetes.io/image', podUid('uid-web'), 'v'),
    pod: 'uid-web',
    name: 'v',
    image: { reference: '[::1]:5000/a/b:1', pullPolicy: 'Never' },
  });
  assert.equal(only(volume.publications.values()).spec.readOnly, true);
});

test('a claim used under two names of one pod is one publication, writable if either is', () => {
  const twice = podYaml('web', { a: claimSource('data', true), b: claimSource('data', false) });
  const volume = volumeOf(desired(twice, claimYaml('data'), volumeYaml('pv-data')), DATA);
  const publication = only(volume.publications.values());
  assert.deepEqual([publication.spec.key, publication.spec.readOnly], ['uid-web/pv-data', false]);
});

test('two PersistentVolumes of one handle in one pod are one volume with two publications', () => {
  const state = desired(
    podYaml('web', { a: claimSource('a'), b: claimSource('b') }),
    claimYaml('a'),
    claimYaml('b'),
    volumeYaml('pv-a', { handle: 'same' }),
    volumeYaml('pv-b', { handle: 'same' }),
  );
  const volume = volumeOf(state, csiVolumeId('test.csi.example', 'same'));
  assert.deepEqual([...volume.publications.keys()], ['uid-web/pv-a', 'uid-web/pv-b']);
  assert.deepEqual([state.volumes.size, state.unresolved], [1, []]);
});

test('pods that share a volume are one volume with a publication each', () => {
  const state = desired(
    web,
    podYaml('api', { x: claimSource('data') }),
    claimYaml('data'),
    volumeYaml('pv-data'),
  );
  assert.deepEqual([...volumeOf(state, DATA).publications.keys()], ['uid-api/pv-data', 'uid-web/pv-data']);
});

/** Two pods that want one volume differently, the one with the higher uid first. */
const CONTENDERS = [
  podYaml('z', { v: claimSource('a') }, 'uid-2'),
  podYaml('a', { v: claimSource('b') }, 'uid-1'),
  claimYaml('a'),
  claimYaml('b'),
  volumeYaml('pv-a', { handle: 'same', csi: 'fsType: ext4' }),
  volumeYaml('pv-b', { handle: 'same', csi: 'fsType: xfs' }),
];

test('of two pods that want one volume differently the lower uid is served, whatever the order of the files', () => {
  const state = desired(...CONTENDERS);
  const volume = volumeOf(state, csiVolumeId('test.csi.example', 'same'));
  assert.deepEqual([...volume.publications.keys()], ['uid-1/pv-b']);
  assert.match(
    unresolvedIn(state),
    /^spec-invalid: PersistentVolume pv-a is the volume of pv-b, .* another fsType$/,
  );
  const reversed = volumeOf(desired(...CONTENDERS.toReversed()), volume.spec.id);
  assert.deepEqual([...reversed.publications.keys()], ['uid-1/pv-b']);
});

test('who has the volume already is served before a lower uid, and loses it only by going', () => {
  const id = csiVolumeId('test.csi.example', 'same');
  const holdersOf = (volume: VolumeId) =>
    new Set(volume === id ? [parsePodUid('uid-2') ?? assert.fail()] : []);
  const served = (state: DesiredState) => [...volumeOf(state, id).publications.keys()];
  const state = desiredWith({ holdersOf }, ...CONTENDERS);
  assert.deepEqual(served(state), ['uid-2/pv-a']);
  assert.equal(csiSpecOf(state).fsType, 'ext4');
  assert.match(unresolvedIn(state), /^spec-invalid: PersistentVolume pv-b is the volume of pv-a,/);
  assert.deepEqual(served(desiredWith({ holdersOf }, ...CONTENDERS.slice(1))), ['uid-1/pv-b']);
});

test('two pods whose uid and volume name run together have a volume each', () => {
  const state = desired(
    podYaml('one', { 'b-c': 'emptyDir: {}' }, 'a'),
    podYaml('two', { c: 'emptyDir: {}' }, 'a-b'),
  );
  const keys = [...state.volumes.values()].map((one) => [...one.publications.keys()]);
  assert.deepEqual([keys, state.unresolved], [[['a/b-c'], ['a-b/c']], []]);
});

test('emptyDir has its medium and limit, hostPath its path and type', () => {
  const state = desired(
    podYaml('web', {
      disk: 'emptyDir: {}',
      memory: 'emptyDir: {medium: Memory, sizeLimit: 64Mi}',
      host: 'hostPath: {path: /srv//x/, type: File}',
    }),
  );
  const pod = podUid('uid-web');
  assert.deepEqual(
    [...state.volumes.values()].map((one) => one.spec),
    [
      {
        kind: 'empty-dir',
        id: podVolumeId('kubernetes.io/empty-dir', pod, 'disk'),
        pod,
        name: 'disk',
        medium: 'disk',
        sizeLimitBytes: 0,
      },
      {
        kind: 'empty-dir',
        id: podVolumeId('kubernetes.io/empty-dir', pod, 'memory'),
        pod,
        name: 'memory',
        medium: 'memory',
        sizeLimitBytes: 67_108_864,
      },
      {
        kind: 'host-path',
        id: podVolumeId('kubernetes.io/host-path', pod, 'host'),
        pod,
        name: 'host',
        path: '/srv/x',
        type: 'File',
      },
    ],
  );
});

test('an emptyDir of which nothing is written is one on disk', () => {
  for (const source of ['emptyDir:', 'emptyDir: null', 'emptyDir: {}']) {
    const { spec } = only(desired(podYaml('web', { v: source })).volumes.values());
    const { kind, medium, sizeLimitBytes } = spec as EmptyDirVolumeSpec;
    assert.deepEqual([kind, medium, sizeLimitBytes], ['empty-dir', 'disk', 0], source);
  }
});

test('a volume without a source is refused, and so is one whose source is null: a file may have been cut', () => {
  for (const source of ['', 'secret:', 'persistentVolumeClaim:', 'secret: ~\n    emptyDir: null', 'future:'])
    assert.match(
      onlyRejection(wishOf({ 'web.yaml': podYaml('web', { v: source }) })),
      /has no source/,
      source,
    );
});

function emptyDirOf(emptyDir: string, containers: string, more = '', capacity = {}): object | undefined {
  const yaml =
    `apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: uid-web}\nspec:\n  containers: [${containers}]\n` +
    `  volumes: [{name: v, emptyDir: ${emptyDir}}]\n  ${more}\n`;
  const { spec } = only(desiredWith({ capacity }, yaml).volumes.values());
  const { medium, sizeLimitBytes, hugePageBytes } = spec as EmptyDirVolumeSpec;
  return { medium, sizeLimitBytes, ...(hugePageBytes === undefined ? {} : { hugePageBytes }) };
}

const withLimits = (limits: string, rest = ''): string =>
  `{name: c${limits.length}, resources: {limits: ${limits}}, volumeMounts: [{name: v, mountPath: /v}]${rest}}`;

test('a volume in memory is as large as the smallest of its limit, what its pod may use and what the node has', () => {
  const node = { memory: 1_000n };
  for (const [emptyDir, containers, more, bytes] of [
    ['{medium: Memory}', withLimits('{}'), '', 1_000],
    ['{medium: Memory, sizeLimit: 300}', withLimits('{}'), '', 300],
    ['{medium: Memory, sizeLimit: 3000}', withLimits('{}'), '', 1_000],
    ['{medium: Memory}', withLimits('{memory: 100}'), '', 100],
    ['{medium: Memory, sizeLimit: 300}', withLimits('{memory: 100}'), '', 100],
    ['{medium: Memory}', `${withLimits('{memory: 100}')}, ${withLimits('{memory: 50}')}`, '', 150],
    // One container without a limit may use all of the node.
    ['{medium: Memory}', `${withLimits('{memory: 100}')}, ${withLimits('{}')}`, '', 1_000],
    ['{medium: Memory}', withLimits('{memory: 100}'), 'overhead: {memory: 7}', 107],
    ['{medium: Memory}', withLimits('{memory: 100}'), 'resources: {limits: {memory: 70}}', 70],
    ['{medium: Memory}', withLimits('{memory: 9}'), `initContainers: [${withLimits('{memory: 100}')}]`, 100],
    [
      '{medium: Memory}',
      withLimits('{memory: 9}'),
      `initContainers: [${withLimits('{memory: 100}', ', restartPolicy: Always')}, ${withLimits('{memory: 30}')}]`,
      130,
    ],
    ['{}', withLimits('{memory: 100}'), '', 0],
    ['{sizeLimit: 300}', withLimits('{memory: 100}'), '', 300],
  ] as const) {
    const medium = emptyDir.includes('Memory') ? 'memory' : 'disk';
    const told = emptyDirOf(emptyDir, containers, more, node);
    assert.deepEqual(told, { medium, sizeLimitBytes: bytes }, `${emptyDir} ${containers} ${more}`);
  }
});

test('a volume of huge pages has the size of page and the room that the containers have', () => {
  const two = 2 * 1_024 * 1_024;
  const limits = withLimits('{hugepages-2Mi: 8Mi}');
  const huge = { medium: 'huge-pages', hugePageBytes: two };
  for (const [emptyDir, containers, bytes] of [
    ['{medium: HugePages}', limits, 4 * two],
    ['{medium: HugePages-2Mi}', limits, 4 * two],
    ['{medium: HugePages-2Mi, sizeLimit: 5Mi}', limits, 2 * two],
    ['{medium: HugePages-2Mi}', withLimits('{hugepages-2Mi: 8Mi, hugepages-1Gi: 1Gi}'), 4 * two],
  ] as const)
    assert.deepEqual(emptyDirOf(emptyDir, containers), { ...huge, sizeLimitBytes: bytes }, emptyDir);
});

test('huge pages that the pod as a whole has are those of its volume, as with the kubelet', () => {
  const two = 2 * 1_024 * 1_024;
  const resources = 'resources: {limits: {hugepages-2Mi: 8Mi}, requests: {hugepages-2Mi: 8Mi}}';
  for (const [emptyDir, containers, bytes] of [
    ['{medium: HugePages}', withLimits('{}'), 4 * two],
    ['{medium: HugePages-2Mi, sizeLimit: 5Mi}', withLimits('{}'), 2 * two],
    ['{medium: HugePages-2Mi}', withLimits('{hugepages-2Mi: 2Mi}'), 4 * two],
  ] as const)
    assert.deepEqual(
      emptyDirOf(emptyDir, containers, resources),
      { medium: 'huge-pages', hugePageBytes: two, sizeLimitBytes: bytes },
      `${emptyDir} ${containers}`,
    );
});

test('a hostPath at, below or above what is denied is refused', () => {
  for (const denied of [
    '/',
    '/var',
    '/var/lib',
    '/var/lib/mooring',
    '/var/lib/mooring/',
    '/proc/1',
    '//dev',
  ]) {
    const state = desired(podYaml('web', { v: `hostPath: {path: ${denied}}` }));
    assert.match(unresolvedIn(state), /^spec-invalid: hostPath .* is denied, because of \//, denied);
  }
  for (const free of ['/srv', '/var/lib/mooring2', '/var/log', '/developer']) {
    assert.equal(desired(podYaml('web', { v: `hostPath: {path: ${free}}` })).volumes.size, 1, free);
  }
});

test('a secret volume is its keys as files, or the items under their paths, with their modes', () => {
  const all = desired(podYaml('web', { v: 'secret: {secretName: s}' }), secretYaml('s', { a: '1', b: '2' }));
  assert.deepEqual(contentOf(only(only(all.volumes.values()).publications.values())), {
    a: '644 1',
    b: '644 2',
  });
  const items = '[{key: a, path: x/y}, {key: b, path: z, mode: 0755}]';
  const source = `secret: {secretName: s, defaultMode: 0400, items: ${items}}`;
  const some = desired(podYaml('web', { v: source }), secretYaml('s', { a: '1', b: '2', c: '3' }));
  assert.deepEqual(contentOf(only(only(some.volumes.values()).publications.values())), {
    'x/y': '400 1',
    z: '755 2',
  });
});

test('of two items with one path the later one counts, and both of their keys have to be there', () => {
  const items = '[{key: a, path: x/y}, {key: b, path: x//y, mode: 0600}]';
  const secret = podYaml('web', { v: `secret: {secretName: s, items: ${items}}` });
  const both = desired(secret, secretYaml('s', { a: '1', b: '2' }));
  assert.deepEqual(contentOf(only(only(both.volumes.values()).publications.values())), { 'x/y': '600 2' });
  const later = desired(secret, secretYaml('s', { b: '2' }));
  assert.equal(only(later.volumes.values()).blocked?.message, 'Secret default/s has no key a');
  const configMap = podYaml('web', { v: `configMap: {name: c, optional: true, items: ${items}}` });
  const earlier = desired(configMap, configMapYaml('c', { a: '1' }));
  assert.deepEqual(contentOf(only(only(earlier.volumes.values()).publications.values())), { 'x/y': '644 1' });
});

test('a configMap has text and binary data', () => {
  const map =
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: text}\nbinaryData: {b: aGk=}\n';
  const state = desired(podYaml('web', { v: 'configMap: {name: c}' }), map);
  const { spec, publications } = only(state.volumes.values());
  assert.deepEqual(
    [spec.kind, contentOf(only(publications.values()))],
    ['config-map', { a: '644 text', b: '644 hi' }],
  );
});

test('missing content blocks its volume by name, without freezing the pod or holding up the others', () => {
  const state = desired(podYaml('web', { v: 'secret: {secretName: s}', w: 'emptyDir: {}' }));
  const blocked = [...state.volumes.values()].map((one) => one.blocked?.message);
  assert.deepEqual(blocked, ['Secret default/s does not exist', undefined]);
  assert.deepEqual([state.unresolved, state.frozenPods.size], [[], 0]);
  const noKey = desired(
    podYaml('web', { v: 'configMap: {name: c, items: [{key: a, path: a}]}' }),
    configMapYaml('c', { b: '' }),
  );
  assert.equal(only(noKey.volumes.values()).blocked?.message, 'ConfigMap default/c has no key a');
});

test('missing optional content is an empty volume, and a missing optional key an absent file', () => {
  const none = only(
    desired(podYaml('web', { v: 'secret: {secretName: s, optional: true}' })).volumes.values(),
  );
  assert.deepEqual([none.blocked, contentOf(only(none.publications.values()))], [undefined, {}]);
  const source = 'configMap: {name: c, optional: true, items: [{key: a, path: a}, {key: b, path: b}]}';
  const some = only(desired(podYaml('web', { v: source }), configMapYaml('c', { b: 'x' })).volumes.values());
  assert.deepEqual([some.blocked, contentOf(only(some.publications.values()))], [undefined, { b: '644 x' }]);
});

test('the generation changes with the object and with how the volume shows it, and with nothing else', () => {
  const generation = (source: string, ...before: readonly string[]): string => {
    const state = desired(...before, podYaml('web', { v: source }), configMapYaml('c', { a: '1' }));
    return only(only(state.volumes.values()).publications.values()).generation;
  };
  const plain = generation('configMap: {name: c}');
  assert.equal(plain, generation('configMap: {name: c, optional: false, defaultMode: 0644}'));
  assert.notEqual(plain, generation('configMap: {name: c, defaultMode: 0600}'));
  assert.notEqual(plain, generation('configMap: {name: c, items: [{key: a, path: b}]}'));
  // Another revision of the object, here because another object was read before it.
  assert.notEqual(plain, generation('configMap: {name: c}', configMapYaml('first', {})));
});

test("a driver's secrets are resolved, and a missing one blocks the volume by name", () => {
  const csi =
    'nodeStageSecretRef: {namespace: vault, name: s}, nodePublishSecretRef: {namespace: vault, name: s}';
  const volume = volumeYaml('pv-data', { csi });
  const secret = secretYaml('s', { password: 'hunter2' }).replace('{name: s}', '{name: s, namespace: vault}');
  const state = desired(web, claimYaml('data'), volume, secret);
  const { secrets, blocked } = volumeOf(state, DATA);
  const given = { password: 'hunter2' };
  assert.deepEqual([secrets.stage?.reveal(), secrets.publish?.reveal()], [given, given]);
  assert.deepEqual([secrets.controllerPublish, blocked], [undefined, undefined]);
  const without = desired(web, claimYaml('data'), volume);
  const missing = volumeOf(without, DATA).blocked;
  assert.deepEqual([missing?.code, missing?.blocker], ['reference-missing', 'vault/s']);
  assert.deepEqual([without.unresolved, without.frozenPods.size], [[], 0]);
  assert.equal(volumeOf(without, DATA).publications.size, 1);
});

test('the secret of attaching is demanded where this node attaches, and nowhere else', () => {
  const csi =
    'controllerPublishSecretRef: {namespace: vault, name: s}, nodeStageSecretRef: {namespace: default, name: t}';
  const secret = secretYaml('t', { password: 'hunter2' });
  const documents = [web, claimYaml('data'), volumeYaml('pv-data', { csi }), secret];
  const never = csiDriverYaml('test.csi.example', '{attachRequired: false}');
  assert.equal(volumeOf(desired(...documents), DATA).blocked?.message, 'Secret vault/s does not exist');
  for (const state of [desired(...documents, never), desiredWith({ attachment: 'granted' }, ...documents)]) {
    const { secrets, blocked } = volumeOf(state, DATA);
    assert.equal(blocked, undefined);
    // What its driver says may hold the one that is not known.
    assert.deepEqual([secrets.stage?.reveal(), secrets.mayBeMore], [{ password: 'hunter2' }, true]);
  }
});

test('A-037: a secret that is not text is not sent to a driver as something else', () => {
  const binary = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {key: //79}\n';
  const csi = 'controllerPublishSecretRef: {namespace: default, name: s}';
  const { blocked } = volumeOf(desired(web, claimYaml('data'), volumeYaml('pv-data', { csi }), binary), DATA);
  assert.match(
    `${blocked?.code}: ${blocked?.message}`,
    /^spec-invalid: the key key of Secret default\/s is not UTF-8/,
  );
});

test('A-038: no secret shows in the desired state, however it is printed', () => {
  const csi = 'nodeStageSecretRef: {namespace: default, name: s}';
  const state = desired(
    podYaml('web', { data: claimSource('data'), s: 'secret: {secretName: s}' }),
    claimYaml('data'),
    volumeYaml('pv-data', { csi }),
    secretYaml('s', { password: 'hunter2' }),
  );
  assert.equal(state.volumes.size, 2);
  const json = JSON.stringify([...state.volumes.values()].map((one) => [one, [...one.publications]]));
  const shown = inspect(state, { depth: 20 }) + json;
  assert.doesNotMatch(shown, /hunter2|aHVudGVyMg/);
});

test('gates of the wish are gates of the desired state', () => {
  const wish = wishOf({ 'bad.yaml': 'a: [', 'web.yaml': podYaml('web') });
  const state = wholly(desire({ ...wish, complete: false }, STAND_ALONE));
  assert.deepEqual([state.complete, [...state.unknownOrigins]], [false, ['bad.yaml']]);
});

test('the desired state does not depend on the order of files and documents', () => {
  const documents = [
    web,
    podYaml('api', { x: claimSource('data'), y: 'secret: {secretName: s}' }),
    claimYaml('data'),
    volumeYaml('pv-data'),
    podYaml('odd', { x: 'fc: {}', y: claimSource('none') }),
    podYaml('z', { v: 'configMap: {name: c}' }),
  ];
  const shape = (state: DesiredState): unknown => [
    [...state.volumes].map(([id, one]) => [id, one.spec, one.blocked, [...one.publications.keys()]]),
    [...state.frozenPods].sort(),
    state.unresolved,
  ];
  const expected = shape(desired(...documents));
  fc.assert(
    fc.property(fc.shuffledSubarray(documents, { minLength: documents.length }), (shuffled) => {
      assert.deepEqual(shape(desired(...shuffled)), expected);
    }),
    { numRuns: 50 },
  );
});
