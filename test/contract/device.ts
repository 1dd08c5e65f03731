/** The sentences that every `Host` keeps about block devices. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FailureCode, Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type DeviceNumber, type Host } from '../../mount/host.ts';
import { value } from '../value.ts';

export interface DeviceWorld {
  /** A new one over the same machine at each call: holds survive the process that made them. */
  newHost(): Promise<Host>;
  /** An empty directory; mounts are allowed below it. */
  readonly root: AbsolutePath;
  /** A device that nobody uses; answers the path of its node. */
  addDevice(): Promise<AbsolutePath>;
  /**
   * The disk of that node goes and another gets its number; neither is used. False when the number went to somebody
   * else.
   */
  replace(node: AbsolutePath): Promise<boolean>;
  /** Somebody takes what is mounted at the target away, held or not (umount -l). */
  takeAway(target: AbsolutePath): Promise<void>;
  /** A process opens the node until the answer is called. */
  open(node: AbsolutePath): Promise<() => Promise<void>>;
}

export type MakeDeviceWorld = (t: TestContext) => Promise<DeviceWorld>;

const REPLACEMENTS_MAX = 16;

interface Stage extends DeviceWorld {
  readonly host: Host;
}

function refuses(result: Result<unknown>, code: FailureCode): void {
  assert.deepEqual(result.ok ? 'ok' : [result.failure.code, result.failure.effect], [code, 'none']);
}

/** As a volume is published: the node bound over a file. */
async function publish({ host, root }: Stage, node: AbsolutePath, name: string): Promise<AbsolutePath> {
  const target = below(root, name);
  value(await host.writeFile(target, new Uint8Array(), { mode: 0o640, durable: false }));
  value(await host.mount({ fsType: 'bind', source: node, target, options: [] }));
  return target;
}

async function deviceAt({ host }: Stage, path: AbsolutePath): Promise<DeviceNumber> {
  const device = value(await host.deviceOf(path));
  assert.ok(device !== undefined, `no device at ${path}`);
  return device;
}

/** `loop3 (holds /a)` without the number of the loop device. */
async function usersOf({ host }: Stage, device: DeviceNumber): Promise<string[]> {
  const users = value(await host.findDeviceUsers(device));
  return users.map((one) => one.replace(/^loop[0-9]+ /, '')).sort();
}

export function deviceContract(name: string, make: MakeDeviceWorld): void {
  const sentence = (words: string, check: (stage: Stage) => Promise<void>): void => {
    test(`${name}: ${words}`, async (t) => {
      const world = await make(t);
      await check({ ...world, host: await world.newHost() });
    });
  };
  nodeSentences(sentence);
  identitySentences(sentence);
  holdSentences(sentence);
  lostHoldSentences(sentence);
  heldPathSentences(sentence);
}

type Sentence = (words: string, check: (stage: Stage) => Promise<void>) => void;

function nodeSentences(sentence: Sentence): void {
  sentence('a device node has a number, and so has the file it is bound over', async (stage) => {
    const [one, other] = [await stage.addDevice(), await stage.addDevice()];
    const device = await deviceAt(stage, one);
    assert.match(device, /^[0-9]+:[0-9]+$/);
    assert.notEqual(device, await deviceAt(stage, other));
    const target = await publish(stage, one, 'volume');
    assert.equal(await deviceAt(stage, target), device);
    assert.equal(value(await stage.host.inspect(target)).kind, 'block');
    value(await stage.host.unmount(target));
    assert.equal(value(await stage.host.deviceOf(target)), undefined);
  });
  sentence('what is no device node has no number, and no link leads to one', async (stage) => {
    const { host, root } = stage;
    const node = await stage.addDevice();
    value(await host.writeFile(below(root, 'f'), new Uint8Array(), { mode: 0o600, durable: false }));
    value(await host.makeDirectory(below(root, 'd'), 0o700));
    value(await host.makeLink(below(root, 'l'), node));
    value(await host.makeLink(below(root, 'way'), root));
    for (const path of ['f', 'd', 'l', 'x'].map((one) => below(root, one)))
      assert.equal(value(await host.deviceOf(path)), undefined);
    assert.equal(value(await host.deviceOf(below(root, 'x', 'y'))), undefined);
    refuses(await host.deviceOf(below(root, 'way', 'f')), 'path-unsafe');
  });
}

function identitySentences(sentence: Sentence): void {
  sentence(
    'a disk is the same one at every path and look, and not the one that had its number',
    async (stage) => {
      const { host } = stage;
      for (let tries = 1; ; tries += 1) {
        const node = await stage.addDevice();
        const target = await publish(stage, node, `volume-${tries}`);
        const disk = value(await host.identifyDisk(node));
        assert.ok(disk?.sequence !== undefined, 'Linux 5.15 and later tell it');
        assert.equal(disk.device, await deviceAt(stage, node));
        assert.deepEqual(value(await host.identifyDisk(target)), disk);
        if (await stage.replace(node)) {
          const other = value(await host.identifyDisk(target));
          assert.equal(other?.device, disk.device);
          assert.notEqual(other.sequence ?? disk.sequence, disk.sequence);
          return;
        }
        assert.ok(tries < REPLACEMENTS_MAX, 'others take every number that gets free');
      }
    },
  );
  sentence('what is no device node is no disk', async ({ host, root }) => {
    value(await host.writeFile(below(root, 'f'), new Uint8Array(), { mode: 0o600, durable: false }));
    for (const path of ['f', 'x'].map((one) => below(root, one)))
      assert.equal(value(await host.identifyDisk(path)), undefined);
  });
}

function holdSentences(sentence: Sentence): void {
  sentence('a device is held once however often that is asked, until it is released', async (stage) => {
    const { host } = stage;
    const node = await stage.addDevice();
    const device = await deviceAt(stage, node);
    const target = await publish(stage, node, 'volume');
    assert.deepEqual(await usersOf(stage, device), []);
    value(await host.holdDevice(target));
    value(await host.holdDevice(target));
    assert.deepEqual(await usersOf(stage, device), [`(holds ${target})`]);
    assert.ok(!(await host.unmount(target)).ok, 'what is held cannot be unmounted');
    assert.equal(await deviceAt(stage, target), device);
    value(await host.releaseDevice(target));
    value(await host.releaseDevice(target));
    assert.deepEqual(await usersOf(stage, device), []);
    value(await host.unmount(target));
  });
  sentence('a hold is found again by a process that knows nothing of it', async (stage) => {
    const node = await stage.addDevice();
    const device = await deviceAt(stage, node);
    const target = await publish(stage, node, 'volume');
    value(await stage.host.holdDevice(target));
    const next = { ...stage, host: await stage.newHost() };
    assert.deepEqual(await usersOf(next, device), [`(holds ${target})`]);
    value(await next.host.holdDevice(target));
    assert.deepEqual(await usersOf(next, device), [`(holds ${target})`]);
    value(await next.host.releaseDevice(target));
    assert.deepEqual(await usersOf(next, device), []);
    value(await next.host.unmount(target));
  });
  sentence('holds that are made and ended at the same time do not touch each other', async (stage) => {
    const { host } = stage;
    const names = ['a', 'b', 'c', 'd'];
    const nodes = await Promise.all(names.map(() => stage.addDevice()));
    const targets: AbsolutePath[] = [];
    for (const [index, node] of nodes.entries())
      targets.push(await publish(stage, node, names[index] as string));
    for (const held of await Promise.all(targets.map((one) => host.holdDevice(one)))) value(held);
    for (const [index, node] of nodes.entries()) {
      assert.deepEqual(await usersOf(stage, await deviceAt(stage, node)), [`(holds ${targets[index]})`]);
    }
    const [first, ...others] = targets as [AbsolutePath, ...AbsolutePath[]];
    value(await host.releaseDevice(first));
    assert.deepEqual(await usersOf(stage, await deviceAt(stage, first)), []);
    for (const one of others)
      assert.deepEqual(await usersOf(stage, await deviceAt(stage, one)), [`(holds ${one})`]);
    for (const released of await Promise.all(others.map((one) => host.releaseDevice(one)))) value(released);
    for (const one of targets) value(await host.unmount(one));
  });
  sentence(
    'a device bound over another that is held there is held beside it; both are let go',
    async (stage) => {
      const { host, root } = stage;
      const [node, other] = [await stage.addDevice(), await stage.addDevice()];
      const [device, second] = [await deviceAt(stage, node), await deviceAt(stage, other)];
      const target = await publish(stage, node, 'volume');
      value(await host.holdDevice(target));
      value(await host.mount({ fsType: 'bind', source: other, target, options: [] }));
      assert.equal(await deviceAt(stage, target), second);
      for (let times = 0; times < 2; times += 1) value(await host.holdDevice(target));
      // Which of the two loop devices has which, a host need not know: by their path they are alike.
      const users = [value(await host.findDeviceUsers(device)), value(await host.findDeviceUsers(second))];
      assert.ok(users.every((one) => one.length > 0));
      assert.equal(new Set(users.flat()).size, 2);
      value(await host.releaseDevice(target));
      assert.deepEqual([await usersOf(stage, device), await usersOf(stage, second)], [[], []]);
      for (let layers = 0; layers < 2; layers += 1) value(await host.unmount(target));
      assert.equal(value(await host.inspect(below(root, 'volume'))).kind, 'file');
    },
  );
  sentence('a device that is there is listed by its number, and one that is not is not', async (stage) => {
    const { host } = stage;
    const listed = (device: string) => host.inspect(below('/sys/dev/block' as AbsolutePath, device));
    const device = await deviceAt(stage, await stage.addDevice());
    assert.equal(value(await listed(device)).kind, 'symlink');
    assert.equal(value(await listed('8:4095')).kind, 'absent');
  });
  sentence('only a device is held; releasing what was never held is done', async ({ host, root }) => {
    value(await host.writeFile(below(root, 'f'), new Uint8Array(4_096), { mode: 0o600, durable: false }));
    for (const one of ['f', 'x']) {
      refuses(await host.holdDevice(below(root, one)), 'path-wrong-kind');
      value(await host.releaseDevice(below(root, one)));
    }
  });
  sentence('whoever has a device open uses it, and it alone', async (stage) => {
    const [node, other] = [await stage.addDevice(), await stage.addDevice()];
    const [device, idle] = [await deviceAt(stage, node), await deviceAt(stage, other)];
    const close = await stage.open(node);
    const users = await usersOf(stage, device);
    assert.equal(users.length, 1);
    assert.match(users[0] ?? '', /^pid [0-9]+ \(/);
    assert.deepEqual(await usersOf(stage, idle), []);
    await close();
    assert.deepEqual(await usersOf(stage, device), []);
  });
}

/** A loop device keeps what it has open when that has no path any more. */
function lostHoldSentences(sentence: Sentence): void {
  sentence(
    'a hold of which somebody took the bind away is ended with its path, bound anew or not',
    async (stage) => {
      const { host } = stage;
      const root = below(stage.root, 'held');
      value(await host.makeDirectory(root, 0o700));
      const node = await stage.addDevice();
      const device = await deviceAt(stage, node);
      const target = await publish({ ...stage, root }, node, 'volume');
      value(await host.holdDevice(target));
      await stage.takeAway(target);
      assert.equal(value(await host.deviceOf(target)), undefined);
      assert.equal((await usersOf(stage, device)).length, 1, 'it is held all the same');
      assert.deepEqual(value(await host.heldPaths(root)), [], 'and nothing keeps the path busy');
      value(await host.mount({ fsType: 'bind', source: node, target, options: [] }));
      for (let times = 0; times < 2; times += 1) value(await host.holdDevice(target));
      assert.equal((await usersOf(stage, device)).length, 2);
      assert.deepEqual(value(await host.heldPaths(root)), [target]);
      const next = { ...stage, host: await stage.newHost() };
      value(await next.host.releaseDevice(target));
      assert.deepEqual(await usersOf(next, device), []);
      value(await next.host.holdDevice(target));
      await stage.takeAway(target);
      value(await next.host.releaseDevice(target));
      assert.deepEqual(await usersOf(next, device), []);
    },
  );
  sentence(
    'of two holds of one device that have lost their paths each is ended with its own',
    async (stage) => {
      const { host } = stage;
      const node = await stage.addDevice();
      const device = await deviceAt(stage, node);
      const [a, b] = [await publish(stage, node, 'a'), await publish(stage, node, 'b')];
      for (const one of [a, b]) value(await host.holdDevice(one));
      for (const one of [a, b]) await stage.takeAway(one);
      value(await host.releaseDevice(a));
      assert.equal((await usersOf(stage, device)).length, 1, 'the other pod has it still');
      value(await host.releaseDevice(b));
      assert.deepEqual(await usersOf(stage, device), []);
    },
  );
}

function heldPathSentences(sentence: Sentence): void {
  sentence('what is held below a directory is told by its paths, to whoever asks', async (stage) => {
    const { host, root } = stage;
    const [within, beside] = [below(root, 'held'), below(root, 'held-beside')];
    for (const directory of [within, beside]) value(await host.makeDirectory(directory, 0o700));
    const node = await stage.addDevice();
    const a = await publish({ ...stage, root: within }, node, 'a');
    const b = await publish({ ...stage, root: within }, node, 'b');
    const c = await publish({ ...stage, root: beside }, node, 'c');
    assert.deepEqual(value(await host.heldPaths(within)), []);
    for (const one of [a, b, c]) value(await host.holdDevice(one));
    const next = await stage.newHost();
    const told = async (directory: AbsolutePath) => value(await next.heldPaths(directory)).toSorted();
    assert.deepEqual([await told(within), await told(beside), await told(a)], [[a, b], [c], []]);
    value(await host.releaseDevice(a));
    assert.deepEqual(await told(within), [b]);
    for (const one of [b, c]) value(await host.releaseDevice(one));
    assert.deepEqual(await told(within), []);
    for (const one of [a, b, c]) value(await host.unmount(one));
  });
  sentence('a path at which two devices are held, one bound over the other, is told once', async (stage) => {
    const { host, root } = stage;
    const within = below(root, 'held');
    value(await host.makeDirectory(within, 0o700));
    const target = await publish({ ...stage, root: within }, await stage.addDevice(), 'a');
    value(await host.holdDevice(target));
    value(await host.mount({ fsType: 'bind', source: await stage.addDevice(), target, options: [] }));
    value(await host.holdDevice(target));
    assert.deepEqual(value(await host.heldPaths(within)), [target]);
    value(await host.releaseDevice(target));
    assert.deepEqual(value(await host.heldPaths(within)), []);
    for (let layers = 0; layers < 2; layers += 1) value(await host.unmount(target));
  });
}
