import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import type { PublicationCall, VolumePlugin } from '../../../plugins/plugin.ts';
import { parsePodUid, publicationKey, type PodUid } from '../../../plugins/volume.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { value } from '../../value.ts';
import { accept } from '../accept.ts';
import { callOf, layout, POD, worldOf } from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';
import { DISK, diskHost, localPlugin, localVolume } from './local-world.ts';

const OTHER_POD = parsePodUid('0b4f8c1e-2222-4333-8444-55556666bbbb') as PodUid;

function world(call: PublicationCall = callOf(localVolume())) {
  return worldOf(call, localPlugin, (on, target) => [on.names(target), on.optionsAt(target)], diskHost());
}

function withGroup(call: PublicationCall, gid: number, changePolicy: 'Always' | 'OnRootMismatch' = 'Always') {
  return { ...call, publication: { ...call.publication, fsGroup: { gid, changePolicy } } };
}

function ofPod(call: PublicationCall, pod: PodUid): PublicationCall {
  const { specName } = call.publication;
  const reference = { ...call.publication.pod, uid: pod };
  const publication = { ...call.publication, key: publicationKey(pod, specName), pod: reference };
  return { ...call, publication };
}

async function refusal(host: MemoryHost, path: AbsolutePath, mountOptions: readonly string[] = []) {
  const before = host.effects();
  const result = await localPlugin(host).publish(callOf(localVolume(path, mountOptions)));
  assert.equal(host.effects(), before, 'nothing was done');
  assert.ok(!result.ok);
  return [result.failure.code, result.failure.effect, result.failure.blocker];
}

pluginContract('local', world);
pluginContract('local with a group', () => world(withGroup(callOf(localVolume()), 2_000)));
pluginContract('local, read-only', () => {
  const call = callOf(localVolume(DISK, ['noatime']));
  return world({ ...call, publication: { ...call.publication, readOnly: true } });
});

test('a pod sees the directory where the kubelet would have it, and what it writes is in there', async () => {
  const { host, plugin, call, target } = world();
  accept(await plugin().publish(call));
  assert.equal(target, `${layout.podDirectory(POD)}/volumes/kubernetes.io~local-volume/local-1`);
  assert.equal(host.read(`${target}/note`), 'precious');
  accept(await host.makeDirectory(below(target, 'made'), 0o700));
  assert.deepEqual(host.names(DISK), ['made', 'note']);
  accept(await plugin().unpublish(call));
  assert.deepEqual(host.names(DISK), ['made', 'note'], 'what is in it stays');
  assert.deepEqual(host.names(layout.pods), []);
});

test('what is read-only, or has mount options of one mount, is bound with them', async () => {
  const call = callOf(localVolume(DISK, ['noatime', 'nosuid', 'rw']));
  const { host, plugin, target } = world();
  accept(await plugin().publish({ ...call, publication: { ...call.publication, readOnly: true } }));
  const options =
    value(await host.readMountTable(target))
      .at(target)
      .at(-1)?.options ?? [];
  assert.deepEqual(
    ['ro', 'noatime', 'nosuid'].filter((one) => !options.includes(one)),
    [],
  );
});

test('a mount option of file systems is refused, because a bind would go without it', async () => {
  const host = diskHost();
  assert.deepEqual(await refusal(host, DISK, ['noatime', 'data=journal']), [
    'spec-invalid',
    'none',
    undefined,
  ]);
});

test('a path that is missing, no directory or denied is refused, and nothing is made', async () => {
  const host = diskHost();
  host.plant('/mnt/file', { kind: 'file' });
  host.plant('/mnt/link', { kind: 'symlink', text: '/var/lib/mooring/pods' });
  host.plant('/mnt/above', { kind: 'symlink', text: '../var' });
  const at = (path: string) => refusal(host, path as AbsolutePath);
  assert.deepEqual(await at('/mnt/disks/two'), ['path-missing', 'none', '/mnt/disks/two']);
  assert.deepEqual(await at('/mnt/file'), ['path-wrong-kind', 'none', '/mnt/file']);
  assert.deepEqual(await at('/mnt/link'), ['host-path-check', 'none', '/mnt/link']);
  assert.deepEqual(await at('/mnt/above'), ['host-path-check', 'none', '/mnt/above']);
});

test('a link of the administrator is followed, as by the kernel', async () => {
  const { host, plugin } = world();
  host.plant('/mnt/by-id', { kind: 'symlink', text: 'disks/one' });
  const call = callOf(localVolume('/mnt/by-id' as AbsolutePath));
  accept(await plugin().publish(call));
  assert.equal(host.read(`${layout.target(call.spec, call.publication)}/note`), 'precious');
});

test('while a pod has it, no other pod sees another directory under its name', async () => {
  const { host, plugin } = world();
  for (const name of ['a', 'b']) {
    host.plant(`/mnt/${name}/data`, { kind: 'directory', mode: 0o755 });
    host.plantMount(`/mnt/${name}`, 'ext4');
    host.plant(`/mnt/${name}/data`, { kind: 'directory', mode: 0o755 });
    host.plant(`/mnt/${name}/next`, { kind: 'directory', mode: 0o755 });
  }
  const lead = async (text: string) => {
    accept(await host.removeFile('/mnt/current' as AbsolutePath));
    host.plant('/mnt/current', { kind: 'symlink', text });
  };
  const first = callOf(localVolume('/mnt/current' as AbsolutePath));
  const second = { ...ofPod(first, OTHER_POD), companions: () => [first.publication] };
  await lead('a/data');
  accept(await plugin().publish(first));
  for (const other of ['b/data', 'a/next']) {
    await lead(other);
    const before = host.effects();
    const refused = await plugin().publish(second);
    assert.equal(host.effects(), before, 'nothing was done');
    assert.deepEqual(!refused.ok && [refused.failure.code, refused.failure.effect, refused.failure.blocker], [
      'volume-in-use',
      'none',
      layout.target(first.spec, first.publication),
    ]);
  }
  await lead('a/data');
  accept(await plugin().publish(second));
  await lead('b/data');
  accept(await plugin().unpublish(first));
  accept(await plugin().unpublish(second));
  accept(await plugin().publish({ ...second, companions: () => [] }));
});

/** As the reconciler calls, with what was learnt when it was staged; the code of what is refused. */
async function stagedAndPublished(plugin: VolumePlugin, call: PublicationCall, wasMountPoint: boolean) {
  const facts = { ...call.facts, ...(wasMountPoint ? { wasMountPoint } : {}) };
  const staged = await plugin.stage({ ...call, facts });
  if (!staged.ok) return staged.failure.code;
  const published = await plugin.publish({ ...call, facts });
  if (!published.ok) return published.failure.code;
  accept(await plugin.unpublish(call));
  return staged.value.isMountPoint === true ? 'mount point' : 'directory';
}

for (const fsType of ['ext4', 'btrfs', 'tmpfs', 'autofs'])
  test(`where ${fsType} was mounted, a bare directory is refused, until something is mounted again`, async () => {
    const { host, plugin, call } = world();
    const now = (wasMountPoint: boolean) => stagedAndPublished(plugin(), call, wasMountPoint);
    assert.equal(await now(false), 'directory', 'what never was a mount point is none the worse');
    host.plantMount(DISK, fsType);
    assert.equal(await now(false), 'mount point', 'a disk may come in the place of a directory');
    assert.equal(await now(true), 'mount point');
    host.takeAway(DISK);
    const before = host.effects();
    assert.equal(await now(true), 'disk-not-mounted');
    const later = await plugin().publish({ ...call, facts: { ...call.facts, wasMountPoint: true } });
    assert.deepEqual(!later.ok && [later.failure.code, later.failure.effect, later.failure.blocker], [
      'disk-not-mounted',
      'none',
      DISK,
    ]);
    assert.equal(host.effects(), before, 'nothing was done');
    host.plantMount(DISK, 'xfs');
    assert.equal(await now(true), 'mount point', 'whichever it is');
  });

test('what somebody mounted at the place is neither taken for the volume nor covered', async () => {
  const { host, plugin, call, target } = world();
  host.plant(target, { kind: 'directory' });
  host.plantMount(target, 'ext4', 'theirs');
  const result = await plugin().publish(call);
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['mount-foreign', 'none']);
  assert.deepEqual(host.names(target), ['theirs']);
});

async function gidOf(host: MemoryHost, path: AbsolutePath): Promise<number> {
  return value(await host.inspect(path)).gid;
}

test('while a pod has the files for its group, who comes later does not take them', async () => {
  const { host, plugin, call } = world();
  const [first, second] = [withGroup(call, 2_000), withGroup(ofPod(call, OTHER_POD), 3_000)];
  accept(await plugin().publish(first));
  assert.equal(await gidOf(host, below(DISK, 'note')), 2_000);
  accept(await plugin().publish({ ...second, companions: () => [first.publication] }));
  assert.equal(await gidOf(host, below(DISK, 'note')), 2_000);
  accept(await plugin().unpublish(first));
  accept(await plugin().publish(second));
  assert.equal(await gidOf(host, below(DISK, 'note')), 3_000, 'nobody else has them now');
});

test('who has no group, or only reads, does not keep the files from another pod’s group', async () => {
  const { host, plugin, call } = world();
  const reader = withGroup(ofPod(call, OTHER_POD), 3_000).publication;
  const others = [{ ...reader, readOnly: true }, ofPod(call, OTHER_POD).publication];
  accept(await plugin().publish({ ...withGroup(call, 2_000), companions: () => others }));
  assert.equal(await gidOf(host, below(DISK, 'note')), 2_000);
});

test('of two pods that come at once the second waits for the end of the walk for the first', async () => {
  const { host, plugin, call } = world();
  const local = plugin();
  const [a, b] = [withGroup(call, 2_000), withGroup(ofPod(call, OTHER_POD), 3_000)];
  const answered: number[] = [];
  const publish = async (one: PublicationCall) => {
    accept(await local.publish(one));
    answered.push(await gidOf(host, below(DISK, 'note')));
  };
  await Promise.all([publish(a), publish(b)]);
  assert.equal(new Set(answered).size, 1);
});

test('what is mounted read-only for everybody keeps its group', async () => {
  const { host, plugin } = world();
  accept(await plugin().publish(withGroup(callOf(localVolume(DISK, ['ro'])), 2_000)));
  assert.equal(await gidOf(host, below(DISK, 'note')), 0);
});

test('what is only read keeps its group', async () => {
  const { host, plugin, call } = world();
  const grouped = withGroup(call, 2_000);
  accept(await plugin().publish({ ...grouped, publication: { ...grouped.publication, readOnly: true } }));
  assert.equal(await gidOf(host, below(DISK, 'note')), 0);
});
