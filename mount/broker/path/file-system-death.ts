/**
 * What tells that a mounted file system is dead, or read-only. Nothing is written to find out. The calls are for path
 * brokers only: a file system that hangs keeps its broker.
 *
 * Measured on Linux 6.18: an XFS that is shut down answers statfs(2) and says EIO to fstat and readdir; an ext4 in
 * `emergency_ro` or shut down answers all of them, access(2) too, and is told by its super options alone; a FUSE
 * whose daemon has gone says ENOTCONN. Before `emergency_ro` (6.13) an ext4 with an error is read-only for access(2).
 */
import {
  accessSync,
  constants,
  fstatSync,
  opendirSync,
  readFileSync,
  readlinkSync,
  statfsSync,
} from 'node:fs';
import { errnoOf } from '../../errno.ts';
import type { DeathCause } from '../../failure.ts';
import type { OpenPath } from './path-walk.ts';

const DEATH_OF_ERRNO: Readonly<Record<string, DeathCause>> = {
  EIO: 'input-output',
  ENOTCONN: 'daemon-gone',
  ESTALE: 'stale',
  ENODEV: 'device-gone',
  ENXIO: 'device-gone',
  ESHUTDOWN: 'shut-down',
  EUCLEAN: 'damaged',
};

/** Undefined: this error says nothing about the file system. */
export function deathOfError(error: unknown): DeathCause | undefined {
  return DEATH_OF_ERRNO[errnoOf(error)];
}

/** The options are in the words of the table, for whoever has read it already. */
export function deathInOptions(superOptions: readonly string[]): DeathCause | undefined {
  if (superOptions.includes('shutdown')) return 'shut-down';
  return superOptions.includes('emergency_ro') ? 'emergency-read-only' : undefined;
}

/**
 * What the kernel says of the ext4 on a block device (`major:minor`), in the words of the table and without reading
 * it; undefined when it says nothing, as of ext2 by its own driver.
 */
export function optionsOfExt4(device: string): readonly string[] | undefined {
  try {
    const link = readlinkSync(`/sys/dev/block/${device}`);
    const name = link.slice(link.lastIndexOf('/') + 1);
    return readFileSync(`/proc/fs/ext4/${name}/options`, 'utf8').split('\n');
  } catch {
    return undefined;
  }
}

/** What it answers that a file system answers which is there; other errors (no permission) say nothing about it. */
export function deathOf(place: OpenPath): DeathCause | undefined {
  try {
    const isDirectory = fstatSync(place.descriptor).isDirectory();
    statfsSync(place.path);
    if (!isDirectory) return undefined;
    const directory = opendirSync(place.path, { bufferSize: 1 });
    try {
      directory.readSync();
    } finally {
      directory.closeSync();
    }
    return undefined;
  } catch (error) {
    return isAboutEntry(error) ? undefined : deathOfError(error);
  }
}

/** A listing was answered, and did not tell what an entry is (DT_UNKNOWN): Node.js has asked that entry itself. */
export function isAboutEntry(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'lstat';
}

/** access(2) of a directory says EROFS for a read-only mount and for a read-only file system. */
export function isReadOnly(place: OpenPath): boolean {
  try {
    accessSync(place.path, constants.W_OK);
    return false;
  } catch (error) {
    return errnoOf(error) === 'EROFS';
  }
}
