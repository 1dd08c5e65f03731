/** Mounts of a block device, in the mount namespaces of all processes. */
import { readlinkSync } from 'node:fs';
import { type Scan, Unseen } from './device-scan.ts';
import { aboutTask, isAlive, tasks } from './task.ts';
import { nameOf } from '../path/holders.ts';
import { type AbsolutePath, isBelow } from '../../host.ts';
import { readMountInfo, readOwnMountInfo } from '../../process/mount-info.ts';
import { type MountEntry, parseMountTable } from '../../mount-table.ts';

/** One table for each mount namespace that a process or a thread is in. */
export function findMounts(scan: Scan): void {
  const namespaces = new Set<string>();
  const own = readlinkSync('/proc/self/ns/mnt');
  addMounts(scan, 'self', undefined);
  namespaces.add(own);
  for (const task of tasks(scan)) {
    const namespace = aboutTask(task, () => readlinkSync(`${task.directory}/ns/mnt`));
    if (namespace === undefined || namespaces.has(namespace)) continue;
    if (addMounts(scan, task.directory, task.pid)) namespaces.add(namespace);
  }
}

/** False when the process has ended. */
function addMounts({ numbers, nodes, users, mounts }: Scan, of: string, pid: string | undefined): boolean {
  const text = pid === undefined ? readOwnMountInfo() : readMountInfo(`${of}/mountinfo`);
  const table = text.ok ? parseMountTable(text.value) : text;
  if (!table.ok) {
    if (pid !== undefined && !isAlive(of)) return false;
    throw new Unseen(table.failure.code, table.failure.message);
  }
  for (const entry of table.value.entries) {
    mounts.set(entry.mountId, entry);
    // btrfs shows a number of its own; its source is one of its devices.
    if (!numbers.has(entry.device) && !(entry.device.startsWith('0:') && nodes.has(entry.source))) continue;
    const where = pid === undefined ? '' : ` in the mount namespace of pid ${pid} (${nameOf(pid)})`;
    users.add(`mount ${entry.target.slice(0, 256)}${where}`);
  }
  return true;
}

/** The mounts at the longest target that the path is at or below; of several on one target it may be on any. */
export function mountsOver({ mounts }: Scan, path: AbsolutePath): readonly MountEntry[] {
  let over: MountEntry[] = [];
  for (const entry of mounts.values()) {
    if (entry.target !== path && !isBelow(path, entry.target)) continue;
    const longest = over[0]?.target.length ?? 0;
    if (entry.target.length > longest) over = [entry];
    else if (entry.target.length === longest) over.push(entry);
  }
  return over;
}
