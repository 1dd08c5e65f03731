/** INV-9: what is not proven blank is never formatted. Judged by every byte of the data file, before and after. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import {
  assertOk,
  assertStatus,
  cannotRun,
  createVolume,
  createWorld,
  MEBIBYTE,
  type Shape,
  type World,
} from '../world.ts';

const SIZE_BYTES = 16 * MEBIBYTE;

function write(path: string, bytes: Uint8Array, at: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

const ONE = Buffer.from([1]);

/** A volume that was never used by its record, and what somebody put into its data file all the same. */
const FOREIGN: Readonly<Record<string, { put: (path: string) => void; as?: Shape; because: RegExp }>> = {
  'an ext4 of somebody else': {
    put: (path) => execFileSync('mkfs.ext4', ['-q', path]),
    as: { fsType: 'xfs' },
    because: /holds ext4, not xfs; it is never reformatted/,
  },
  'an ext4 whose superblock was wiped': {
    put: (path) => {
      execFileSync('mkfs.ext4', ['-q', path]);
      write(path, Buffer.alloc(4096), 0);
    },
    because: /not blank, so not formatted/,
  },
  'a partition table': {
    put: (path) => {
      write(path, Buffer.from([0x83, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0]), 450);
      write(path, Buffer.from([0x55, 0xaa]), 510);
    },
    because: /holds dos, no file system/,
  },
  'one byte at its end': {
    put: (path) => write(path, ONE, SIZE_BYTES - 1),
    because: /not blank, so not formatted: data within 4 MiB after byte 12582912/,
  },
  'one byte at the beginning of its last 4 MiB': {
    put: (path) => write(path, ONE, SIZE_BYTES - 4 * MEBIBYTE),
    because: /not blank, so not formatted: data within 4 MiB after byte 12582912/,
  },
  'one byte in the middle of holes': {
    put: (path) => write(path, ONE, SIZE_BYTES / 2 + 12_345),
    because: /not blank, so not formatted: data within 4 MiB after byte 8388608/,
  },
  'one byte in the middle of written zeros': {
    put: (path) => {
      write(path, Buffer.alloc(SIZE_BYTES), 0);
      write(path, ONE, SIZE_BYTES / 2 - 1);
      assert.ok(statSync(path).blocks * 512 >= SIZE_BYTES);
    },
    because: /not blank, so not formatted: data within 4 MiB after byte 4194304/,
  },
};

describe('a volume of the loopfile driver', { skip: cannotRun('losetup', 'mkfs.ext4') }, () => {
  let world: World;
  before(async () => {
    world = await createWorld();
    await world.start();
  });
  after(() => world.close());
  afterEach(async () => assert.deepEqual(await world.sweep(), [], 'nothing stays mounted or attached'));

  const sum = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
  const make = (name: string) => createVolume(world, name.replaceAll(' ', '-'), {}, SIZE_BYTES);

  for (const [what, { put, as, because }] of Object.entries(FOREIGN)) {
    test(`that holds ${what} is not formatted`, async () => {
      const volume = await make(what);
      put(volume.data);
      const sumBefore = sum(volume.data);
      for (let again = 0; again < 2; again += 1) {
        assertStatus(await volume.stage(as), 'FAILED_PRECONDITION', because);
        assert.equal(sum(volume.data), sumBefore);
        assert.deepEqual(world.loops(), []);
      }
    });
  }

  test('that was used once is not formatted when it looks blank', async () => {
    const volume = await make('used');
    assertOk(await volume.stage());
    assertOk(await volume.unstage());
    write(volume.data, Buffer.alloc(SIZE_BYTES), 0);
    const sumBefore = sum(volume.data);
    assertStatus(await volume.stage(), 'FAILED_PRECONDITION', /not formatted: the volume was used before/);
    assert.equal(sum(volume.data), sumBefore);
  });

  test('that is only to be read is not formatted', async () => {
    const volume = await make('read-only');
    const wanted = { mode: 'SINGLE_NODE_READER_ONLY' } as const;
    assertStatus(await volume.stage(wanted), 'FAILED_PRECONDITION', /not formatted: it is wanted read-only/);
    assert.equal(statSync(volume.data).blocks, 0);
  });

  test('that holds nothing but written zeros is formatted', async () => {
    const volume = await make('zeros');
    write(volume.data, Buffer.alloc(SIZE_BYTES), 0);
    assertOk(await volume.stage());
    assert.equal(world.mountsAt(volume.stagingPath)[0]?.fsType, 'ext4');
    assertOk(await volume.unstage());
  });
});
