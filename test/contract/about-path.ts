/** For hosts without a machine: which mounts a table about a path has, and not one more. */
import { type AbsolutePath, overlap } from '../../mount/absolute-path.ts';
import type { MountEntry } from '../../mount/mount-table.ts';

/** At the path, below it, and on the way to it. */
export function aboutPath(entries: readonly MountEntry[], about: AbsolutePath): readonly MountEntry[] {
  return entries.filter(({ target }) => overlap(target, about));
}
