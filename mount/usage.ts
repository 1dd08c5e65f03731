/** How much room the files of a volume take: what is asked for, and what was found. */
import type { AbsolutePath } from './absolute-path.ts';
import type { Result } from './failure.ts';

export interface UsageRequest {
  readonly path: AbsolutePath;
  /** `tree`: of all that is in a directory, and of itself. `file-system`: of the one that is mounted there. */
  readonly scope: 'tree' | 'file-system';
}

/** Undefined: nobody bounds it there. */
export interface Room {
  readonly used: bigint;
  readonly total: bigint | undefined;
  readonly available: bigint | undefined;
}

export interface Usage {
  /** As the file system has allotted them, not as long as files say they are. */
  readonly bytes: Room;
  readonly inodes: Room;
  /** False: there was more than one question may look at, and at least so much is used. */
  readonly isWhole: boolean;
}

export interface UsageQuestions {
  /**
   * Nothing is written, no link is followed, and no mount below the path is counted or entered. Other calls never wait
   * for it; the look ends after 20 s or a million entries, a silent file system is given up after 10 s, unless its
   * kernel does not let go. A directory that is a mount point is `mount-foreign`, a file system that is not mounted
   * `mount-lost`, nothing there `path-missing`.
   */
  measureUsage(request: UsageRequest): Promise<Result<Usage>>;
}
