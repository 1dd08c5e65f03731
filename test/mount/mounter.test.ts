import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import {
  type AbsolutePath,
  below,
  type Host,
  type MountIdentity,
  parseAbsolutePath,
} from '../../mount/host.ts';
import type { LinuxHost } from '../../mount/agent-side/linux-host.ts';
import { createMounter, type Mounter, type MemoryMountRequest } from '../../mount/mounter.ts';
import { createMemoryMount } from '../../plugins/pod/memory-mount.ts';
import { fillNothing } from '../contract/transitions.ts';
import { inPrivateNamespace } from '../real/namespace.ts';
import { value } from '../value.ts';
import { end, holder } from './holding-process.ts';
import { realHost, scratchDirectory } from './scratch.ts';

const skip = inPrivateNamespace();

interface World {
  readonly host: LinuxHost;
  readonly mounter: Mounter;
  readonly root: AbsolutePath;
  readonly target: AbsolutePath;
}

async function world(t: TestContext): Promise<World> {
  const host = await realHost(t);
  const root = scratchDirectory(t);
  const target = below(root, 'm');
  value(await host.makeDirectory(target, 0o750));
  return { host, mounter: createMounter(host, root), root, target };
}

/** As volumes in memory are mounted: with a look before, so that nothing stacks, and one after. */
async function mountTmpfs(
  { host, mounter }: Pick<World, 'mounter'> & { readonly host: Host },
  { target, options }: Omit<MemoryMountRequest, 'fsType'>,
): Promise<Result<MountIdentity>> {
  const chosen: Mounter = {
    ...mounter,
    mountMemory: () => mounter.mountMemory({ fsType: 'tmpfs', target, options }),
  };
  const memory = createMemoryMount(host, chosen);
  const made = await memory.mount({ target, mode: 0o750, sizeBytes: 0 }, fillNothing, {
    expected: undefined,
  });
  return made.ok ? ok(made.value.mount) : made;
}

function refuses(result: Result<unknown>, code: string, effect: string): void {
  assert.deepEqual(result.ok ? 'ok' : [result.failure.code, result.failure.effect], [code, effect]);
}

/** Who holds what the failure says is held. */
async function heldBy(host: Host, refused: Result<void>): Promise<string> {
  const path = parseAbsolutePath((!refused.ok && refused.failure.heldAt) || '');
  return path === undefined ? 'nothing is said to be held' : value(await host.findHolders(path)).join();
}

async function layers(host: Host, target: AbsolutePath): Promise<number> {
  return value(await host.readMountTable(target)).at(target).length;
}

test('mounting twice mounts once', { skip }, async (t) => {
  const { host, mounter, target } = await world(t);
  const first = value(await mountTmpfs({ host, mounter }, { target, options: ['size=1m', 'mode=0750'] }));
  assert.deepEqual(
    value(await mountTmpfs({ host, mounter }, { target, options: ['size=1m', 'mode=0750'] })),
    first,
  );
  assert.equal(await layers(host, target), 1);
  assert.deepEqual(value(await host.lookUpMount(target)), { mounted: true, ...first, fsType: 'tmpfs' });
  value(await mounter.unmount(target));
  value(await mounter.unmount(target));
  assert.equal(await layers(host, target), 0);
});

test('what somebody else has mounted is not taken for ours, and stays', { skip }, async (t) => {
  const { host, mounter, root, target } = await world(t);
  value(await host.mount({ fsType: 'bind', source: root, target, options: [] }));
  refuses(await mountTmpfs({ host, mounter }, { target, options: [] }), 'mount-foreign', 'none');
  value(await host.unmount(target));
  value(await host.mount({ fsType: 'tmpfs', source: 'stranger', target, options: [] }));
  refuses(await mountTmpfs({ host, mounter }, { target, options: [] }), 'mount-foreign', 'none');
  assert.equal(await layers(host, target), 1);
  value(await mounter.unmount(target));
});

test('a stack is refused, and unmounting takes it down to the ground', { skip }, async (t) => {
  const { host, mounter, target } = await world(t);
  for (let n = 0; n < 3; n += 1)
    value(await host.mount({ fsType: 'tmpfs', source: 'mooring', target, options: [] }));
  refuses(await mountTmpfs({ host, mounter }, { target, options: [] }), 'mount-stacked', 'none');
  assert.equal(await layers(host, target), 3);
  value(await mounter.unmount(target));
  assert.equal(await layers(host, target), 0);
});

test('of a stack the one mount that is meant goes, and only while it is what one sees', {
  skip,
}, async (t) => {
  const { host, mounter, target } = await world(t);
  const ids: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    value(await host.mount({ fsType: 'tmpfs', source: 'mooring', target, options: [] }));
    ids.push(value(await host.mountIdOf(target)) ?? assert.fail('it is mounted'));
  }
  const [lowest, middle, top] = ids as [number, number, number];
  value(await mounter.unmountOnly(target, middle));
  assert.equal(value(await host.mountIdOf(target)), top);
  value(await mounter.unmountOnly(target, top));
  assert.deepEqual([value(await host.mountIdOf(target)), await layers(host, target)], [middle, 2]);
  value(await mounter.unmountOnly(target, top));
  assert.equal(await layers(host, target), 2);
  value(await mounter.unmount(target));
  value(await mounter.unmountOnly(target, lowest));
});

test('nothing outside its root is mounted or unmounted', { skip }, async (t) => {
  const { host, mounter, root, target } = await world(t);
  const inner = createMounter(host, target);
  value(await mountTmpfs({ host, mounter }, { target, options: [] }));
  for (const path of [root, target, below(root, 'mm')]) {
    refuses(await inner.mountMemory({ fsType: 'tmpfs', target: path, options: [] }), 'path-unsafe', 'none');
    refuses(await inner.unmount(path), 'path-unsafe', 'none');
    refuses(await inner.unmountOnly(path, 1), 'path-unsafe', 'none');
  }
  assert.equal(await layers(host, target), 1);
  value(await mounter.unmount(target));
});

test('a mount that the kernel refuses has no effect', { skip }, async (t) => {
  const { host, mounter, root, target } = await world(t);
  refuses(
    await mounter.mountMemory({ fsType: 'tmpfs', target, options: ['no-such-option=1'] }),
    'mount-failed',
    'unknown',
  );
  refuses(
    await mounter.mountMemory({ fsType: 'tmpfs', target, options: ['size=1m,mode=0777'] }),
    'mount-failed',
    'none',
  );
  refuses(
    await mounter.mountMemory({ fsType: 'tmpfs', target: below(root, 'x'), options: [] }),
    'mount-failed',
    'unknown',
  );
  const memory = await mountTmpfs({ host, mounter }, { target, options: ['no-such-option=1'] });
  refuses(memory, 'mount-failed', 'unknown');
  assert.equal(await layers(host, target), 0);
});

test('a busy mount stays, and who works in it can be named', { skip }, async (t) => {
  const { host, mounter, target } = await world(t);
  value(await mountTmpfs({ host, mounter }, { target, options: [] }));
  const busy = await holder(t, 'sh', '-c', `cd ${target} && echo && exec sleep 60`);
  const refused = await mounter.unmount(target);
  refuses(refused, 'mount-busy', 'none');
  assert.match(await heldBy(host, refused), new RegExp(`^pid ${busy.pid} \\((sh|sleep)\\)$`));
  assert.equal(await layers(host, target), 1);
  await end(busy);
  value(await mounter.unmount(target));
});

test('an open file and a mount below are holders too', { skip }, async (t) => {
  const { host, mounter, target } = await world(t);
  value(await mountTmpfs({ host, mounter }, { target, options: [] }));
  const inner = below(target, 'inner');
  value(await host.makeDirectory(inner, 0o750));
  value(await mountTmpfs({ host, mounter }, { target: inner, options: [] }));
  const busy = await holder(t, 'sh', '-c', `exec 7>${target}/file && echo && exec sleep 60`);
  const holders = value(await host.findHolders(target));
  assert.ok(holders.includes(`mount ${inner}`), holders.join());
  assert.ok(
    holders.some((one) => one.startsWith(`pid ${busy.pid} (`)),
    holders.join(),
  );
  await end(busy);
  refuses(await mounter.unmount(target), 'mount-busy', 'none');
  value(await mounter.unmount(inner));
  value(await mounter.unmount(target));
});

test('another mount namespace that still has the mount is named', { skip }, async (t) => {
  const { host, mounter, target } = await world(t);
  value(await mountTmpfs({ host, mounter }, { target, options: [] }));
  const copy = await holder(
    t,
    'unshare',
    '-m',
    '--propagation',
    'private',
    'sh',
    '-c',
    'echo && exec sleep 60',
  );
  const holders = value(await host.findHolders(target));
  assert.deepEqual(
    holders.map((one) => one.replace(/\(.*?\)/, '()')),
    [`pid ${copy.pid} () in its own mount namespace`],
  );
  await end(copy);
  value(await mounter.unmount(target));
});

test('a namespace that follows ours holds nothing; who uses the mount in it does', { skip }, async (t) => {
  const { host, mounter, target: tree } = await world(t);
  execFileSync('mount', ['--bind', tree, tree]);
  execFileSync('mount', ['--make-shared', tree]);
  const target = below(tree, 'inner');
  value(await host.makeDirectory(target, 0o750));
  value(await mountTmpfs({ host, mounter }, { target, options: [] }));
  // As systemd gives services with PrivateTmp= and the like.
  const following = ['unshare', '-m', '--propagation', 'slave', 'sh', '-c'] as const;
  await holder(t, ...following, 'echo && exec sleep 60');
  const busy = await holder(t, ...following, `exec 7>${target}/file && echo && exec sleep 60`);
  const refused = await mounter.unmount(target);
  refuses(refused, 'mount-busy', 'none');
  const inItsOwn = new RegExp(`^pid ${busy.pid} \\((sh|sleep)\\) in its own mount namespace$`);
  assert.match(await heldBy(host, refused), inItsOwn);
  await end(busy);
  assert.deepEqual(value(await host.findHolders(target)), []);
  value(await mounter.unmount(target));
  execFileSync('umount', [tree]);
});

test('a namespace that follows has the stage of a volume as well, and holds what is published by that no more', {
  skip,
}, async (t) => {
  const { host, mounter, target: tree } = await world(t);
  execFileSync('mount', ['--bind', tree, tree]);
  execFileSync('mount', ['--make-shared', tree]);
  const [stage, target] = [below(tree, 'stage'), below(tree, 'published')];
  for (const path of [stage, target]) value(await host.makeDirectory(path, 0o750));
  value(await mountTmpfs({ host, mounter }, { target: stage, options: [] }));
  execFileSync('mount', ['--bind', stage, target]);
  const follower = await holder(
    t,
    'unshare',
    '-m',
    '--propagation',
    'slave',
    'sh',
    '-c',
    'echo && exec sleep 60',
  );
  assert.deepEqual(value(await host.findHolders(target)), []);
  await end(follower);
  for (const path of [target, stage]) value(await mounter.unmount(path));
  execFileSync('umount', [tree]);
});

/** The host with a tool that lies: the kernel is the judge, not the tool's word. */
function lying(host: Host, answers: Partial<Pick<Host, 'mount' | 'unmount'>>): Host {
  return { ...host, ...answers };
}

test('a mount tool is not believed, neither its yes nor its no', { skip }, async (t) => {
  const { host, root, target } = await world(t);
  const yes = createMounter(lying(host, { mount: async () => done, unmount: async () => done }), root);
  refuses(await mountTmpfs({ host, mounter: yes }, { target, options: [] }), 'mount-failed', 'unknown');
  const no = createMounter(
    lying(host, {
      mount: async (request) => {
        value(await host.mount(request));
        return fail({ code: 'deadline-passed', message: 'killed', effect: 'unknown' });
      },
      unmount: async (path) => {
        value(await host.unmount(path));
        return fail({ code: 'unmount-failed', message: 'exit 32', effect: 'unknown' });
      },
    }),
    root,
  );
  value(await mountTmpfs({ host, mounter: no }, { target, options: [] }));
  assert.equal(await layers(host, target), 1);
  refuses(await yes.unmount(target), 'unmount-failed', 'none');
  value(await no.unmount(target));
  assert.equal(await layers(host, target), 0);
});
