/** kill -9 of the driver, at any moment: the next one goes on from what the kernel and the disk say. */
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  assertOk,
  cannotRun,
  createVolume,
  createWorld,
  type Driver,
  MEBIBYTE,
  type World,
} from './world.ts';

const MOMENTS = 5;

/** `blank`, `formatting` or `used`; the record is replaced by renames, so it can be read at any time. */
function contentOf(directory: string): string {
  return JSON.parse(readFileSync(join(directory, 'volume.json'), 'utf8')).content.state;
}

describe('a loopfile driver', { skip: cannotRun('losetup', 'mkfs.ext4') }, () => {
  let world: World;
  let driver: Driver;
  before(async () => {
    world = await createWorld();
    driver = await world.start();
  });
  after(() => world.close());
  afterEach(async () => assert.deepEqual(await world.sweep(), [], 'nothing stays mounted or attached'));

  async function restart(): Promise<void> {
    await driver.kill();
    driver = await world.start();
  }

  test('that is killed while it makes a file system is followed by one that finishes the volume', async (t) => {
    const measured = await createVolume(world, 'measured');
    const began = performance.now();
    assertOk(await measured.stage());
    const stageMs = performance.now() - began;
    assertOk(await measured.unstage());

    for (let moment = 0; moment < MOMENTS; moment += 1) {
      const volume = await createVolume(world, `killed-${moment}`);
      // Random within each fifth, so that every run covers the whole stage.
      const afterMs = ((moment + Math.random()) / MOMENTS) * stageMs;
      const cut = volume.stage();
      await sleep(afterMs);
      const state = contentOf(volume.directory);
      await restart();
      await cut;
      const when = `killed ${afterMs.toFixed(1)} of ${stageMs.toFixed(1)} ms after the call, ${state}`;
      t.diagnostic(when);
      assertOk(await volume.stage());
      assert.equal(world.mountsAt(volume.stagingPath).length, 1, when);
      assert.equal(world.loops().length, 1, when);
      writeFileSync(world.inside(join(volume.stagingPath, 'file')), 'content');
      assertOk(await volume.unstage());
      assert.deepEqual(world.loops(), [], when);
      world.run('e2fsck', '-f', '-n', volume.data);
      assertOk(await volume.stage());
      assert.equal(readFileSync(world.inside(join(volume.stagingPath, 'file')), 'utf8'), 'content');
      assertOk(await volume.unstage());
    }
  });

  test('that is killed with its intent on disk is followed by one that starts the volume over', async () => {
    const volume = await createVolume(world, 'half-made');
    const { ino } = statSync(volume.data);
    const cut = volume.stage();
    while (contentOf(volume.directory) === 'blank') await sleep(0);
    await driver.kill();
    await cut;
    assert.equal(contentOf(volume.directory), 'formatting');
    // The worst of what a mkfs can leave: a device that is no longer blank and no file system either.
    const file = openSync(volume.data, 'r+');
    writeSync(file, Buffer.alloc(2 * MEBIBYTE, 1), 0, 2 * MEBIBYTE, 0);
    closeSync(file);
    driver = await world.start();
    assertOk(await volume.stage());
    assert.notEqual(statSync(volume.data).ino, ino, 'mkfs ran on a new file');
    assert.equal(world.loops().length, 1);
    assert.equal(contentOf(volume.directory), 'used');
    assertOk(await volume.unstage());
    world.run('e2fsck', '-f', '-n', volume.data);
  });

  test('that is killed between calls is followed by one that knows everything', async () => {
    const volume = await createVolume(world, 'between');
    await restart();
    assertOk(await volume.stage());
    await restart();
    assertOk(await volume.publish());
    writeFileSync(world.inside(join(volume.target, 'file')), 'content');
    await restart();
    assertOk(await volume.stage());
    assertOk(await volume.publish());
    assert.equal(world.mountsAt(volume.stagingPath).length, 1);
    assert.equal(world.mountsAt(volume.target).length, 1);
    assert.equal(world.loops().length, 1);
    assert.equal(readFileSync(world.inside(join(volume.target, 'file')), 'utf8'), 'content');
    await restart();
    assertOk(await volume.unpublish());
    assert.equal(existsSync(volume.target), false);
    await restart();
    assertOk(await volume.unstage());
    await restart();
    assertOk(await volume.remove());
    assert.equal(existsSync(volume.directory), false);
  });

  test('that is told to stop ends with 0 and leaves every mount to the pods', async () => {
    const volume = await createVolume(world, 'stopped');
    assertOk(await volume.stage());
    assertOk(await volume.publish());
    const mounted = world.mounts();
    assert.equal(await driver.stop(), 0);
    assert.equal(existsSync(world.socket), false);
    assert.deepEqual(world.mounts(), mounted);
    assert.equal(world.loops().length, 1);
    driver = await world.start();
    assertOk(await volume.unpublish());
    assertOk(await volume.unstage());
  });
});
