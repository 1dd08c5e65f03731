/** What one search for the users of a block device knows: what it looks for, until when, and whom it has found. */
import { performance } from 'node:perf_hooks';
import { namesIn, readOrNothing } from './kernel-text.ts';
import type { FailureCode } from '../../failure.ts';
import type { DeviceNumber } from '../../host.ts';
import type { MountEntry } from '../../mount-table.ts';

export const SCAN_MS_MAX = 10_000;
export const USERS_MAX = 32;

/**
 * File systems on which a device node may be asked for its number: stat(2) of an open file needs nobody else there.
 * A device node that was opened on any other one (NFS, FUSE, ...) is not seen: asking it may take for ever.
 */
export const LOCAL_FILE_SYSTEMS: ReadonlySet<string> = new Set(
  'devtmpfs tmpfs ramfs rootfs ext2 ext3 ext4 xfs btrfs f2fs bcachefs zfs overlay squashfs erofs'.split(' '),
);

/** A loop device as large as the device, of whose file no name remains: what it has open, only it can tell. */
export interface PossibleUser {
  /** `loop3` */
  readonly loop: string;
  /** As it is told when it is one. */
  readonly user: string;
}

export interface Scan {
  readonly untilMs: number;
  /** The device and its partitions. */
  readonly numbers: ReadonlySet<string>;
  /** The names that the kernel gives them below /dev. */
  readonly nodes: ReadonlySet<string>;
  readonly users: Set<string>;
  readonly possible: PossibleUser[];
  /** All mounts of all namespaces: a mount id is unique on the machine. */
  readonly mounts: Map<number, MountEntry>;
  /** Files that processes have mapped, by file system and inode: is it one of the devices? */
  readonly mapped: Map<string, boolean>;
}

/** Could not be looked at: the answer would not be complete. */
export class Unseen extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

export function beginScan(device: DeviceNumber): Scan {
  const numbers = new Set<string>([device]);
  const directory = sysDirectory(device);
  for (const name of namesIn(directory)) {
    if (readOrNothing(`${directory}/${name}/partition`) === undefined) continue;
    const number = readOrNothing(`${directory}/${name}/dev`)?.trim();
    if (number !== undefined) numbers.add(number);
  }
  const nodes = new Set([...numbers].flatMap((number) => nodeOf(number) ?? []));
  const untilMs = performance.now() + SCAN_MS_MAX;
  return { untilMs, numbers, nodes, users: new Set(), possible: [], mounts: new Map(), mapped: new Map() };
}

export function sysDirectory(number: string): string {
  return `/sys/dev/block/${number}`;
}

/** Its node in devtmpfs; undefined when the kernel knows no such device any more. */
export function nodeOf(number: string): string | undefined {
  const name = /^DEVNAME=(.+)$/m.exec(readOrNothing(`${sysDirectory(number)}/uevent`) ?? '')?.[1];
  return name === undefined ? undefined : `/dev/${name}`;
}
