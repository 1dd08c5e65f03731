import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath } from '../../../mount/host.ts';
import { createOrphanPlugin } from '../../../plugins/orphan/orphan.ts';
import type { VolumeId, VolumeSpec } from '../../../plugins/volume.ts';
import { accept } from '../accept.ts';
import { callOf, freshHost, layout, mounterOf, POD_DIRECTORY, ROOT } from '../local-world.ts';
import { CRASH, type MemoryHost } from '../memory-host.ts';

/** Where the kubelet's layout has mount points. */
const PLACES = [
  `${POD_DIRECTORY}/volumes/kubernetes.io~secret/settings`,
  `${POD_DIRECTORY}/volumes/kubernetes.io~csi/pvc-1/mount`,
  `${POD_DIRECTORY}/volume-subpaths/data/main/0`,
  `${ROOT}/plugins/kubernetes.io/csi/example.com/${'a'.repeat(64)}/globalmount`,
];

function call(path: string) {
  const spec: VolumeSpec = {
    kind: 'orphan',
    id: `mooring/orphan/${path}` as VolumeId,
    path: path as AbsolutePath,
  };
  return callOf(spec);
}

const SPEC_NAME = 'pv-raw';
const block = layout.blockPublication({ pod: callOf({} as VolumeSpec).publication.pod, specName: SPEC_NAME });
const sharedDirectories = ['publish', 'staging'].map((name) => `${layout.blockDevices}/${name}`);

/** A machine on which nothing is left of any block volume. */
function groundOfBlock(): MemoryHost {
  const host = freshHost();
  for (const directory of [...sharedDirectories, '/dev'])
    host.plant(directory, { kind: 'directory', mode: 0o750 });
  return host;
}

/** A block volume as it is when it is published, with a vol_data.json that a power cut has emptied. */
async function hostWithBlock(manner: 'bind' | 'mknod' = 'bind'): Promise<MemoryHost> {
  const host = groundOfBlock();
  const device = host.devices.add();
  const disk = '/dev/disk' as AbsolutePath;
  host.plant(disk, { kind: 'block', block: device });
  const { published, held, link, data } = block;
  if (manner === 'mknod') host.plant(published, { kind: 'block', block: device });
  else {
    host.plant(published, { kind: 'file' });
    accept(await host.mount({ fsType: 'bind', source: disk, target: published, options: [] }));
  }
  host.plant(held, { kind: 'file' });
  accept(await host.mount({ fsType: 'bind', source: published, target: held, options: [] }));
  accept(await host.holdDevice(held));
  host.plant(link, { kind: 'symlink', text: published });
  host.plant(`${data}/vol_data.json`, { kind: 'file' });
  return host;
}

/** All that can be seen of the machine but the disk itself. */
function seenOf(host: MemoryHost): readonly string[] {
  const holds = host.devices.holds().map(({ path }) => `held ${path}`);
  return [...host.describe('/var' as AbsolutePath), ...holds];
}

const plugin = (host: MemoryHost) => createOrphanPlugin(host, layout, mounterOf(host));

function hostWithMount(path: string, layers = 1): MemoryHost {
  const host = freshHost();
  host.plant(path, { kind: 'directory' });
  for (let layer = 0; layer < layers; layer += 1) host.plantMount(path, 'ext4', 'precious');
  return host;
}

test('an orphan is unmounted, all layers, and its mount point and empty parents go', async () => {
  for (const path of PLACES) {
    const host = hostWithMount(path, 2);
    accept(await plugin(host).unpublish(call(path)));
    assert.equal(host.depthAt(path as AbsolutePath), 0);
    assert.deepEqual(host.describe('/' as AbsolutePath), freshHost().describe('/' as AbsolutePath));
    accept(await plugin(host).unpublish(call(path)));
  }
});

test('parents that somebody uses stay', async () => {
  const [path = ''] = PLACES;
  const host = hostWithMount(path);
  const other = `${POD_DIRECTORY}/volumes/kubernetes.io~empty-dir/cache`;
  host.plant(other, { kind: 'directory' });
  accept(await plugin(host).unpublish(call(path)));
  assert.deepEqual(host.names(`${POD_DIRECTORY}/volumes`), ['kubernetes.io~empty-dir']);
});

test('a mount inside a volume is unmounted, and no directory of the volume is removed, empty or not', async () => {
  const volume = `${POD_DIRECTORY}/volumes/kubernetes.io~empty-dir/cache`;
  const path = `${volume}/empty/deep`;
  const host = hostWithMount(path);
  accept(await plugin(host).unpublish(call(path)));
  assert.equal(host.depthAt(path as AbsolutePath), 0);
  assert.deepEqual(host.describe(volume as AbsolutePath), [
    `${volume}/empty directory 755`,
    `${volume}/empty/deep directory 755`,
  ]);
});

test('a mount point of a file goes when it is empty', async () => {
  const path = `${POD_DIRECTORY}/volume-subpaths/data/main/0`;
  const host = freshHost();
  host.plant(path, { kind: 'file' });
  accept(await plugin(host).unpublish(call(path)));
  assert.deepEqual(host.describe('/' as AbsolutePath), freshHost().describe('/' as AbsolutePath));
});

test("what lies under the mount is somebody's data: it stays, and that is said", async () => {
  for (const [path, content] of [
    [PLACES[0] ?? '', '/late'],
    [PLACES[2] ?? '', ''],
  ] as const) {
    const host = freshHost();
    host.plant(`${path}${content}`, { kind: 'file', content: 'whose?' });
    const result = await plugin(host).unpublish(call(path));
    assert.match(result.ok ? '' : result.failure.code, /^(directory-not-empty|path-wrong-kind)$/);
    assert.equal(host.read(`${path}${content}`), 'whose?');
  }
});

test('a busy orphan is left as it is', async () => {
  const [path = ''] = PLACES;
  const host = hostWithMount(path);
  host.plantMount(`${path}/nested`, 'ext4');
  const before = host.describe('/' as AbsolutePath);
  const result = await plugin(host).unpublish(call(path));
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['mount-busy', 'none']);
  assert.deepEqual(host.describe('/' as AbsolutePath), before);
});

test('nothing outside the root is ever unmounted', async () => {
  const host = hostWithMount('/srv/data');
  for (const path of ['/srv/data', ROOT, '/']) {
    const result = await plugin(host).unpublish(call(path));
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect],
      ['spec-invalid', 'none'],
      path,
    );
  }
  assert.equal(host.depthAt('/srv/data' as AbsolutePath), 1);
});

test('an orphan cannot be put up', async () => {
  const host = freshHost();
  for (const verb of ['attach', 'stage', 'publish'] as const) {
    const result = await plugin(host)[verb](call(PLACES[0] ?? ''));
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect],
      ['spec-invalid', 'none'],
      verb,
    );
  }
  for (const verb of ['unstage', 'detach'] as const) accept(await plugin(host)[verb](call(PLACES[0] ?? '')));
  assert.equal(host.calls(), 0);
});

test('after a crash at any effect, and after a failure of any call, unpublishing again leaves nothing', async () => {
  const clean = freshHost().describe('/' as AbsolutePath);
  for (const path of PLACES) {
    for (let n = 1; ; n += 1) {
      const host = hostWithMount(path);
      host.crashAt(n);
      const ended = await plugin(host)
        .unpublish(call(path))
        .then(
          () => true,
          (thrown) => {
            assert.equal(thrown, CRASH);
            return false;
          },
        );
      if (ended) break;
      host.crashAt(undefined);
      accept(await plugin(host).unpublish(call(path)));
      assert.deepEqual(host.describe('/' as AbsolutePath), clean);
    }
    const reference = hostWithMount(path);
    await plugin(reference).unpublish(call(path));
    for (let n = 1; n <= reference.calls(); n += 1) {
      const host = hostWithMount(path);
      const before = host.describe('/' as AbsolutePath);
      host.failAt(n, 'input-output', 'after');
      const result = await plugin(host).unpublish(call(path));
      if (!result.ok && result.failure.effect === 'none')
        assert.deepEqual(host.describe('/' as AbsolutePath), before);
      accept(await plugin(host).unpublish(call(path)));
      assert.deepEqual(host.describe('/' as AbsolutePath), clean);
    }
  }
});

test('an orphan of a block volume goes with its hold, its link, the driver’s target and all directories', async () => {
  for (const manner of ['bind', 'mknod'] as const) {
    const host = await hostWithBlock(manner);
    accept(await plugin(host).unpublish(call(block.held)));
    assert.deepEqual(seenOf(host), seenOf(groundOfBlock()));
    accept(await plugin(host).unpublish(call(block.held)));
  }
});

test('what other pods have of a block volume, and its staging directory, stay with its papers', async () => {
  const other = block.held.replace(/[^/]+$/, 'other');
  for (const path of [other, `${layout.blockDevices}/staging/${SPEC_NAME}/device`]) {
    const host = await hostWithBlock();
    host.plant(path, { kind: 'file' });
    accept(await plugin(host).unpublish(call(block.held)));
    assert.equal(host.read(path), '');
    assert.equal(host.read(`${block.data}/vol_data.json`), '');
    assert.deepEqual(host.devices.holds(), []);
  }
  const host = await hostWithBlock();
  host.plant(`${layout.blockDevices}/staging/${SPEC_NAME}`, { kind: 'directory' });
  accept(await plugin(host).unpublish(call(block.held)));
  assert.deepEqual(
    host.names(`${layout.blockDevices}/staging`),
    [SPEC_NAME],
    'somebody may know what is staged',
  );
});

test('what somebody wrote into the file behind the device stays, and that is said', async () => {
  const host = await hostWithBlock();
  accept(await host.releaseDevice(block.held));
  accept(await host.unmount(block.held));
  host.plant(block.held, { kind: 'file', content: 'whose?' });
  const result = await plugin(host).unpublish(call(block.held));
  assert.equal(!result.ok && result.failure.code, 'path-wrong-kind');
  assert.equal(host.read(block.held), 'whose?');
});

test('of a block volume, after a crash or a failure anywhere, unpublishing again leaves nothing', async () => {
  const clean = seenOf(groundOfBlock());
  for (let n = 1; ; n += 1) {
    const host = await hostWithBlock();
    host.crashAt(n);
    const ended = await plugin(host)
      .unpublish(call(block.held))
      .then(
        () => true,
        (thrown) => {
          assert.equal(thrown, CRASH);
          return false;
        },
      );
    host.crashAt(undefined);
    if (ended) break;
    accept(await plugin(host).unpublish(call(block.held)));
    assert.deepEqual(seenOf(host), clean);
  }
  const reference = await hostWithBlock();
  const first = reference.calls();
  await plugin(reference).unpublish(call(block.held));
  for (let n = 1; n <= reference.calls() - first; n += 1) {
    const host = await hostWithBlock();
    const before = seenOf(host);
    host.failAt(n, 'input-output', 'after');
    const result = await plugin(host).unpublish(call(block.held));
    if (!result.ok && result.failure.effect === 'none') assert.deepEqual(seenOf(host), before);
    accept(await plugin(host).unpublish(call(block.held)));
    assert.deepEqual(seenOf(host), clean);
  }
});
