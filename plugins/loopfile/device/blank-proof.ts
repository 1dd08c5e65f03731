/**
 * Is there nothing to lose? Asked right before mkfs, and answered by bytes.
 *
 * `blkid -p` exits 2 for "found nothing" and also for "could not read"; mkfs.ext4 formats over another file system
 * without asking when it has no terminal. Neither is a safety net, so this file is one.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type ByteRanges, endRanges, isZero } from '../../../mount/device/telling-bytes.ts';
import type { LoopDevice } from './loop-device.ts';
import { errnoIn } from '../../../mount/errno.ts';
import { status } from './status.ts';

const CHUNK_BYTES = 4 * 1024 * 1024;

export interface DataFile {
  readonly sizeBytes: number;
  /** Bytes that take room on disk; 0 means that the whole file is one hole. */
  readonly allocatedBytes: number;
}

/**
 * Settles when every byte is known to be zero: both ends are read, and the middle is a hole by the file's allocation
 * or is read as well. Throws FAILED_PRECONDITION at the first other byte or when somebody has the device open
 * exclusively (a mount, another mkfs), and INTERNAL when something cannot be read.
 */
export async function proveBlank(device: LoopDevice, file: DataFile): Promise<void> {
  const handle = await openExclusively(device);
  if (handle === undefined) throw status('FAILED_PRECONDITION', `${device.path} is in use`);
  try {
    const isHole = file.allocatedBytes === 0;
    const ranges: ByteRanges = isHole ? endRanges(file.sizeBytes) : [[0, file.sizeBytes]];
    for (const [from, to] of ranges) await readZeros(handle, device, from, to);
  } finally {
    await handle.close();
  }
}

/** No mount of any namespace and no careful tool holds the device. */
export async function isUnclaimed(device: LoopDevice): Promise<boolean> {
  const handle = await openExclusively(device);
  await handle?.close();
  return handle !== undefined;
}

/** Undefined when somebody else has it: the kernel gives out one exclusive claim (open(2), O_EXCL on a device). */
async function openExclusively(device: LoopDevice): Promise<FileHandle | undefined> {
  try {
    return await open(device.path, constants.O_RDONLY | constants.O_EXCL);
  } catch (error) {
    if (errnoIn(error) === 'EBUSY') return undefined;
    throw error;
  }
}

async function readZeros(
  handle: FileHandle,
  device: LoopDevice,
  fromByte: number,
  toByte: number,
): Promise<void> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (let at = fromByte; at < toByte; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(CHUNK_BYTES, toByte - at), at);
    if (bytesRead === 0) throw status('INTERNAL', `${device.path} ends at byte ${at}, its file at ${toByte}`);
    if (!isZero(buffer.subarray(0, bytesRead))) {
      throw status('FAILED_PRECONDITION', `not blank, so not formatted: data within 4 MiB after byte ${at}`);
    }
    at += bytesRead;
  }
}
