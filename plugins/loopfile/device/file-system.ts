/** The three file systems: how one is recognised, made, checked and grown. */
import { readFile } from 'node:fs/promises';
import {
  checked,
  contentIn,
  type DeviceContent,
  growCall,
  growsMounted,
  makeCall,
  optionsOf,
  probeCall,
  WRITE_MS_MAX,
} from '../../../mount/device/file-system-tools.ts';
import type { LoopDevice } from './loop-device.ts';
import { status } from './status.ts';
import { ask, run } from './tools.ts';

export const FS_TYPES = ['ext4', 'xfs', 'btrfs'] as const;

export type FsType = (typeof FS_TYPES)[number];

const MEBIBYTE = 1024 * 1024;

/** The smallest device that its mkfs accepts, with its journal, and that can grow. */
const BYTES_MIN: Readonly<Record<FsType, number>> = {
  ext4: 4 * MEBIBYTE,
  xfs: 300 * MEBIBYTE,
  // mkfs is content with 109 MiB, but the kernel resizes none to less than 256 MiB (fs/btrfs/ioctl.c, SZ_256M).
  btrfs: 256 * MEBIBYTE,
};

export function bytesMin(fsType: FsType): number {
  return BYTES_MIN[fsType];
}

export function mountOptions(fsType: FsType, wanted: readonly string[]): readonly string[] {
  return [...optionsOf(fsType), ...wanted];
}

const PROBE_MS = 60_000;

/** `nothing` proves nothing: blkid says it of an unreadable device as well (MF-3). */
export async function recognise(device: LoopDevice): Promise<DeviceContent> {
  const [tool, ...argv] = probeCall(device.path);
  const { exitCode, stdout, complaint } = await ask(tool, argv, PROBE_MS);
  return contentIn({ exitCode, stdout, complaint });
}

/** Called only after `proveBlank`, with the intent on disk. */
export async function makeFileSystem(device: LoopDevice, fsType: FsType): Promise<void> {
  const [tool, ...argv] = makeCall(fsType, device.path);
  await run(tool, argv, WRITE_MS_MAX);
}

/**
 * Repairs only what is safe without asking (`-p`, INV-10), on a device that nobody has mounted. xfs and btrfs check
 * themselves when mounted.
 */
export async function checkFileSystem(device: LoopDevice, fsType: FsType): Promise<void> {
  if (fsType !== 'ext4') return;
  await repair(device, []);
}

async function repair(device: LoopDevice, flags: readonly string[]): Promise<void> {
  const { exitCode, complaint } = await ask('e2fsck', ['-p', ...flags, device.path], WRITE_MS_MAX);
  const found = checked(exitCode);
  if (found === 'good') return;
  const advice = found === 'errors-left' ? `; repair it by hand with e2fsck ${device.path}` : '';
  throw status('INTERNAL', `e2fsck -p ended with ${exitCode}${advice}: ${complaint}`);
}

/** The answer: why it is no larger than before. */
async function grow(device: LoopDevice, fsType: FsType, mountPoint: string): Promise<string | undefined> {
  const [tool, ...argv] = growCall(fsType, device.path, mountPoint);
  const { exitCode, complaint } = await ask(tool, argv, WRITE_MS_MAX);
  return exitCode === 0 ? undefined : `${tool} ended with ${exitCode}: ${complaint}`;
}

/**
 * Grows a mounted file system to the size of its device; a file system of full size stays as it is.
 * FAILED_PRECONDITION (CSI: not while it is staged) when the kernel allows it only to processes with a capability that
 * this one lacks: then it grows when it is staged next.
 */
export async function growMounted(device: LoopDevice, fsType: FsType, mountPoint: string): Promise<void> {
  const refused = await grow(device, fsType, mountPoint);
  if (refused === undefined) return;
  if (fsType === 'ext4' && !(await maySetResources())) {
    const because = 'growing a mounted ext4 needs CAP_SYS_RESOURCE, which this driver was not given';
    throw status('FAILED_PRECONDITION', `${because}; it grows when it is staged next (${refused})`);
  }
  throw status('INTERNAL', refused);
}

/** Grows right after the mount what cannot before it. The answer: why it is no larger, and whole all the same. */
export async function growAfterMount(
  device: LoopDevice,
  fsType: FsType,
  mountPoint: string,
): Promise<string | undefined> {
  return growsMounted(fsType) ? grow(device, fsType, mountPoint) : undefined;
}

/**
 * Grows before the mount what can, on a device that nobody has mounted. resize2fs itself knows a full size. The answer:
 * why it is no larger, and whole all the same.
 */
export async function growUnmounted(device: LoopDevice, fsType: FsType): Promise<string | undefined> {
  if (growsMounted(fsType) || (await grow(device, fsType, '')) === undefined) return undefined;
  // resize2fs(8) moves nothing before a full check that is younger than the last mount.
  await repair(device, ['-f']);
  const refused = await grow(device, fsType, '');
  // Refused half way it may be broken.
  if (refused !== undefined) await repair(device, []);
  return refused;
}

/** CAP_SYS_RESOURCE in linux/capability.h; ext4's resize ioctls ask for it (fs/ext4/ioctl.c, ext4_resize_begin). */
const CAP_SYS_RESOURCE = 24n;

async function maySetResources(): Promise<boolean> {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}
