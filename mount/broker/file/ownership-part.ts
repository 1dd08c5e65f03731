/** One part of giving a tree to a volume's group: what a call is about, and what it answers. */
import type { BigIntStats } from 'node:fs';
import { timesOf } from './content-stamp.ts';
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
   * directory that are no directories. `tree`: all below, then the directory. `self`: the directory alone. `count`:
   * tells the names below of those files that `files` tells of, and changes nothing. `linked`: gives of the files with
   * several names those that `files` tells of, and no others.
   */
  readonly scope: 'look' | 'unmark' | 'level' | 'tree' | 'self' | 'count' | 'linked';
  /** As `LinkedName.file`: which are to be counted again, or are to be given because all of their names are here. */
  readonly files?: readonly string[];
  /** How long ago a file has got, lost or changed a name, at least, before its times tell that from a later one. */
  readonly ageMs: number;
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
  /** Names of files with several that were left. */
  readonly linked?: readonly LinkedName[];
}

export interface LinkedName {
  /** Which file it is, in a state in which none of its names has come, gone or moved; how many there are ends it. */
  readonly file: string;
  /**
   * A name may have come, gone or moved in the same tick of the clock, and nothing tells: it has to be the same file,
   * in the same state, once more after `ageMs`.
   */
  readonly young?: true;
  /** The directory by its inode, and the name: the same however often it is seen, wherever the directory is moved. */
  readonly name: string;
}

/** As `LinkedName.file`. */
export function linkedFile(stats: BigIntStats): string {
  return `${timesOf(stats)} of ${stats.nlink}`;
}

/** How many names a file has of which `linkedFile` said this. */
export function namesOf(file: string): number {
  return Number(file.split(' of ')[1]);
}
