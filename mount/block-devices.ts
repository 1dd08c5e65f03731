/** What the host does with block devices besides mounting them: holds, file systems on them, and sessions for some. */
import type { AbsolutePath, Brand } from './absolute-path.ts';
import type { Result } from './failure.ts';
import type { DeviceContent, FileSystemType } from './device/file-system-tools.ts';

export type { FileSystemType } from './device/file-system-tools.ts';

/** Block device as the kernel numbers it: `major:minor`, `8:16`. Reused once nobody has the device open. */
export type DeviceNumber = Brand<string, 'DeviceNumber'>;

/** A disk as long as it is in the machine. */
export interface Disk {
  readonly device: DeviceNumber;
  /**
   * The kernel's diskseq: another disk that gets the same number in this boot has another. A partition has its disk's.
   * Absent: no disk has the number, or the kernel (before 5.15) does not tell.
   */
  readonly sequence?: string;
}

export interface BlockDevices {
  /** The number of the block device node at `path`; undefined when there is none, or something else. lstat only. */
  deviceOf(path: AbsolutePath): Promise<Result<DeviceNumber | undefined>>;
  /** As `deviceOf`, with which disk has that number now. Nothing is opened. */
  identifyDisk(path: AbsolutePath): Promise<Result<Disk | undefined>>;
  /**
   * Keeps the block device at `path` open through a loop device, as the kubelet does, until `releaseDevice`: while it
   * is open the kernel gives its number to no other device (k/k#34437). Survives this process. Held already is success.
   */
  holdDevice(path: AbsolutePath): Promise<Result<void>>;
  /**
   * Ends every hold at `path`, whoever made it, and those that `holdDevice` made there and somebody has taken the bind
   * from; none is success. Looks at the kernel's loop devices, not at records. `device-in-use` when one is still there:
   * somebody has the loop device itself open.
   */
  releaseDevice(path: AbsolutePath): Promise<Result<void>>;
  /**
   * Every path below `within` at which something is held, whoever made the hold. Of one path it does not tell how
   * often, nor whether what is held is what is there now. Complete, or a failure; no device is asked.
   */
  heldPaths(within: AbsolutePath): Promise<Result<readonly AbsolutePath[]>>;
  /**
   * Everybody who still uses a device, in all mount namespaces: mounts of it, processes that have it open, devices on
   * top of it, loop devices over it (those of `holdDevice` included). Complete: what could not be looked at is a
   * failure, never an empty answer. At most 32 strings for people, found within 10 s or `deadline-passed`.
   */
  findDeviceUsers(device: DeviceNumber): Promise<Result<readonly string[]>>;
}

export interface DeviceFileSystems {
  /** By blkid(8), which reads and changes nothing. `nothing` does not prove that there is nothing. */
  readDeviceContent(device: AbsolutePath): Promise<Result<DeviceContent>>;
  /**
   * `ok`: nobody else uses the device, and every byte that could tell of something on it was read anew and is zero
   * (INV-9): what the kernel has kept of an earlier look does not count.
   * `device-in-use`: a mount in any namespace, or another tool, has it; `device-content` names the first other byte.
   */
  proveBlank(device: AbsolutePath): Promise<Result<void>>;
  /** After a proof of its own, right before mkfs. Never with a force flag: what mkfs refuses stays as it is. */
  makeFileSystem(device: AbsolutePath, type: FileSystemType): Promise<Result<void>>;
  /**
   * Repairs what is safe to repair without asking, on a device that nobody uses and that can be written; on another one
   * it does nothing. `device-content`: it needs a person.
   */
  checkFileSystem(device: AbsolutePath, type: FileSystemType): Promise<Result<void>>;
  /**
   * To the size of its device: one that `growsMounted` where it is mounted, others where they could be repaired. A
   * failure with effect `none`: it is as large as before, and whole.
   */
  growFileSystem(place: GrowingFileSystem): Promise<Result<void>>;
}

export interface GrowingFileSystem {
  readonly device: AbsolutePath;
  readonly type: FileSystemType;
  /** Undefined: it is not mounted. */
  readonly mountPoint: AbsolutePath | undefined;
}

/** One way to a target. */
export interface IscsiWay {
  readonly iqn: string;
  /** `host:port`; an address of IPv6 is in brackets. */
  readonly portal: string;
  /** The name of an interface of open-iscsi: `default`, or one that an administrator has made. */
  readonly iface: string;
}

/** A disk that the kernel has by a session. */
export interface IscsiDisk {
  readonly lun: number;
  readonly node: AbsolutePath;
  readonly device: DeviceNumber;
  /** The device-mapper's device that joins this path with others (multipath). */
  readonly map?: { readonly node: AbsolutePath; readonly device: DeviceNumber };
}

export interface IscsiSession extends IscsiWay {
  /** The kernel's number; of one boot. */
  readonly number: number;
  /** False: its portal is silent, or the login has not ended; what is asked of its disks waits. */
  readonly isLoggedIn: boolean;
  readonly disks: readonly IscsiDisk[];
}

/** Names and values of a record of open-iscsi; some are secrets. */
export type IscsiSettings = readonly (readonly [name: string, value: string])[];

export interface IscsiLogin extends IscsiWay {
  /** CHAP for the question which targets there are. */
  readonly discovery: IscsiSettings;
  /** CHAP for the session. */
  readonly session: IscsiSettings;
}

export interface IscsiSessions {
  /** All that the kernel has, by sysfs: neither a portal nor a disk is asked. */
  readIscsiSessions(): Promise<Result<readonly IscsiSession[]>>;
  /**
   * Asks the portal for its targets, unless somebody has a record of doing so, and logs in. `found`: a session was
   * there, made by somebody else since it was looked last. A portal that is silent is `target-unreachable`, one that
   * does not let us in `target-refused`; both within three minutes. With effect `none` no session comes of it any more,
   * and nothing of it is written down.
   */
  logInToIscsi(login: IscsiLogin): Promise<Result<'made' | 'found'>>;
  /** The target may have a disk that it had not when the session began. */
  scanIscsi(session: IscsiSession): Promise<Result<void>>;
  /** Ends the session, if it is there, and forgets what the login wrote down, secrets included. */
  logOutOfIscsi(way: IscsiWay): Promise<Result<void>>;
  /** Takes the device-mapper's device away that joins paths; `mount-busy` when somebody has it. */
  removeMultipath(map: AbsolutePath): Promise<Result<void>>;
}

export function isSameWay(a: IscsiWay, b: IscsiWay): boolean {
  return a.iqn === b.iqn && a.portal === b.portal && a.iface === b.iface;
}
