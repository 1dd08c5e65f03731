/** The sentences about `Host.bindPart`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureCode, Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import type { PartBind } from '../../mount/part-bind.ts';
import { value } from '../value.ts';
import type { MakeHostWorld } from './host.ts';

const PLAIN = { mode: 0o640, durable: false };

/** A volume, what is beside it, and where parts are bound. */
interface PartWorld {
  readonly host: Host;
  readonly volume: AbsolutePath;
  readonly outside: AbsolutePath;
  readonly target: AbsolutePath;
  bind(part: string, more?: Partial<PartBind>): ReturnType<Host['bindPart']>;
}

const write = async (host: Host, path: AbsolutePath, content: string): Promise<void> =>
  void value(await host.writeFile(path, new TextEncoder().encode(content), PLAIN));

const read = async (host: Host, path: AbsolutePath): Promise<string> =>
  new TextDecoder().decode(value(await host.readFile(path, 1_000)));

function refuses(result: Result<unknown>, code: FailureCode): void {
  assert.deepEqual(result.ok ? 'ok' : [result.failure.code, result.failure.effect], [code, 'none']);
}

async function isMounted({ host, target }: PartWorld): Promise<boolean> {
  return value(await host.mountIdOf(target)) !== undefined;
}

export function partContract(name: string, make: MakeHostWorld): void {
  const sentence = (words: string, check: (world: PartWorld) => Promise<void>): void => {
    test(`${name}: ${words}`, async (t) => {
      const { host, root } = await make(t);
      const [volume, outside] = [below(root, 'volume'), below(root, 'outside')];
      const target = below(root, 'parts', 'web', '0');
      value(await host.makeDirectory(volume, 0o2775));
      value(await host.makeDirectory(outside, 0o755));
      await write(host, below(outside, 'secret'), 'outside');
      const bind = (part: string, more: Partial<PartBind> = {}) =>
        host.bindPart({ root: volume, rootMountId: undefined, part, target, makesMissing: true, ...more });
      const world = { host, volume, outside, target, bind };
      await check(world);
      if (await isMounted(world)) value(await host.unmount(target));
      // The mount point is protected: nobody but the host removes it.
      const { kind } = value(await host.inspect(target));
      if (kind === 'directory') value(await host.removeEmptyDirectory(target));
      assert.deepEqual(value(await host.listDirectory(outside, 10)), ['secret']);
    });
  };
  whatIsBound(sentence);
  whatIsRefused(sentence);
}

type Sentence = (words: string, check: (world: PartWorld) => Promise<void>) => void;

function whatIsBound(sentence: Sentence): void {
  sentence('a directory of a volume is bound, and one sees it there and nothing else', async (world) => {
    const { host, volume, target, bind } = world;
    value(await host.makeDirectory(below(volume, 'a', 'b'), 0o755));
    await write(host, below(volume, 'a', 'b', 'f'), 'inside');
    assert.equal(value(await bind('a/b')), 'bound');
    assert.equal(await read(host, below(target, 'f')), 'inside');
    await write(host, below(target, 'g'), 'from there');
    assert.equal(await read(host, below(volume, 'a', 'b', 'g')), 'from there');
    value(await host.unmount(target));
    assert.deepEqual(value(await host.listDirectory(target, 10)), []);
  });
  sentence('a file of a volume is bound on a file', async (world) => {
    const { host, volume, target, bind } = world;
    await write(host, below(volume, 'f'), 'inside');
    assert.equal(value(await bind('f', { makesMissing: false })), 'bound');
    assert.equal(await read(host, target), 'inside');
    value(await host.unmount(target));
    assert.deepEqual(value(await host.inspect(target)).sizeBytes, 0);
    value(await host.removeFile(target));
  });
  sentence('the mount has the flags that are asked for, and gets those that it lacks', async (world) => {
    const { host, volume, target, bind } = world;
    const flagsThere = async () => {
      const table = value(await host.readMountTable(target));
      const [only, ...more] = table.at(target);
      assert.deepEqual(more, []);
      return ['ro', 'nosuid', 'noexec', 'noatime', 'nosymfollow'].filter((one) =>
        only?.options.includes(one),
      );
    };
    assert.equal(value(await bind('', { flags: ['nosuid', 'noatime', 'nosymfollow'] })), 'bound');
    assert.deepEqual(await flagsThere(), ['nosuid', 'noatime', 'nosymfollow']);
    await write(host, below(target, 'f'), 'from there');
    assert.equal(value(await bind('', { flags: ['ro', 'noexec'] })), 'bound');
    assert.deepEqual(await flagsThere(), ['ro', 'nosuid', 'noexec', 'noatime', 'nosymfollow']);
    assert.equal(value(await bind('', { flags: [] })), 'bound');
    const all = ['ro', 'nosuid', 'noexec', 'noatime', 'nosymfollow'];
    assert.deepEqual(await flagsThere(), all, 'nothing is taken away');
    assert.equal(await read(host, below(volume, 'f')), 'from there');
  });
  sentence('bound once, it is not bound again, and what else is there is left alone', async (world) => {
    const { host, volume, target, bind } = world;
    value(await host.makeDirectory(below(volume, 'a'), 0o755));
    value(await host.makeDirectory(below(volume, 'b'), 0o755));
    assert.equal(value(await bind('a')), 'bound');
    const mountId = value(await host.mountIdOf(target));
    assert.equal(value(await bind('./a//')), 'bound');
    assert.deepEqual(value(await bind('b')), { otherMountId: mountId });
    assert.equal(value(await host.mountIdOf(target)), mountId);
    assert.equal(value(await host.readMountTable(target)).at(target).length, 1);
  });
  sentence('what is missing is made with the mode of the volume, where that is wanted', async (world) => {
    const { host, volume, bind } = world;
    refuses(await bind('a/b', { makesMissing: false }), 'subpath-missing');
    assert.deepEqual(value(await host.listDirectory(volume, 10)), []);
    assert.equal(await isMounted(world), false);
    assert.equal(value(await bind('a/b')), 'bound');
    for (const path of [below(volume, 'a'), below(volume, 'a', 'b')])
      assert.equal(value(await host.inspect(path)).mode & 0o777, 0o775);
  });
  sentence('a link that stays in the volume is followed, as those of a configMap are', async (world) => {
    const { host, volume, target, bind } = world;
    const generation = below(volume, '..2026_01_01', 'd');
    value(await host.makeDirectory(generation, 0o755));
    await write(host, below(generation, 'f'), 'inside');
    value(await host.makeLink(below(volume, '..data'), '..2026_01_01'));
    value(await host.makeLink(below(volume, 'd'), '..data/d'));
    value(await host.makeLink(below(volume, 'up'), '..2026_01_01/d/../../d/f'));
    assert.equal(value(await bind('d/f', { makesMissing: false })), 'bound');
    assert.equal(await read(host, target), 'inside');
    assert.equal(value(await bind('up', { makesMissing: false })), 'bound');
  });
  sentence('a mount point of the other kind gives way', async (world) => {
    const { host, volume, target, bind } = world;
    await write(host, below(volume, 'f'), 'inside');
    value(await host.makeDirectory(target, 0o750));
    assert.equal(value(await bind('f')), 'bound');
    value(await host.unmount(target));
    assert.equal(value(await bind('d')), 'bound');
    assert.equal(value(await host.inspect(target)).kind, 'directory');
  });
}

function whatIsRefused(sentence: Sentence): void {
  for (const [what, text] of [
    ['is absolute', '/etc'],
    ['climbs out of the volume', '../outside'],
    ['climbs out of the volume on a way round', 'a/../../outside'],
    ['leads to itself', 'link'],
  ] as const) {
    sentence(`SE-01: a link that ${what} is refused, and nothing is made or mounted`, async (world) => {
      const { host, volume, bind } = world;
      value(await host.makeDirectory(below(volume, 'a'), 0o755));
      value(await host.makeLink(below(volume, 'link'), text));
      for (const part of ['link', 'link/secret', 'link/made']) refuses(await bind(part), 'subpath-unsafe');
      assert.equal(await isMounted(world), false);
      assert.deepEqual([...value(await host.listDirectory(volume, 10))].sort(), ['a', 'link']);
    });
  }
  sentence('nothing is made because a link names it', async (world) => {
    const { host, volume, bind } = world;
    value(await host.makeLink(below(volume, 'link'), 'nowhere/else'));
    refuses(await bind('link'), 'subpath-missing');
    assert.deepEqual(value(await host.listDirectory(volume, 10)), ['link']);
  });
  sentence(
    'DL-15: of a root that is not the mount it was nothing is bound, and nothing is made there',
    async (world) => {
      const { host, volume, target, bind } = world;
      const rootMountId = value(await host.mountPlaceOf(volume)).within + 1_000_000;
      refuses(await bind('made', { rootMountId }), 'mount-lost');
      assert.deepEqual(value(await host.listDirectory(volume, 10)), []);
      assert.equal(value(await host.inspect(target)).kind, 'absent');
    },
  );
  sentence('a part below a file, and of a volume that is not there, is refused', async (world) => {
    const { host, volume, bind } = world;
    await write(host, below(volume, 'f'), 'kept');
    refuses(await bind('f/x'), 'path-wrong-kind');
    refuses(await bind('x', { root: below(volume, 'none') }), 'path-missing');
    refuses(await bind('x', { root: below(volume, 'f') }), 'path-wrong-kind');
    assert.equal(await read(host, below(volume, 'f')), 'kept');
    assert.equal(await isMounted(world), false);
  });
}
