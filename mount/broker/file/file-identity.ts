/** Which directory a path leads to, as the kernel tells directories apart. Path brokers only. */
import { fstatSync } from 'node:fs';
import { fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath, DirectoryIdentity } from '../../host.ts';
import { formatDevice } from '../path/mount-lookup.ts';
import { mountIdOf, type OpenPath, withDirectory } from '../path/path-walk.ts';

export function identifyDirectory(path: AbsolutePath): Result<DirectoryIdentity> {
  return withDirectory(path, (place) => ok(identityOf(place)));
}

/** Undefined when the open directory is the expected one, or nothing is expected. */
export function refuseAnother(
  place: OpenPath,
  path: AbsolutePath,
  expected: DirectoryIdentity | undefined,
): Result<never> | undefined {
  if (expected === undefined || isSameIdentity(identityOf(place), expected)) return undefined;
  return fail({
    code: 'directory-replaced',
    message: `${path} has just become another directory`,
    effect: 'none',
    blocker: path,
  });
}

function isSameIdentity(a: DirectoryIdentity, b: DirectoryIdentity): boolean {
  return a.mountId === b.mountId && a.device === b.device && a.inode === b.inode && a.bornNs === b.bornNs;
}

function identityOf(place: OpenPath): DirectoryIdentity {
  const { dev, ino, birthtimeNs } = fstatSync(place.descriptor, { bigint: true });
  return {
    mountId: mountIdOf(place),
    device: formatDevice(dev),
    inode: String(ino),
    // What a file system does not keep, statx(2) leaves at zero.
    bornNs: birthtimeNs === 0n ? undefined : String(birthtimeNs),
  };
}
