/** One part of giving a tree to a volume's group: what a call is about, and what it answers. */
import type { AbsolutePath } from '../../host.ts';
import type { OwnershipReport } from '../../ownership.ts';

/** What one call does. */
export interface OwnershipPart {
  /** The root of the volume. */
  readonly path: AbsolutePath;
  /** The mount of the root, when a call before has seen it: another one is `mount-lost`. */
  readonly mountId: number | undefined;
  /** From the root to the directory that this part is about; names are bytes. */
  readonly names: readonly Uint8Array[];
  /**
   * `look`: changes nothing. `unmark`: a root that another group has stops saying so. `level`: the entries of the
   * directory that are no directories. `tree`: all below, then the directory. `self`: the directory alone. `linked`: of
   * the files below that have several names those that `wholes` tells of, and no others.
   */
  readonly scope: 'look' | 'unmark' | 'level' | 'tree' | 'self' | 'linked';
  /** As in `OwnershipPartReport.linked`: all of the names of these files are in the volume. */
  readonly wholes?: readonly string[];
  readonly gid: number;
  readonly readOnly: boolean;
}

export interface OwnershipPartReport extends OwnershipReport {
  readonly mountId: number;
  /** A `look` tells device and inode of the directory, by which any path to it is known. */
  readonly identity?: string;
  /** The directory itself has the group and the bits. */
  readonly right: boolean;
  /** A `level` names the directories in it; undefined when there are too many for one answer. */
  readonly directories: readonly Uint8Array[] | undefined;
  /** Files with several names that were left, as `linkedFile` says them, once for each name that was seen. */
  readonly linked?: readonly string[];
}

/** Which file it is, and how many names it has: the same for all of its names as long as these are so many. */
export function linkedFile({ ino, nlink }: { readonly ino: number; readonly nlink: number }): string {
  return `${ino} of ${nlink}`;
}

/** How many names a file has of which `linkedFile` said this. */
export function namesOf(file: string): number {
  return Number(file.split(' of ')[1]);
}
