/** The three file systems: how one is recognised, made, checked and grown. */
import { readFile } from 'node:fs/promises';
import { contentIn, type DeviceContent } from '../../../mount/device/file-system-tools.ts';
import type { LoopDevice } from './loop-device.ts';
import { status } from './status.ts';
import { ask, run, type Tool } from './tools.ts';

export const FS_TYPES = ['ext4', 'xfs', 'btrfs'] as const;

export type FsType = (typeof FS_TYPES)[number];

interface FileSystem {
  /** The smallest device that its mkfs accepts, with its journal, and that can grow. */
  readonly bytesMin: number;
  /** Without any force flag: a refusal of mkfs is final (INV-9). */
  readonly make: readonly [Tool, ...string[]];
  /** Mount options it always needs. */
  readonly mountOptions: readonly string[];
  readonly growMounted: (device: LoopDevice, mountPoint: string) => readonly [Tool, ...string[]];
  /** Undefined: it grows only while it is mounted. */
  readonly growUnmounted?: (device: LoopDevice) => readonly [Tool, ...string[]];
}

const MEBIBYTE = 1024 * 1024;

const FILE_SYSTEMS: Readonly<Record<FsType, FileSystem>> = {
  ext4: {
    bytesMin: 4 * MEBIBYTE,
    make: ['mkfs.ext4', '-q'],
    mountOptions: [],
    growMounted: (device) => ['resize2fs', device.path],
    growUnmounted: (device) => ['resize2fs', device.path],
  },
  xfs: {
    bytesMin: 300 * MEBIBYTE,
    make: ['mkfs.xfs', '-q'],
    // A copied data file has the UUID of its original, and xfs mounts a UUID only once.
    mountOptions: ['nouuid'],
    growMounted: (_device, mountPoint) => ['xfs_growfs', '-d', mountPoint],
  },
  btrfs: {
    // mkfs is content with 109 MiB, but the kernel resizes none to less than 256 MiB (fs/btrfs/ioctl.c, SZ_256M).
    bytesMin: 256 * MEBIBYTE,
    make: ['mkfs.btrfs', '-q'],
    mountOptions: [],
    growMounted: (_device, mountPoint) => ['btrfs', 'filesystem', 'resize', 'max', mountPoint],
  },
};

export function bytesMin(fsType: FsType): number {
  return FILE_SYSTEMS[fsType].bytesMin;
}

export function mountOptions(fsType: FsType, wanted: readonly string[]): readonly string[] {
  return [...FILE_SYSTEMS[fsType].mountOptions, ...wanted];
}

const PROBE_MS = 60_000;

/** `nothing` proves nothing: blkid says it of an unreadable device as well (MF-3). */
export async function recognise(device: LoopDevice): Promise<DeviceContent> {
  const { exitCode, stdout, complaint } = await ask(
    'blkid',
    ['--probe', '--output', 'export', device.path],
    PROBE_MS,
  );
  return contentIn({ exitCode, stdout, complaint });
}

const MAKE_MS = 10 * 60_000;

/** Only after `proveBlank`, with the intent on disk. */
export async function makeFileSystem(device: LoopDevice, fsType: FsType): Promise<void> {
  const [tool, ...argv] = FILE_SYSTEMS[fsType].make;
  await run(tool, [...argv, '--', device.path], MAKE_MS);
}

const CHECK_MS = 30 * 60_000;

/**
 * Repairs only what is safe without asking (`-p`, INV-10), on a device that nobody has mounted. xfs and btrfs check
 * themselves when mounted.
 */
export async function checkFileSystem(device: LoopDevice, fsType: FsType): Promise<void> {
  if (fsType !== 'ext4') return;
  await repair(device, []);
}

async function repair(device: LoopDevice, flags: readonly string[]): Promise<void> {
  const { exitCode, complaint } = await ask('e2fsck', ['-p', ...flags, device.path], CHECK_MS);
  // e2fsck(8): 0 clean, 1 corrected; 2 wants a reboot, 4 needs a person, the rest did not run at all.
  if (exitCode === 0 || exitCode === 1) return;
  throw status(
    'INTERNAL',
    `e2fsck -p ended with ${exitCode}; repair it by hand with e2fsck ${device.path}: ${complaint}`,
  );
}

const GROW_MS = 10 * 60_000;

/**
 * Grows a mounted file system to the size of its device; a file system of full size stays as it is.
 * FAILED_PRECONDITION (CSI: not while it is staged) when the kernel allows it only to processes with a capability that
 * this one lacks: then it grows when it is staged next.
 */
export async function growMounted(device: LoopDevice, fsType: FsType, mountPoint: string): Promise<void> {
  const [tool, ...argv] = FILE_SYSTEMS[fsType].growMounted(device, mountPoint);
  const { exitCode, complaint } = await ask(tool, argv, GROW_MS);
  if (exitCode === 0) return;
  if (fsType === 'ext4' && !(await maySetResources())) {
    const because = 'growing a mounted ext4 needs CAP_SYS_RESOURCE, which this driver was not given';
    throw status('FAILED_PRECONDITION', `${because}; it grows when it is staged next (${complaint})`);
  }
  throw status('INTERNAL', `${tool} ended with ${exitCode}: ${complaint}`);
}

/** Grows before the mount what can, on a device that nobody has mounted. resize2fs itself knows a full size. */
export async function growUnmounted(device: LoopDevice, fsType: FsType): Promise<void> {
  const grow = FILE_SYSTEMS[fsType].growUnmounted?.(device);
  if (grow === undefined) return;
  const [tool, ...argv] = grow;
  if ((await ask(tool, argv, GROW_MS)).exitCode === 0) return;
  // resize2fs(8) moves nothing before a full check that is younger than the last mount.
  await repair(device, ['-f']);
  await run(tool, argv, GROW_MS);
}

/** What does not grow before the mount has to right after it. */
export function growsOnlyMounted(fsType: FsType): boolean {
  return FILE_SYSTEMS[fsType].growUnmounted === undefined;
}

/** CAP_SYS_RESOURCE in linux/capability.h; ext4's resize ioctls ask for it (fs/ext4/ioctl.c, ext4_resize_begin). */
const CAP_SYS_RESOURCE = 24n;

async function maySetResources(): Promise<boolean> {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}
