/** Inodes and file systems of the simulated machine; mounts are sim-kernel.ts. */
import type { DeathCause } from '../../mount/failure.ts';
import type { DeviceNumber, MemoryFileSystem, PathKind } from '../../mount/host.ts';

/** What a system call says when it refuses. */
export type Errno =
  | 'ENOENT'
  | 'ENOTDIR'
  | 'EISDIR'
  | 'EEXIST'
  | 'ENOTEMPTY'
  | 'EBUSY'
  | 'EINVAL'
  | 'ELOOP'
  | 'EROFS'
  | 'EIO'
  | 'ENOTBLK'
  | 'EXDEV';

export interface Inode {
  readonly number: number;
  readonly kind: Exclude<PathKind, 'absent'>;
  readonly fileSystem: FileSystem;
  mode: number;
  uid: number;
  gid: number;
  /** The number of a block device node; undefined for all else. */
  block: DeviceNumber | undefined;
  modifiedMs: number;
  content: Uint8Array;
  linkText: string;
  /** Entries of a directory. */
  readonly entries: Map<string, Inode>;
  parent: Inode | undefined;
  name: string;
  /** Where it had its last name, once it has none. */
  lostAt: Inode | undefined;
  /** How many mounts, of any mount tree, sit on this directory. */
  mountsOn: number;
}

/**
 * A file system with content of its own. `undo` is its unwritten journal: what a power cut may take back, oldest
 * first, in order (as ext4 does); undefined for one that is written through or gone at power-off anyway.
 */
export interface FileSystem {
  readonly type: 'ext4' | 'nfs4' | MemoryFileSystem;
  readonly label: string;
  /** `major:minor`; empty while nothing mounts it. */
  device: string;
  mounts: number;
  /** Until nothing mounts it any more. */
  death: { readonly cause: DeathCause; readonly sinceMs: number } | undefined;
  /** Who asks it waits until this ends. `killable`: but a process that is killed meanwhile is let go. */
  hang: { readonly sinceMs: number; readonly killable: boolean } | undefined;
  /** The block device it is on, by its number of now; without one the number is made up at each first mount. */
  block: DeviceNumber | undefined;
  readonly root: Inode;
  readonly undo: (() => void)[] | undefined;
  readonly numbers: InodeNumbers;
}

/** One per machine, so that the trace of a seed does not depend on what ran before it. */
export interface InodeNumbers {
  next: number;
}

const NO_BYTES = new Uint8Array(0);
const DIRECTORY_BYTES = 4_096;
/** ext4 writes its journal every few seconds; older entries than these are on the disk. */
const UNWRITTEN_ENTRIES_MAX = 48;

export function createFileSystem(
  type: FileSystem['type'],
  label: string,
  journal: boolean,
  numbers: InodeNumbers,
  block?: DeviceNumber,
): FileSystem {
  const undo = journal ? [] : undefined;
  const fileSystem = {
    type,
    label,
    device: '',
    mounts: 0,
    death: undefined,
    hang: undefined,
    block,
    undo,
    numbers,
  } as unknown as FileSystem;
  const root = createInode(fileSystem, 'directory', 0o755, 0);
  return Object.assign(fileSystem, { root });
}

export function createInode(fileSystem: FileSystem, kind: Inode['kind'], mode: number, nowMs: number): Inode {
  return {
    number: fileSystem.numbers.next++,
    kind,
    fileSystem,
    mode,
    uid: 0,
    gid: 0,
    block: undefined,
    modifiedMs: nowMs,
    content: NO_BYTES,
    linkText: '',
    entries: new Map(),
    parent: undefined,
    name: '',
    lostAt: undefined,
    mountsOn: 0,
  };
}

export function sizeOf(inode: Inode): number {
  if (inode.kind === 'directory') return DIRECTORY_BYTES;
  return inode.kind === 'symlink' ? inode.linkText.length : inode.content.length;
}

/** Puts `child` into `directory` under `name`, replacing what was there. */
export function link(directory: Inode, name: string, child: Inode, nowMs: number): void {
  const before = directory.entries.get(name);
  const modifiedBefore = directory.modifiedMs;
  if (before?.parent === directory) lose(before);
  place(directory, name, child);
  directory.modifiedMs = nowMs;
  remember(directory.fileSystem, () => {
    detach(directory, name, child);
    if (before !== undefined) place(directory, name, before);
    directory.modifiedMs = modifiedBefore;
  });
}

export function unlink(directory: Inode, name: string, nowMs: number): void {
  const child = directory.entries.get(name);
  if (child === undefined) return;
  const modifiedBefore = directory.modifiedMs;
  detach(directory, name, child);
  directory.modifiedMs = nowMs;
  remember(directory.fileSystem, () => {
    place(directory, name, child);
    directory.modifiedMs = modifiedBefore;
  });
}

/** Other bytes in a file that stays the one it is. */
export function setContent(inode: Inode, content: Uint8Array): void {
  const before = inode.content;
  inode.content = content;
  remember(inode.fileSystem, () => {
    inode.content = before;
  });
}

export function setMode(inode: Inode, mode: number): void {
  const before = inode.mode;
  if (before === mode) return;
  inode.mode = mode;
  remember(inode.fileSystem, () => {
    inode.mode = before;
  });
}

export function setGroup(inode: Inode, gid: number): void {
  const before = inode.gid;
  if (before === gid) return;
  inode.gid = gid;
  remember(inode.fileSystem, () => {
    inode.gid = before;
  });
}

/** fsync: the journal is one, so everything before is on the disk too. */
export function synchronise(fileSystem: FileSystem): void {
  if (fileSystem.undo !== undefined) fileSystem.undo.length = 0;
}

/** A power cut takes back the newest `lost` unwritten entries. */
export function losePower(fileSystem: FileSystem, lost: number): void {
  for (let taken = 0; taken < lost; taken += 1) fileSystem.undo?.pop()?.();
  synchronise(fileSystem);
}

/** The path inside its file system, as mountinfo shows it: of what was deleted the last one, and that it was. */
export function pathInside(inode: Inode): string {
  const names: string[] = [];
  let isDeleted = false;
  for (let at: Inode | undefined = inode; at !== undefined && at !== inode.fileSystem.root; ) {
    names.push(at.name);
    isDeleted ||= at.parent === undefined;
    at = at.parent ?? at.lostAt;
  }
  return `/${names.reverse().join('/')}${isDeleted ? '//deleted' : ''}`;
}

function place(directory: Inode, name: string, child: Inode): void {
  directory.entries.set(name, child);
  child.parent = directory;
  child.name = name;
}

function detach(directory: Inode, name: string, child: Inode): void {
  directory.entries.delete(name);
  if (child.parent === directory && child.name === name) lose(child);
}

function lose(child: Inode): void {
  child.lostAt = child.parent;
  child.parent = undefined;
}

function remember(fileSystem: FileSystem, undo: () => void): void {
  const unwritten = fileSystem.undo;
  if (unwritten === undefined) return;
  unwritten.push(undo);
  if (unwritten.length > UNWRITTEN_ENTRIES_MAX) unwritten.shift();
}

/** A file that was always there: no journal, no time. */
export function plant(directory: Inode, name: string, content: string): Inode {
  const inode = createInode(directory.fileSystem, 'file', 0o644, 0);
  inode.content = Buffer.from(content);
  place(directory, name, inode);
  return inode;
}

/** A directory that was always there. */
export function plantDirectory(directory: Inode, name: string): Inode {
  const inode = createInode(directory.fileSystem, 'directory', 0o755, 0);
  place(directory, name, inode);
  return inode;
}

/** The inode and all below it, mounts left aside. */
export function inodesOf(inode: Inode): Inode[] {
  return [inode, ...[...inode.entries.values()].flatMap(inodesOf)];
}
