/** How large a volume becomes: the arithmetic of CSI's CapacityRange. */
import type { CapacityRange } from '../../csi/wire/generated/csi.ts';
import { status } from '../device/status.ts';

const DEFAULT_BYTES = 1024 ** 3;
/** The file systems that carry pools stop at 16 TiB per file (ext4). */
const VOLUME_BYTES_MAX = 8 * 1024 ** 4;
const BLOCK_BYTES = 4096;

/**
 * The smallest size within the range that is not below `atLeastBytes` (what the file system needs) nor `nowBytes`
 * (volumes never shrink), in whole 4 KiB blocks. OUT_OF_RANGE when there is none, INVALID_ARGUMENT for bounds that mean
 * nothing.
 */
export function chooseSize(range: CapacityRange | undefined, atLeastBytes: number, nowBytes = 0): number {
  const required = range?.requiredBytes ?? 0n;
  const limit = range?.limitBytes ?? 0n;
  if (required < 0n || limit < 0n) throw status('INVALID_ARGUMENT', 'capacity_range has a negative bound');
  const highest = limit === 0n ? VOLUME_BYTES_MAX : Math.min(Number(limit), VOLUME_BYTES_MAX);
  const byDefault = nowBytes === 0 ? roundDown(Math.min(DEFAULT_BYTES, highest)) : nowBytes;
  const wanted = required === 0n ? byDefault : roundUp(Number(required));
  const chosen = Math.max(wanted, atLeastBytes, nowBytes);
  if (chosen > highest)
    throw status('OUT_OF_RANGE', `no size fits: at least ${chosen} bytes, at most ${highest}`);
  return chosen;
}

function roundDown(bytes: number): number {
  return Math.floor(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}
