/**
 * The protection of a mount point: a directory is immutable (chattr(1), `i`), so that nothing is made in it while
 * nothing is mounted there, by root neither (DL-15). One can mount on it as ever, and what is mounted is as ever. Path
 * brokers only.
 */
import { fstatSync, type Stats } from 'node:fs';
import { removeDirectoryAt } from './attempt.ts';
import { type ChildPath, inDirectory, mountIdOf, type OpenPath } from '../path/path-walk.ts';
import { runShortTool } from '../path/short-tool.ts';
import type { Effect, Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';

/** The file systems that refuse it (not all have such a flag), by device, so that none is asked again. */
const UNABLE = new Set<number>();
/** The directory that the tool has open, whatever was mounted on it meanwhile: `.` never leads into a mount. */
const DIRECTORY = '/proc/self/fd/3/.';
const PARENT = '/proc/self/fd/3';

/** The flags that forbid a removal, taken away (chattr(1)): immutable, and only appended to. */
export const CHANGEABLE = '-ia';

let isProtecting = false;

/** Before, nothing is protected; what is protected already can be removed in any case. */
export function protectMountPointsFromNowOn(): void {
  isProtecting = true;
}

/** Not what somebody has mounted there since it was looked at; nothing where its file system has no such flag. */
export function protectMountPoint(directory: OpenPath, parent: OpenPath): void {
  if (!isProtecting) return;
  if (mountIdOf(directory) !== mountIdOf(parent)) return;
  const { dev } = fstatSync(directory.descriptor);
  if (UNABLE.has(dev)) return;
  const isSet = setImmutable(directory, true);
  if (!isSet.ok && isSet.failure.code === 'permission-denied') UNABLE.add(dev);
}

/**
 * As `protectMountPoint`, of what a file is to be mounted on: a character device of the number 0:0, which is that of no
 * device, so nobody can open it (ENXIO), root neither, and unlink(2) removes it (D-117). chattr(1) would look a file up
 * by its name. False: nothing was made, and a plain file has to do (Linux before 5.8, by our rights).
 */
export function makeClosedMountPoint({ parent, name }: ChildPath): boolean {
  if (!isProtecting) return false;
  const argv = ['--', `${PARENT}/${name}`, 'c', '0', '0'];
  return runShortTool({ tool: 'mknod', argv, open: [parent.descriptor], failed: 'permission-denied' }).ok;
}

/** Whether it is one. */
export function isClosedMountPoint(facts: Stats): boolean {
  return facts.isCharacterDevice() && facts.rdev === 0;
}

/** rmdir(2), of a mount point that may be protected. What is mounted stays protected. Absent is success. */
export function removeMountPoint(child: ChildPath, path: AbsolutePath, effect: Effect): Result<void> {
  const gone = removeDirectoryAt(child.path, path, effect);
  if (gone.ok || gone.failure.code !== 'permission-denied') return gone;
  return inDirectory(child, path, (directory, mountId) => {
    if (mountId !== mountIdOf(child.parent) || !setImmutable(directory, false).ok) return gone;
    return removeDirectoryAt(child.path, path, effect);
  });
}

function setImmutable({ descriptor }: OpenPath, isImmutable: boolean): Result<void> {
  const argv = [isImmutable ? '+i' : CHANGEABLE, '--', DIRECTORY];
  return runShortTool({ tool: 'chattr', argv, open: [descriptor], failed: 'permission-denied' });
}
