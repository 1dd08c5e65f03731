/** What the simulated host does to whole trees, so far or all of it: a kill can leave any part behind. */
import { type AbsolutePath, below, type OwnershipReport, type OwnershipRequest } from '../../mount/host.ts';
import type { Errno, Inode } from './file-tree.ts';
import type { SimKernel } from './sim-kernel.ts';
import { isOwned, modeAfterChown, ownedMode } from './tree-ownership.ts';

/** Changes at most `budget` entries, the root last; stays on its mount. */
export function changeOwnership(
  kernel: SimKernel,
  request: OwnershipRequest,
  budget: number,
): OwnershipReport | Errno {
  const root = kernel.walk(request.path);
  if (typeof root === 'string') return root;
  if (root.inode.kind !== 'directory') return root.inode.kind === 'symlink' ? 'ELOOP' : 'ENOTDIR';
  const report = { seen: 0, changed: 0, refused: 0 };
  if (request.policy === 'on-root-mismatch' && isOwned(root.inode, request)) return { ...report, seen: 1 };
  let left = budget;
  const visit = (inode: Inode): Errno | undefined => {
    for (const child of inode.entries.values()) if (child.mountsOn === 0) visit(child);
    report.seen += 1;
    if (isOwned(inode, request) || left <= 0) return undefined;
    left -= 1;
    const mode = ownedMode({ ...inode, mode: modeAfterChown(inode, request.gid) }, request);
    const denied = kernel.changeGroup(root.mount, inode, request.gid, mode);
    if (denied === undefined) report.changed += 1;
    else report.refused += 1;
    return denied;
  };
  return visit(root.inode) ?? report;
}

/** Deletes at most `budget` entries, deepest first; nothing at all where a mount is below. */
export function removeBelow(kernel: SimKernel, path: AbsolutePath, budget: number): Errno | undefined {
  const root = kernel.walk(path);
  if (typeof root === 'string') return root;
  if (root.inode === root.mount.root) return 'EBUSY';
  if (root.inode.kind !== 'directory') return root.inode.kind === 'symlink' ? 'ELOOP' : 'ENOTDIR';
  if (hasMountBelow(root.inode)) return 'EBUSY';
  const left = { entries: budget };
  return (
    removeEntries(kernel, path, root.inode, left) ??
    (left.entries > 0 ? kernel.removeDirectory(path) : undefined)
  );
}

function removeEntries(
  kernel: SimKernel,
  path: AbsolutePath,
  inode: Inode,
  left: { entries: number },
): Errno | undefined {
  for (const [name, child] of [...inode.entries]) {
    const childPath = below(path, name);
    if (child.kind === 'directory') {
      const denied = removeEntries(kernel, childPath, child, left);
      if (denied !== undefined) return denied;
    }
    if (left.entries <= 0) return undefined;
    left.entries -= 1;
    const denied =
      child.kind === 'directory' ? kernel.removeDirectory(childPath) : kernel.removeFile(childPath);
    if (denied !== undefined) return denied;
  }
  return undefined;
}

function hasMountBelow(directory: Inode): boolean {
  return [...directory.entries.values()].some((child) => child.mountsOn > 0 || hasMountBelow(child));
}
