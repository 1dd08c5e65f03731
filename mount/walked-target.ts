/** What is known of a place before a tool is run on it. */

/** Tools follow links, so the way to the target is looked at before one is run. */
export interface WalkedTarget {
  /** The call before this one has walked there: that look is not needed. */
  readonly isWalked?: true;
}

export interface UnmountTarget extends WalkedTarget {
  /** It was proven to be a tmpfs of ours: nothing can keep its umount, so it may share a process with others. */
  readonly isMemory?: true;
}
