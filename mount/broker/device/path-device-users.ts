/** Who uses a block device, read from /proc and /sys. Path brokers only. */
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
} from 'node:fs';
import { performance } from 'node:perf_hooks';
import { codeOfErrno, errnoOf, failErrno } from '../../errno.ts';
import { type FailureCode, fail, ok, type Result } from '../../failure.ts';
import { type AbsolutePath, type DeviceNumber, isBelow, parseAbsolutePath } from '../../host.ts';
import { nameOf } from '../path/holders.ts';
import { type MountEntry, parseMountTable } from '../../mount-table.ts';
import { deviceNodeOf, findLoops, type LoopDevice } from './path-device.ts';
import { formatDevice } from '../path/mount-lookup.ts';
import { readMountInfo } from '../../mount-info.ts';
import { DELETED_MARK } from '../path/path-walk.ts';

const USERS_MAX = 32;
const SCAN_MS_MAX = 10_000;
const SECTOR_BYTES = 512;
const MESSAGE_LENGTH_MAX = 1_024;
/**
 * File systems on which a device node may be asked for its number: stat(2) of an open file needs nobody else there.
 * A device node that was opened on any other one (NFS, FUSE, ...) is not seen: asking it may take for ever.
 */
const LOCAL_FILE_SYSTEMS: ReadonlySet<string> = new Set(
  'devtmpfs tmpfs ramfs rootfs ext2 ext3 ext4 xfs btrfs f2fs bcachefs zfs overlay squashfs erofs'.split(' '),
);
/** Where nodes are made and deleted. */
const NODE_FILE_SYSTEMS: ReadonlySet<string> = new Set(['devtmpfs', 'tmpfs', 'ramfs']);
/** What reading about a process says when the process has ended. */
const ENDED: ReadonlySet<string> = new Set(['ENOENT', 'ESRCH', 'EINVAL']);

/** A loop device as large as the device, of whose file no name remains: what it has open, only it can tell. */
export interface PossibleUser {
  /** `loop3` */
  readonly loop: string;
  /** As it is told when it is one. */
  readonly user: string;
}

export interface DeviceUsers {
  /** At most 32. */
  readonly users: readonly string[];
  /** At most 32. */
  readonly possible: readonly PossibleUser[];
  /** The device and its partitions. */
  readonly numbers: readonly string[];
}

interface Scan {
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
class Unseen extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * What `Host.findDeviceUsers` asks for, within 10 s or `deadline-passed`. Two things are taken for granted: a
 * thread whose open descriptors have the same numbers as those of its process shares them, and no device node is on a
 * network file system. What no process can show (a mount in a namespace without processes) the kernel's exclusive open
 * tells, which every mount, swap and device on top holds.
 */
export function scanForDeviceUsers(device: DeviceNumber): Result<DeviceUsers> {
  try {
    const scan = beginScan(device);
    findHoldersOnTop(scan);
    findSwap(scan);
    findMounts(scan);
    findLoopDevices(scan);
    findDescriptors(scan);
    if (scan.users.size === 0) tryExclusiveOpen(scan, device);
    return ok({
      users: [...scan.users].slice(0, USERS_MAX),
      possible: scan.possible.slice(0, USERS_MAX),
      numbers: [...scan.numbers],
    });
  } catch (error) {
    if (!(error instanceof Unseen)) return failErrno(error, `look for users of device ${device}`, 'none');
    return fail({ code: error.code, message: error.message.slice(0, MESSAGE_LENGTH_MAX), effect: 'none' });
  }
}

function beginScan(device: DeviceNumber): Scan {
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

function sysDirectory(number: string): string {
  return `/sys/dev/block/${number}`;
}

/** Its node in devtmpfs; undefined when the kernel knows no such device any more. */
function nodeOf(number: string): string | undefined {
  const name = /^DEVNAME=(.+)$/m.exec(readOrNothing(`${sysDirectory(number)}/uevent`) ?? '')?.[1];
  return name === undefined ? undefined : `/dev/${name}`;
}

function findHoldersOnTop({ numbers, users }: Scan): void {
  for (const number of numbers)
    for (const name of namesIn(`${sysDirectory(number)}/holders`)) users.add(`device ${name} on top of it`);
}

function findSwap({ nodes, users }: Scan): void {
  for (const line of (readOrNothing('/proc/swaps') ?? '').split('\n').slice(1)) {
    const name = line.split(/\s/)[0] ?? '';
    if (nodes.has(name)) users.add(`swap on ${name}`);
  }
}

/** One table for each mount namespace that a process or a thread is in. */
function findMounts(scan: Scan): void {
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
  const file = pid === undefined ? '/proc/self/mountinfo' : `${of}/mountinfo`;
  const text = readMountInfo(file);
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

function findLoopDevices(scan: Scan): void {
  const loops = findLoops();
  if (!loops.ok) throw new Unseen(loops.failure.code, loops.failure.message);
  for (const loop of loops.value) {
    const user = `${loop.name} (holds ${loop.backingFile.slice(0, 256)})`;
    const behind = isBehind(scan, loop);
    if (behind === 'by-name') scan.users.add(user);
    else if (behind === 'by-size') scan.possible.push({ loop: loop.name, user });
  }
}

/** Has a loop device one of these devices open? Where its name leads nowhere any more, its size makes it possible. */
function isBehind(scan: Scan, loop: LoopDevice): 'by-name' | 'by-size' | 'no' {
  const bySize = () => (hasSizeOf(scan, loop) ? 'by-size' : 'no');
  const { backingFile } = loop;
  const isDeleted = backingFile.endsWith(DELETED_MARK);
  const path = parseAbsolutePath(isDeleted ? backingFile.slice(0, -DELETED_MARK.length) : backingFile);
  if (path === undefined) return bySize();
  const over = mountsOver(scan, path);
  const types = over.map(({ fsType }) => fsType);
  // What is deleted from a disk was an image; a node is deleted with its device, or with its container.
  if (isDeleted) return types.some((type) => NODE_FILE_SYSTEMS.has(type)) ? bySize() : 'no';
  if (over.some(({ fsType, root }) => fsType === 'devtmpfs' && scan.nodes.has(`/dev${root}`)))
    return 'by-name';
  if (!types.every((type) => LOCAL_FILE_SYSTEMS.has(type))) return 'no';
  const node = deviceNodeOf(path);
  if (node.ok && node.value !== undefined) return scan.numbers.has(node.value.device) ? 'by-name' : 'no';
  // `/` is what remains of a path when the namespace it was in has gone.
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true ? 'no' : bySize();
}

/** The mounts at the longest target that the path is at or below; of several on one target it may be on any. */
function mountsOver({ mounts }: Scan, path: AbsolutePath): readonly MountEntry[] {
  let over: MountEntry[] = [];
  for (const entry of mounts.values()) {
    if (entry.target !== path && !isBelow(path, entry.target)) continue;
    const longest = over[0]?.target.length ?? 0;
    if (entry.target.length > longest) over = [entry];
    else if (entry.target.length === longest) over.push(entry);
  }
  return over;
}

/** As large as one of the devices, but for its offset. To a device that is gone nobody can write any more. */
function hasSizeOf({ numbers }: Scan, { name }: LoopDevice): boolean {
  const sectors = Number(readOrNothing(`/sys/block/${name}/size`) ?? Number.NaN);
  const offset = Number(readOrNothing(`/sys/block/${name}/loop/offset`) ?? 0) / SECTOR_BYTES;
  return [...numbers].some((number) => {
    const size = readOrNothing(`${sysDirectory(number)}/size`);
    return size !== undefined && Number(size) === sectors + offset;
  });
}

interface Task {
  readonly pid: string;
  readonly directory: string;
  readonly isLeader: boolean;
}

function* tasks(scan: Scan): Generator<Task> {
  for (const pid of namesIn('/proc').filter((name) => /^[1-9][0-9]*$/.test(name))) {
    for (const id of namesIn(`/proc/${pid}/task`)) {
      if (performance.now() > scan.untilMs)
        throw new Unseen('deadline-passed', `more than ${SCAN_MS_MAX} ms for all processes`);
      yield { pid, directory: `/proc/${pid}/task/${id}`, isLeader: id === pid };
    }
  }
}

function findDescriptors(scan: Scan): void {
  let leader = '';
  for (const task of tasks(scan)) {
    if (scan.users.size >= USERS_MAX) return;
    const names = aboutTask(task, () => readdirSync(`${task.directory}/fd`)) ?? [];
    const shown = names.join();
    // Of a process whose first thread has ended the others still have what it had open.
    if (task.isLeader) leader = shown;
    else if (shown === leader) continue;
    if (names.some((name) => opensDevice(scan, task, name)) || (task.isLeader && mapsDevice(scan, task)))
      scan.users.add(`pid ${task.pid} (${nameOf(task.pid)})`);
  }
}

function opensDevice(scan: Scan, task: Task, name: string): boolean {
  const file = `${task.directory}/fd/${name}`;
  const text = aboutTask(task, () => readlinkSync(file));
  if (!text?.startsWith('/')) return false;
  const facts = aboutTask(task, () => readFileSync(`${task.directory}/fdinfo/${name}`, 'latin1'));
  const mount = scan.mounts.get(Number(/^mnt_id:\s*(\d+)$/m.exec(facts ?? '')?.[1]));
  // Of a mount that is in no namespace any more the type is not known: then rather too slow than not seen.
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

/** Undefined when the process has ended, or closed that descriptor; otherwise what cannot be read ends the scan. */
function aboutTask<T>(task: Task, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const errno = errnoOf(error);
    if (ENDED.has(errno) || !isAlive(task.directory)) return undefined;
    const who = `pid ${task.pid} (${nameOf(task.pid)})`;
    throw new Unseen(codeOfErrno(errno), `${who} cannot be looked at: ${errno}`);
  }
}

/** Neither gone nor a zombie, whose descriptors and mounts are gone. */
function isAlive(directory: string): boolean {
  const state = /\) ([A-Za-z])/.exec(readOrNothing(`${directory}/stat`) ?? '')?.[1];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** Closed again at once; read-only, so that nothing is written and no watcher of device nodes is told. */
function tryExclusiveOpen(scan: Scan, device: DeviceNumber): void {
  const node = nodeOf(device);
  if (node === undefined) return;
  const path = parseAbsolutePath(node);
  const found = path === undefined ? undefined : deviceNodeOf(path);
  if (found === undefined || !found.ok || found.value?.device !== device) {
    throw new Unseen('path-missing', `${node} is not the node of device ${device}`);
  }
  try {
    closeSync(openSync(node, constants.O_RDONLY | constants.O_EXCL | constants.O_NONBLOCK));
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EBUSY') addUnseenUsers(scan);
    else if (errno !== 'ENXIO' && errno !== 'ENODEV' && errno !== 'ENOENT' && errno !== 'ENOMEDIUM')
      throw new Unseen(codeOfErrno(errno), `${node} cannot be opened: ${errno}`);
  }
}

/**
 * The kernel says that it is used, and nobody was found: a mount in no namespace, with somebody in a directory of it.
 * Only a name for what is known already, so what cannot be looked at is passed over.
 */
function addUnseenUsers(scan: Scan): void {
  try {
    for (const task of tasks(scan)) {
      if (scan.users.size >= USERS_MAX) return;
      if (isIn(scan, task, 'cwd') || isIn(scan, task, 'root'))
        scan.users.add(`pid ${task.pid} (${nameOf(task.pid)})`);
    }
  } catch (error) {
    if (!(error instanceof Unseen)) throw error;
  }
  if (scan.users.size === 0)
    scan.users.add('the kernel: a mount that no process sees, or a device on top of it');
}

/** Is the task in a directory of one of the devices? Not asked where that may take for ever. */
function isIn(scan: Scan, task: Task, name: 'cwd' | 'root'): boolean {
  const path = parseAbsolutePath(aboutTask(task, () => readlinkSync(`${task.directory}/${name}`)) ?? '');
  if (path === undefined || !mountsOver(scan, path).every(({ fsType }) => LOCAL_FILE_SYSTEMS.has(fsType)))
    return false;
  const seen = aboutTask(task, () => statSync(`${task.directory}/${name}`));
  return seen !== undefined && scan.numbers.has(formatDevice(BigInt(seen.dev)));
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (ENDED.has(errnoOf(error))) return [];
    throw error;
  }
}

/** Undefined when there is no such file, no such process, or no such device any more. */
function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const errno = errnoOf(error);
    if (ENDED.has(errno) || errno === 'ENODEV' || errno === 'ENOTDIR') return undefined;
    throw error;
  }
}
