/** For hosts without a machine: what an answer leaves unread that may hold only so many bytes of contents. */
import type { DirectoryReading, FileEntry } from '../../mount/host.ts';

export function withinRoom(
  entries: readonly FileEntry[],
  { contentBytesMax = Number.POSITIVE_INFINITY, fileBytesMax, only }: DirectoryReading,
): readonly FileEntry[] {
  let left = contentBytesMax;
  const meant = only === undefined ? entries : entries.filter(({ name }) => name === only);
  if (left === Number.POSITIVE_INFINITY) return meant;
  return meant
    .toSorted((a, b) => a.facts.sizeBytes - b.facts.sizeBytes)
    .map((entry): FileEntry => {
      const { name, facts, content } = entry;
      if (content === undefined || facts.sizeBytes > fileBytesMax) return entry;
      if (left <= 0 || facts.sizeBytes > left)
        return { name, facts, content: undefined, stamp: undefined, unread: true };
      left -= content.ok ? content.value.length : 0;
      return entry;
    });
}
