/** On which block devices a mounted file system is. */
import { resolve } from 'node:path';
import { ok, type Result } from '../../mount/failure.ts';
import {
  type AbsolutePath,
  below,
  type DeviceNumber,
  type Host,
  parentOf,
  parseAbsolutePath,
} from '../../mount/host.ts';
import type { MountEntry } from '../../mount/mount-table.ts';

type Eyes = Pick<Host, 'deviceOf' | 'readLink' | 'listDirectory'>;

const SYSFS = '/sys' as AbsolutePath;
const BY_NUMBER = below(SYSFS, 'dev', 'block');
const BTRFS = below(SYSFS, 'fs', 'btrfs');
const NAMES_MAX = 16_384;
const UNKNOWN: Result<undefined> = ok(undefined);

/** As `isOnDevice`, of a mount by its number. */
export async function isMountOn(
  host: Eyes & Pick<Host, 'readMountTable'>,
  { target, mountId }: { readonly target: AbsolutePath; readonly mountId: number },
  device: DeviceNumber,
): Promise<Result<boolean | undefined>> {
  const table = await host.readMountTable(target);
  if (!table.ok) return table;
  const entry = table.value.byId(mountId);
  return entry === undefined ? ok(false) : isOnDevice(host, entry, device);
}

/**
 * The number of a mount tells; that of a btrfs is made up, so there its source does, which is any name of one of its
 * disks, and sysfs, which has them all. Undefined: what it was mounted by has no node any more.
 */
export async function isOnDevice(
  host: Eyes,
  { device: number, fsType, source }: MountEntry,
  device: DeviceNumber,
): Promise<Result<boolean | undefined>> {
  if (number === device || fsType !== 'btrfs') return ok(number === device);
  const mounted = await numberOf(host, source);
  if (!mounted.ok || mounted.value === undefined) return mounted.ok ? UNKNOWN : mounted;
  if (mounted.value === device) return ok(true);
  const names: string[] = [];
  for (const one of [mounted.value, device]) {
    const link = await host.readLink(below(BY_NUMBER, one));
    if (!link.ok) return link.failure.code === 'path-missing' ? UNKNOWN : link;
    names.push(link.value.slice(link.value.lastIndexOf('/') + 1));
  }
  return isBeside(host, names);
}

/** mount(8) calls a device of device-mapper by its link in /dev/mapper. */
async function numberOf(host: Eyes, source: string): Promise<Result<DeviceNumber | undefined>> {
  const path = parseAbsolutePath(source);
  if (path === undefined) return UNKNOWN;
  const number = await host.deviceOf(path);
  if (!number.ok || number.value !== undefined) return number;
  const link = await host.readLink(path);
  if (!link.ok) return UNKNOWN;
  const end = parseAbsolutePath(resolve(parentOf(path), link.value));
  return end === undefined ? UNKNOWN : host.deviceOf(end);
}

/** Has one btrfs both disks? Undefined: none has the first. */
async function isBeside(
  host: Eyes,
  [known = '', asked = '']: readonly string[],
): Promise<Result<boolean | undefined>> {
  const all = await host.listDirectory(BTRFS, NAMES_MAX);
  if (!all.ok) return all.failure.code === 'path-missing' ? UNKNOWN : all;
  for (const name of all.value) {
    const disks = await host.listDirectory(below(BTRFS, name, 'devices'), NAMES_MAX);
    // What is no file system has no such directory, and one may have just been unmounted.
    if (!disks.ok && disks.failure.code !== 'path-missing') return disks;
    if (disks.ok && disks.value.includes(known)) return ok(disks.value.includes(asked));
  }
  return UNKNOWN;
}
