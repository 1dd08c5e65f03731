/** Block device nodes, and the loop devices that have one open, as lstat(2) and sysfs show them. Path brokers only. */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { errnoOf, failErrno } from '../../errno.ts';
import { ok, type Result } from '../../failure.ts';
import { type AbsolutePath, type DeviceNumber, type Disk, isBelow, parseAbsolutePath } from '../../host.ts';
import { readOrNothing } from './kernel-text.ts';
import { formatDevice } from '../path/mount-lookup.ts';
import { DELETED_MARK, isShownOf, withChild } from '../path/path-walk.ts';

/** Which inode of which file system a device node is. */
export interface NodeIdentity {
  /** `major:minor` of the file system that has the node. */
  readonly fileSystem: string;
  readonly inode: string;
}

/** A device node is a name for a device. */
export interface DeviceNode extends NodeIdentity {
  readonly device: DeviceNumber;
}

export interface LoopDevice {
  /** `loop3` */
  readonly name: string;
  /** As the kernel tells it in this mount namespace, with ` (deleted)` behind it when the file has no name any more. */
  readonly backingFile: string;
}

const BLOCK_DIRECTORY = '/sys/block';
const DEVICES_BY_NUMBER = '/sys/dev/block';
const DEVICES = '/dev';
const NODES_MAX = 16_384;
const LOOP_NAME = /^loop[0-9]+$/;

/** As `Host.deviceOf`, with the identity of the node itself. Opens nothing: a dead device cannot hold up lstat. */
export function deviceNodeOf(path: AbsolutePath): Result<DeviceNode | undefined> {
  if (path === '/') return ok(undefined);
  const node = withChild<DeviceNode | undefined>(path, (child) => {
    const seen = lstatSync(child.path, { throwIfNoEntry: false, bigint: true });
    if (seen === undefined || !seen.isBlockDevice()) return ok(undefined);
    const device = formatDevice(seen.rdev) as DeviceNumber;
    return ok({ device, fileSystem: formatDevice(seen.dev), inode: String(seen.ino) });
  });
  return !node.ok && node.failure.code === 'path-missing' ? ok(undefined) : node;
}

/** As `Host.identifyDisk`. */
export function identifyDisk(path: AbsolutePath): Result<Disk | undefined> {
  const node = deviceNodeOf(path);
  if (!node.ok || node.value === undefined) return node;
  const { device } = node.value;
  return ok({ device, ...sequenceOf(device) });
}

/** What sysfs does not tell is not told: no disk has the number, or the kernel is old. */
function sequenceOf(device: DeviceNumber): Pick<Disk, 'sequence'> {
  const directory = `${DEVICES_BY_NUMBER}/${device}`;
  try {
    // A partition's directory lies in that of its disk.
    const text = readOrNothing(`${directory}/diskseq`) ?? readOrNothing(`${directory}/../diskseq`);
    return text === undefined ? {} : { sequence: text.trim() };
  } catch {
    return {};
  }
}

/**
 * The device that a node of /dev stands for. Undefined when it has no such node: one that was deleted, or that is of
 * another file system. At most 16,384 names are looked at.
 */
export function findDeviceByNode(node: NodeIdentity): Result<DeviceNumber | undefined> {
  try {
    const root = lstatSync(DEVICES, { bigint: true });
    if (formatDevice(root.dev) !== node.fileSystem) return ok(undefined);
    const waiting: string[] = [DEVICES];
    let looks = 0;
    for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
      for (const name of readdirSync(directory)) {
        looks += 1;
        if (looks > NODES_MAX) return ok(undefined);
        const path = `${directory}/${name}`;
        const seen = lstatSync(path, { throwIfNoEntry: false, bigint: true });
        // What is mounted below it has inodes of its own.
        if (seen === undefined || seen.dev !== root.dev) continue;
        if (seen.isDirectory()) waiting.push(path);
        else if (seen.isBlockDevice() && String(seen.ino) === node.inode)
          return ok(formatDevice(seen.rdev) as DeviceNumber);
      }
    }
    return ok(undefined);
  } catch (error) {
    return failErrno(error, `read ${DEVICES}`, 'none');
  }
}

/** Every loop device that has a file. Read from sysfs: an ioctl would ask a file system that may be dead. */
export function findLoops(): Result<readonly LoopDevice[]> {
  try {
    return ok(
      readdirSync(BLOCK_DIRECTORY)
        .filter((name) => LOOP_NAME.test(name))
        .flatMap((name) => {
          const backingFile = readBackingFile(name);
          return backingFile === undefined ? [] : [{ name, backingFile }];
        }),
    );
  } catch (error) {
    return failErrno(error, `read ${BLOCK_DIRECTORY}`, 'none');
  }
}

/** Those that hold what is, or was, at exactly this path; with `mark`, also those that have it as their size limit. */
export function findLoopsOf(path: AbsolutePath, mark?: string): Result<readonly string[]> {
  const loops = findLoops();
  if (!loops.ok) return loops;
  const isOf = ({ name, backingFile }: LoopDevice): boolean =>
    isShownOf(backingFile, path) ||
    (mark !== undefined && readOrNothing(`${BLOCK_DIRECTORY}/${name}/loop/sizelimit`)?.trim() === mark);
  try {
    return ok(loops.value.filter(isOf).map(({ name }) => name));
  } catch (error) {
    return failErrno(error, `read ${BLOCK_DIRECTORY}`, 'none');
  }
}

/** As `Host.heldPaths`. */
export function findHeldPaths(within: AbsolutePath): Result<readonly AbsolutePath[]> {
  const loops = findLoops();
  if (!loops.ok) return loops;
  const paths = loops.value.flatMap(({ backingFile }) => {
    const path = parseAbsolutePath(nameOf(backingFile));
    return path !== undefined && isBelow(path, within) ? [path] : [];
  });
  return ok([...new Set(paths)]);
}

/** The name of a backing file, or the one that it had. */
export function nameOf(backingFile: string): string {
  return backingFile.endsWith(DELETED_MARK) ? backingFile.slice(0, -DELETED_MARK.length) : backingFile;
}

/** Undefined for a loop device without a file: then sysfs has no such name. The kernel ends the path with a newline. */
function readBackingFile(name: string): string | undefined {
  try {
    return readFileSync(`${BLOCK_DIRECTORY}/${name}/loop/backing_file`, 'utf8').replace(/\n$/, '');
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENODEV') return undefined;
    throw error;
  }
}
