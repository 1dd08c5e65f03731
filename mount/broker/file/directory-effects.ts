/** Making and removing single directories. Path brokers only. */
import { chmodSync, fstatSync, mkdirSync } from 'node:fs';
import { attempt } from './attempt.ts';
import { removeDirectoryAt } from './file-tree.ts';
import { isMissing, MODE_BITS } from './path-facts.ts';
import { mountIdAt } from '../path/mount-lookup.ts';
import { type OpenPath, type ChildPath, childIn, withDirectory, withChild } from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Effect, fail, ok, type Result } from '../../failure.ts';
import { type AbsolutePath, below } from '../../host.ts';

const PARENT_MODE = 0o750;

export function makeDirectory(path: AbsolutePath, mode: number): Result<void> {
  const found = withDirectory(path, (place) => setMode(place, mode, path, 'none'));
  if (!isMissing(found)) return found;
  let effect: Effect = 'none';
  let reached: AbsolutePath = '/' as AbsolutePath;
  for (const name of path.slice(1).split('/')) {
    const parent = reached;
    reached = below(parent, name);
    const made = withDirectory(parent, (place) => makeOne(childIn(place, name), effect));
    if (!made.ok) return made;
    if (made.value) effect = 'unknown';
  }
  return withDirectory(path, (place) => setMode(place, mode, path, effect));
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

/** chmod(2) through the descriptor, only where it changes something: a mounted file system may be read-only. */
function setMode(place: OpenPath, mode: number, path: AbsolutePath, effect: Effect): Result<void> {
  if ((fstatSync(place.descriptor).mode & MODE_BITS) === mode) return done;
  return attempt(`chmod ${path}`, effect, () => chmodSync(place.path, mode));
}

export function removeEmptyDirectory(path: AbsolutePath): Result<void> {
  const removed = withChild(path, (child) => {
    const mounted = mountIdAt(child);
    if (!mounted.ok) return mounted;
    if (mounted.value !== undefined) {
      return fail({ code: 'mount-busy', message: `${path} is a mount point`, effect: 'none', blocker: path });
    }
    return removeDirectoryAt(child.path, path, 'none');
  });
  return isMissing(removed) ? done : removed;
}
