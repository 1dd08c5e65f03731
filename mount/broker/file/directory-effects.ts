/** Making and removing single directories. Path brokers only. */
import { chmodSync, closeSync, fstatSync, mkdirSync } from 'node:fs';
import { attempt } from './attempt.ts';
import { protectMountPoint, removeMountPoint } from './mount-point.ts';
import { isMissing, MODE_BITS } from './path-facts.ts';
import { mountIdAt } from '../path/mount-lookup.ts';
import {
  blameComponent,
  type OpenPath,
  type ChildPath,
  childIn,
  mountIdOf,
  openDeepest,
  openDirectoryIn,
  withChild,
} from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Effect, fail, type FailureCode, ok, type Result } from '../../failure.ts';
import type { AbsolutePath, DirectoryUse } from '../../host.ts';

const PARENT_MODE = 0o750;
/** What rmdir(2) says of a directory, or a file, that something is mounted on. */
const MAY_BE_MOUNTED: ReadonlySet<FailureCode> = new Set([
  'mount-busy',
  'path-wrong-kind',
  // It is protected.
  'permission-denied',
]);

export function makeDirectory(path: AbsolutePath, mode: number, use?: DirectoryUse): Result<void> {
  const reached = openDeepest(path);
  if (!reached.ok) return reached;
  let { place } = reached.value;
  let effect: Effect = 'none';
  try {
    for (const name of reached.value.missing) {
      const made = makeOne(childIn(place, name), effect);
      if (!made.ok) return made;
      if (made.value) effect = 'unknown';
      const entered = enter(place, name, path, effect);
      if (!entered.ok) return entered;
      closeSync(place.descriptor);
      place = entered.value;
    }
    const ready = setMode(place, mode, path, effect);
    return ready.ok && use === 'mount-point' ? protect(place, path) : ready;
  } finally {
    closeSync(place.descriptor);
  }
}

function protect(place: OpenPath, path: AbsolutePath): Result<void> {
  return withChild(path, ({ parent }) => {
    protectMountPoint(place, parent);
    return done;
  });
}

function enter(parent: OpenPath, name: string, path: AbsolutePath, effect: Effect): Result<OpenPath> {
  try {
    return ok(openDirectoryIn(parent, name));
  } catch (error) {
    const failed = blameComponent(childIn(parent, name), path, error);
    return failed.ok ? failed : fail({ ...failed.failure, effect });
  }
}

/** False when something of that name exists already; the walk to it will say what. */
function makeOne(child: ChildPath, effect: Effect): Result<boolean> {
  try {
    mkdirSync(child.path, PARENT_MODE);
    return ok(true);
  } catch (error) {
    return errnoOf(error) === 'EEXIST' ? ok(false) : failErrno(error, `mkdir ${child.name}`, effect);
  }
}

/** chmod(2) through the descriptor, only where it changes something, and not of what is mounted there, somebody's. */
function setMode(place: OpenPath, mode: number, path: AbsolutePath, effect: Effect): Result<void> {
  if ((fstatSync(place.descriptor).mode & MODE_BITS) === mode) return done;
  return attempt(`chmod ${path}`, effect, () => {
    if (!isMountRoot(place)) chmodSync(place.path, mode);
  });
}

/** The way up from what is mounted leads out of it. */
function isMountRoot(place: OpenPath): boolean {
  const above = openDirectoryIn(place, '..');
  try {
    return mountIdOf(above) !== mountIdOf(place);
  } finally {
    closeSync(above.descriptor);
  }
}

/** The kernel never removes what is mounted on (rmdir(2), EBUSY): who is in the way is asked when it has refused. */
export function removeEmptyDirectory(path: AbsolutePath): Result<void> {
  const removed = withChild(path, (child) => {
    const gone = removeMountPoint(child, path, 'none');
    if (gone.ok || !MAY_BE_MOUNTED.has(gone.failure.code)) return gone;
    const mounted = mountIdAt(child);
    if (!mounted.ok || mounted.value === undefined) return gone;
    return fail({ code: 'mount-busy', message: `${path} is a mount point`, effect: 'none', blocker: path });
  });
  return isMissing(removed) ? done : removed;
}
