/** What the simulated host does to whole trees, so far or all of it: a kill can leave any part behind. */
import type { OwnershipPart, OwnershipPartReport } from '../../mount/broker/file/ownership-part.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import type { Errno, Inode } from './file-tree.ts';
import type { SimKernel } from './sim-kernel.ts';
import { isOwned, modeAfterChown, ownedMode } from './tree-ownership.ts';

const SETGID = 0o2000;

/** One part of a walk; changes at most `budget` entries, a directory after what is in it; stays on the mount. */
export function changeOwnershipPart(
  kernel: SimKernel,
  part: OwnershipPart,
  budget: number,
): OwnershipPartReport | Errno {
  const root = kernel.walk(part.path);
  if (typeof root === 'string') return root;
  if (root.inode.kind !== 'directory') return root.inode.kind === 'symlink' ? 'ELOOP' : 'ENOTDIR';
  const { mount } = root;
  const death = mount.fileSystem.death?.cause;
  if (death === 'input-output' || death === 'daemon-gone') return 'EIO';
  const report = { seen: 0, changed: 0, refused: 0, mountId: mount.id, right: true };
  const top = follow(root.inode, part.names);
  if (top === undefined) return { ...report, directories: [] };
  let left = budget;
  const change = (inode: Inode): void => {
    report.seen += 1;
    if (isOwned(inode, part) || left <= 0) return;
    left -= 1;
    const mode = ownedMode({ ...inode, mode: modeAfterChown(inode, part.gid) }, part);
    const denied = kernel.changeGroup(mount, inode, part.gid, mode);
    if (denied === undefined) report.changed += 1;
    else report.refused += 1;
  };
  // As on the real host: nothing below a root that is read-only can have been changed.
  const isLockedRoot = (): boolean => {
    const isLocked = death !== undefined || mount.options.includes('ro');
    return part.names.length === 0 && isLocked && !isOwned(top, part);
  };
  const children = [...top.entries.values()].filter(({ mountsOn }) => mountsOn === 0);
  switch (part.scope) {
    case 'look':
      return {
        ...report,
        right: isOwned(top, part),
        identity: `${mount.fileSystem.label} ${top.number}`,
        directories: [],
      };
    case 'unmark':
      if (top.gid === part.gid || (top.mode & SETGID) === 0) return { ...report, directories: [] };
      return (
        kernel.changeGroup(mount, top, top.gid, top.mode & ~SETGID) ?? {
          ...report,
          changed: 1,
          directories: [],
        }
      );
    // Nothing here has several names.
    case 'count':
    case 'linked':
      return { ...report, directories: [] };
    case 'level': {
      const isDirectory = ({ kind }: Inode) => kind === 'directory';
      children.filter((child) => !isDirectory(child)).forEach(change);
      return { ...report, directories: children.filter(isDirectory).map(({ name }) => Buffer.from(name)) };
    }
    case 'tree':
      for (const child of children) visit(child, change);
      if (isLockedRoot()) return 'EROFS';
      change(top);
      return { ...report, directories: [] };
    case 'self':
      if (isLockedRoot()) return 'EROFS';
      change(top);
      return { ...report, directories: [] };
  }
}

function follow(root: Inode, names: readonly Uint8Array[]): Inode | undefined {
  let at: Inode | undefined = root;
  for (const name of names) at = at?.entries.get(Buffer.from(name).toString());
  return at?.kind === 'directory' ? at : undefined;
}

function visit(inode: Inode, change: (inode: Inode) => void): void {
  for (const child of inode.entries.values()) if (child.mountsOn === 0) visit(child, change);
  change(inode);
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
