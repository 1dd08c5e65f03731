/** Which loop device shows a file, by the kernel's word, and how often that is asked. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  attachLoopDevice,
  type BackingFile,
  detachLoopDevice,
  findLoopDevices,
  type LoopDevice,
  setReadOnly,
} from '../../../../plugins/loopfile/device/loop-device.ts';
import { MEBIBYTE, cannotRun } from '../world.ts';

const skip = cannotRun('losetup');

/** Two pools in which a volume has the same name, so that only the inode tells their files apart. */
function twins(t: TestContext): readonly [BackingFile, BackingFile] {
  const scratch = mkdtempSync(join(tmpdir(), 'mooring-loop-'));
  t.after(() => rmSync(scratch, { recursive: true, force: true }));
  const fileIn = (pool: string): BackingFile => {
    const path = join(scratch, pool, 'volume', 'data.img');
    mkdirSync(join(scratch, pool, 'volume'), { recursive: true });
    writeFileSync(path, '');
    truncateSync(path, MEBIBYTE);
    const { ino, dev } = statSync(path);
    const [major, minor] = [((dev >> 8) & 0xfff) | 0, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
    return { path, inode: ino, device: `${major}:${minor}` };
  };
  return [fileIn('one'), fileIn('other')];
}

async function processesOf(work: () => Promise<void>): Promise<number> {
  let count = 0;
  const onProcess = (): void => {
    count += 1;
  };
  subscribe('child_process', onProcess);
  await work().finally(() => unsubscribe('child_process', onProcess));
  return count;
}

test('what a device shows is asked once for each time that it was attached', { skip }, async (t) => {
  const [one] = twins(t);
  const device = await attachLoopDevice(one);
  t.after(() => detachLoopDevice(device));
  const count = await processesOf(async () => {
    for (let call = 1; call <= 5; call += 1) {
      const { attached } = await findLoopDevices(one.path, one);
      assert.deepEqual(attached, [{ ...attached[0], path: device.path }]);
    }
  });
  assert.equal(count, 0);
});

/** The device as it was found with the one file; it has the other by now. */
async function exchanged(one: BackingFile, other: BackingFile): Promise<LoopDevice> {
  // Somebody else on the machine may take the device in the moment when it is free.
  for (let tries = 1; tries <= 21; tries += 1) {
    const device = await attachLoopDevice(one);
    assert.equal((await findLoopDevices(one.path, one)).attached.length, 1);
    await detachLoopDevice(device);
    if (spawnSync('losetup', [device.path, other.path]).status === 0) return device;
  }
  return assert.fail('the device was not free');
}

test('a device that was given another file meanwhile is not taken for the one it was', {
  skip,
}, async (t) => {
  const [one, other] = twins(t);
  const device = await exchanged(one, other);
  const { path } = device;
  t.after(() => execFileSync('losetup', ['--detach', path]));
  assert.deepEqual((await findLoopDevices(one.path, one)).attached, []);
  const { attached } = await findLoopDevices(other.path, other);
  assert.deepEqual(
    attached.map((found) => found.path),
    [path],
  );
});

test('a device that has another file by now is not taken from whoever has it, nor one detached twice', {
  skip,
}, async (t) => {
  const [one, other] = twins(t);
  const device = await exchanged(one, other);
  const { path } = device;
  await detachLoopDevice(device);
  const [its] = (await findLoopDevices(other.path, other)).attached;
  assert.equal(its?.path, path, 'the other file is still there');
  await detachLoopDevice(its);
  assert.deepEqual((await findLoopDevices(other.path, other)).attached, []);
  await detachLoopDevice(its);
});

/** The device that is given out next, held as a mount holds it: it has no file, and the kernel gives it none. */
async function holdNext(t: TestContext, file: BackingFile): Promise<string> {
  for (let tries = 1; tries <= 21; tries += 1) {
    const device = await attachLoopDevice(file);
    const { path, name } = device;
    await detachLoopDevice(device);
    const held = openSync(path, constants.O_RDWR | constants.O_EXCL);
    if (!existsSync(`/sys/block/${name}/loop/backing_file`)) {
      t.after(() => closeSync(held));
      return path;
    }
    // Somebody else on the machine was faster; it is not kept from mounting what it has.
    closeSync(held);
  }
  return assert.fail('the device was not free');
}

test('a device without a file that the kernel gives none is passed over', { skip }, async (t) => {
  const [one] = twins(t);
  const path = await holdNext(t, one);
  const device = await attachLoopDevice(one);
  t.after(() => detachLoopDevice(device));
  assert.notEqual(device.path, path);
  assert.deepEqual(
    (await findLoopDevices(one.path, one)).attached.map((found) => found.path),
    [device.path],
  );
});

test('a file that no device can show is told in the words of losetup, after few attempts', {
  skip,
}, async (t) => {
  const [one] = twins(t);
  rmSync(one.path);
  const count = await processesOf(async () => {
    await assert.rejects(attachLoopDevice(one), {
      code: 13,
      message: /^losetup .* ended with 1: .*data\.img/,
    });
  });
  // Eight, and one more for each device that somebody else on the machine took in that moment.
  assert.ok(count >= 8 && count <= 16, `${count} processes`);
});

test('whoever is given the number of a device that was read-only may write', { skip }, async (t) => {
  const [one] = twins(t);
  const device = await attachLoopDevice(one);
  await setReadOnly(device, true);
  await detachLoopDevice(device);
  const isReadOnly = execFileSync('blockdev', ['--getro', device.path], { encoding: 'utf8' });
  assert.equal(isReadOnly.trim(), '0');
});
