/** What of a file system is mounted, as the mount table names it. Pure. */

/** What the kernel puts behind the root of a mount that has no name any more (dentry_path in fs/d_path.c). */
const DELETED = '//deleted';

/** The root as it was named when it was mounted. */
export function nameOfRoot(root: string): string {
  return root.endsWith(DELETED) ? root.slice(0, -DELETED.length) : root;
}
