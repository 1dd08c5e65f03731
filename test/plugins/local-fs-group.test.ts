/** The pod's group on the kinds of volumes that live and die with it (KV-C14: always, whatever the policy). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { createContentPlugin } from '../../plugins/pod/content.ts';
import { createEmptyDirPlugin } from '../../plugins/pod/empty-dir.ts';
import type { PublicationCall } from '../../plugins/plugin.ts';
import { pluginContract } from '../contract/plugin.ts';
import { accept } from './accept.ts';
import {
  callOf,
  content,
  emptyDir,
  type Files,
  filesOf,
  freshHost,
  inodeOf,
  layout,
  mounterOf,
  worldOf,
} from './local-world.ts';
import { CRASH, type MemoryHost } from './memory-host.ts';

const GID = 2_000;
const OLD: Files = { 'app.conf': 'old', 'tls/key': { text: 'old', mode: 0o400 } };
const NEW: Files = { 'app.conf': 'new', 'tls/key': { text: 'new', mode: 0o400 } };

function grouped(call: PublicationCall): PublicationCall {
  const fsGroup = { gid: GID, changePolicy: 'OnRootMismatch' } as const;
  return { ...call, publication: { ...call.publication, fsGroup } };
}

function secret(call = grouped(callOf(content('secret'), OLD)), host = freshHost()) {
  return worldOf(
    call,
    (on) => createContentPlugin('secret', on, layout, mounterOf(on)),
    (on, target) => [on.read(`${target}/app.conf`), on.read(`${target}/tls/key`)],
    host,
  );
}

function directory(medium: 'disk' | 'memory', host = freshHost()) {
  return worldOf(
    grouped(callOf(emptyDir(medium))),
    (on) => createEmptyDirPlugin(on, layout, mounterOf(on)),
    (on, target) => on.describe(target),
    host,
  );
}

pluginContract('secret with a group', secret);
pluginContract('emptyDir on disk with a group', () => directory('disk'));
pluginContract('emptyDir in memory with a group', () => directory('memory'));

/** Group and mode of each entry, below `path` without following links. */
async function ownership(host: MemoryHost, path: AbsolutePath, names: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  for (const name of names) {
    const facts = await host.inspect(name === '' ? path : below(path, ...name.split('/')));
    assert.ok(facts.ok);
    lines.push(`${name || '/'} ${facts.value.gid} ${facts.value.mode.toString(8)}`);
  }
  return lines;
}

async function generation(host: MemoryHost, target: AbsolutePath): Promise<AbsolutePath | undefined> {
  const text = await host.readLink(below(target, '..data'));
  return text.ok ? below(target, text.value) : undefined;
}

const READABLE = ['/ 2000 2755', 'app.conf 2000 644', 'tls 2000 2755', 'tls/key 2000 440'];

test('KV-C14: the files of a secret are for the pod’s group to read, and the group cannot write them', async () => {
  const { host, target, plugin, call } = secret();
  accept(await plugin().publish(call));
  assert.deepEqual(await ownership(host, target, ['']), ['/ 2000 2755']);
  const shown = (await generation(host, target)) ?? assert.fail();
  assert.deepEqual(await ownership(host, shown, ['', 'app.conf', 'tls', 'tls/key']), READABLE);
});

test('a secret without a group keeps root’s group and its own modes', async () => {
  const { host, target, plugin, call } = secret(callOf(content('secret'), OLD));
  accept(await plugin().publish(call));
  const shown = (await generation(host, target)) ?? assert.fail();
  assert.deepEqual(await ownership(host, shown, ['tls', 'tls/key']), ['tls 0 755', 'tls/key 0 400']);
});

test('no file of a secret is ever seen that is not the group’s, wherever a crash cuts', async () => {
  for (let effect = 1, crashed = true; crashed; effect += 1) {
    const { host, target, plugin, call } = secret();
    accept(await plugin().publish(call));
    const next = { ...call, files: filesOf(NEW) };
    host.crashAt(effect);
    crashed = await plugin()
      .publish(next)
      .then(
        () => false,
        (error: unknown) => error === CRASH || assert.fail(String(error)),
      );
    host.crashAt(undefined);
    const shown = (await generation(host, target)) ?? assert.fail();
    assert.deepEqual(await ownership(host, shown, ['', 'app.conf', 'tls', 'tls/key']), READABLE);
    accept(await plugin().publish(next));
    assert.equal(host.read(`${target}/tls/key`), 'new');
  }
});

test('publishing the same secret to the same group again writes nothing', async () => {
  const { host, plugin, call } = secret();
  accept(await plugin().publish(call));
  const before = host.effects();
  accept(await plugin().publish(call));
  assert.equal(host.effects(), before);
});

test('a secret that was set up without the group (Mooring 0.1) gets it with its next publish', async () => {
  const without = callOf(content('secret'), OLD);
  const { host, target, plugin } = secret(without);
  accept(await plugin().publish(without));
  accept(await plugin().publish(grouped(without)));
  assert.deepEqual(await ownership(host, target, ['']), ['/ 2000 2755']);
  const shown = (await generation(host, target)) ?? assert.fail();
  assert.deepEqual(await ownership(host, shown, ['', 'app.conf', 'tls', 'tls/key']), READABLE);
});

test('files whose modes are right and whose group is not are written anew', async () => {
  const without = callOf(content('secret'), { 'app.conf': 'old' });
  const { host, target, plugin } = secret(without);
  accept(await plugin().publish(without));
  accept(await plugin().publish(grouped(without)));
  const shown = (await generation(host, target)) ?? assert.fail();
  assert.deepEqual(await ownership(host, shown, ['app.conf']), ['app.conf 2000 644']);
});

test('a secret whose group cannot be given is not shown', async () => {
  const { host, target, plugin, call } = secret();
  host.failNext('changeOwnership', 'input-output');
  const published = await plugin().publish(call);
  assert.ok(!published.ok && published.failure.code === 'input-output');
  assert.equal(await generation(host, target), undefined);
});

test('KV-C14: an emptyDir on disk is born the group’s, with setgid; later ones leave the pod’s choice', async () => {
  const { host, target, plugin, call } = directory('disk');
  accept(await plugin().publish(call));
  assert.deepEqual(await ownership(host, target, ['']), ['/ 2000 2777']);
  await host.makeDirectory(target, 0o700);
  const inode = await inodeOf(host, target);
  accept(await plugin().publish(call));
  assert.deepEqual(await ownership(host, target, ['']), ['/ 2000 700']);
  assert.equal(await inodeOf(host, target), inode);
});

test('an emptyDir on disk whose group was not given before a crash is given it after', async () => {
  const { host, target, plugin, call } = directory('disk');
  host.failNext('changeOwnership', 'broker-lost');
  const failed = await plugin().publish(call);
  assert.ok(!failed.ok && failed.failure.effect === 'unknown');
  accept(await plugin().publish(call));
  assert.deepEqual(await ownership(host, target, ['']), ['/ 2000 2777']);
});

test('KV-C14: an emptyDir in memory is mounted with its group, so no crash can come between', async () => {
  const { host, target, plugin, call } = directory('memory');
  accept(await plugin().publish(call));
  for (const option of ['mode=2777', 'gid=2000']) assert.ok(host.optionsAt(target).includes(option), option);
  const plain = worldOf(
    callOf(emptyDir('memory')),
    (on) => createEmptyDirPlugin(on, layout, mounterOf(on)),
    () => undefined,
  );
  accept(await plain.plugin().publish(plain.call));
  const options = plain.host.optionsAt(plain.target);
  assert.ok(options.includes('mode=0777') && !options.some((one) => one.startsWith('gid=')));
});
