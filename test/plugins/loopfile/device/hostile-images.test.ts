/**
 * INV-9: thousands of devices that hold something of somebody come to the proof before mkfs, and nothing is written to
 * any. `HOSTILE_IMAGES=10000 npm test -- test/plugins/loopfile/device/hostile-images.test.ts` tries that many,
 * `npm test` some; a few go through the whole driver, on loop devices.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertOk, assertStatus, cannotRun, createVolume, createWorld, MEBIBYTE } from '../world.ts';
import { proveBlank } from '../../../../plugins/loopfile/device/blank-proof.ts';
import { statusOf } from '../../../../plugins/loopfile/device/status.ts';
import { hostileImage, putImage } from './hostile-images.ts';

const COUNT = Number(process.env['HOSTILE_IMAGES'] ?? '400');
/** Each costs several processes. */
const DRIVEN_COUNT = 24;
const SIZE_BYTES = 8 * MEBIBYTE;
const LANES = 2;
const skip = cannotRun('losetup', 'mkfs.ext4');

/** All that a write would change: the bytes, where they are, and when they were last written. */
function stateOf(path: string): unknown {
  const { blocks, mtimeNs, ino } = statSync(path, { bigint: true });
  return { blocks, mtimeNs, ino, sum: createHash('sha256').update(readFileSync(path)).digest('hex') };
}

/** As `stateOf` where the bytes would be read too often: a write changes these. */
function touchedOf(path: string): unknown {
  const { blocks, mtimeNs, ctimeNs, ino, size } = statSync(path, { bigint: true });
  return { blocks, mtimeNs, ctimeNs, ino, size };
}

test(`${COUNT} devices that hold something are never proven blank, and nothing is written`, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'mooring-images-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'device');
  writeFileSync(path, '');
  const device = { path, name: 'device' };
  const proven = async (): Promise<string> => {
    const allocatedBytes = statSync(path).blocks * 512;
    const proof = proveBlank(device as Parameters<typeof proveBlank>[0], {
      sizeBytes: SIZE_BYTES,
      allocatedBytes,
    });
    return proof.then(
      () => 'blank',
      (thrown: unknown) => statusOf(thrown).message,
    );
  };
  for (let index = 0; index < COUNT; index += 1) {
    const image = hostileImage(index, SIZE_BYTES);
    putImage(path, image, SIZE_BYTES);
    const before = touchedOf(path);
    assert.match(
      await proven(),
      /^not blank, so not formatted: data within 4 MiB after byte [0-9]+$/,
      image.what,
    );
    assert.deepEqual(touchedOf(path), before, image.what);
  }
  putImage(path, { what: 'nothing', parts: [] }, SIZE_BYTES);
  assert.equal(await proven(), 'blank');
  t.diagnostic(`${COUNT} images, 0 proven blank, 0 writes`);
});

test(`${DRIVEN_COUNT} volumes that hold something are not formatted by the driver`, { skip }, async (t) => {
  const world = await createWorld();
  t.after(() => world.close());
  await world.start();
  const reasons = new Map<string, number>();
  const lane = async (first: number): Promise<void> => {
    const volume = await createVolume(world, `lane-${first}`, {}, SIZE_BYTES);
    const record = join(volume.directory, 'volume.json');
    for (let index = first; index < DRIVEN_COUNT; index += LANES) {
      const image = hostileImage(index * 419, SIZE_BYTES);
      putImage(volume.data, image, SIZE_BYTES);
      const before = stateOf(volume.data);
      const told = await volume.stage();
      assertStatus(told, 'FAILED_PRECONDITION', /never reformatted|holds .*, no file system|not blank/);
      assert.deepEqual(stateOf(volume.data), before, image.what);
      const { content } = JSON.parse(readFileSync(record, 'utf8')) as { content: { state: string } };
      assert.equal(content.state, 'blank', `${image.what}: no intent to format`);
      const [reason = ''] = /never reformatted|no file system|not blank/.exec(JSON.stringify(told)) ?? [];
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    // The gate is no wall: the same volume with nothing in it is formatted.
    putImage(volume.data, { what: 'nothing', parts: [] }, SIZE_BYTES);
    assertOk(await volume.stage());
    assertOk(await volume.unstage());
  };
  await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));
  assert.deepEqual(await world.sweep(), [], 'nothing stays mounted or attached');
  t.diagnostic(`${DRIVEN_COUNT} images, 0 writes: ${JSON.stringify(Object.fromEntries(reasons))}`);
});
