import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath } from '../../../mount/host.ts';
import { temporaryPath } from '../../../mount/temporary-file.ts';
import { escapePlugin, unescapePlugin } from '../../../plugins/layout/component.ts';
import { createLayout, sha256Hex } from '../../../plugins/layout/layout.ts';
import { type CsiVolumeSpec, isObjectName, type PodUid, type VolumeId } from '../../../plugins/volume.ts';
import { csiSpec } from '../csi-spec.ts';
import { localVolume } from '../local/local-world.ts';
import { callOf, content, emptyDir, POD } from '../local-world.ts';

const layout = createLayout('/var/lib/kubelet' as AbsolutePath);
const POD_DIRECTORY = `/var/lib/kubelet/pods/${POD}`;

const CSI = csiSpec('example.com', '../../etc', 'pvc-1');

test("a pod's volumes lie where the kubelet has them", () => {
  const { publication } = callOf(content('secret'));
  assert.equal(layout.podDirectory(POD), POD_DIRECTORY);
  for (const [spec, plugin] of [
    [emptyDir('disk'), 'kubernetes.io~empty-dir'],
    [content('secret'), 'kubernetes.io~secret'],
    [content('config-map'), 'kubernetes.io~configmap'],
    [content('downward-api'), 'kubernetes.io~downward-api'],
    [content('projected'), 'kubernetes.io~projected'],
  ] as const) {
    assert.equal(layout.volumeDirectory(spec, publication), `${POD_DIRECTORY}/volumes/${plugin}/settings`);
    assert.equal(layout.target(spec, publication), layout.volumeDirectory(spec, publication));
  }
  const local = localVolume();
  const path = `${POD_DIRECTORY}/volumes/kubernetes.io~local-volume/local-1`;
  assert.equal(layout.target(local, callOf(local).publication), path);
  const inPod = { ...publication, specName: 'pvc-1' };
  assert.equal(layout.target(CSI, inPod), `${POD_DIRECTORY}/volumes/kubernetes.io~csi/pvc-1/mount`);
  const markers = `${POD_DIRECTORY}/plugins/kubernetes.io~empty-dir`;
  assert.equal(layout.readyDirectory(emptyDir('disk'), publication), `${markers}/settings`);
  for (const kind of ['secret', 'config-map', 'downward-api', 'projected'] as const)
    assert.equal(layout.readyDirectory(content(kind), publication), `${markers}/wrapped_settings`);
});

test('the longest names that Kubernetes allows have a place that a file system can have', () => {
  for (const specName of ['v'.repeat(253), `${'v'.repeat(248)}.json`, 'v'.repeat(251), 'v'.repeat(250)]) {
    assert.ok(isObjectName(specName));
    const uid = 'u'.repeat(128) as PodUid;
    const place = { pod: { uid }, specName };
    const block = layout.blockVolume(specName);
    const paths = [
      layout.formatIntent(specName),
      layout.localStage(specName),
      layout.csiTarget(place),
      ...Object.values(layout.localDevicePublication(place)),
      ...Object.values(layout.blockPublication(place)),
      ...Object.values(block),
      layout.subpath(place, { container: 'c'.repeat(63), index: 0 }),
    ];
    for (const path of [...paths, ...paths.map((one) => temporaryPath(one))])
      for (const name of path.split('/'))
        assert.ok(Buffer.byteLength(name) <= 255, `${path.length}: ${path}`);
    assert.deepEqual(layout.ownerOf(layout.formatIntent(specName)), { kind: 'format', specName });
  }
});

test('9.3: a block volume lies where the kubelet has it, and its pod finds a link', () => {
  const block: CsiVolumeSpec = { ...CSI, mode: 'Block' };
  const inPod = { ...callOf(content('secret')).publication, specName: 'pvc-1' };
  const devices = '/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices';
  assert.equal(layout.stagingPath(block), `${devices}/staging/pvc-1`);
  assert.deepEqual(layout.blockPublication(inPod), {
    data: `${devices}/pvc-1/data`,
    published: `${devices}/publish/pvc-1/${POD}`,
    held: `${devices}/pvc-1/dev/${POD}`,
    link: `${POD_DIRECTORY}/volumeDevices/kubernetes.io~csi/pvc-1`,
  });
  assert.equal(layout.target(block, inPod), layout.blockPublication(inPod).link);
  assert.equal(layout.mountPoint(block, inPod), layout.blockPublication(inPod).held);
  assert.equal(layout.driverTarget(block, inPod), layout.blockPublication(inPod).published);
  assert.equal(layout.mountPoint(CSI, inPod), layout.target(CSI, inPod));
});

test('a local device lies where the kubelet has it, and its pod finds a link', () => {
  const device = localVolume('/dev/sdx' as AbsolutePath, [], 'Block');
  const { publication: inPod } = callOf(device);
  const devices = '/var/lib/kubelet/plugins/kubernetes.io~local-volume/volumeDevices';
  const link = `${POD_DIRECTORY}/volumeDevices/kubernetes.io~local-volume/local-1`;
  const held = `${devices}/local-1/${POD}`;
  assert.deepEqual(layout.devicePublication(device, inPod), { published: held, held, link });
  assert.deepEqual([layout.target(device, inPod), layout.mountPoint(device, inPod)], [link, held]);
});

test('hostPath and orphan are where they are', () => {
  const { publication } = callOf(content('secret'));
  const path = '/srv/data' as AbsolutePath;
  const id = 'x' as VolumeId;
  assert.equal(
    layout.target({ kind: 'host-path', id, pod: POD, name: 'x', path, type: '' }, publication),
    path,
  );
  assert.equal(layout.target({ kind: 'orphan', id, path }, publication), path);
});

test("a volume handle reaches the disk only as its hash, which is the kubelet's", () => {
  assert.equal(sha256Hex('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  const directory = `/var/lib/kubelet/plugins/kubernetes.io/csi/example.com/${sha256Hex('../../etc')}`;
  assert.equal(layout.deviceDirectory('example.com', '../../etc'), directory);
  assert.equal(layout.stagingPath(CSI), `${directory}/globalmount`);
});

test('a name that is no path component never becomes a path', () => {
  const { publication } = callOf(content('secret'));
  for (const specName of ['..', '.', '', 'a/b', '../x', 'nul\0']) {
    assert.throws(
      () => layout.volumeDirectory(emptyDir('disk'), { ...publication, specName }),
      /broken invariant/,
    );
    assert.throws(
      () => layout.readyDirectory(emptyDir('disk'), { ...publication, specName }),
      /broken invariant/,
    );
    assert.throws(() => layout.deviceDirectory(specName, 'handle'), /broken invariant/);
  }
});

test('plugin names are escaped as the kubelet does', () => {
  assert.equal(escapePlugin('kubernetes.io/empty-dir'), 'kubernetes.io~empty-dir');
  assert.equal(escapePlugin('a/b/c'), 'a~b~c');
  assert.equal(unescapePlugin('a~b~c'), 'a/b/c');
});
