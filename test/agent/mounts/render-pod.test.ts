/** A pod as podman takes it: what is not about volumes stays, what is a volume becomes a path. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MountsDocument } from '../../../agent/mounts/mounts-document.ts';
import { type RenderedPod, renderPod } from '../../../agent/mounts/render-pod.ts';
import { DEFAULT_MANIFEST_LIMITS } from '../../../agent/source/manifests/parse/manifest-limits.ts';
import { parseManifest } from '../../../agent/source/manifests/parse/manifest.ts';
import { claimYaml, volumeYaml } from '../manifests.ts';
import { LAYOUT } from '../status-fixture.ts';
import { mountsIn, webYaml } from './pod-mounts.ts';

const POD = `${LAYOUT.root}/pods/uid-web`;
const BLOCK = volumeYaml('pv-data', { spec: 'volumeMode: Block' });
const CLAIM = claimYaml('data', '{volumeName: pv-data, volumeMode: Block}');

function manifestOf(yaml: string): unknown {
  const parsed = parseManifest(yaml, DEFAULT_MANIFEST_LIMITS);
  assert.ok(parsed.ok);
  return parsed.value[0]?.value;
}

function rendered(yaml: string, document: MountsDocument): RenderedPod {
  const value = manifestOf(yaml);
  const pod = renderPod(value, document);
  assert.deepEqual(value, manifestOf(yaml), 'what was read is not changed');
  // As it is printed.
  return JSON.parse(JSON.stringify(pod)) as RenderedPod;
}

function problemsOf(pod: RenderedPod): string {
  return pod.kind === 'impossible' ? pod.problems.join('\n') : assert.fail(JSON.stringify(pod));
}

const web = webYaml(
  `containers: [{name: main, image: i, env: [{name: A, value: b}], volumeMounts: [
    {name: tmp, mountPath: tmp}, {name: keys, mountPath: /keys, mountPropagation: HostToContainer}],
    volumeDevices: [{name: raw, devicePath: /dev/raw}]}]
  initContainers: [{name: first, image: i, volumeMounts: [{name: tmp, mountPath: /t, readOnly: true}]}]`,
  '[{name: tmp, emptyDir: {}}, {name: keys, configMap: {name: k}}, {name: unused, emptyDir: {}}, ' +
    '{name: raw, persistentVolumeClaim: {claimName: data}}]',
  'restartPolicy: Never',
);
const OBJECTS = [CLAIM, BLOCK, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k}\n'];

test('every volume is a path on the host, and all else is as it was written', () => {
  assert.deepEqual(rendered(web, mountsIn([web, ...OBJECTS])), {
    kind: 'pod',
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', uid: 'uid-web' },
      spec: {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'main',
            image: 'i',
            env: [{ name: 'A', value: 'b' }],
            volumeMounts: [
              { name: 'tmp', mountPath: '/tmp' },
              { name: 'keys', mountPath: '/keys', mountPropagation: 'HostToContainer', readOnly: true },
              { name: 'raw', mountPath: '/dev/raw' },
            ],
          },
        ],
        initContainers: [
          { name: 'first', image: 'i', volumeMounts: [{ name: 'tmp', mountPath: '/t', readOnly: true }] },
        ],
        volumes: [
          { name: 'tmp', hostPath: { path: `${POD}/volumes/kubernetes.io~empty-dir/tmp` } },
          { name: 'keys', hostPath: { path: `${POD}/volumes/kubernetes.io~configmap/keys` } },
          {
            name: 'raw',
            hostPath: { path: `${POD}/volumeDevices/kubernetes.io~csi/pv-data`, type: 'BlockDevice' },
          },
        ],
      },
    },
  });
});

test('a pod with a volume that is not there is not rendered', () => {
  const document = mountsIn([web, ...OBJECTS], (facts) => ({
    ...facts,
    actual: new Map([...facts.actual].filter(([id]) => !id.includes('configmap'))),
  }));
  assert.equal(problemsOf(rendered(web, document)), 'container main: volume keys: it is on its way up');
});

test('a manifest that is not what the agent reads is not rendered', () => {
  const document = mountsIn([web, ...OBJECTS]);
  for (const [what, by] of [
    ['name: first', 'name: second'],
    ['mountPath: /keys', 'mountPath: /locks'],
    ['{name: tmp, mountPath: tmp}, ', ''],
    ['devicePath: /dev/raw', 'devicePath: /dev/other'],
    ['initContainers', 'otherContainers'],
  ] as const) {
    assert.ok(web.includes(what), what);
    const problems = problemsOf(rendered(web.replace(what, by), document));
    assert.match(problems, /the agent knows other (init )?containers of this pod/, what);
  }
});

test('what podman cannot be told is said', () => {
  const yaml = webYaml(
    'containers: [{name: main, volumeMounts: ' +
      "[{name: tmp, mountPath: /t, readOnly: true, recursiveReadOnly: Enabled}, {name: tmp, mountPath: '/u:v'}], " +
      "volumeDevices: [{name: raw, devicePath: '/dev/a:b'}]}]",
    '[{name: tmp, emptyDir: {}}, {name: raw, persistentVolumeClaim: {claimName: data, readOnly: true}}]',
  );
  const problems = problemsOf(rendered(yaml, mountsIn([yaml, CLAIM, BLOCK])));
  assert.match(problems, /^\/t: podman cannot make what is mounted below read-only/m);
  assert.match(problems, /^\/u:v: podman kube play takes no mountPath with a colon/m);
  assert.match(problems, /^\/dev\/a:b: podman kube play gives every device for writing/m);
  assert.match(problems, /^\/dev\/a:b: podman takes no device with a colon/m);
});

test('an image stays one: podman kube play mounts it itself', () => {
  const source = '[{name: files, image: {reference: "quay.io/example/data:1", pullPolicy: Never}}]';
  const yaml = webYaml('containers: [{name: main, volumeMounts: [{name: files, mountPath: /f}]}]', source);
  const told = rendered(yaml, mountsIn([yaml]));
  assert.equal(told.kind, 'pod');
  assert.deepEqual(told.kind === 'pod' && (told.pod as { spec: { volumes: unknown } }).spec.volumes, [
    { name: 'files', image: { reference: 'quay.io/example/data:1', pullPolicy: 'Never' } },
  ]);
});

test('a part of a volume is a volume of its own, and nothing is looked for below it again', () => {
  const parts = webYaml(
    `containers: [{name: main, image: i, volumeMounts: [
    {name: tmp, mountPath: /all}, {name: tmp, mountPath: /a, subPath: x},
    {name: tmp, mountPath: /b, subPathExpr: y}]}]`,
    '[{name: tmp, emptyDir: {}}]',
  );
  const pod = rendered(parts, mountsIn([parts]));
  assert.equal(pod.kind, 'pod');
  const { spec } = (pod as { pod: { spec: Record<string, unknown> } }).pod;
  const [main] = spec['containers'] as readonly { volumeMounts: readonly { name: string }[] }[];
  const names = main?.volumeMounts.map(({ name }) => name) ?? [];
  assert.equal(new Set(names).size, 3);
  assert.deepEqual(
    main?.volumeMounts,
    names.map((name, index) => ({ name, mountPath: ['/all', '/a', '/b'][index] })),
  );
  assert.deepEqual(spec['volumes'], [
    { name: 'tmp', hostPath: { path: `${POD}/volumes/kubernetes.io~empty-dir/tmp` } },
    { name: names[1], hostPath: { path: `${POD}/volume-subpaths/tmp/main/1` } },
    { name: names[2], hostPath: { path: `${POD}/volume-subpaths/tmp/main/2` } },
  ]);
});
