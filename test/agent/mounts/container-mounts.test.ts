/** What each container of a pod is given, from its manifest and what stands. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { ContainerMounts, MountsDocument } from '../../../agent/mounts/mounts-document.ts';
import { claimYaml, volumeYaml } from '../manifests.ts';
import { LAYOUT } from '../status-fixture.ts';
import { mountsIn, refusedWeb, webYaml } from './pod-mounts.ts';

const POD = `${LAYOUT.root}/pods/uid-web`;
const TMP = '[{name: tmp, emptyDir: {}}]';

function main(mounts: string, more = ''): string {
  return `containers: [{name: main, volumeMounts: [${mounts}], ${more}}]`;
}

function container({ containers }: MountsDocument, name = 'main'): ContainerMounts {
  const found = containers.find((one) => one.name === name);
  assert.ok(found, `${name} among ${containers.map((one) => one.name).join(', ')}`);
  return found;
}

test('containers of all three kinds are told, each with its own places', () => {
  const document = mountsIn([
    webYaml(
      `containers: [{name: main, volumeMounts: [{name: tmp, mountPath: /a}, {name: disk, mountPath: b/c}]}]
  initContainers: [{name: first, volumeMounts: [{name: tmp, mountPath: /i}]}]
  ephemeralContainers: [{name: debug, volumeMounts: [{name: disk, mountPath: /e}]}]`,
      '[{name: tmp, emptyDir: {}}, {name: disk, hostPath: {path: /srv/disk}}]',
    ),
  ]);
  assert.equal(document.ready, true);
  assert.deepEqual(document.pod, { namespace: 'default', name: 'web', uid: 'uid-web' });
  const told = document.containers.map(({ name, kind, mounts }) => [
    name,
    kind,
    mounts.map(({ hostPath, containerPath }) => `${hostPath}:${containerPath}`),
  ]);
  const tmp = `${POD}/volumes/kubernetes.io~empty-dir/tmp`;
  assert.deepEqual(told, [
    ['main', 'container', [`${tmp}:/a`, '/srv/disk:/b/c']],
    ['first', 'init', [`${tmp}:/i`]],
    ['debug', 'ephemeral', ['/srv/disk:/e']],
  ]);
});

test('a mount is read-only when the container, the claim, the volume or its kind says so', () => {
  const volumes =
    '[{name: tmp, emptyDir: {}}, {name: keys, secret: {secretName: keys}}, ' +
    '{name: settings, configMap: {name: settings}}, ' +
    '{name: read, persistentVolumeClaim: {claimName: data, readOnly: true}}, ' +
    '{name: write, persistentVolumeClaim: {claimName: data}}]';
  const names = ['tmp', 'keys', 'settings', 'read', 'write'];
  const places = names.map((name) => `{name: ${name}, mountPath: /${name}}`);
  const document = mountsIn([
    webYaml(main([...places, '{name: tmp, mountPath: /ro, readOnly: true}'].join(', ')), volumes),
    claimYaml('data'),
    volumeYaml('pv-data'),
    'apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\n',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n',
  ]);
  const { mounts } = container(document);
  const told = Object.fromEntries(mounts.map(({ containerPath, readOnly }) => [containerPath, readOnly]));
  assert.deepEqual(told, {
    '/tmp': false,
    '/keys': true,
    '/settings': true,
    '/read': true,
    '/write': false,
    '/ro': true,
  });
  // Two names of one claim are one place.
  const paths = mounts.filter(({ volume }) => volume === 'read' || volume === 'write');
  const place = `${POD}/volumes/kubernetes.io~csi/pv-data/mount`;
  assert.deepEqual(
    paths.map(({ hostPath }) => hostPath),
    [place, place],
  );
});

test('propagation and recursive read-only are told as they are wished', () => {
  const { mounts } = container(
    mountsIn([
      webYaml(
        main(
          '{name: tmp, mountPath: /a, mountPropagation: HostToContainer}, ' +
            '{name: tmp, mountPath: /b, mountPropagation: Bidirectional}, ' +
            '{name: tmp, mountPath: /c, readOnly: true, recursiveReadOnly: IfPossible}, ' +
            '{name: tmp, mountPath: /d, readOnly: true, recursiveReadOnly: Enabled}',
        ),
        TMP,
      ),
    ]),
  );
  assert.deepEqual(
    mounts.map(({ propagation, recursiveReadOnly }) => [propagation, recursiveReadOnly]),
    [
      ['HostToContainer', 'no'],
      ['Bidirectional', 'no'],
      ['None', 'if-possible'],
      ['None', 'required'],
    ],
  );
});

test('a device is the link in the pod, and only where the volume stands as one', () => {
  const block = volumeYaml('pv-data', { spec: 'volumeMode: Block' });
  const claim = claimYaml('data', '{volumeName: pv-data, volumeMode: Block}');
  const pod = webYaml(
    'containers: [{name: main, volumeDevices: [{name: raw, devicePath: /dev/raw}]}]',
    '[{name: raw, persistentVolumeClaim: {claimName: data}}]',
  );
  const [device] = container(mountsIn([pod, claim, block])).devices;
  assert.equal(device?.hostPath, `${POD}/volumeDevices/kubernetes.io~csi/pv-data`);
  assert.deepEqual([device?.containerPath, device?.readOnly], ['/dev/raw', false]);
  const asFiles = mountsIn([pod, claim, block], (facts) => ({
    ...facts,
    actual: new Map(
      [...facts.actual].map(([id, volume]) => [
        id,
        { ...volume, spec: { ...volume.spec, mode: 'Filesystem' } as typeof volume.spec },
      ]),
    ),
  }));
  const [refused] = container(asFiles).devices;
  assert.deepEqual([refused?.hostPath, asFiles.ready], [null, false]);
});

test('a volume that is not there has no path, and the reason', () => {
  const pod = webYaml(
    main('{name: tmp, mountPath: /a}, {name: gone, mountPath: /b}, {name: data, mountPath: /c}'),
    '[{name: tmp, emptyDir: {}}, {name: gone, persistentVolumeClaim: {claimName: none}}, ' +
      '{name: data, persistentVolumeClaim: {claimName: data}}]',
  );
  const document = mountsIn([pod, claimYaml('data'), volumeYaml('pv-data')], (facts) => ({
    ...facts,
    actual: new Map([...facts.actual].filter(([id]) => id.includes('empty-dir'))),
  }));
  assert.equal(document.ready, false);
  const [tmp, gone, data] = container(document).mounts;
  assert.deepEqual([tmp?.sentence, tmp?.state], [null, 'mounted']);
  assert.deepEqual([gone?.hostPath, gone?.state, gone?.reason?.code], [null, 'blocked', 'reference-missing']);
  assert.match(gone?.sentence ?? '', /PersistentVolumeClaim default\/none does not exist/);
  assert.deepEqual([data?.hostPath, data?.state, data?.sentence], [null, 'mounting', 'it is on its way up']);
});

test('a doubt about a mount takes its path back', () => {
  const pod = webYaml(main('{name: tmp, mountPath: /a}'), TMP);
  const document = mountsIn([pod], (facts) => ({
    ...facts,
    actual: new Map(
      [...facts.actual].map(([id, volume]) => [
        id,
        {
          ...volume,
          publications: new Map(
            [...volume.publications].map(([key, one]) => [
              key,
              { ...one, presence: { kind: 'unsure', because: 'restart' } },
            ]),
          ),
        },
      ]),
    ),
  }));
  assert.equal(container(document).mounts[0]?.hostPath, null);
});

test('a part of a volume is told where it is bound, and never as the whole volume', () => {
  const pod = webYaml(
    `containers: [{name: main, volumeMounts: [{name: tmp, mountPath: /all}, {name: tmp, mountPath: /a, subPath: x}]}]
  initContainers: [{name: first, volumeMounts: [{name: tmp, mountPath: /b, subPathExpr: $(Y)/z}],
    env: [{name: Y, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]
  ephemeralContainers: [{name: debug, volumeMounts: [{name: tmp, mountPath: /c, subPath: x/y}]}]`,
    TMP,
  );
  const told = ({ containers }: MountsDocument) =>
    containers.flatMap(({ mounts }) => mounts.map(({ hostPath, subPath }) => [hostPath, subPath]));
  const parts = `${POD}/volume-subpaths/tmp`;
  assert.deepEqual(told(mountsIn([pod])), [
    [`${POD}/volumes/kubernetes.io~empty-dir/tmp`, null],
    [`${parts}/main/1`, 'x'],
    [`${parts}/first/0`, '$(Y)/z'],
    [`${parts}/debug/0`, 'x/y'],
  ]);
  // What stands was published before these parts were wished.
  const before = mountsIn([pod], (facts) => ({
    ...facts,
    actual: new Map(
      [...facts.actual].map(([id, volume]) => {
        const places = [...volume.publications].map(([key, place]) => {
          return [key, { ...place, spec: { ...place.spec, subpaths: [] } }] as const;
        });
        return [id, { ...volume, publications: new Map(places) }];
      }),
    ),
  }));
  assert.equal(before.ready, false);
  const paths = told(before).map(([hostPath]) => hostPath);
  assert.deepEqual(paths, [`${POD}/volumes/kubernetes.io~empty-dir/tmp`, null, null, null]);
  assert.equal(
    before.containers[1]?.mounts[0]?.sentence,
    'the volume stands, and this part of it is not bound yet',
  );
});

test("the label of a container is its own, or the pod's", () => {
  const document = mountsIn([
    webYaml(
      "containers: [{name: main}, {name: own, securityContext: {seLinuxOptions: {level: 's0:c1'}}}]",
      '[]',
      'securityContext: {seLinuxOptions: {type: t}}',
    ),
  ]);
  assert.deepEqual(container(document).seLinux, { user: null, role: null, type: 't', level: null });
  assert.deepEqual(container(document, 'own').seLinux, {
    user: null,
    role: null,
    type: null,
    level: 's0:c1',
  });
});

test('what Kubernetes refuses of a mount is refused', () => {
  const refused = (mount: string): string => refusedWeb(main(`{name: tmp, ${mount}}`), TMP);
  assert.match(refused('readOnly: true'), /mountPath: is missing; expected a path in the container/);
  assert.match(refused('mountPath: ""'), /mountPath: expected a path in the container/);
  assert.match(
    refused('mountPath: /a, mountPropagation: Both'),
    /"Both" is not one of None, HostToContainer/,
  );
  assert.match(refused('mountPath: /a, recursiveReadOnly: Enabled'), /only for a mount with readOnly: true/);
  const shared = 'mountPath: /a, readOnly: true, recursiveReadOnly: Enabled, mountPropagation: Bidirectional';
  assert.match(refused(shared), /only for a mount without mountPropagation/);
  for (const path of ['/etc', '../x', 'a/../b', '..'])
    assert.match(refused(`mountPath: /a, subPath: "${path}"`), /subPath: expected a relative path/);
  assert.match(refused('mountPath: /a, subPath: x, subPathExpr: y'), /subPathExpr: and subPath exclude/);
  assert.match(
    refusedWeb(main('{name: tmp, mountPath: /a}, {name: tmp, mountPath: /a}'), TMP),
    /volumeMounts\[1\]\.mountPath: "\/a" is the place of another volume already/,
  );
});

test('the example in docs/API.md has exactly the keys of what is told', () => {
  const text = readFileSync(new URL('../../../docs/API.md', import.meta.url), 'utf8');
  const json = /```json\n(\{\s+"apiVersion": "mooring\/v1",\s+"kind": "Mounts",[\s\S]*?)```/.exec(text)?.[1];
  const block = volumeYaml('pv-data', { spec: 'volumeMode: Block' });
  const pod = webYaml(
    main('{name: tmp, mountPath: /tmp}', 'volumeDevices: [{name: raw, devicePath: /dev/raw}]'),
    '[{name: tmp, emptyDir: {}}, {name: raw, persistentVolumeClaim: {claimName: data}}]',
  );
  const real = mountsIn([pod, claimYaml('data', '{volumeName: pv-data, volumeMode: Block}'), block]);
  const keysOf = (document: MountsDocument): unknown => {
    const [first] = document.containers;
    const parts = [document, document.pod, first, first?.mounts[0], first?.devices[0]];
    return parts.map((part) => Object.keys(part ?? {}).sort());
  };
  assert.deepEqual(keysOf(JSON.parse(json ?? '{}') as MountsDocument), keysOf(real));
});

const IMAGE = '[{name: tmp, emptyDir: {}}, {name: files, image: {reference: "quay.io/example/data:1"}}]';

test('an image is left to what starts the container: it is ready, has no path, and is told by its name', () => {
  const document = mountsIn([
    webYaml(main('{name: files, mountPath: /f}, {name: tmp, mountPath: /t}'), IMAGE),
  ]);
  const [files, tmp] = container(document).mounts;
  assert.equal(document.ready, true);
  assert.deepEqual(
    [files?.hostPath, files?.image, files?.readOnly, files?.state, files?.sentence],
    [
      null,
      { reference: 'quay.io/example/data:1', pullPolicy: '' },
      true,
      'mounted',
      'what starts the container mounts the image quay.io/example/data:1',
    ],
  );
  assert.deepEqual([tmp?.image, tmp?.sentence], [null, null]);
});

test('a part of an image is not ready, and says why', () => {
  const document = mountsIn([webYaml(main('{name: files, mountPath: /f, subPath: a}'), IMAGE)]);
  const [files] = container(document).mounts;
  assert.deepEqual([document.ready, files?.image, files?.state], [false, null, 'blocked']);
  assert.match(files?.sentence ?? '', /a part of an image is not supported/);
});
