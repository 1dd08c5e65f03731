import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath, PathKind } from '../../../mount/host.ts';
import { createHostPathPlugin } from '../../../plugins/pod/host-path.ts';
import { type HostPathType, podVolumeId, type VolumeSpec } from '../../../plugins/volume.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { accept } from '../accept.ts';
import { callOf, freshHost, POD, worldOf } from '../local-world.ts';
import { CRASH, type MemoryHost } from '../memory-host.ts';

function hostPath(path: string, type: HostPathType): VolumeSpec {
  const id = podVolumeId('kubernetes.io/host-path', POD, 'place');
  return { kind: 'host-path', id, pod: POD, name: 'place', path: path as AbsolutePath, type };
}

const publish = (host: MemoryHost, path: string, type: HostPathType) =>
  createHostPathPlugin(host).publish(callOf(hostPath(path, type)));

function contractWorld() {
  const host = freshHost();
  host.plant('/srv/data', { kind: 'directory', mode: 0o700 });
  return worldOf(
    callOf(hostPath('/srv/data', 'DirectoryOrCreate')),
    createHostPathPlugin,
    (on) => on.describe('/srv' as AbsolutePath),
    host,
  );
}

pluginContract('hostPath', contractWorld);

const KINDS: readonly Exclude<PathKind, 'absent' | 'symlink'>[] = [
  'directory',
  'file',
  'socket',
  'fifo',
  'block',
  'character',
];
const TYPES: Readonly<Record<Exclude<HostPathType, ''>, PathKind>> = {
  Directory: 'directory',
  DirectoryOrCreate: 'directory',
  File: 'file',
  FileOrCreate: 'file',
  Socket: 'socket',
  CharDevice: 'character',
  BlockDevice: 'block',
};

test('each type accepts exactly its kind, through a symbolic link too, and changes nothing that exists', async () => {
  for (const kind of KINDS) {
    for (const [type, wanted] of Object.entries(TYPES) as [Exclude<HostPathType, ''>, PathKind][]) {
      for (const path of ['/srv/place', '/link', '/run/there/place']) {
        const host = freshHost();
        host.plant('/srv/place', { kind, mode: 0o600 });
        host.plant('/link', { kind: 'symlink', text: 'srv/./place' });
        host.plant('/run/there', { kind: 'symlink', text: '../srv' });
        const result = await publish(host, path, type);
        assert.equal(host.effects(), 0);
        if (kind === wanted) {
          assert.deepEqual(result, { ok: true, value: { mount: undefined } }, `${type} ${path}`);
        } else {
          assert.ok(!result.ok, `${type} accepts a ${kind}`);
          assert.deepEqual(
            [result.failure.code, result.failure.effect, result.failure.blocker],
            ['host-path-check', 'none', path],
          );
          for (const part of [path, kind, type])
            assert.ok(result.failure.message.includes(part), result.failure.message);
        }
      }
    }
  }
});

test('what does not exist is refused, except by type "" and by the types that create', async () => {
  for (const type of ['Directory', 'File', 'Socket', 'CharDevice', 'BlockDevice'] as const) {
    const host = freshHost();
    const result = await publish(host, '/srv/place', type);
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect],
      ['host-path-check', 'none'],
      type,
    );
    assert.equal(host.effects(), 0);
  }
});

test('type "" asks and does nothing at all', async () => {
  const host = freshHost();
  accept(await publish(host, '/no/such/place', ''));
  assert.equal(host.calls(), 0);
});

test('DirectoryOrCreate makes every missing directory 0755', async () => {
  const host = freshHost();
  host.plant('/srv', { kind: 'directory', mode: 0o700 });
  accept(await publish(host, '/srv/a/b/c', 'DirectoryOrCreate'));
  assert.deepEqual(host.describe('/srv' as AbsolutePath), [
    '/srv/a directory 755',
    '/srv/a/b directory 755',
    '/srv/a/b/c directory 755',
  ]);
});

test('FileOrCreate makes an empty file 0644, and only the file', async () => {
  const host = freshHost();
  host.plant('/srv', { kind: 'directory' });
  accept(await publish(host, '/srv/config', 'FileOrCreate'));
  assert.deepEqual(host.describe('/srv' as AbsolutePath), ['/srv/config file 644 ""']);
  const result = await publish(host, '/srv/missing/config', 'FileOrCreate');
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['host-path-check', 'none']);
  assert.deepEqual(host.describe('/srv' as AbsolutePath), ['/srv/config file 644 ""']);
});

test('creating follows links on the way and a dangling link at the end to where they lead', async () => {
  const host = freshHost();
  host.plant('/run', { kind: 'directory' });
  host.plant('/var/run', { kind: 'symlink', text: '/run' });
  host.plant('/etc/app', { kind: 'symlink', text: '../run/app.d' });
  accept(await publish(host, '/var/run/made', 'DirectoryOrCreate'));
  accept(await publish(host, '/etc/app', 'DirectoryOrCreate'));
  assert.deepEqual(host.names('/run'), ['app.d', 'made']);
  accept(await publish(host, '/etc/app', 'Directory'));
});

test('nothing is created below a file, a socket or a link that leads nowhere', async () => {
  for (const type of ['DirectoryOrCreate', 'FileOrCreate'] as const) {
    for (const path of ['/srv/file/a/b', '/srv/lost/a']) {
      const host = freshHost();
      host.plant('/srv/file', { kind: 'file', content: 'x' });
      host.plant('/srv/lost', { kind: 'symlink', text: 'gone/../../elsewhere' });
      const result = await publish(host, path, type);
      assert.deepEqual(
        !result.ok && [result.failure.code, result.failure.effect],
        ['host-path-check', 'none'],
        path,
      );
      assert.equal(host.effects(), 0);
      assert.equal(host.names('/srv').length, 2);
      if (path.startsWith('/srv/file'))
        assert.match(result.ok ? '' : result.failure.message, /srv\/file is of kind file/);
    }
  }
});

test('forty links in a row are followed, a loop and one link more are not', async () => {
  const host = freshHost();
  host.plant('/srv/end', { kind: 'directory' });
  host.plant('/loop', { kind: 'symlink', text: 'loop' });
  for (let n = 1; n <= 41; n += 1) {
    host.plant(`/l${n}`, { kind: 'symlink', text: n === 1 ? '/srv/end' : `l${n - 1}` });
  }
  accept(await publish(host, '/l40', 'Directory'));
  for (const path of ['/l41', '/loop', '/loop/x']) {
    const result = await publish(host, path, 'Directory');
    assert.deepEqual(
      !result.ok && [result.failure.code, result.failure.effect],
      ['host-path-check', 'none'],
      path,
    );
  }
});

test('a link that grows at every step ends at the bound, and `..` never climbs above the root', async () => {
  const host = freshHost();
  host.plant('/grow', { kind: 'symlink', text: `${'grow/'.repeat(500)}x` });
  host.plant('/up', { kind: 'symlink', text: `${'../../'.repeat(50)}srv` });
  host.plant('/srv', { kind: 'directory' });
  const before = host.calls();
  assert.equal((await publish(host, '/grow', 'Directory')).ok, false);
  assert.ok(host.calls() - before < 5_000, 'the walk is bounded');
  accept(await publish(host, '/up', 'Directory'));
});

test('what the host says in the middle of a check or a creation is passed on', async () => {
  const host = freshHost();
  host.plant('/srv', { kind: 'directory' });
  host.failNext('inspect', 'deadline-passed');
  const checked = await publish(host, '/srv', 'Directory');
  assert.deepEqual(!checked.ok && [checked.failure.code, checked.failure.effect], [
    'deadline-passed',
    'none',
  ]);
  host.failNext('makeDirectory', 'disk-full', 'after');
  const created = await publish(host, '/srv/a/b', 'DirectoryOrCreate');
  assert.deepEqual(!created.ok && [created.failure.code, created.failure.effect], ['disk-full', 'unknown']);
});

test('a creation that fails half way is in doubt', async () => {
  const host = freshHost();
  host.plant('/srv', { kind: 'directory' });
  const makeDirectory = host.makeDirectory;
  host.makeDirectory = async (path, mode) => {
    if (path === '/srv/a') return makeDirectory(path, mode);
    return { ok: false, failure: { code: 'disk-full', message: 'ENOSPC', effect: 'none' } };
  };
  const result = await publish(host, '/srv/a/b', 'DirectoryOrCreate');
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.effect], ['disk-full', 'unknown']);
});

test('a crash while creating is completed by the next publish', async () => {
  for (const type of ['DirectoryOrCreate', 'FileOrCreate'] as const) {
    const path = type === 'FileOrCreate' ? '/srv/a' : '/srv/a/b/c';
    for (let n = 1; ; n += 1) {
      const host = freshHost();
      host.plant('/srv', { kind: 'directory' });
      host.crashAt(n);
      const ended = await publish(host, path, type).then(
        () => true,
        (thrown) => {
          assert.equal(thrown, CRASH);
          return false;
        },
      );
      if (ended) break;
      host.crashAt(undefined);
      accept(await publish(host, path, type));
      accept(await publish(host, path, TYPES[type] === 'file' ? 'File' : 'Directory'));
    }
  }
});

test('unpublish leaves the place to the host', async () => {
  const host = freshHost();
  await publish(host, '/srv/made', 'DirectoryOrCreate');
  const before = host.describe('/srv' as AbsolutePath);
  accept(await createHostPathPlugin(host).unpublish(callOf(hostPath('/srv/made', 'DirectoryOrCreate'))));
  assert.deepEqual(host.describe('/srv' as AbsolutePath), before);
});

test('SE-06: a link that leads to what is denied is refused for every type, and nothing is created there', async () => {
  const denied = ['/var/lib/mooring', '/var/run/keys'] as AbsolutePath[];
  for (const type of ['', 'Directory', 'DirectoryOrCreate'] as const) {
    for (const path of [
      '/srv/in',
      '/srv/at/records',
      '/srv/above',
      '/srv/in/made',
      '/run/keys',
      '/srv/run',
    ]) {
      const host = freshHost();
      host.plant('/var/lib/mooring/records', { kind: 'directory' });
      host.plant('/srv/in', { kind: 'symlink', text: '../var/lib/mooring/records' });
      host.plant('/srv/at', { kind: 'symlink', text: '/var/lib/mooring' });
      host.plant('/srv/above', { kind: 'symlink', text: '/var' });
      host.plant('/run/keys', { kind: 'directory' });
      host.plant('/var/run', { kind: 'symlink', text: '/run' });
      host.plant('/srv/lost', { kind: 'symlink', text: 'gone/../../var/lib/mooring' });
      host.plant('/srv/run', { kind: 'symlink', text: '/run/keys' });
      const result = await createHostPathPlugin(host, denied).publish(callOf(hostPath(path, type)));
      assert.deepEqual(
        !result.ok && [result.failure.code, result.failure.effect, result.failure.blocker],
        ['host-path-check', 'none', path],
        `${type} ${path}`,
      );
      assert.match(
        result.ok ? '' : result.failure.message,
        / is denied, because of \/var\/(lib\/mooring|run\/keys)$/,
      );
      assert.equal(host.effects(), 0);
    }
  }
});

test('what is beside what is denied is not refused, whether it exists or not', async () => {
  for (const path of ['/srv/data', '/srv/none', '/srv/link', '/var/lib/mooring2']) {
    const host = freshHost();
    host.plant('/srv/data', { kind: 'directory' });
    host.plant('/srv/link', { kind: 'symlink', text: 'data' });
    const plugin = createHostPathPlugin(host, ['/var/lib/mooring' as AbsolutePath]);
    accept(await plugin.publish(callOf(hostPath(path, ''))));
    assert.equal(host.effects(), 0);
  }
});
