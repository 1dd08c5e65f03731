/** Processes that have a block device, or a file of it, open or mapped, or are in a directory of it. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { LOCAL_FILE_SYSTEMS, type Scan, USERS_MAX } from './device-scan.ts';
import { mountsOver } from './mount-users.ts';
import { aboutTask, type Task, tasks } from './task.ts';
import { nameOf } from '../path/holders.ts';
import { type LinkEnd, linkEnd } from '../path/link-end.ts';
import { formatDevice } from '../path/mount-lookup.ts';
import { parseAbsolutePath } from '../../host.ts';
import type { MountEntry } from '../../mount-table.ts';

export function findDescriptors(scan: Scan): void {
  let leader = '';
  for (const task of tasks(scan)) {
    if (scan.users.size >= USERS_MAX) return;
    const names = aboutTask(task, () => readdirSync(`${task.directory}/fd`)) ?? [];
    const shown = names.join();
    // When the first thread of a process has ended, the others still have what it had open.
    if (task.isLeader) leader = shown;
    else if (shown === leader) continue;
    if (names.some((name) => opensDevice(scan, task, name)) || (task.isLeader && mapsDevice(scan, task)))
      scan.users.add(`pid ${task.pid} (${nameOf(task.pid)})`);
  }
}

function opensDevice(scan: Scan, task: Task, name: string): boolean {
  const file = `${task.directory}/fd/${name}`;
  const end = aboutTask(task, () => linkEnd(file));
  if (end === undefined || (end.kind === 'path' && !end.path.startsWith('/'))) return false;
  const facts = aboutTask(task, () => readFileSync(`${task.directory}/fdinfo/${name}`, 'latin1'));
  const mount = scan.mounts.get(Number(/^mnt_id:\s*(\d+)$/m.exec(facts ?? '')?.[1]));
  // The type of a mount that is in no namespace any more is not known: then rather too slow than not seen.
  if (facts === undefined || (mount !== undefined && !LOCAL_FILE_SYSTEMS.has(mount.fsType))) return false;
  const seen = aboutTask(task, () => statSync(file));
  if (seen?.isBlockDevice() === true && scan.numbers.has(formatDevice(BigInt(seen.rdev)))) return true;
  // A file on a mount that was taken away under it: the kernel does so when the mount point is removed elsewhere.
  return seen !== undefined && mount === undefined && scan.numbers.has(formatDevice(BigInt(seen.dev)));
}

/** `7f00-7f10 rw-s 00000000 00:06 94 /dev/loop0`: range, device of its file system in hex, inode, name. */
const MAPPING = /^([0-9a-f]+-[0-9a-f]+) \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([0-9]+) +\//gm;

/** A file that is mapped is open, whether or not it has a descriptor. Each file is asked once for all processes. */
function mapsDevice(scan: Scan, task: Task): boolean {
  const maps = aboutTask(task, () => readFileSync(`${task.directory}/maps`, 'latin1')) ?? '';
  return [...maps.matchAll(MAPPING)].some(([, range, major = '', minor = '', inode]) => {
    const device = `${Number.parseInt(major, 16)}:${Number.parseInt(minor, 16)}`;
    const known = scan.mapped.get(`${device} ${inode}`);
    if (known !== undefined) return known;
    const types = [...scan.mounts.values()]
      .filter((one) => one.device === device)
      .map(({ fsType }) => fsType);
    const mayAsk = types.every((type) => LOCAL_FILE_SYSTEMS.has(type));
    const seen = mayAsk ? aboutTask(task, () => statSync(`/proc/${task.pid}/map_files/${range}`)) : undefined;
    const isUser = seen?.isBlockDevice() === true && scan.numbers.has(formatDevice(BigInt(seen.rdev)));
    if (seen !== undefined || !mayAsk) scan.mapped.set(`${device} ${inode}`, isUser);
    return isUser;
  });
}

/** Is the task in a directory of one of the devices? Not asked where that may take for ever. */
export function isIn(scan: Scan, task: Task, name: 'cwd' | 'root'): boolean {
  const end = aboutTask(task, () => linkEnd(`${task.directory}/${name}`));
  const over = end === undefined ? undefined : mountsAt(scan, end);
  if (over?.every(({ fsType }) => LOCAL_FILE_SYSTEMS.has(fsType)) !== true) return false;
  const seen = aboutTask(task, () => statSync(`${task.directory}/${name}`));
  return seen !== undefined && scan.numbers.has(formatDevice(BigInt(seen.dev)));
}

/** Those that it may be in: by its path in any namespace, or the one that is known; undefined when it has no path. */
function mountsAt(scan: Scan, end: LinkEnd): readonly MountEntry[] | undefined {
  if (end.kind === 'path') {
    const path = parseAbsolutePath(end.path);
    return path === undefined ? undefined : mountsOver(scan, path);
  }
  const mount = scan.mounts.get(end.mountId);
  return mount === undefined ? [] : [mount];
}
