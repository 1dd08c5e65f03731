import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { type AbsolutePath, below, type DeviceNumber } from '../../mount/host.ts';
import type { LinuxHost } from '../../mount/agent-side/linux-host.ts';
import { deviceContract } from '../contract/device.ts';
import { detachLoopDevices, loopDevicesBelow } from '../demo/machine.ts';
import { attachedLoopDevices, detacherOf } from '../machine/loop-devices.ts';
import { BROKER_COMMAND } from '../real/broker-command.ts';
import { inPrivateProcesses } from '../real/namespace.ts';
import { value } from '../value.ts';
import { deepProcess } from './deep-process.ts';
import { end, holder } from './holding-process.ts';
import { realHost, scratchDirectory } from './scratch.ts';
import { until } from '../until.ts';

const skip = inPrivateProcesses();
/** No other test has this size: it may be all that is known of a loop device without a name. */
const IMAGE_BYTES = 17 * 1_024 * 1_024;

function run(tool: string, ...argv: string[]): string {
  return execFileSync(tool, argv, { encoding: 'utf8' }).trim();
}

let images = 0;

function addImage(root: AbsolutePath): AbsolutePath {
  images += 1;
  const image = below(root, `image-${images}`);
  writeFileSync(image, '');
  truncateSync(image, IMAGE_BYTES);
  return image;
}

/** A loop device over a file of the scratch directory; detached before that is deleted. */
function addDevice(t: TestContext, root: AbsolutePath, ...options: string[]): AbsolutePath {
  const device = run('losetup', '--find', '--show', ...options, addImage(root));
  t.after(detacherOf(device));
  return device as AbsolutePath;
}

/** What a failed test leaves held is let go of before it is unmounted and deleted. */
function scratchWithDevices(t: TestContext): AbsolutePath {
  let root: AbsolutePath | undefined;
  t.after(async () => {
    if (root !== undefined) await detachLoopDevices(root, loopDevicesBelow(root));
  });
  root = scratchDirectory(t);
  return root;
}

interface World {
  readonly host: LinuxHost;
  readonly root: AbsolutePath;
  readonly node: AbsolutePath;
  readonly device: DeviceNumber;
}

async function world(t: TestContext, ...options: string[]): Promise<World> {
  const root = scratchWithDevices(t);
  const host = await realHost(t);
  const node = addDevice(t, root, ...options);
  const device = value(await host.deviceOf(node));
  assert.ok(device !== undefined);
  return { host, root, node, device };
}

async function publish({ host, root, node }: World, name: string): Promise<AbsolutePath> {
  const target = below(root, name);
  value(await host.writeFile(target, new Uint8Array(), { mode: 0o640, durable: false }));
  value(await host.mount({ fsType: 'bind', source: node, target, options: [] }));
  return target;
}

if (skip === false) {
  deviceContract('LinuxHost', async (t) => {
    const root = scratchWithDevices(t);
    return {
      root,
      newHost: () => realHost(t),
      addDevice: async () => addDevice(t, root),
      replace: async (node) => {
        run('losetup', '--detach', node);
        return spawnSync('losetup', [node, addImage(root)]).status === 0;
      },
      takeAway: async (target) => {
        // Whoever cleans up after a test that failed finds what holds it by nothing else.
        for (const { name, backingFile } of attachedLoopDevices())
          if (backingFile === target) t.after(detacherOf(`/dev/${name}`));
        run('umount', '--lazy', target);
      },
      open: async (node) => {
        const child = await holder(t, 'sh', '-c', `exec 7<${node} && echo && exec sleep 60`);
        return () => end(child);
      },
    };
  });
} else test('LinuxHost keeps the sentences about block devices', { skip }, () => {});

test('a device number is that of the kernel', { skip }, async (t) => {
  const { node, device } = await world(t);
  assert.equal(readFileSync(`/sys/block/${node.slice('/dev/'.length)}/dev`, 'utf8').trim(), device);
});

test('a hold stops nobody from writing to the device, nor keeps one that is read-only', {
  skip,
}, async (t) => {
  const writable = await world(t);
  const target = await publish(writable, 'volume');
  value(await writable.host.holdDevice(target));
  run('mkfs.ext4', '-q', target);
  const mountPoint = below(writable.root, 'mounted');
  mkdirSync(mountPoint);
  run('mount', writable.node, mountPoint);
  writeFileSync(below(mountPoint, 'f'), 'written');
  run('umount', mountPoint);
  value(await writable.host.releaseDevice(target));
  const readOnly = await world(t, '--read-only');
  const published = await publish(readOnly, 'volume');
  value(await readOnly.host.holdDevice(published));
  assert.equal(value(await readOnly.host.findDeviceUsers(readOnly.device)).length, 1);
  value(await readOnly.host.releaseDevice(published));
});

test('a hold made by another tool at the path, as the kubelet makes it, is found and ended', {
  skip,
}, async (t) => {
  const one = await world(t);
  const target = await publish(one, 'volume');
  run('losetup', '--find', target);
  run('losetup', '--find', target);
  value(await one.host.holdDevice(target));
  assert.equal(value(await one.host.findDeviceUsers(one.device)).length, 2);
  value(await one.host.releaseDevice(target));
  assert.deepEqual(value(await one.host.findDeviceUsers(one.device)), []);
  value(await one.host.unmount(target));
});

test('a path is told as held also when the node that was bound there is gone', { skip }, async (t) => {
  const { host, root, device } = await world(t);
  const node = below(root, 'node');
  run('mknod', node, 'b', ...device.split(':'));
  const within = below(root, 'held');
  value(await host.makeDirectory(within, 0o700));
  const target = await publish({ host, root: within, node, device }, 'volume');
  value(await host.holdDevice(target));
  value(await host.removeFile(node));
  const [hold = ''] = loopDevicesBelow(within);
  const shown = readFileSync(`/sys/block/${hold.slice('/dev/'.length)}/loop/backing_file`, 'utf8').trim();
  assert.equal(shown, `${target} (deleted)`);
  assert.deepEqual(value(await host.heldPaths(within)), [target]);
  value(await host.releaseDevice(target));
  assert.deepEqual(value(await host.heldPaths(within)), []);
});

test('another device published at the path of a hold is held too', { skip }, async (t) => {
  const first = await world(t);
  const target = await publish(first, 'volume');
  value(await first.host.holdDevice(target));
  const second = addDevice(t, first.root);
  value(await first.host.mount({ fsType: 'bind', source: second, target, options: [] }));
  const device = value(await first.host.deviceOf(target));
  assert.ok(device !== undefined && device !== first.device);
  // The names are alike, so the first hold counts for both.
  assert.equal(value(await first.host.findDeviceUsers(device)).length, 1);
  value(await first.host.holdDevice(target));
  assert.equal(value(await first.host.findDeviceUsers(device)).length, 2);
  value(await first.host.releaseDevice(target));
  assert.deepEqual(value(await first.host.findDeviceUsers(device)), []);
  assert.deepEqual(value(await first.host.findDeviceUsers(first.device)), []);
});

test('mounts are users in whatever namespace they are, and devices on partitions too', {
  skip,
}, async (t) => {
  const { host, root, node, device } = await world(t, '--partscan');
  const mountPoint = below(root, 'mounted');
  mkdirSync(mountPoint);
  run('mkfs.ext4', '-q', node);
  run('mount', node, mountPoint);
  assert.deepEqual(value(await host.findDeviceUsers(device)), [`mount ${mountPoint}`]);
  const copy = await holder(
    t,
    'unshare',
    ...['--mount', '--propagation', 'private', 'sh', '-c', 'echo && exec sleep 60'],
  );
  run('umount', mountPoint);
  const [user, ...others] = value(await host.findDeviceUsers(device));
  const where = new RegExp(
    `^mount ${mountPoint} in the mount namespace of pid ${copy.pid} \\((sh|sleep)\\)$`,
  );
  assert.match(user ?? '', where);
  assert.deepEqual(others, []);
  await end(copy);
  assert.deepEqual(value(await host.findDeviceUsers(device)), []);
});

test('who is too deep for a path to be told is a user of his own device, and of no other', {
  skip,
}, async (t) => {
  const { host, root, node, device } = await world(t);
  const [mountPoint, elsewhere] = [below(root, 'mounted'), below(root, 'elsewhere')];
  for (const path of [mountPoint, elsewhere]) mkdirSync(path);
  run('mkfs.ext4', '-q', node);
  run('mount', node, mountPoint);
  for (const kind of ['directory', 'file'] as const) {
    const other = await deepProcess(t, elsewhere, kind);
    assert.deepEqual(value(await host.findDeviceUsers(device)), [`mount ${mountPoint}`]);
    await other.leave();
    const user = await deepProcess(t, mountPoint, kind);
    run('umount', '--lazy', mountPoint);
    assert.match(value(await host.findDeviceUsers(device)).join(), new RegExp(`pid ${user.process.pid} `));
    await end(user.process);
    await until(
      'the file system is gone',
      async () => value(await host.findDeviceUsers(device)).length === 0,
    );
    run('mount', node, mountPoint);
    await user.leave();
  }
  run('umount', mountPoint);
});

test('a mount in a namespace that no process is in is a user all the same', { skip }, async (t) => {
  const { host, root, node, device } = await world(t);
  const mountPoint = below(root, 'mounted');
  mkdirSync(mountPoint);
  run('mkfs.ext4', '-q', node);
  // The namespace lives on in a descriptor.
  const keeper = await holder(
    t,
    'sh',
    '-c',
    `exec 3>&1; unshare --mount --propagation private sh -c 'mount ${node} ${mountPoint} && echo >&3 && exec sleep 60' &
     until nsenter --mount=/proc/$!/ns/mnt mountpoint -q ${mountPoint}; do sleep 0.05; done
     exec 7</proc/$!/ns/mnt; kill -9 $!; wait $! 2>/dev/null; echo ready >&3; exec sleep 60`,
  );
  await until('the kernel alone uses the device', async () => {
    const users = value(await host.findDeviceUsers(device));
    return users.length === 1 && users[0]?.startsWith('the kernel') === true;
  });
  await end(keeper);
  await until('nobody uses the device', async () => value(await host.findDeviceUsers(device)).length === 0);
});

test('a loop device over a path that is gone is a user of its own device, and of no other of that size', {
  skip,
}, async (t) => {
  const { host, root, node, device } = await world(t);
  const alike = value(await host.deviceOf(addDevice(t, root)));
  assert.ok(alike !== undefined && alike !== device);
  const target = below(root, 'published');
  writeFileSync(target, '');
  const loop = holdInNamespaceThatEnds(t, `mount --bind ${node} ${target}`, target);
  assert.deepEqual(value(await host.findDeviceUsers(device)), [`${loop} (holds /)`]);
  assert.deepEqual(value(await host.findDeviceUsers(alike)), []);
  run('losetup', '--detach', `/dev/${loop}`);
  assert.deepEqual(value(await host.findDeviceUsers(device)), []);
});

test('where nobody can tell whose node a loop device has open, it counts as a user', { skip }, async (t) => {
  const { host, root, device } = await world(t);
  const dev = below(root, 'dev');
  mkdirSync(dev);
  const make = `mount -t tmpfs dev ${dev} && mknod ${dev}/xvda b ${device.replace(':', ' ')}`;
  const loop = holdInNamespaceThatEnds(t, make, below(dev, 'xvda'));
  assert.deepEqual(value(await host.findDeviceUsers(device)), [`${loop} (holds /xvda)`]);
});

/** Answers `loop3`. Of the path in a mount namespace that has gone only what is below its mount remains. */
function holdInNamespaceThatEnds(t: TestContext, prepare: string, path: AbsolutePath): string {
  const script = `${prepare} && losetup --find --show --read-only ${path}`;
  const loop = run('unshare', '--mount', '--propagation', 'private', 'sh', '-c', script);
  t.after(detacherOf(loop));
  return loop.slice('/dev/'.length);
}

test('a process with a node of its own making is a user', { skip }, async (t) => {
  const { host, root, device } = await world(t);
  const [major = '', minor = ''] = device.split(':');
  const dev = below(root, 'dev');
  mkdirSync(dev);
  run('mount', '-t', 'tmpfs', 'dev', dev);
  run('mknod', below(dev, 'xvda'), 'b', major, minor);
  const child = await holder(t, 'sh', '-c', `exec 7<${dev}/xvda && rm ${dev}/xvda && echo && exec sleep 60`);
  const users = value(await host.findDeviceUsers(device));
  assert.equal(users.length, 1);
  assert.match(users[0] ?? '', new RegExp(`^pid ${child.pid} \\(`));
  await end(child);
});

test('a process that only has it mapped is a user', { skip: skip || findPython() }, async (t) => {
  const { host, node, device } = await world(t);
  const program = `import mmap, os, sys, time
fd = os.open('${node}', os.O_RDONLY)
area = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
os.closerange(fd, fd + 64)
print('ready', flush=True)
time.sleep(60)`;
  const child = await holder(t, 'python3', '-c', program);
  const users = value(await host.findDeviceUsers(device));
  assert.equal(users.length, 1);
  assert.match(users[0] ?? '', new RegExp(`^pid ${child.pid} \\(`));
  await end(child);
});

test('whoever uses a partition uses the disk', { skip }, async (t) => {
  const { host, root, node, device } = await world(t, '--partscan');
  run('addpart', node, '1', '2048', '8192');
  const partition = `${node}p1` as AbsolutePath;
  await until('the partition is there', async () => value(await host.deviceOf(partition)) !== undefined);
  run('mkfs.ext4', '-q', partition);
  const mountPoint = below(root, 'mounted');
  mkdirSync(mountPoint);
  run('mount', partition, mountPoint);
  assert.deepEqual(value(await host.findDeviceUsers(device)), [`mount ${mountPoint}`]);
  run('umount', mountPoint);
  assert.deepEqual(value(await host.findDeviceUsers(device)), []);
});

test('a process that nobody may look at makes the answer a failure', { skip }, async (t) => {
  const { host, root, device } = await world(t);
  // A process namespace hides nobody; a process with more rights than the one that looks does.
  const node = below(root, 'node');
  writeFileSync(
    node,
    `#!/bin/sh\nexec setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace ${process.execPath} "$@"\n`,
    { mode: 0o755 },
  );
  const weak = await realHost(t, { brokerCommand: [node, ...BROKER_COMMAND.slice(1)] });
  assert.deepEqual(value(await host.findDeviceUsers(device)), []);
  const refused = await weak.findDeviceUsers(device);
  assert.deepEqual(refused.ok ? 'ok' : [refused.failure.code, refused.failure.effect], [
    'permission-denied',
    'none',
  ]);
});

test('a device that is gone is used by nobody', { skip }, async (t) => {
  const { host } = await world(t);
  assert.deepEqual(value(await host.findDeviceUsers('8:4095' as DeviceNumber)), []);
});

function findPython(): string | false {
  return spawnSync('python3', ['--version']).status === 0 ? false : 'needs python3 to map a device';
}

test('a process that is only in a directory of a mount that is in no namespace any more is named', {
  skip,
}, async (t) => {
  const { host, root, node, device } = await world(t);
  run('mkfs.ext4', '-q', node);
  const target = below(root, 'left');
  mkdirSync(target);
  run('mount', node, target);
  const process = await holder(t, 'sh', '-c', `cd ${target}/lost+found && echo && exec sleep 60`);
  run('umount', '--lazy', target);
  assert.deepEqual(value(await host.findDeviceUsers(device)), [`pid ${process.pid} (sleep)`]);
  await end(process);
  assert.deepEqual(value(await host.findDeviceUsers(device)), []);
});

test('a process with a file open on a mount that is in no namespace any more is named', {
  skip,
}, async (t) => {
  const { host, root, node, device } = await world(t);
  run('mkfs.ext4', '-q', node);
  const target = below(root, 'detached');
  mkdirSync(target);
  run('mount', node, target);
  writeFileSync(below(target, 'file'), '');
  const process = await holder(t, 'sh', '-c', `exec 7<${target}/file && echo && exec sleep 60`);
  run('umount', '--lazy', target);
  assert.deepEqual(value(await host.findDeviceUsers(device)), [`pid ${process.pid} (sleep)`]);
  await end(process);
  assert.deepEqual(value(await host.findDeviceUsers(device)), []);
});
