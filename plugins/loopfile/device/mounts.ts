/** Mounting and unmounting, with the kernel's table as the only judge of what happened. */
import type { AbsolutePath } from '../../../mount/host.ts';
import { type MountEntry, type MountTable, parseMountTable } from '../../../mount/mount-table.ts';
import { readOwnMountInfo } from '../../../mount/process/mount-info.ts';
import type { LoopDevice } from './loop-device.ts';
import { status } from './status.ts';
import { ask, run } from './tools.ts';

export async function readMounts(): Promise<MountTable> {
  const text = readOwnMountInfo();
  const table = text.ok ? parseMountTable(text.value) : text;
  if (!table.ok) throw status('INTERNAL', table.failure.message);
  return table.value;
}

/**
 * Is this a mount of the device? By number for ext4 and xfs, by source for btrfs (whose number is anonymous), and by
 * root for a bind of the device node itself.
 */
export function isMountOf(entry: MountEntry, device: LoopDevice): boolean {
  return (
    entry.device === device.number ||
    entry.source === device.path ||
    (entry.fsType === 'devtmpfs' && entry.root === `/${device.name}`)
  );
}

/** What a look at `path` shows: the topmost mount there. */
export function topmost(table: MountTable, path: string): MountEntry | undefined {
  return table.at(path as AbsolutePath).at(-1);
}

export function isMountedAt(table: MountTable, path: string, device: LoopDevice): boolean {
  const top = topmost(table, path);
  return top !== undefined && isMountOf(top, device);
}

/** A journal may have to be replayed. */
const MOUNT_MS = 5 * 60_000;

export interface FileSystemMount {
  readonly device: LoopDevice;
  readonly target: string;
  readonly fsType: string;
  /** All of them are on the allow-list. */
  readonly options: readonly string[];
}

export async function mountFileSystem({ device, target, fsType, options }: FileSystemMount): Promise<void> {
  const flags = options.length === 0 ? [] : ['-o', options.join(',')];
  const { exitCode, complaint } = await ask(
    'mount',
    ['-t', fsType, ...flags, '--', device.path, target],
    MOUNT_MS,
  );
  if (isMountedAt(await readMounts(), target, device)) return;
  throw status('INTERNAL', `mount ended with ${exitCode} and ${target} is not mounted: ${complaint}`);
}

export interface BindMount {
  readonly device: LoopDevice;
  /** A mount point, or the device node itself. */
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** The kernel cannot make a bind read-only in one step (mount(8)); a bind that stays writable is taken away again. */
export async function bindMount({ device, source, target, readOnly }: BindMount): Promise<void> {
  try {
    if (!isMountedAt(await readMounts(), target, device))
      await run('mount', ['--bind', '--', source, target]);
    if (readOnly) await run('mount', ['-o', 'remount,bind,ro', '--', target]);
    const top = topmost(await readMounts(), target);
    if (top === undefined || !isMountOf(top, device))
      throw status('INTERNAL', `${target} is not mounted after a bind`);
    if (readOnly && !top.options.includes('ro'))
      throw status('INTERNAL', `${target} did not become read-only`);
  } catch (error) {
    await unmount(target, [device]);
    throw error;
  }
}

const LAYERS_MAX = 16;

/**
 * Takes away every layer at `target` that is a mount of these devices; nothing there is success. Plain umount, neither
 * lazy nor forced. FAILED_PRECONDITION when it is busy or when a mount of something else covers the place.
 */
export async function unmount(target: string, devices: readonly LoopDevice[]): Promise<void> {
  for (let layer = 0; layer < LAYERS_MAX; layer += 1) {
    const top = topmost(await readMounts(), target);
    if (top === undefined) return;
    if (!devices.some((device) => isMountOf(top, device))) {
      throw status('FAILED_PRECONDITION', `${target} is a mount of ${top.source}, which is not this volume`);
    }
    const { complaint } = await ask('umount', ['--', target]);
    const after = topmost(await readMounts(), target);
    if (after?.mountId === top.mountId)
      throw status('FAILED_PRECONDITION', `${target} stays mounted: ${complaint}`);
  }
  throw status('FAILED_PRECONDITION', `${target} has more than ${LAYERS_MAX} layers of mounts`);
}
