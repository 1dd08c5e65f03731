import assert from 'node:assert/strict';
import { test } from 'node:test';
import { below, type DeviceNumber } from '../../mount/host.ts';
import { deviceContract } from '../contract/device.ts';
import { hostContract } from '../contract/host.ts';
import { placeHoldersContract } from '../contract/place-holders.ts';
import { ownershipRequest } from '../contract/ownership.ts';
import { createBench } from './bench.ts';
import { FAIR } from './weather.ts';

hostContract('SimHost', async (t) => {
  const { root, newHost } = createBench(t);
  return { host: newHost(), root };
});

placeHoldersContract('SimHost', async (t) => {
  const { root, holders, newHost } = createBench(t);
  let pid = 7;
  return {
    host: newHost(),
    root,
    occupy: async (path) => {
      const before = holders.get(path) ?? [];
      pid += 1;
      const mine = { pid, command: 'sim', path, how: 'uses' } as const;
      holders.set(path, [...before, mine]);
      return async () =>
        void holders.set(
          path,
          (holders.get(path) ?? []).filter((one) => one !== mine),
        );
    },
  };
});

deviceContract('SimHost', async (t) => {
  const { root, kernel, newHost } = createBench(t);
  return {
    root,
    newHost: async () => newHost(),
    addDevice: async () => {
      const device = kernel.devices.add();
      const node = below(root, `node-${device.replace(':', '-')}`);
      assert.equal(kernel.makeDeviceNode(node, device), undefined);
      return node;
    },
    replace: async (node) => {
      const device = kernel.deviceOf(node) as DeviceNumber;
      kernel.devices.remove(device);
      return kernel.devices.add() === device;
    },
    takeAway: async (target) => assert.equal(kernel.unmountLazily(target), undefined),
    open: async (node) => {
      const device = kernel.deviceOf(node) as DeviceNumber;
      kernel.devices.open(device, 'pid 7 (dd)');
      return async () => kernel.devices.close(device, 'pid 7 (dd)');
    },
  };
});

test('a killed process never hears of its effects again, and what was under way has landed or not', async (t) => {
  const outcomes = new Set<string>();
  for (let seed = 1; seed <= 40; seed += 1) {
    const bench = createBench(t, seed);
    const host = bench.newHost();
    let heard = false;
    void host.makeDirectory(below(bench.root, 'a', 'b'), 0o755).then(() => {
      heard = true;
    });
    host.timer(1, () => {
      heard = true;
    });
    host.kill();
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(heard, false);
    const depth = ['a', 'b'].map((_, index, names) =>
      bench.kernel.inspect(below(bench.root, ...names.slice(0, index + 1))),
    );
    outcomes.add(depth.map((facts) => (typeof facts === 'string' ? facts : facts.kind)).join());
  }
  assert.deepEqual([...outcomes].sort(), ['absent,absent', 'directory,absent', 'directory,directory']);
});

test('a process that dies after an effect leaves the effect and hears nothing', async (t) => {
  const bench = createBench(t);
  let host = bench.newHost();
  host = bench.newHost(FAIR, (kind, moment) => {
    const dies = kind === 'mount' && moment === 'after';
    if (dies) host.kill();
    return dies;
  });
  const target = below(bench.root, 'm');
  await host.makeDirectory(target, 0o755);
  let heard = false;
  void host.mount({ fsType: 'tmpfs', source: 'x', target, options: [] }).then(() => {
    heard = true;
  });
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(heard, false);
  assert.equal(bench.kernel.mountsAt(target).length, 1);
});

test('a doubtful effect answers that it does not know, and has happened in some seeds only', async (t) => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 20; seed += 1) {
    const bench = createBench(t, seed);
    const effects = new Map([['makeLink', { refused: 0, doubtful: 1, slow: 0, hung: 0 }]] as const);
    const host = bench.newHost({ ...FAIR, effects });
    const made = await host.makeLink(below(bench.root, 'l'), 'x');
    assert.ok(!made.ok && made.failure.effect === 'unknown');
    const facts = bench.kernel.inspect(below(bench.root, 'l'));
    seen.add(typeof facts === 'string' ? facts : facts.kind);
  }
  assert.deepEqual([...seen].sort(), ['absent', 'symlink']);
});

test('the number of a device that went is given to the next, unless a hold keeps it (k/k#34437)', async (t) => {
  const { root, kernel, newHost } = createBench(t);
  const host = newHost();
  const { devices } = kernel;
  const node = below(root, 'node');
  const first = devices.add();
  kernel.makeDeviceNode(node, first);
  devices.remove(first);
  assert.equal(devices.add(), first);
  assert.ok((await host.holdDevice(node)).ok);
  devices.remove(first);
  const second = devices.add();
  assert.notEqual(second, first);
  const again = await host.holdDevice(node);
  assert.ok(again.ok, 'it is held already');
  assert.ok((await host.releaseDevice(node)).ok);
  const refused = await host.holdDevice(node);
  assert.deepEqual(!refused.ok && refused.failure.code, 'input-output', 'there is no disk of this number');
  assert.equal(devices.add(), first);
});

test('a device that went with the power is used by nobody', async (t) => {
  const { root, kernel, newHost } = createBench(t);
  const host = newHost();
  const node = below(root, 'node');
  const device = kernel.devices.add();
  kernel.makeDeviceNode(node, device);
  assert.ok((await host.holdDevice(node)).ok);
  assert.equal(kernel.usersOf(device).length, 1);
  kernel.reboot();
  assert.deepEqual(kernel.usersOf(device), []);
  assert.deepEqual(kernel.devices.holds(), []);
});

test('an ownership walk that was cut short in doubt is finished by the next', async (t) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const bench = createBench(t, seed);
    const volume = below(bench.root, 'v');
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    bench.kernel.makeDirectory(volume, 0o755);
    for (const name of names) bench.kernel.makeFile(below(volume, name), new Uint8Array(), 0o600);
    const request = ownershipRequest(volume, { policy: 'on-root-mismatch' });
    const effects = new Map([['changeOwnership', { refused: 0, doubtful: 1, slow: 0, hung: 0 }]] as const);
    assert.ok(!(await bench.newHost({ ...FAIR, effects }).changeOwnership(request)).ok);
    assert.ok((await bench.newHost().changeOwnership(request)).ok);
    for (const name of names) {
      const facts = bench.kernel.inspect(below(volume, name));
      assert.deepEqual(typeof facts === 'string' ? facts : [facts.gid, facts.mode], [4_242, 0o660]);
    }
  }
});
