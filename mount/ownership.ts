/** Giving the files of a volume to a pod's group: what is asked for, and what was found. */
import type { AbsolutePath } from './absolute-path.ts';

/** Gives what a pod's group must be able to use to that group (kubelet: SetVolumeOwnership; KEP-695). */
export interface OwnershipRequest {
  /** Whose walks are never at the same time, whatever their paths. */
  readonly volume: string;
  /** The root of the volume: walked within this mount only (by mnt_id), never through a link. */
  readonly path: AbsolutePath;
  /**
   * The mount that was proven to be there: when it has gone the walk is `mount-lost`, and what it bares stays as it is.
   * Undefined: the volume is a plain directory.
   */
  readonly mountId: number | undefined;
  readonly gid: number;
  /** Read-only volumes get r (0440) where others get rw (0660); directories get x and setgid in both. */
  readonly readOnly: boolean;
  /** `on-root-mismatch`: nothing is walked when the root has the group and the bits already; it is set last. */
  readonly policy: 'always' | 'on-root-mismatch';
  /** Entries seen so far: at most once a second. */
  readonly onProgress: (entriesSeen: number) => void;
  /** It waits for the end of another walk of this volume, which gives it to that group. */
  readonly onWaiting: (gid: number) => void;
  /** Asked about once a second: true ends the walk with `no-longer-wanted`. */
  readonly isCancelled: () => boolean;
}

/** What a walk found: entries seen, entries that had to be changed, entries that could not be. */
export interface OwnershipReport {
  readonly seen: number;
  readonly changed: number;
  /** Files that refuse (immutable, gone meanwhile): as in the kubelet they do not fail the walk. */
  readonly refused: number;
}
