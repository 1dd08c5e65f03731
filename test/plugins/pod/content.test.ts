import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { type AbsolutePath, parentOf } from '../../../mount/host.ts';
import { createContentPlugin } from '../../../plugins/pod/content.ts';
import type { ContentVolumeSpec } from '../../../plugins/volume.ts';
import type { PublicationCall } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { accept } from '../accept.ts';
import {
  callOf,
  content,
  type Files,
  filesOf,
  freshHost,
  inodeOf,
  layout,
  type LocalWorld,
  mounterOf,
  POD_DIRECTORY,
  worldOf,
} from '../local-world.ts';
import { CRASH, type MemoryHost } from '../memory-host.ts';

const OLD: Files = { 'app.conf': 'old', 'tls/key': { text: 'old', mode: 0o400 }, gone: 'old' };
const NEW: Files = { 'app.conf': 'new', 'tls/key': { text: 'new', mode: 0o400 }, more: 'new' };
const READY = `${POD_DIRECTORY}/plugins/kubernetes.io~empty-dir/wrapped_settings/ready`;

/** The visible generation, by its link; a stable text. */
function visible(host: MemoryHost, target: string): string {
  const text = (path: string) => host.read(`${target}/..data/${path}`);
  return JSON.stringify({
    names: host.names(`${target}/..data`),
    conf: text('app.conf'),
    key: text('tls/key'),
    gone: text('gone'),
    more: text('more'),
  });
}

function world(
  kind: ContentVolumeSpec['kind'] = 'secret',
  files: Files = OLD,
  host = freshHost(),
): LocalWorld {
  return worldOf(
    callOf(content(kind), files),
    (on) => createContentPlugin(kind, on, layout, mounterOf(on)),
    visible,
    host,
  );
}

function withFiles(call: PublicationCall, files: Files): PublicationCall {
  return { ...call, files: filesOf(files) };
}

async function published(): Promise<LocalWorld> {
  const one = world();
  const result = await one.plugin().publish(one.call);
  accept(result);
  return one;
}

pluginContract('secret', () => world('secret'));
pluginContract('configMap', () => world('config-map'));
pluginContract('downwardAPI', () => world('downward-api'));
pluginContract('projected', () => world('projected'));
pluginContract('secret without files', () => world('secret', {}));

const SEEN_OLD = await published().then((one) => one.seen());
const SEEN_NEW = await published().then(async (one) => {
  await one.plugin().publish(withFiles(one.call, NEW));
  return one.seen();
});

test('a secret is a tmpfs that only root may write to, where the kubelet has it, with the wrapped marker', async () => {
  const { host, target } = await published();
  assert.equal(target, `${POD_DIRECTORY}/volumes/kubernetes.io~secret/settings`);
  for (const option of ['mode=0755', 'noswap']) assert.ok(host.optionsAt(target).includes(option), option);
  assert.match(host.optionsAt(target).join(), /(^|,)size=[1-9][0-9]+(,|$)/);
  assert.equal(host.read(READY), '');
  assert.deepEqual(
    host.names(target).filter((name) => !name.startsWith('..')),
    ['app.conf', 'gone', 'tls'],
  );
  assert.equal(host.read(`${target}/tls/key`), 'old');
});

test('nothing of a secret is ever outside its tmpfs', async () => {
  const { host, target } = await published();
  const outside = () => host.describe('/var' as AbsolutePath).filter((line) => !line.startsWith(target));
  assert.doesNotMatch(outside().join('\n'), /old/);
  host.reboot();
  assert.ok(
    !host
      .describe('/var' as AbsolutePath)
      .join('\n')
      .includes('old'),
  );
});

test('a refresh replaces the content as one generation on the same mount', async () => {
  const { host, target, plugin, call, seen } = await published();
  const before = { inode: await inodeOf(host, target), mount: await host.lookUpMount(target) };
  host.onEffect(() => assert.ok([SEEN_OLD, SEEN_NEW].includes(seen()), String(seen())));
  accept(await plugin().publish(withFiles(call, NEW)));
  assert.equal(seen(), SEEN_NEW);
  assert.deepEqual({ inode: await inodeOf(host, target), mount: await host.lookUpMount(target) }, before);
  assert.deepEqual(
    host.names(target).filter((name) => !name.startsWith('..')),
    ['app.conf', 'more', 'tls'],
  );
});

test('what stands is up to date when a publish would change nothing, and looking at it changes nothing', async () => {
  const gid = 2_000;
  const forGroup = (call: PublicationCall): PublicationCall => ({
    ...call,
    publication: { ...call.publication, fsGroup: { gid, changePolicy: 'Always' } },
  });
  const isUpToDate = (one: LocalWorld, call = one.call): Promise<boolean> => {
    return one.plugin().isUpToDate?.(call) ?? assert.fail();
  };
  const one = await published();
  const { host, target, call } = one;
  let effects = 0;
  host.onEffect(() => {
    effects += 1;
  });
  assert.equal(await isUpToDate(one), true);
  for (const files of [NEW, { ...OLD, gone: 'olD' }, { ...OLD, gone: { text: 'old', mode: 0o600 } }, {}]) {
    assert.equal(await isUpToDate(one, withFiles(call, files)), false, JSON.stringify(files));
  }
  assert.equal(await isUpToDate(one, forGroup(call)), false);
  assert.equal(await isUpToDate(one, { ...call, files: undefined }), false);
  assert.equal(effects, 0);
  const spoilt: readonly ((path: (name: string) => AbsolutePath) => Promise<unknown>)[] = [
    (path) => host.removeFile(path('app.conf')),
    (path) => host.makeLink(path('..data_tmp'), 'x'),
    (path) => host.makeDirectory(path('..2026_01_31_15_04_05.1'), 0o755),
    async (path) => {
      await host.removeFile(path('gone'));
      return host.makeLink(path('gone'), '..data/app.conf');
    },
    (path) => host.removeFile(path('..data')),
    async (path) => {
      const current = await host.readLink(path('..data'));
      const name = current.ok ? current.value : assert.fail();
      return host.writeFile(path(`${name}/gone`), Buffer.from('xxx'), { mode: 0o644, durable: false });
    },
  ];
  for (const spoil of spoilt) {
    await spoil((name) => `${target}/${name}` as AbsolutePath);
    assert.equal(await isUpToDate(one), false, spoil.toString());
    accept(await one.plugin().publish(call));
    assert.equal(await isUpToDate(one), true);
  }
});

test('a refresh that fails at any call keeps one whole generation mounted, and "none" means the old one', async () => {
  const calls = await published().then(async ({ host, plugin, call }) => {
    const before = host.calls();
    await plugin().publish(withFiles(call, NEW));
    return host.calls() - before;
  });
  for (let n = 1; n <= calls; n += 1) {
    for (const code of ['disk-full', 'input-output', 'mount-failed'] as const) {
      for (const moment of ['before', 'after'] as const) {
        const { host, target, plugin, call, seen } = await published();
        const mount = await host.lookUpMount(target);
        host.failAt(n, code, moment);
        const result = await plugin().publish(withFiles(call, NEW));
        assert.ok([SEEN_OLD, SEEN_NEW].includes(seen()), `${code} ${moment} call ${n}`);
        if (!result.ok && result.failure.effect === 'none')
          assert.equal(seen(), SEEN_OLD, `${code} ${moment} call ${n}`);
        assert.deepEqual(await host.lookUpMount(target), mount);
        accept(await plugin().publish(withFiles(call, NEW)));
        assert.equal(seen(), SEEN_NEW);
      }
    }
  }
});

test('a full disk during a refresh leaves the old content byte for byte and has no effect', async () => {
  const { host, target, plugin, call } = await published();
  const before = host.describe(target);
  host.failNext('writeFile', 'disk-full');
  const result = await plugin().publish(withFiles(call, NEW));
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['disk-full', 'none']);
  assert.deepEqual(host.describe(target), before);
});

test('a crash at any effect of a refresh leaves one whole generation, and it is repaired', async () => {
  const reference = await published();
  const before = reference.effects();
  accept(await reference.plugin().publish(withFiles(reference.call, NEW)));
  const effects = reference.effects() - before;
  assert.ok(effects > 10, `${effects} effects`);
  for (let n = 1; n <= effects; n += 1) {
    const { host, plugin, call, seen, describe } = await published();
    host.crashAt(n);
    await assert.rejects(plugin().publish(withFiles(call, NEW)), (thrown) => thrown === CRASH);
    host.crashAt(undefined);
    assert.ok([SEEN_OLD, SEEN_NEW].includes(seen()), `crash at effect ${n}`);
    accept(await plugin().publish(withFiles(call, NEW)));
    assert.deepEqual(describe(), reference.describe(), `crash at effect ${n}`);
  }
});

test('after a reboot the marker is not believed: the tmpfs and its content are made anew', async () => {
  const { host, target, plugin, call, seen } = await published();
  host.reboot();
  assert.equal(host.read(READY), '');
  accept(await plugin().publish(call));
  assert.equal(host.depthAt(target), 1);
  assert.equal(seen(), SEEN_OLD);
});

test('a publish without files is refused and changes nothing', async () => {
  const { describe, plugin, call } = world();
  const before = describe();
  const result = await plugin().publish({ ...call, files: undefined });
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['reference-missing', 'none']);
  assert.deepEqual(describe(), before);
});

test('a bad path is refused before the first effect, for a new volume and for a mounted one', async () => {
  for (const one of [world(), await published()]) {
    const before = one.describe();
    const result = await one.plugin().publish(withFiles(one.call, { ...NEW, '../../etc/cron.d/x': 'evil' }));
    assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['spec-invalid', 'none']);
    assert.deepEqual(one.describe(), before);
  }
});

test('something else mounted at the place is never written to', async () => {
  const { host, target, plugin, call, describe } = world();
  host.plant(target, { kind: 'directory' });
  host.plantMount(target, 'ext4', 'precious');
  const before = describe();
  const result = await plugin().publish(call);
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['mount-foreign', 'none']);
  assert.deepEqual(describe(), before);
});

test("what was written into the directory after the unmount is somebody's data and stays", async () => {
  const { host, target, plugin, call } = await published();
  host.reboot();
  host.plant(`${target}/late`, { kind: 'file', content: 'whose?' });
  const result = await plugin().unpublish(call);
  assert.equal(!result.ok && result.failure.code, 'directory-not-empty');
  assert.equal(host.read(`${target}/late`), 'whose?');
});

test('who takes the tmpfs away at any moment of a publish keeps no volume from its end', async () => {
  const nested = (call: PublicationCall): PublicationCall => ({
    ...call,
    files: new Sensitive(
      new Map([
        ...(call.files?.reveal() ?? []),
        ['run/cache', { content: new Uint8Array(), mode: 0o755, isMountPoint: true as const }],
      ]),
    ),
  });
  const whole = world();
  accept(await whole.plugin().publish(nested(whole.call)));
  for (let n = 1; n <= whole.host.effects(); n += 1) {
    const { host, target, plugin, call } = world();
    host.onEffect(() => {
      if (host.effects() === n) host.reboot();
    });
    await plugin().publish(nested(call));
    accept(await plugin().unpublish(call));
    assert.deepEqual(host.names(parentOf(target)), [], `taken away at effect ${n}`);
  }
});

test('a busy volume stays whole', async () => {
  const { host, target, plugin, call, seen } = await published();
  host.plantMount(`${target}/nested`, 'ext4');
  const result = await plugin().unpublish(call);
  assert.equal(!result.ok && result.failure.code, 'mount-busy');
  assert.equal(seen(), SEEN_OLD);
});

test('no content is in any failure or in anything that prints', async () => {
  const canary: Files = { key: 'CANARY-7f3a', 'sub/key': 'CANARY-7f3a' };
  const calls = 40;
  for (let n = 1; n <= calls; n += 1) {
    const { host, plugin, call } = world('secret', canary);
    host.failAt(n, 'input-output', 'after');
    const result = await plugin().publish(call);
    assert.doesNotMatch(`${JSON.stringify(result)} ${inspect(result, { depth: 9 })}`, /CANARY/);
    assert.doesNotMatch(`${JSON.stringify(call)} ${inspect(call, { depth: 9, showHidden: true })}`, /CANARY/);
  }
});

test('a plugin of one kind refuses the volumes of another', async () => {
  const { host, call } = world('config-map');
  const plugin = createContentPlugin('secret', host, layout, mounterOf(host));
  for (const verb of ['publish', 'unpublish'] as const) {
    const result = await plugin[verb](call);
    assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['spec-invalid', 'none']);
  }
  assert.equal(host.effects(), 0);
});
