/**
 * The one port to everything outside the process: files, mounts, drivers, time and chance.
 *
 * Everything above the `mount` floor acts through a `Host`, so the simulator drives the same code and a test can stop
 * the process before or after any effect (INV-36). `createLinuxHost` and that of test/sim pass test/contract/host.ts.
 */
import type { AbsolutePath, Brand } from './absolute-path.ts';
import type {
  BlockDevices,
  DeviceFileSystems,
  DeviceNumber,
  FileSystemType,
  IscsiSessions,
} from './block-devices.ts';
import type { DeathCause, Result } from './failure.ts';
import type { PlaceHolders } from './holder/place-holder.ts';
import type { MountTable } from './mount-table.ts';
import type { OwnershipReport, OwnershipRequest } from './ownership.ts';
import type { BoundPart, PartBind } from './part-bind.ts';
import type { RemoteCall, RemoteReply } from './remote-call.ts';
import type { Transition, TransitionArgs } from './transition.ts';
import type { UnmountTarget, WalkedTarget } from './path-tool.ts';
import type { WriteOptions } from './temporary-file.ts';
import type { UsageQuestions } from './usage.ts';

export {
  type AbsolutePath,
  below,
  isBelow,
  nameIn,
  parentOf,
  parseAbsolutePath,
  wayTo,
} from './absolute-path.ts';
export type { DeviceNumber, Disk } from './block-devices.ts';

export type Cancel = () => void;

export interface Clock {
  /** Monotonic milliseconds, in each process of one boot the same; all deadlines and back-off use it (INV-29). */
  nowMs(): number;
  /** Milliseconds since the epoch, for display only: it may be set at any time. */
  wallMs(): number;
  /** Calls `fire` once after `delayMs`, unless cancelled. */
  timer(delayMs: number, fire: () => void): Cancel;
}

/** In a `mount-point` nothing can be made while nothing is mounted, if its file system has the flag `i` (DL-15). */
export type DirectoryUse = 'mount-point';
export type PathKind =
  | 'absent'
  | 'directory'
  | 'file'
  | 'socket'
  | 'symlink'
  | 'fifo'
  | 'block'
  | 'character';

/** What lstat says. All fields but `kind` are zero when the path is absent. */
export interface PathFacts {
  readonly kind: PathKind;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly inode: number;
  readonly sizeBytes: number;
  /** Milliseconds since the epoch. */
  readonly modifiedMs: number;
}

/** A mount as the kernel knows it. Valid for one boot only: `mountId` is reused, so it is compared with `device`. */
export interface MountIdentity {
  readonly mountId: number;
  /** `major:minor` of the mounted file system, as in mountinfo. */
  readonly device: string;
  /** The device that a bound device node is; `device` is only that of the file system the node lies on. */
  readonly blockDevice?: DeviceNumber;
  /** It could not be written when it was made: that it cannot be now says nothing. */
  readonly readOnly?: true;
  /** What of the file system is mounted, its type, the mount below, and how many are stacked: once the table told. */
  readonly root?: string;
  readonly fsType?: string;
  readonly parentId?: number;
  readonly depth?: number;
}

/** Where a path lies in the tree of mounts. */
export interface MountPlace {
  /** The mount whose root is at the path; undefined when it is no mount point, or absent. */
  readonly mountId: number | undefined;
  /** The mount that the directory above it is in; where that is missing, the nearest one above that is there. */
  readonly within: number;
}

/** How a mounted file system is, and which. `silent`: it has not answered in time, and may still. */
export type FileSystemProbe =
  | { readonly kind: 'unmounted' | 'silent' }
  | { readonly kind: 'alive'; readonly readOnly: boolean; readonly device: string }
  | { readonly kind: 'dead'; readonly cause: DeathCause };

/** Answer of the O(1) question "is this path a mount point, and of what?". */
export type MountLookup =
  | { readonly mounted: false }
  | ({
      readonly mounted: true;
      /** It is there, and does not answer as a file system that can be used. */
      readonly death?: DeathCause;
      /** An ext4 or btrfs that was mounted writable: an error has made it `readOnly`, however soon after its mount. */
      readonly turnedReadOnly?: true;
    } & MountIdentity);

/** `hugetlbfs`: of huge pages, those of one size. */
export type MemoryFileSystem = 'tmpfs' | 'hugetlbfs';

export interface MountRequest extends WalkedTarget {
  readonly fsType: MemoryFileSystem | FileSystemType | 'bind' | 'nfs';
  /** The path to bind, the node of a device, `server:path`, or the label of a file system in memory. */
  readonly source: string;
  readonly target: AbsolutePath;
  /** Each one checked by the caller: no comma, no control character. */
  readonly options: readonly string[];
}

/** Names one content of one file: while the file has it, nothing was written. To be compared, not to be read. */
export type ContentStamp = Brand<string, 'ContentStamp'>;

/** Which directory it is; all of it is equal for the same directory through the same mount. */
export interface DirectoryIdentity {
  /** The mount that it is seen through; the kernel uses the number again, and it is of one boot. */
  readonly mountId: number;
  /** `major:minor` by fstat. */
  readonly device: string;
  /** Decimal digits. Reused by file systems, so it is compared with the time of birth where there is one. */
  readonly inode: string;
  /** Nanoseconds since the epoch, decimal; undefined where the file system keeps none. */
  readonly bornNs: string | undefined;
}

/** What is read of a directory. */
export interface DirectoryReading {
  readonly entriesMax: number;
  readonly fileBytesMax: number;
  /** Another directory than this one is `directory-replaced`: nothing of it is read. */
  readonly identity?: DirectoryIdentity;
  /** Contents by name that the caller has, and that are not read again. */
  readonly known?: ReadonlyMap<string, ContentStamp>;
  /** The bound of all contents together, the smaller files first; those beyond are `unread`: at 0, all of them. */
  readonly contentBytesMax?: number;
  /** The one entry that is looked at. */
  readonly only?: string;
}

export interface FileEntry {
  readonly name: string;
  readonly facts: PathFacts;
  /**
   * The content, or why it could not be read. Undefined for directories and special files, and for a file whose content
   * is the known one.
   */
  readonly content: Result<Uint8Array> | undefined;
  /** Names the content; undefined where a later write could leave the same one. */
  readonly stamp: ContentStamp | undefined;
  /** The answer would have been too long with its content. */
  readonly unread?: true;
}

/** What `removeTree` may take. */
export const REMOVE_TREE_DEADLINE_MS = 300_000;

/**
 * Guarantees: a promise settles only when the effect has ended, never merely because a deadline passed: the deadline
 * makes the host kill the call, and a call that cannot be killed stays open (its key stays held). Paths are walked
 * from `/` without following a symbolic link; a link on the way is `path-unsafe`.
 */
export interface Host extends Clock, BlockDevices, DeviceFileSystems, IscsiSessions, UsageQuestions {
  /** Uniform in [0, 1). */
  random(): number;
  /** /proc/sys/kernel/random/boot_id: a record of another boot proves nothing about mounts. */
  readonly bootId: string;

  // Files. Parents that are missing are created 0750 only by makeDirectory.
  /** lstat. `absent` is an answer, not a failure. */
  inspect(path: AbsolutePath): Promise<Result<PathFacts>>;
  /** Facts of all of `wayTo(path)`, in this order; what is absent is the last of them. */
  inspectWay(path: AbsolutePath): Promise<Result<readonly PathFacts[]>>;
  /**
   * Makes the directory and its missing parents (0750); exactly `mode` on the last one even if it existed, unless
   * something is mounted there: that is somebody's, and stays as it is.
   */
  makeDirectory(path: AbsolutePath, mode: number, use?: DirectoryUse): Promise<Result<void>>;
  /** rmdir, never recursive: a full directory is somebody's data. Absent is success. */
  removeEmptyDirectory(path: AbsolutePath): Promise<Result<void>>;
  /**
   * Deletes a directory of ours and all below it; absent is success. Never crosses a mount (by mnt_id, INV-8), never
   * follows a link; finding a mount below is `mount-busy` and leaves it alone.
   */
  removeTree(path: AbsolutePath): Promise<Result<void>>;
  /** Names in no order, at most `entriesMax`; more is `too-large`. A missing directory is `path-missing`. */
  listDirectory(path: AbsolutePath, entriesMax: number): Promise<Result<readonly string[]>>;
  /** Which directory is there now. A link, or a missing one, is a failure as for `listDirectory`. */
  identifyDirectory(path: AbsolutePath): Promise<Result<DirectoryIdentity>>;
  /** One directory with the facts and contents of its regular files, each of at most `fileBytesMax`. */
  readDirectoryFiles(path: AbsolutePath, reading: DirectoryReading): Promise<Result<readonly FileEntry[]>>;
  /** A regular file of at most `bytesMax`. */
  readFile(path: AbsolutePath, bytesMax: number): Promise<Result<Uint8Array>>;
  /** Replaces the file by temporary file and rename; with `durable`, fsync of file and directory before it settles. */
  writeFile(path: AbsolutePath, content: Uint8Array, options: WriteOptions): Promise<Result<void>>;
  /**
   * Writes over bytes that the file has already; they are on the disk when it settles. Where the file system writes in
   * place (ext4, XFS, tmpfs) it takes no block and no inode, so no full disk fails it, if the bytes were written before
   * (no hole). Not atomic: one cut short leaves any part of it, and nothing outside changed. Beyond it: `too-large`.
   * `mount-foreign`, and nothing done, where the directory is in another mount than `within`.
   */
  overwriteFile(path: AbsolutePath, at: number, content: Uint8Array, within?: number): Promise<Result<void>>;
  /** fsync(2) of a file or a directory: what it has now, whoever wrote it, is on the disk when it settles `ok`. */
  synchronise(path: AbsolutePath): Promise<Result<void>>;
  /** unlink of a file, link or socket; never a directory. Absent is success. */
  removeFile(path: AbsolutePath): Promise<Result<void>>;
  /** rename(2): replaces a file or link, never a directory that has entries. */
  rename(from: AbsolutePath, to: AbsolutePath): Promise<Result<void>>;
  /** symlink(2); an existing path is `path-wrong-kind`. */
  makeLink(path: AbsolutePath, text: string): Promise<Result<void>>;
  /** readlink(2). */
  readLink(path: AbsolutePath): Promise<Result<string>>;

  /**
   * Several path calls in one, which do what they do one by one; nothing of ours comes between. Past its deadline, or
   * with its broker lost, it may have done any part of its steps: effect `unknown`, where it changes the world. Those
   * that do go one after the other when they are about the same path.
   */
  perform<Args extends TransitionArgs, T>(transition: Transition<Args, T>, args: Args): Promise<Result<T>>;

  // Mounts.
  /** Read at start, resync, in doubt. It has the mounts at `about`, below it and on the way; others may be missing. */
  readMountTable(about: AbsolutePath): Promise<Result<MountTable>>;
  /**
   * The id of the mount whose root is at `path`; undefined when it is no mount point, or absent. The same cost at any
   * table size, and it never asks the mounted file system: a dead one can be taken down.
   */
  mountIdOf(path: AbsolutePath): Promise<Result<number | undefined>>;
  /** As `mountIdOf`, with the mount round it: has somebody mounted over a directory above? */
  mountPlaceOf(path: AbsolutePath): Promise<Result<MountPlace>>;
  /**
   * Is `path` a mount point, of which device, and does it serve? The same cost at any table size. Asks the mounted file
   * system, so it is for a mount that was just made or is about to be used; one that hangs keeps the call until its
   * deadline.
   */
  lookUpMount(path: AbsolutePath): Promise<Result<MountLookup>>;
  /**
   * Does the file system mounted at `path` still answer? Nothing is written; it costs the same at any size. Other calls
   * never wait for it, it settles within 20 s of its turn, and one that hangs is not asked again before it has ended.
   * For its turn it waits 30 s, behind others that hang: then `deadline-passed`, which says nothing of the file system.
   */
  probeFileSystem(path: AbsolutePath): Promise<Result<FileSystemProbe>>;
  /** mount(8). Failure is judged by the caller against the kernel, never by text. */
  mount(request: MountRequest): Promise<Result<void>>;
  /** A part of a volume is bound where only that is to be seen. Never through a link that leads out of the volume. */
  bindPart(request: PartBind): Promise<Result<BoundPart>>;
  /** umount(8) of one layer; plain: neither lazy nor forced. */
  unmount(target: AbsolutePath, walked?: UnmountTarget): Promise<Result<void>>;
  /**
   * Who keeps the mount at `target` busy: for people, at most 8 strings such as `pid 123 (bash)`, found within 2 s.
   * A hint: it may be incomplete and out of date, and it is empty when nobody was found or nothing is mounted there.
   * Never asks the mounted file system. No answer may wait for it: reading about a stuck process may itself hang.
   */
  findHolders(target: AbsolutePath): Promise<Result<readonly string[]>>;
  /** One pass over all processes; `within`: the pods' directory. Complete, or a failure. See `PlaceHolder`. */
  findPlaceHolders(places: readonly AbsolutePath[], within: AbsolutePath): Promise<Result<PlaceHolders>>;

  // Ownership.
  /**
   * Walks of one volume, and of one root directory, go one after the other, each whole. A root that says that it is
   * another group's stops saying so (setgid goes) before the first entry is changed; then children come before their
   * directory and the root last, so that a walk cut short is seen and resumed, whatever group comes next. Entries that
   * are right are only looked at. It may take any time. An entry that refuses (read-only, immutable, gone) is counted;
   * a sick file system, or a root that is read-only, is a failure. Setuid goes with the old group, as chown(2) has it.
   */
  changeOwnership(request: OwnershipRequest): Promise<Result<OwnershipReport>>;

  // Neighbours.
  call<Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>>;
  /**
   * Says "look": events may be lost, doubled or late. Watching a missing directory begins when it appears. `concerns`:
   * whether what happens to an entry of that name need be told; by default anything is.
   */
  watch(directory: AbsolutePath, hint: () => void, concerns?: (name: string) => boolean): Cancel;
  /** sd_notify(3) state lines (`READY=1`); does nothing when no service manager asked to be told. */
  notify(state: string): Promise<Result<void>>;
}
