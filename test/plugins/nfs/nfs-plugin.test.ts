/** What a pod is given of an NFS server, what is refused, and that the server is asked by nobody but mount(8). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fail, ok } from '../../../mount/failure.ts';
import type { MountRequest } from '../../../mount/host.ts';
import { createNfsPlugin } from '../../../plugins/nfs/nfs-plugin.ts';
import { nfsVolume, type NfsVolumeSpec } from '../../../plugins/nfs/nfs-traits.ts';
import { NO_SECRETS, type StatisticsCall } from '../../../plugins/plugin.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { value } from '../../value.ts';
import { accept } from '../accept.ts';
import { callOf, freshHost, layout, mounterOf, POD, worldOf } from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';

const SOURCE = 'store.example:/data';

function nfs(mountOptions: readonly string[] = []): NfsVolumeSpec {
  return { ...nfsVolume(POD, 'data'), source: SOURCE, mountOptions };
}

function world({ readOnly = false, mountOptions = [] as readonly string[] } = {}) {
  const call = callOf(nfs(mountOptions));
  return worldOf(
    { ...call, publication: { ...call.publication, readOnly } },
    (on) => createNfsPlugin(on, layout, mounterOf(on)),
    (on, target) => [on.names(target), on.optionsAt(target)],
    freshHost(),
  );
}

pluginContract('nfs', world);
pluginContract('nfs, read-only', () => world({ readOnly: true, mountOptions: ['nfsvers=4.2', 'hard'] }));

/** Notes what is mounted, and all that could wait for a server. */
function watched(host: MemoryHost) {
  const requests: MountRequest[] = [];
  const unmounted: unknown[] = [];
  const asked: string[] = [];
  const { mount, unmount, lookUpMount, probeFileSystem } = host;
  host.mount = (request) => {
    requests.push(request);
    return mount(request);
  };
  host.unmount = (target, walked) => {
    unmounted.push(walked);
    return unmount(target, walked);
  };
  host.lookUpMount = (path) => {
    asked.push(path);
    return lookUpMount(path);
  };
  host.probeFileSystem = (path) => {
    asked.push(path);
    return probeFileSystem(path);
  };
  return { requests, unmounted, asked };
}

test('it lies where the kubelet has it, mounted with its options; the server is asked by mount(8) alone', async () => {
  const { host, plugin, call, target } = world({
    readOnly: true,
    mountOptions: ['nfsvers=4.2', 'rw', 'soft'],
  });
  const { requests, unmounted, asked } = watched(host);
  accept(await plugin().publish(call));
  accept(await plugin().publish(call));
  assert.equal(target, `${layout.podDirectory(POD)}/volumes/kubernetes.io~nfs/data`);
  const options = ['nfsvers=4.2', 'soft', 'ro'];
  assert.deepEqual(requests, [{ fsType: 'nfs', source: SOURCE, target, options, isWalked: true }]);
  accept(await plugin().unpublish(call));
  assert.deepEqual(unmounted, [{ isWalked: true, isRemote: true }]);
  assert.deepEqual(asked, []);
  assert.deepEqual(host.names(layout.pods), []);
});

test('a mount that would go on in the background is made in the foreground: its end is waited for', async () => {
  for (const mountOptions of [['bg', 'soft'], ['hard,bg,nfsvers=4.2'], ['fg', 'bg']]) {
    const { host, plugin, call } = world({ mountOptions });
    const { requests } = watched(host);
    accept(await plugin().publish(call));
    assert.deepEqual(
      requests.flatMap(({ options }) => options),
      [...mountOptions, 'fg'],
    );
  }
});

test('what is mounted there and is not of the server and path is named, and stays', async () => {
  for (const source of ['store.example:/other', 'other.example:/data', '/dev/sda1']) {
    const { host, plugin, call, target } = world();
    accept(await host.makeDirectory(target, 0o750));
    accept(await host.mount({ fsType: 'tmpfs', source, target, options: [] }));
    const before = host.effects();
    const result = await plugin().publish(call);
    assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['mount-foreign', 'none']);
    assert.ok(!result.ok && result.failure.blocker?.includes(source));
    assert.equal(host.effects(), before);
  }
});

test('what mount.nfs(8) has made counts, by whatever name, and what it has not made does not', async () => {
  const named = world();
  const { mount } = named.host;
  named.host.mount = (request) => mount({ ...request, source: 'referred.example:/there' });
  accept(await named.plugin().publish(named.call));
  const lying = world();
  lying.host.mount = async () => ok(undefined);
  const lie = await lying.plugin().publish(lying.call);
  assert.deepEqual(!lie.ok && [lie.failure.code, lie.failure.effect], ['mount-failed', 'unknown']);
  const killed = world();
  const inner = killed.host.mount;
  killed.host.mount = async (request) => {
    await inner(request);
    return fail({ code: 'deadline-passed', message: 'killed', effect: 'unknown' });
  };
  accept(await killed.plugin().publish(killed.call));
  assert.equal(killed.depth(), 1);
});

test('what was mounted twice, by a killed agent and by the next one, is the volume, and goes whole', async () => {
  const { host, plugin, call, target, depth } = world();
  accept(await host.makeDirectory(target, 0o750));
  for (const source of [SOURCE, SOURCE])
    accept(await host.mount({ fsType: 'nfs', source, target, options: [] }));
  const [, top] = value(await host.readMountTable(layout.root)).at(target);
  const { mount } = value(await plugin().publish(call));
  assert.equal(mount?.mountId, top?.mountId);
  accept(await plugin().unpublish(call));
  assert.equal(depth(), 0);
  accept(await host.makeDirectory(target, 0o750));
  for (const source of ['other.example:/data', SOURCE])
    accept(await host.mount({ fsType: 'nfs', source, target, options: [] }));
  const result = await plugin().publish(call);
  assert.equal(!result.ok && result.failure.code, 'mount-stacked', 'what lies below is not ours');
});

test('its numbers are of the mount that was proven, or there are none', async () => {
  const { host, plugin, call, target } = world();
  const { mount } = value(await plugin().publish(call));
  const room = { used: 1n, total: 3n, available: 2n };
  const asked: unknown[] = [];
  host.measureUsage = async (request) => {
    asked.push(request);
    return ok({ bytes: room, inodes: room, isWhole: true });
  };
  const { spec, facts, publication } = call;
  const question: StatisticsCall = {
    ...{ spec, facts, publication, mount, secrets: NO_SECRETS },
    stillThere: () => true,
  };
  const numbers = { used: '1', total: '3', available: '2' };
  assert.deepEqual(
    await plugin().statistics?.(question),
    ok({ bytes: numbers, inodes: numbers, health: undefined }),
  );
  const another = { mountId: (mount?.mountId ?? 0) + 1, device: '0:9' };
  for (const one of [undefined, another])
    assert.deepEqual(await plugin().statistics?.({ ...question, mount: one }), ok('busy'));
  assert.deepEqual(asked, [{ path: target, scope: 'file-system' }]);
});

test('each server has its own lane', () => {
  const { plugin } = world();
  const lanes = ['a:/x', 'a:/y', 'b:/x', '[::1]:/x', ''].map((source) => plugin().lane({ ...nfs(), source }));
  assert.deepEqual(
    lanes,
    ['a', 'a', 'b', '[::1]', ''].map((server) => `kubernetes.io/nfs ${server}`),
  );
});
