/** A part of a volume, bound at a place of its own: what is asked for, and what came of it. */
import { fail, type Result } from './failure.ts';
import type { AbsolutePath } from './absolute-path.ts';

export interface PartBind {
  /** The root directory of the volume; no link on the way to it is followed. */
  readonly root: AbsolutePath;
  /**
   * The mount whose own root it has to be when the walk begins; one that is gone by then is `mount-lost`, and nothing
   * was made in what lies below it. Undefined: the root is a directory of a file system that others have, too.
   */
  readonly rootMountId: number | undefined;
  /**
   * The way below the root: relative, without `..`. A link on it is followed as long as it leads to nowhere else than
   * below the root; one that is absolute or climbs above the root is `subpath-unsafe`, and so is a loop.
   */
  readonly part: string;
  /** Where it is to be seen. The mount point is made as what the part is, a directory (0750) or a file (0640). */
  readonly target: AbsolutePath;
  /** What is missing of the way is made, directories with the mode of the root; else it is `subpath-missing`. */
  readonly makesMissing: boolean;
  /** What the mount has besides what that of the root has; of one that is there, what it lacks of them is added. */
  readonly flags?: readonly MountFlag[];
}

/** What one mount has for itself, whatever others of the same file system have, as mountinfo calls it. */
export const MOUNT_FLAGS = [
  'ro',
  'nosuid',
  'nodev',
  'noexec',
  'noatime',
  'nodiratime',
  'relatime',
  'nosymfollow',
] as const;

export type MountFlag = (typeof MOUNT_FLAGS)[number];

/**
 * `bound`: what is at the part now is what one sees at the target, whether it was bound now or before. Else what one
 * sees there is something else, mounted by this number; the part is there, and nothing was done to the target.
 */
export type BoundPart = 'bound' | { readonly otherMountId: number };

export function failRootLost(root: AbsolutePath): Result<never> {
  const message = `the volume is not mounted any more at ${root}`;
  return fail({ code: 'mount-lost', message, effect: 'none', blocker: root });
}
