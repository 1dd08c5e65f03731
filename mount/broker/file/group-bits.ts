/** What a volume's group needs of a file or directory: the group, and the bits of its mode. */
import type { Stats } from 'node:fs';
import type { OwnershipPart } from './ownership-part.ts';

const WRITABLE_BITS = 0o660;
const READABLE_BITS = 0o440;
const DIRECTORY_BITS = 0o2110;

export function isRight(seen: Stats, part: OwnershipPart): boolean {
  const bits = bitsFor(seen, part);
  return seen.gid === part.gid && (seen.mode & bits) === bits;
}

/**
 * The mode of a link means nothing, and chmod(2) would go through it. That of a device node says who may have the
 * device, which is no file of the volume.
 */
export function bitsFor(seen: Stats, { readOnly }: OwnershipPart): number {
  if (seen.isSymbolicLink() || seen.isBlockDevice() || seen.isCharacterDevice()) return 0;
  return (readOnly ? READABLE_BITS : WRITABLE_BITS) | (seen.isDirectory() ? DIRECTORY_BITS : 0);
}
