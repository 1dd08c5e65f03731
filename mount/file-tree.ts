/** Deleting a directory tree that others have written into. Path brokers only. */
import { closeSync, type Dirent, fstatSync, opendirSync, rmdirSync, unlinkSync } from 'node:fs';
import { errnoOf, failErrno } from './errno.ts';
import { done, type Effect, type Failure, fail, ok, type Result } from './failure.ts';
import { type AbsolutePath, isBelow } from './host.ts';
import { mountIdAt, readMountTable } from './path-mount.ts';
import { blameComponent, mountIdOf, openChild, type Place, type Spot, withSpot } from './path-walk.ts';

/** The identity of a directory on the way down: `..` may lead elsewhere when somebody moves it meanwhile. */
interface Level {
  readonly name: Buffer;
  readonly inode: bigint;
  readonly device: bigint;
}

interface Walk {
  readonly mountId: number;
  /** The directories above the current one, the root of the tree first. */
  readonly above: Level[];
  current: Place;
  level: Level;
  deleted: number;
}

/**
 * rm -r of a directory, as `Host.removeTree` says. Iterative, with two open descriptors at any depth. Compares mount
 * ids, because `st_dev` is equal on both sides of a bind mount of the same file system (reliability.md F4).
 */
export function removeTree(path: AbsolutePath): Result<void> {
  const below = refuseMountsBelow(path);
  if (!below.ok) return below;
  const removed = withSpot(path, (spot) => {
    const mounted = mountIdAt(spot);
    if (!mounted.ok) return mounted;
    if (mounted.value !== undefined) return failMounted(path, 'none');
    const walk = beginWalk(spot, path);
    if (!walk.ok) return walk;
    try {
      const emptied = empty(walk.value, path);
      if (!emptied.ok) return emptied;
    } finally {
      closeSync(walk.value.current.descriptor);
    }
    return removeDirectoryAt(spot.path, path, effectOf(walk.value));
  });
  return !removed.ok && removed.failure.code === 'path-missing' && removed.failure.effect === 'none'
    ? done
    : removed;
}

/** One look at the table first, so that a tree with a mount in it keeps every file. */
function refuseMountsBelow(path: AbsolutePath): Result<void> {
  const table = readMountTable();
  if (!table.ok) return table;
  const mount = table.value.entries.find(({ target }) => target === path || isBelow(target, path));
  return mount === undefined ? done : failMounted(mount.target, 'none');
}

function beginWalk(spot: Spot, path: AbsolutePath): Result<Walk> {
  try {
    const current = openChild(spot.parent, spot.name);
    const level = levelOf(current, Buffer.from(spot.name));
    return ok({ mountId: mountIdOf(spot.parent), above: [], current, level, deleted: 0 });
  } catch (error) {
    return blameComponent(spot, path, error);
  }
}

function empty(walk: Walk, root: AbsolutePath): Result<void> {
  for (;;) {
    const step = emptyCurrent(walk);
    if (step.kind === 'failed') return fail(locate(step.failure, root, walk));
    if (step.kind === 'down') continue;
    if (walk.above.length === 0) return done;
    const up = ascend(walk);
    if (!up.ok) return fail(locate(up.failure, root, walk));
  }
}

type Step =
  | { readonly kind: 'empty' }
  | { readonly kind: 'down' }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** Unlinks what is no directory; stops at the first directory and goes down into it. */
function emptyCurrent(walk: Walk): Step {
  for (;;) {
    const before = walk.deleted;
    const directory = opendirSync(walk.current.path, { encoding: 'buffer' as BufferEncoding });
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        const name = (entry as unknown as Dirent<Buffer>).name as unknown as Buffer;
        const removed = entry.isDirectory() ? ok(false) : unlink(walk, name);
        if (!removed.ok) return { kind: 'failed', failure: removed.failure };
        if (removed.value) continue;
        const down = descend(walk, name);
        if (!down.ok) return { kind: 'failed', failure: down.failure };
        if (down.value) return { kind: 'down' };
      }
    } finally {
      directory.closeSync();
    }
    // Deleting while reading may skip entries on some file systems: look until a whole pass finds nothing to do.
    if (walk.deleted === before) return { kind: 'empty' };
  }
}

/** False when it is a directory after all. */
function unlink(walk: Walk, name: Buffer): Result<boolean> {
  try {
    unlinkSync(inside(walk.current, name));
    walk.deleted += 1;
    return ok(true);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return ok(true);
    if (errno === 'EISDIR') return ok(false);
    return failErrno(error, `unlink ${name.toString('utf8')}`, effectOf(walk));
  }
}

/** False when it is gone, or was removed because it was empty or no directory. */
function descend(walk: Walk, name: Buffer): Result<boolean> {
  let child: Place;
  try {
    child = openChild(walk.current, name);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return ok(false);
    return failErrno(error, `open ${name.toString('utf8')}`, effectOf(walk));
  }
  if (mountIdOf(child) !== walk.mountId) {
    closeSync(child.descriptor);
    return failMounted(name.toString('utf8'), effectOf(walk));
  }
  closeSync(walk.current.descriptor);
  walk.above.push(walk.level);
  walk.current = child;
  walk.level = levelOf(child, name);
  return ok(true);
}

/** Back to the directory we came from, which must still be the same one, and removes the one we emptied. */
function ascend(walk: Walk): Result<void> {
  const level = walk.above.at(-1);
  if (level === undefined) throw new Error('broken invariant: above the root of the tree');
  const { name } = walk.level;
  let parent: Place;
  try {
    parent = openChild(walk.current, '..');
  } catch (error) {
    return failErrno(error, 'open the parent', effectOf(walk));
  }
  const seen = levelOf(parent, level.name);
  if (seen.inode !== level.inode || seen.device !== level.device || mountIdOf(parent) !== walk.mountId) {
    closeSync(parent.descriptor);
    return fail({
      code: 'path-unsafe',
      message: 'a directory was moved while it was deleted',
      effect: effectOf(walk),
    });
  }
  closeSync(walk.current.descriptor);
  walk.above.pop();
  walk.current = parent;
  walk.level = level;
  walk.deleted += 1;
  return removeDirectoryAt(inside(parent, name), name.toString('utf8'), 'unknown');
}

/** rmdir(2), never of a mount point. Absent is success. */
export function removeDirectoryAt(path: string | Buffer, shown: string, effect: Effect): Result<void> {
  try {
    rmdirSync(path);
    return done;
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? done : failErrno(error, `rmdir ${shown}`, effect);
  }
}

function inside(place: Place, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${place.path}/`), name]);
}

function levelOf(place: Place, name: Buffer): Level {
  const { ino, dev } = fstatSync(place.descriptor, { bigint: true });
  return { name, inode: ino, device: dev };
}

function effectOf(walk: Walk): Effect {
  return walk.deleted > 0 ? 'unknown' : 'none';
}

function failMounted(path: string, effect: Effect): { readonly ok: false; readonly failure: Failure } {
  return fail({
    code: 'mount-busy',
    message: `a mount is in the way: ${path}`.slice(0, 1_024),
    effect,
    blocker: path,
  });
}

function locate(failure: Failure, root: AbsolutePath, walk: Walk): Failure {
  const where = [root, ...[...walk.above, walk.level].slice(1).map(({ name }) => name.toString('utf8'))].join(
    '/',
  );
  return { ...failure, message: `${failure.message} in ${where}`.slice(0, 1_024) };
}
