/** Where a link of /proc leads, though its path is longer than the kernel tells (PATH_MAX, 4,095 bytes). */
import { closeSync, openSync, readlinkSync } from 'node:fs';
import { errnoOf } from '../../errno.ts';
import { mountIdOf, O_PATH, type OpenPath, openDirectoryIn, openPathOf } from './path-walk.ts';

export type LinkEnd =
  /** For a directory too far down: that of the lowest one above it that the kernel tells. */
  | { readonly kind: 'path'; readonly path: string }
  /** A file too far down, or a directory that does not let us pass: only the mount that it is on is known. */
  | { readonly kind: 'mount'; readonly mountId: number };

/** So many directories at a time: a path of `..` has an end, too. */
const LEVELS = 1_000;
const STUCK: ReadonlySet<string> = new Set(['ENOTDIR', 'EACCES', 'EPERM']);

/**
 * Whoever nests directories deep enough has such paths, and must not keep others from being found. Throws node's errno
 * exceptions. No file system is asked, but one that looks again at each directory that is passed (NFS).
 */
export function linkEnd(link: string): LinkEnd {
  const path = textOf(link);
  if (path !== undefined) return { kind: 'path', path };
  const end = openPathOf(openSync(link, O_PATH));
  try {
    return { kind: 'path', path: beginningOf(end) };
  } catch (error) {
    if (!STUCK.has(errnoOf(error))) throw error;
    return { kind: 'mount', mountId: mountIdOf(end) };
  } finally {
    closeSync(end.descriptor);
  }
}

/** Undefined when it is too long to be told. */
function textOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch (error) {
    if (errnoOf(error) === 'ENAMETOOLONG') return undefined;
    throw error;
  }
}

/** In large steps while that is still too far down, then one by one. */
function beginningOf(end: OpenPath): string {
  let [levels, from] = [LEVELS, openDirectoryIn(end, '.')];
  try {
    for (;;) {
      const above = openDirectoryIn(from, '../'.repeat(levels));
      const path = textOf(above.path);
      if (path !== undefined && levels === 1) {
        closeSync(above.descriptor);
        return path;
      }
      if (path === undefined) {
        closeSync(from.descriptor);
        from = above;
      } else {
        closeSync(above.descriptor);
        levels = 1;
      }
    }
  } finally {
    closeSync(from.descriptor);
  }
}
