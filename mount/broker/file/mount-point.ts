/**
 * The protection of a mount point: its directory is immutable (chattr(1), `i`), so that nothing is made in it while
 * nothing is mounted there, by root neither (DL-15). One can mount on it as ever, and what is mounted is as ever. Path
 * brokers only.
 */
import { fstatSync } from 'node:fs';
import { removeDirectoryAt } from './attempt.ts';
import { type ChildPath, inDirectory, mountIdOf, type OpenPath } from '../path/path-walk.ts';
import { runShortTool } from '../path/short-tool.ts';
import type { Effect, Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';

/** The file systems that refuse it (not all have such a flag), by device, so that none is asked again. */
const UNABLE = new Set<number>();
/** The directory that the tool has open, whatever was mounted on it meanwhile: `.` never leads into a mount. */
const DIRECTORY = '/proc/self/fd/3/.';

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
  const argv = [isImmutable ? '+i' : '-i', '--', DIRECTORY];
  return runShortTool({ tool: 'chattr', argv, open: [descriptor], failed: 'permission-denied' });
}
