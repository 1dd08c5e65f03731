/** A partition as the disk of a local volume: blkid(8) says of it that it is one, also when nothing is on it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { type AbsolutePath, below, parseAbsolutePath } from '../../../mount/host.ts';
import { scratchDirectory } from '../../mount/scratch.ts';
import { inPrivateNamespace } from '../../real/namespace.ts';
import { until } from '../../until.ts';
import { value } from '../../value.ts';
import { stageWorld } from './stage-world.ts';

const MEBIBYTE = 1024 * 1024;
const SECTOR_BYTES = 512;
const skip = inPrivateNamespace();

/** The one partition of a disk, from its first mebibyte to its end, as a table of DOS has it. */
async function partitionOn(t: TestContext, file: AbsolutePath): Promise<AbsolutePath> {
  const sizeBytes = 32 * MEBIBYTE;
  writeFileSync(file, '');
  truncateSync(file, sizeBytes);
  const table = Buffer.alloc(SECTOR_BYTES);
  const first = MEBIBYTE / SECTOR_BYTES;
  const sectors = sizeBytes / SECTOR_BYTES - first;
  table.writeUInt8(0x83, 450);
  table.writeUInt32LE(first, 454);
  table.writeUInt32LE(sectors, 458);
  table.writeUInt16LE(0xaa55, 510);
  writeAt(file, 0, table);
  const make = ['--find', '--show', '--partscan', file];
  const disk = execFileSync('losetup', make, { encoding: 'utf8' }).trim();
  t.after(() => execFileSync('losetup', ['--detach', disk]));
  // A kernel may know no tables of DOS, and then is told.
  if (!existsSync(`${disk}p1`)) execFileSync('addpart', [disk, '1', `${first}`, `${sectors}`]);
  const partition = parseAbsolutePath(`${disk}p1`) ?? assert.fail(disk);
  await until('the partition is there', () => existsSync(partition));
  return partition;
}

function writeAt(path: string, at: number, bytes: Uint8Array): void {
  const descriptor = openSync(path, 'r+');
  writeSync(descriptor, bytes, 0, bytes.length, at);
  closeSync(descriptor);
}

async function world(t: TestContext) {
  const scratch = scratchDirectory(t);
  const partition = await partitionOn(t, below(scratch, 'disk'));
  return { ...(await stageWorld(t, scratch)), partition };
}

test('a blank partition is formatted as a blank disk is, and is there again afterwards', {
  skip,
}, async (t) => {
  const { stage, volume, partition, call } = await world(t);
  value(await stage.stage(volume, partition, call));
  writeFileSync(below(volume.target, 'kept'), 'kept');
  value(await stage.unstage(volume.target));
  value(await stage.stage(volume, partition, call));
  assert.ok(existsSync(below(volume.target, 'kept')));
  value(await stage.unstage(volume.target));
});

test('a partition with bytes that blkid(8) does not know, or with a swap on it, stays as it is', {
  skip,
}, async (t) => {
  const { stage, volume, partition, call } = await world(t);
  writeAt(partition, 2 * MEBIBYTE, Buffer.from('somebody'));
  const unknown = await stage.stage(volume, partition, call);
  assert.match(unknown.ok ? 'ok' : unknown.failure.message, /is not blank/);
  execFileSync('mkswap', [partition], { stdio: 'ignore' });
  const swap = await stage.stage(volume, partition, call);
  assert.match(swap.ok ? 'ok' : swap.failure.message, /holds swap/);
  assert.ok(!existsSync(volume.intent), 'no intent to format');
});
