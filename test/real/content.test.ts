/** The local kinds of volumes on the real kernel, through the real host and its brokers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { AbsolutePath } from '../../mount/host.ts';
import { createLinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createMounter } from '../../mount/mounter.ts';
import { createContentPlugin } from '../../plugins/pod/content.ts';
import { createEmptyDirPlugin } from '../../plugins/pod/empty-dir.ts';
import { createHostPathPlugin } from '../../plugins/pod/host-path.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import { type HostPathType, podVolumeId } from '../../plugins/volume.ts';
import { accept } from '../plugins/accept.ts';
import { callOf, content, emptyDir, type Files, filesOf, POD } from '../plugins/local-world.ts';
import { BROKER_COMMAND } from './broker-command.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();

const scratch = mkdtempSync(join(tmpdir(), 'mooring-content-'));
const root = join(scratch, 'root') as AbsolutePath;
const layout = createLayout(root);
const host = await createLinuxHost({
  remote: async () => ({ kind: 'broken', because: 'unreachable', message: 'no driver in this test' }),
  watch: () => () => {},
  brokerCommand: BROKER_COMMAND,
});
const mounter = createMounter(host, root);
mkdirSync(join(root, 'pods'), { recursive: true, mode: 0o750 });

after(async () => {
  await host.close();
  for (const { target } of mountsBelow(scratch).reverse()) spawnSync('umount', [target]);
  rmSync(scratch, { recursive: true, force: true });
});

interface Seen {
  readonly target: string;
  readonly fsType: string;
  readonly superOptions: string;
}

function mountsBelow(path: string): Seen[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [left = '', right = ''] = line.split(' - ');
      const target = left.split(' ')[4] ?? '';
      const [fsType = '', , superOptions = ''] = right.split(' ');
      return target.startsWith(`${path}/`) ? [{ target, fsType, superOptions }] : [];
    });
}

function modeOf(path: string): string {
  return (lstatSync(path).mode & 0o7777).toString(8);
}

function secretOf(files: Files) {
  const call = callOf(content('secret'), files);
  return {
    call,
    target: layout.volumeDirectory(call.spec, call.publication),
    plugin: createContentPlugin('secret', host, layout, mounter),
    with: (others: Files) => ({ ...call, files: filesOf(others) }),
  };
}

/** All files of the visible generation, read as a pod reads them: one look at the link, then the files there. */
function readGeneration(target: string): Record<string, string> | undefined {
  const generation = join(target, readlinkSync(join(target, '..data')));
  try {
    return Object.fromEntries(
      ['a', 'b', 'deep/c'].map((name) => [name, readFileSync(join(generation, name), 'utf8')]),
    );
  } catch {
    return undefined;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const firstOf = ({ a = '' }: Record<string, string>): string => a;

const generationOf = (n: number): Files => ({
  a: `a${n}`,
  b: { text: `b${n}`, mode: 0o400 },
  'deep/c': `c${n}`,
});

test('a secret is published, refreshed and taken down on the real kernel', { skip }, async () => {
  const { plugin, call, target, with: having } = secretOf(generationOf(0));
  const published = await plugin.publish(call);
  accept(published);
  const [mount, ...others] = mountsBelow(root);
  assert.deepEqual([mount?.target, mount?.fsType, others.length], [target, 'tmpfs', 0]);
  assert.match(mount?.superOptions ?? '', /(^|,)size=/);
  if (knowsNoswap()) assert.match(mount?.superOptions ?? '', /(^|,)noswap(,|$)/);
  const modes = [target, `${target}/..data/b`, `${target}/..data/deep`].map(modeOf);
  assert.deepEqual(modes, ['755', '400', '755']);
  assert.match(readlinkSync(`${target}/..data`), /^\.\.\d{4}(_\d\d){5}\.\d+$/);
  assert.equal(readlinkSync(`${target}/deep`), '..data/deep');

  const inode = statSync(target).ino;
  const generation = readlinkSync(`${target}/..data`);
  accept(await plugin.publish(call));
  assert.equal(readlinkSync(`${target}/..data`), generation, 'the same content is not written again');
  accept(await plugin.publish(having({ a: 'new' })));
  assert.deepEqual(
    readdirSync(target).filter((name) => !name.startsWith('..')),
    ['a'],
  );
  assert.equal(readdirSync(target).length, 3);
  assert.equal(readFileSync(`${target}/a`, 'utf8'), 'new');
  assert.equal(statSync(target).ino, inode);

  accept(await plugin.unpublish(call));
  assert.deepEqual(mountsBelow(root), []);
  assert.deepEqual(readdirSync(join(root, 'pods')), []);
});

test('a reader sees whole generations only while the content is replaced again and again', {
  skip,
}, async () => {
  const { plugin, call, target, with: having } = secretOf(generationOf(0));
  accept(await plugin.publish(call));
  let stop = false;
  let seen = 0;
  let missed = 0;
  const reader = (async () => {
    while (!stop) {
      const found = readGeneration(target);
      if (found === undefined) missed += 1;
      else {
        const n = firstOf(found).slice(1);
        assert.deepEqual(found, { a: `a${n}`, b: `b${n}`, 'deep/c': `c${n}` });
        seen += 1;
      }
      const text = readIfThere(`${target}/a`);
      // The generation that the link led to may go before the file is opened, as under a kubelet.
      if (text === undefined) missed += 1;
      else assert.match(text, /^a\d+$/);
      await new Promise(setImmediate);
    }
  })();
  for (let n = 1; n <= 30; n += 1) accept(await plugin.publish(having(generationOf(n))));
  stop = true;
  await reader;
  assert.ok(
    seen > 100 && missed < seen / 10,
    `${seen} whole reads, ${missed} of a generation that had just gone`,
  );
  accept(await plugin.unpublish(call));
});

test('a refresh on a full tmpfs has no effect, and a smaller one works', { skip }, async () => {
  const { plugin, call, target, with: having } = secretOf({ a: 'old', b: 'x'.repeat(5_000) });
  mkdirSync(target, { recursive: true, mode: 0o750 });
  assert.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0755', 'mooring', target]).status, 0);
  accept(await plugin.publish(call));
  const before = { tree: treeBelow(target), inode: statSync(target).ino };
  const result = await plugin.publish(having({ a: 'new', b: 'y'.repeat(100_000) }));
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['disk-full', 'none']);
  assert.deepEqual({ tree: treeBelow(target), inode: statSync(target).ino }, before);
  accept(await plugin.publish(having({ a: 'new' })));
  assert.equal(readFileSync(`${target}/a`, 'utf8'), 'new');
  accept(await plugin.unpublish(call));
  assert.deepEqual(readdirSync(join(root, 'pods')), []);
});

function treeBelow(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const facts = lstatSync(join(path, name));
      const what = facts.isSymbolicLink()
        ? readlinkSync(join(path, name))
        : facts.isFile()
          ? readFileSync(join(path, name), 'utf8')
          : '';
      return `${name} ${facts.mode} ${facts.ino} ${what}`;
    });
}

test('an emptyDir on disk is 0777, closed to others by its parents, and never deletes a mount below', {
  skip,
}, async () => {
  const call = callOf(emptyDir('disk'));
  const target = layout.volumeDirectory(call.spec, call.publication);
  const plugin = createEmptyDirPlugin(host, layout, mounter);
  assert.deepEqual(await plugin.publish(call), { ok: true, value: { mount: undefined } });
  assert.equal(modeOf(target), '777');
  writeFileSync(`${target}/data`, 'precious');
  accept(await plugin.publish(call));
  assert.equal(readFileSync(`${target}/data`, 'utf8'), 'precious');
  const stranger = spawnSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'ls', target]);
  assert.notEqual(stranger.status, 0, 'another user cannot walk to it');

  const data = join(scratch, 'data');
  mkdirSync(data);
  writeFileSync(join(data, 'file'), 'foreign');
  mkdirSync(`${target}/nested`);
  assert.equal(spawnSync('mount', ['--bind', data, `${target}/nested`]).status, 0);
  const busy = await plugin.unpublish(call);
  assert.deepEqual(!busy.ok && [busy.failure.code, busy.failure.effect], ['mount-busy', 'none']);
  assert.equal(readFileSync(join(data, 'file'), 'utf8'), 'foreign');
  assert.equal(readFileSync(`${target}/data`, 'utf8'), 'precious');
  assert.equal(spawnSync('umount', [`${target}/nested`]).status, 0);
  accept(await plugin.unpublish(call));
  assert.deepEqual(readdirSync(join(root, 'pods')), []);
  assert.equal(readFileSync(join(data, 'file'), 'utf8'), 'foreign');
});

test('an emptyDir in memory is one tmpfs with its limit, and keeps its content', { skip }, async () => {
  const call = callOf(emptyDir('memory', 65_536));
  const target = layout.volumeDirectory(call.spec, call.publication);
  const plugin = createEmptyDirPlugin(host, layout, mounter);
  const first = await plugin.publish(call);
  accept(first);
  assert.notEqual(first.value.mount, undefined);
  assert.equal(modeOf(target), '777');
  assert.throws(() => writeFileSync(`${target}/big`, Buffer.alloc(100_000)), { code: 'ENOSPC' });
  rmSync(`${target}/big`);
  writeFileSync(`${target}/data`, 'kept');
  assert.deepEqual(await plugin.publish(call), first);
  assert.equal(readFileSync(`${target}/data`, 'utf8'), 'kept');
  assert.equal(mountsBelow(root).length, 1);
  accept(await plugin.unpublish(call));
  assert.deepEqual([mountsBelow(root), readdirSync(join(root, 'pods'))], [[], []]);
});

test("hostPath checks the host's own files, links included", { skip }, async () => {
  const place = join(scratch, 'place');
  mkdirSync(join(place, 'directory'), { recursive: true });
  writeFileSync(join(place, 'file'), '');
  symlinkSync('place', join(scratch, 'link'));
  const server = createServer().listen(join(place, 'socket'));
  await new Promise((resolve) => server.once('listening', resolve));
  const check = async (path: string, type: HostPathType) => {
    const id = podVolumeId('kubernetes.io/host-path', POD, 'place');
    return createHostPathPlugin(host).publish(
      callOf({ kind: 'host-path', id, pod: POD, name: 'place', path: path as AbsolutePath, type }),
    );
  };
  for (const [path, type] of [
    [`${scratch}/link/directory`, 'Directory'],
    [`${scratch}/link`, 'Directory'],
    [`${scratch}/link/file`, 'File'],
    [`${scratch}/link/socket`, 'Socket'],
    ['/dev/null', 'CharDevice'],
    ['/proc/self', 'Directory'],
    [`${scratch}/link/made/deep`, 'DirectoryOrCreate'],
    [`${scratch}/link/made/file`, 'FileOrCreate'],
  ] as const) {
    const result = await check(path, type);
    accept(result);
  }
  assert.deepEqual(
    [modeOf(`${place}/made`), modeOf(`${place}/made/deep`), modeOf(`${place}/made/file`)],
    ['755', '755', '644'],
  );
  for (const [path, type] of [
    ['/dev/null', 'File'],
    ['/dev/null', 'BlockDevice'],
    [`${scratch}/link/file`, 'Directory'],
    [`${scratch}/none`, 'File'],
    [`${scratch}/link/file/below`, 'DirectoryOrCreate'],
    [`${scratch}/none/file`, 'FileOrCreate'],
  ] as const) {
    const result = await check(path, type);
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect],
      ['host-path-check', 'none'],
      path,
    );
  }
  await new Promise((resolve) => server.close(resolve));
});

/** Linux 6.4 and later. */
function knowsNoswap(): boolean {
  const [major = 0, minor = 0] = readFileSync('/proc/sys/kernel/osrelease', 'utf8').split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 4);
}
