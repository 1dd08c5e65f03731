import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AbsolutePath } from '../../mount/host.ts';
import { plant } from './file-tree.ts';
import { createRandom } from './random.ts';
import { SimKernel } from './sim-kernel.ts';

const path = (text: string): AbsolutePath => text as AbsolutePath;

function machine(seed = 1): SimKernel {
  const kernel = new SimKernel(createRandom(seed), () => 0);
  for (const directory of ['/a', '/b', '/c']) kernel.makeDirectory(path(directory), 0o755);
  kernel.synchronise(path('/'));
  return kernel;
}

test('a second mount on one target stacks, and umount takes the top one', () => {
  const kernel = machine();
  kernel.mountTmpfs('one', path('/a'), []);
  kernel.mountTmpfs('two', path('/a'), []);
  assert.deepEqual(
    kernel.mountsAt('/a').map(({ source }) => source),
    ['one', 'two'],
  );
  assert.equal(kernel.unmount(path('/a')), undefined);
  assert.deepEqual(
    kernel.mountsAt('/a').map(({ source }) => source),
    ['one'],
  );
});

test('who has the directory above open takes an empty one away from under what lies over both', () => {
  const kernel = machine();
  kernel.makeDirectory(path('/a/made'), 0o755);
  const remove = kernel.keepHold(path('/a/made'));
  kernel.mountTmpfs('over', path('/a'), []);
  assert.equal(kernel.removeDirectory(path('/a/made')), 'ENOENT');
  assert.equal(remove?.(), undefined);
  kernel.unmount(path('/a'));
  assert.equal(kernel.walk(path('/a/made')), 'ENOENT');
});

test('a number that somebody holds is not given to the disk that had it before (seed 3362)', () => {
  const { devices } = machine();
  const number = devices.add('first');
  devices.remove(number);
  assert.equal(devices.add('second'), number);
  assert.ok(devices.hold('/held', number, undefined));
  devices.remove(number);
  assert.equal(devices.addAgain(number, 'first'), false);
  assert.ok(devices.addAgain(number, 'second'), 'it is that disk that is held');
  devices.remove(number);
  devices.release('/held');
  assert.ok(devices.addAgain(number, 'first'));
});

test('mount ids and device numbers are used again as soon as they are free', () => {
  const kernel = machine();
  kernel.mountTmpfs('one', path('/a'), []);
  const first = kernel.lookUpMount(path('/a'));
  kernel.unmount(path('/a'));
  kernel.mountTmpfs('other', path('/b'), []);
  assert.deepEqual(kernel.lookUpMount(path('/b')), first);
});

test('a bind shows the same files, keeps its file system alive, and holds below what is mounted above', () => {
  const kernel = machine();
  const disk = kernel.makeFileSystem('ext4', '/dev/x', false);
  plant(disk.root, 'identity', 'x');
  kernel.mountFileSystem(disk, path('/a'), []);
  kernel.bind(path('/a'), path('/b'), ['ro']);
  assert.equal(kernel.unmount(path('/a')), undefined);
  assert.equal(typeof kernel.walk(path('/b/identity')), 'object');
  assert.equal(kernel.removeFile(path('/b/identity')), 'EROFS');
  assert.equal(kernel.removeDirectory(path('/b')), 'EBUSY');
  assert.equal(kernel.rename(path('/b'), path('/d')), 'EBUSY');
});

test('what is held or has a mount below is busy', () => {
  const kernel = machine();
  kernel.mountTmpfs('one', path('/a'), []);
  kernel.makeDirectory(path('/a/deep'), 0o755);
  kernel.mountTmpfs('two', path('/a/deep'), []);
  assert.equal(kernel.unmount(path('/a')), 'EBUSY');
  kernel.unmount(path('/a/deep'));
  for (const mount of kernel.mountsAt('/a')) mount.held = true;
  assert.equal(kernel.unmount(path('/a')), 'EBUSY');
});

test('a power cut takes mounts, memory and some of what was not written yet, newest first', () => {
  const lost = new Set<string>();
  for (let seed = 1; seed <= 60; seed += 1) {
    const kernel = machine(seed);
    const { bootId } = kernel;
    kernel.mountTmpfs('one', path('/a'), []);
    kernel.makeFile(path('/a/f'), new Uint8Array(1), 0o600);
    kernel.makeFile(path('/b/safe'), new Uint8Array(1), 0o600);
    kernel.synchronise(path('/b'));
    kernel.makeFile(path('/c/1'), new Uint8Array(1), 0o600);
    kernel.rename(path('/c/1'), path('/c/2'));
    kernel.reboot();
    assert.notEqual(kernel.bootId, bootId);
    assert.equal(kernel.mounts().length, 1);
    assert.equal(kernel.walk(path('/a/f')), 'ENOENT');
    assert.equal(typeof kernel.walk(path('/b/safe')), 'object');
    lost.add(
      ['/c/1', '/c/2'].map((file) => (typeof kernel.walk(path(file)) === 'string' ? '-' : file)).join(),
    );
  }
  assert.ok(lost.has('-,/c/2') && lost.has('/c/1,-') && lost.has('-,-'), [...lost].join(' '));
});

test('the node of a disk is busy under a stacked bind of it, and goes with that when the disk does', () => {
  const kernel = machine();
  const node = path('/b/disk');
  kernel.makeDeviceNode(node, kernel.devices.add('disk'));
  kernel.makeFile(path('/a/published'), new Uint8Array(), 0o600);
  for (const _ of ['once', 'twice']) assert.equal(kernel.bind(node, path('/a/published'), []), undefined);
  assert.equal(kernel.removeFile(node), 'EBUSY');
  assert.equal(kernel.removeNode(node), undefined);
  assert.equal(kernel.walk(node), 'ENOENT');
  assert.equal(kernel.mountsAt('/a/published').length, 1);
});
