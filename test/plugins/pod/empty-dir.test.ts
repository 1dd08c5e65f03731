import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import { createEmptyDirPlugin } from '../../../plugins/pod/empty-dir.ts';
import { pluginContract } from '../../contract/plugin.ts';
import type { EmptyDirVolumeSpec } from '../../../plugins/volume.ts';
import { accept } from '../accept.ts';
import {
  callOf,
  emptyDir,
  freshHost,
  hugePages,
  inodeOf,
  layout,
  type LocalWorld,
  mounterOf,
  POD_DIRECTORY,
  worldOf,
} from '../local-world.ts';
import { CRASH, type MemoryHost } from '../memory-host.ts';

const READY = `${POD_DIRECTORY}/plugins/kubernetes.io~empty-dir/cache/ready`;

function world(medium: 'disk' | 'memory', sizeLimitBytes = 0, host: MemoryHost = freshHost()): LocalWorld {
  return worldOf(
    callOf(emptyDir(medium, sizeLimitBytes)),
    (on) => createEmptyDirPlugin(on, layout, mounterOf(on)),
    (on, target) => on.describe(target),
    host,
  );
}

pluginContract('emptyDir on disk', () => world('disk'));
pluginContract('emptyDir in memory', () => world('memory'));
pluginContract('emptyDir of huge pages', hugeWorld);

function hugeWorld(): LocalWorld {
  const host = freshHost();
  host.plant('/sys/kernel/mm/hugepages/hugepages-2048kB', { kind: 'directory' });
  return worldOf(
    callOf(hugePages()),
    (on) => createEmptyDirPlugin(on, layout, mounterOf(on)),
    (on, target) => on.describe(target),
    host,
  );
}

test('huge pages are mounted with their size and room, open to all users', async () => {
  const { host, target, plugin, call } = hugeWorld();
  accept(await plugin().publish(call));
  const table = await host.readMountTable(target);
  const entries = table.ok ? table.value.at(target) : [];
  assert.deepEqual(
    entries.map(({ fsType, superOptions }) => [fsType, superOptions]),
    [['hugetlbfs', ['rw', 'mode=0777', 'size=4194304', 'pagesize=2097152']]],
  );
});

test('huge pages of a size that the machine has not are refused, and nothing is made', async () => {
  const host = freshHost();
  const before = host.describe('/' as AbsolutePath);
  const plugin = createEmptyDirPlugin(host, layout, mounterOf(host));
  const result = await plugin.publish(callOf(hugePages()));
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['kind-unsupported', 'none']);
  assert.match(result.ok ? '' : result.failure.message, /no huge pages of 2048 KiB/);
  assert.deepEqual(host.describe('/' as AbsolutePath), before);
});

test('an emptyDir on disk lies where the kubelet has it, open to all users, below closed parents', async () => {
  const { host, target, plugin, call, describe } = world('disk');
  assert.deepEqual(await plugin().publish(call), { ok: true, value: { mount: undefined } });
  assert.equal(target, `${POD_DIRECTORY}/volumes/kubernetes.io~empty-dir/cache`);
  assert.deepEqual(
    describe().filter((line) => line.startsWith(POD_DIRECTORY)),
    [
      `${POD_DIRECTORY} directory 750`,
      `${POD_DIRECTORY}/plugins directory 750`,
      `${POD_DIRECTORY}/plugins/kubernetes.io~empty-dir directory 750`,
      `${POD_DIRECTORY}/plugins/kubernetes.io~empty-dir/cache directory 750`,
      `${READY} file 644 ""`,
      `${POD_DIRECTORY}/volumes directory 750`,
      `${POD_DIRECTORY}/volumes/kubernetes.io~empty-dir directory 750`,
      `${target} directory 777`,
    ],
  );
  assert.equal(host.depthAt(target), 0);
});

test('publishing again keeps the content of an emptyDir, its inode and the mode the pod gave it', async () => {
  const { host, target, plugin, call } = world('disk');
  await plugin().publish(call);
  host.plant(`${target}/work/data`, { kind: 'file', content: 'precious' });
  await host.makeDirectory(target, 0o2770);
  const before = { inode: await inodeOf(host, target), all: host.describe(POD_DIRECTORY) };
  accept(await plugin().publish(call));
  assert.deepEqual({ inode: await inodeOf(host, target), all: host.describe(POD_DIRECTORY) }, before);
});

test('an emptyDir on disk survives a reboot, and one whose marker was lost keeps its content', async () => {
  const { host, target, plugin, call } = world('disk');
  await plugin().publish(call);
  host.plant(`${target}/data`, { kind: 'file', content: 'precious' });
  host.reboot();
  accept(await plugin().publish(call));
  await host.removeFile(READY as AbsolutePath);
  accept(await plugin().publish(call));
  assert.equal(host.read(`${target}/data`), 'precious');
  assert.equal(host.read(READY), '');
});

test('unpublish deletes the content of an emptyDir and leaves the other volumes of the pod', async () => {
  const { host, target, plugin, call } = world('disk');
  await plugin().publish(call);
  host.plant(`${target}/deep/er/data`, { kind: 'file', content: 'x' });
  host.plant(`${target}/out`, { kind: 'symlink', text: '/etc' });
  host.plant('/etc/passwd', { kind: 'file', content: 'root' });
  const other = `${POD_DIRECTORY}/volumes/kubernetes.io~csi/pvc-1/vol_data.json`;
  host.plant(other, { kind: 'file', content: '{}' });
  accept(await plugin().unpublish(call));
  assert.deepEqual(host.names(`${POD_DIRECTORY}/volumes`), ['kubernetes.io~csi']);
  // What the pod's volumes share goes with the last of them.
  assert.deepEqual(host.names(POD_DIRECTORY), ['plugins', 'volumes']);
  assert.deepEqual(host.names(`${POD_DIRECTORY}/plugins/kubernetes.io~empty-dir`), []);
  assert.equal(host.read(other), '{}');
  assert.equal(host.read('/etc/passwd'), 'root');
});

test('with the last volume of a pod all its empty directories go, those of other kinds too', async () => {
  const { host, plugin, call } = world('disk');
  await plugin().publish(call);
  for (const kind of ['csi', 'secret', 'configmap'])
    accept(await host.makeDirectory(`${POD_DIRECTORY}/volumes/kubernetes.io~${kind}` as AbsolutePath, 0o750));
  accept(await plugin().unpublish(call));
  const facts = await host.inspect(POD_DIRECTORY as AbsolutePath);
  assert.equal(facts.ok && facts.value.kind, 'absent');
});

/** What a removal that ended after so many effects left is given to the same pod again; undefined: it did not end. */
async function givenAgainAfter(effects: number, isMarked: boolean): Promise<readonly string[] | undefined> {
  const { host, target, plugin, call } = world('disk');
  accept(await plugin().publish(call));
  for (const name of FILES) host.plant(`${target}/${name}`, { kind: 'file', content: 'x' });
  if (!isMarked) accept(await host.removeFile(READY as AbsolutePath));
  host.crashAt(effects);
  const isCut = await plugin()
    .unpublish(call)
    .then(() => false)
    .catch((thrown) => thrown === CRASH);
  host.crashAt(undefined);
  accept(await plugin().publish(call));
  assert.equal(host.read(READY), '');
  const names = host.names(target);
  accept(await plugin().unpublish(call));
  assert.deepEqual(host.names(POD_DIRECTORY), [], 'nothing of it stays');
  return isCut ? names : undefined;
}

const FILES = ['catalog', 'table-1', 'table-2', 'wal'];

for (const isMarked of [true, false]) {
  const how = isMarked ? '' : ' whose marker was lost';
  test(`DL-21: a pod that comes again during its removal has its emptyDir${how} whole or empty`, async () => {
    const seen = new Set<number>();
    for (let effects = 1; ; effects += 1) {
      const names = await givenAgainAfter(effects, isMarked);
      if (names === undefined) break;
      seen.add(names.length);
      assert.ok([0, FILES.length].includes(names.length), `after ${effects} effects: ${names.join()}`);
    }
    assert.deepEqual([...seen].sort(), [0, FILES.length], 'both were seen');
  });
}

test('DL-21: what could not be marked as being removed goes all the same, as on a full disk', async () => {
  const { host, target, plugin, call } = world('disk');
  accept(await plugin().publish(call));
  host.plant(`${target}/data`, { kind: 'file', content: 'x' });
  accept(await host.removeFile(READY as AbsolutePath));
  host.failNext('writeFile', 'disk-full');
  accept(await plugin().unpublish(call));
  assert.deepEqual(host.names(POD_DIRECTORY), []);
});

test('INV-8: unpublish never deletes below a mount inside an emptyDir', async () => {
  const { host, target, plugin, call } = world('disk');
  await plugin().publish(call);
  host.plant(`${target}/nested`, { kind: 'directory' });
  host.plant(`${target}/data`, { kind: 'file', content: 'x' });
  host.plantMount(`${target}/nested`, 'ext4', 'precious');
  const before = host.describe(POD_DIRECTORY);
  const result = await plugin().unpublish(call);
  assert.equal(!result.ok && result.failure.code, 'mount-busy');
  assert.deepEqual(host.describe(POD_DIRECTORY), before);
});

test('a mount on the directory of a disk emptyDir is neither used nor deleted nor unmounted', async () => {
  const { host, target, plugin, call } = world('disk');
  await plugin().publish(call);
  host.plantMount(target, 'ext4', 'precious');
  const before = host.describe(POD_DIRECTORY);
  for (const [verb, blocker] of [
    ['publish', target],
    ['unpublish', 'ext4 /dev/foreign'],
  ] as const) {
    const result = await plugin()[verb](call);
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect, result.failure.blocker],
      ['mount-foreign', 'none', blocker],
      verb,
    );
  }
  assert.deepEqual(host.describe(POD_DIRECTORY), before);
});

test('a memory emptyDir that was found on disk and taken for a plain directory comes down all the same', async () => {
  const { host, target, plugin, call } = world('memory');
  await plugin().publish(call);
  assert.equal(host.depthAt(target), 1);
  const result = await plugin().unpublish({ ...call, spec: emptyDir('disk', 0) });
  assert.equal(result.ok, true, 'unpublish');
  assert.deepEqual([host.depthAt(target), host.describe(POD_DIRECTORY)], [0, []]);
});

test('a file where the emptyDir must be is refused and kept', async () => {
  for (const medium of ['disk', 'memory'] as const) {
    const { host, target, plugin, call } = world(medium);
    host.plant(target, { kind: 'file', content: 'whose?' });
    const result = await plugin().publish(call);
    assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['path-wrong-kind', 'none']);
    assert.equal(host.read(target), 'whose?');
  }
});

test('an emptyDir in memory is a tmpfs with its limit that does not swap', async () => {
  const { host, target, plugin, call } = world('memory', 65_536);
  const result = await plugin().publish(call);
  accept(result);
  assert.notEqual(result.value.mount, undefined);
  for (const option of ['size=65536', 'mode=0777', 'noswap'])
    assert.ok(host.optionsAt(target).includes(option), option);
  assert.equal(host.depthAt(target), 1);
});

test('without a limit the kernel chooses the size', async () => {
  const { host, target, plugin, call } = world('memory', 0);
  accept(await plugin().publish(call));
  assert.doesNotMatch(host.optionsAt(target).join(), /size=/);
});

test('a kernel that refuses noswap twice does not know it, and the volume is mounted without', async () => {
  const host = freshHost();
  host.knowsNoswap = false;
  const { target, plugin, call } = world('memory', 0, host);
  const sameAgent = plugin();
  for (let refusals = 0; refusals < 2; refusals += 1) {
    accept(await sameAgent.publish(call));
    assert.doesNotMatch(host.optionsAt(target).join(), /noswap/);
    await sameAgent.unpublish(call);
  }
  host.knowsNoswap = true;
  accept(await sameAgent.publish(call));
  assert.ok(!host.optionsAt(target).includes('noswap'), 'the answer is remembered');
});

test('SE-34: one mount that fails for a moment does not make every later one swappable', async () => {
  const host = freshHost();
  const { target, plugin, call } = world('memory', 0, host);
  const sameAgent = plugin();
  for (let moments = 0; moments < 3; moments += 1) {
    host.failNext('mount', 'mount-failed');
    accept(await sameAgent.publish(call));
    await sameAgent.unpublish(call);
    accept(await sameAgent.publish(call));
    assert.match(host.optionsAt(target).join(), /noswap/);
    await sameAgent.unpublish(call);
  }
});

test('SE-34: many that are refused in one moment are one refusal', async () => {
  const host = freshHost();
  const plugin = createEmptyDirPlugin(host, layout, mounterOf(host));
  const calls = ['a', 'b', 'c'].map((name) =>
    callOf({ ...emptyDir('memory', 0), name } as EmptyDirVolumeSpec),
  );
  host.knowsNoswap = false;
  for (const published of await Promise.all(calls.map((call) => plugin.publish(call)))) accept(published);
  for (const call of calls) accept(await plugin.unpublish(call));
  host.knowsNoswap = true;
  const [call] = calls;
  assert.ok(call !== undefined);
  accept(await plugin.publish(call));
  assert.match(host.optionsAt(layout.volumeDirectory(call.spec, call.publication)).join(), /noswap/);
});

test('a mount that fails for another reason teaches nothing about noswap', async () => {
  const { host, target, plugin, call } = world('memory');
  const sameAgent = plugin();
  host.knowsNoswap = false;
  const mount = host.mount;
  host.mount = async () => ({
    ok: false,
    failure: { code: 'mount-failed', message: 'no memory', effect: 'none' },
  });
  const failed = await sameAgent.publish(call);
  assert.equal(!failed.ok && failed.failure.code, 'mount-failed');
  host.mount = mount;
  host.knowsNoswap = true;
  accept(await sameAgent.publish(call));
  assert.match(host.optionsAt(target).join(), /noswap/);
});

test('after a reboot the marker of a memory emptyDir is not believed: it is mounted anew', async () => {
  const { host, target, plugin, call } = world('memory');
  await plugin().publish(call);
  host.reboot();
  assert.equal(host.read(READY), '');
  assert.equal(host.depthAt(target), 0);
  accept(await plugin().publish(call));
  assert.equal(host.depthAt(target), 1);
});

test('publishing again keeps what is in a memory emptyDir', async () => {
  const { host, target, plugin, call } = world('memory');
  await plugin().publish(call);
  host.plant(`${target}/data`, { kind: 'file', content: 'precious' });
  accept(await plugin().publish(call));
  assert.equal(host.read(`${target}/data`), 'precious');
});

test('something else mounted where a memory emptyDir must be is passed on as it was found', async () => {
  const { host, target, plugin, call } = world('memory');
  host.plant(target, { kind: 'directory' });
  host.plantMount(target, 'ext4', 'precious');
  const result = await plugin().publish(call);
  assert.equal(!result.ok && result.failure.code, 'mount-foreign');
  assert.equal(!result.ok && result.failure.effect, 'none');
  assert.equal(host.depthAt(target), 1);
});

test('what was written under a memory emptyDir while it was not mounted is not deleted', async () => {
  const { host, target, plugin, call } = world('memory');
  await plugin().publish(call);
  host.reboot();
  host.plant(`${target}/late`, { kind: 'file', content: 'whose?' });
  const result = await plugin().unpublish(call);
  assert.equal(!result.ok && result.failure.code, 'directory-not-empty');
  assert.equal(host.read(below(target, 'late')), 'whose?');
});
