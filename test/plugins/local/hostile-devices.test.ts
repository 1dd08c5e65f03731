/**
 * INV-9: thousands of disks that hold something of somebody come to the agent's own way to mkfs, blkid(8) and proof and
 * all, on a real device; none is formatted, and nothing is written to any, the intent included.
 * `HOSTILE_IMAGES=10000 npm test -- test/plugins/local/hostile-devices.test.ts` tries that many, `npm test` some.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { test } from 'node:test';
import { type AbsolutePath, below, parseAbsolutePath } from '../../../mount/host.ts';
import { scratchDirectory } from '../../mount/scratch.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { value } from '../../value.ts';
import { hostileImage, type Image, putImage } from '../loopfile/device/hostile-images.ts';
import { stageWorld } from './stage-world.ts';

const COUNT = Number(process.env['HOSTILE_IMAGES'] ?? '200');
const MEBIBYTE = 1024 * 1024;
/** So small that each byte of it is read. */
const SIZE_BYTES = 8 * MEBIBYTE;
/** A look at every byte; a write changes the times as well, which is looked at each time. */
const WHOLE_EVERY = 20;
const TYPES = ['ext4', 'xfs', 'btrfs', 'ext3', 'ext2'] as const;
const skip = inPrivateNamespace();

function stateOf(path: string, isWhole: boolean): unknown {
  const { blocks, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
  const sum = isWhole ? createHash('sha256').update(readFileSync(path)).digest('hex') : undefined;
  return { blocks, mtimeNs, ctimeNs, sum };
}

test(`INV-9: ${COUNT} disks that hold something are not formatted, and nothing is written`, {
  skip,
}, async (t) => {
  const scratch = scratchDirectory(t);
  const file = below(scratch, 'disk');
  writeFileSync(file, '');
  putImage(file, { what: 'nothing', parts: [] }, SIZE_BYTES);
  const device = losetup(file);
  t.after(() => execFileSync('losetup', ['--detach', device]));
  const { stage, volume: ofAnyType, call } = await stageWorld(t, scratch);
  const volume = (fsType: string) => ({ ...ofAnyType, fsType });
  const refusals = new Map<string, number>();
  for (let index = 0; index < COUNT; index += 1) {
    const image = hostileImage(index, SIZE_BYTES);
    putImage(file, image, SIZE_BYTES);
    const isWhole = index % WHOLE_EVERY === 0;
    const before = stateOf(file, isWhole);
    const wanted = typeFor(index, image);
    const staged = await stage.stage(volume(wanted), device, call);
    assert.ok(!staged.ok, `mounted: ${image.what}`);
    const { code, effect, message } = staged.failure;
    assert.deepEqual([code, effect], ['device-content', 'none'], `${image.what}: ${message}`);
    assert.deepEqual(stateOf(file, isWhole), before, image.what);
    assert.ok(!existsSync(volume(wanted).intent), 'no intent to format');
    const [why = ''] = /cannot be formatted|never reformatted|holds/.exec(message) ?? [];
    refusals.set(why, (refusals.get(why) ?? 0) + 1);
  }
  // The gate is no wall: the same disk with nothing on it is formatted.
  putImage(file, { what: 'nothing', parts: [] }, SIZE_BYTES);
  value(await stage.stage(volume('ext4'), device, call));
  value(await stage.unstage(volume('ext4').target));
  t.diagnostic(`${COUNT} disks, 0 writes: ${JSON.stringify(Object.fromEntries(refusals))}`);
});

/**
 * A disk that two machines reach: this one has it open all the time, and has in its page cache what it read before the
 * other one wrote. Two loop devices of one file are told apart by the kernel as two machines would be.
 */
test('INV-9: a disk that another machine has formatted is not taken for what was read of it before', {
  skip,
}, async (t) => {
  const scratch = scratchDirectory(t);
  const [file, there] = [below(scratch, 'disk'), below(scratch, 'there')];
  mkdirSync(there);
  writeFileSync(file, '');
  truncateSync(file, 4 * SIZE_BYTES);
  const device = losetup(file);
  t.after(() => execFileSync('losetup', ['--detach', device]));
  const opened = openSync(device, 'r');
  t.after(() => closeSync(opened));
  const { stage, volume, call } = await stageWorld(t, scratch);
  assert.ok(readFileSync(device).every((byte) => byte === 0));
  const theirs = losetup(file);
  execFileSync('mkfs.ext4', ['-q', theirs]);
  execFileSync('mount', [theirs, there]);
  writeFileSync(below(there, 'theirs'), 'of the other machine');
  execFileSync('umount', [there]);
  execFileSync('losetup', ['--detach', theirs]);
  const refused = await stage.stage(volume, device, call);
  assert.equal(!refused.ok && refused.failure.code, 'device-content');
  assert.ok(!existsSync(volume.intent), 'no intent to format');
  value(await stage.stage(volume, device, call));
  assert.equal(readFileSync(below(volume.target, 'theirs'), 'utf8'), 'of the other machine');
  value(await stage.unstage(volume.target));
});

/** Another one than it may seem to be: what is wanted and there already is mounted. */
function typeFor(index: number, { what }: Image): string {
  const type = TYPES[index % TYPES.length] ?? 'ext4';
  return what.includes(type) ? 'ext4' : type;
}

function losetup(file: string): AbsolutePath {
  const said = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
  return parseAbsolutePath(said) ?? assert.fail(`no device: ${said}`);
}
