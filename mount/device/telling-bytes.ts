/** The bytes of a device that tell of something on it: where signatures are, and whether they are all zero. Pure. */

const MEBIBYTE = 1024 * 1024;
/** Signatures live at the ends: ext4, xfs, btrfs, LUKS and LVM in front, GPT copies and md and ZFS labels behind. */
const END_BYTES = 4 * MEBIBYTE;
/**
 * Copies of superblocks further in, for who has overwritten the beginning alone: of ext4 (after 8,193 and 32,768 blocks
 * of 1 and 4 KiB, and after three times as many), of btrfs, and the second groups of xfs of usual sizes.
 */
const COPIES = [8, 24, 64, 128, 384, 640, 1_024, 16 * 1_024, 256 * 1_024].map((at) => at * MEBIBYTE);
const COPY_BYTES = MEBIBYTE;
const ZEROS = Buffer.alloc(MEBIBYTE);

export type ByteRanges = readonly (readonly [from: number, to: number])[];

/** Where nothing but the ends can hold anything, as in a file that is one hole; all of a small one. */
export function endRanges(sizeBytes: number): ByteRanges {
  if (sizeBytes <= 2 * END_BYTES) return [[0, sizeBytes]];
  return [
    [0, END_BYTES],
    [sizeBytes - END_BYTES, sizeBytes],
  ];
}

/** What is read of a device that may be too large to be read whole; all of a small one. */
export function tellingRanges(sizeBytes: number): ByteRanges {
  const [front, back] = endRanges(sizeBytes);
  if (front === undefined || back === undefined) return endRanges(sizeBytes);
  const [end] = back;
  const copies = COPIES.filter((at) => at < end).map((at) => [at, Math.min(at + COPY_BYTES, end)] as const);
  return [front, ...copies, back];
}

export function isZero(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const part = bytes.subarray(at, at + ZEROS.length);
    if (ZEROS.compare(part, 0, part.length, 0, part.length) !== 0) return false;
  }
  return true;
}
