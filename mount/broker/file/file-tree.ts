/** Deleting a directory tree that others have written into. Path brokers only. */
import { lstatSync, unlinkSync } from 'node:fs';
import { removeDirectoryAt } from './attempt.ts';
import { CHANGEABLE, removeMountPoint } from './mount-point.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Effect, type Failure, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import { findMountBelow, mountIdAt } from '../path/mount-lookup.ts';
import {
  inDirectory,
  mountIdOf,
  type OpenPath,
  type ChildPath,
  withDirectory,
  withChild,
} from '../path/path-walk.ts';
import { runShortTool } from '../path/short-tool.ts';
import { mountIdIn, type TreeVisit, walkTree } from './file-walk.ts';

interface Removal {
  deleted: number;
  /** How much was deleted when a directory was last found to be not empty after all. */
  refusedAt: number | undefined;
}

/**
 * rm -r of a directory, as `Host.removeTree` says, to any depth and in time linear in its entries. Compares mount ids,
 * because `st_dev` is equal on both sides of a bind mount of the same file system (MF-4).
 */
export function removeTree(path: AbsolutePath): Result<void> {
  const below = refuseMountsBelow(path);
  if (!below.ok) return below;
  const removed = withChild(path, (child) => {
    const mounted = mountIdAt(child);
    if (!mounted.ok) return mounted;
    if (mounted.value !== undefined) return failMounted(path, 'none');
    const removal: Removal = { deleted: 0, refusedAt: undefined };
    for (;;) {
      const emptied = empty(child, path, removal);
      if (!emptied.ok) return emptied;
      const gone = removeMountPoint(child, path, effectOf(removal));
      if (gone.ok || !mayBeEmptiedAgain(removal, gone.failure)) return gone;
    }
  });
  return !removed.ok && removed.failure.code === 'path-missing' && removed.failure.effect === 'none'
    ? done
    : removed;
}

/** As many entries are looked at one by one, before the table of all mounts is read, which may be 100,000. */
const ENTRIES_LOOKED_AT_MAX = 64;

/** No mount is in it, as its entries tell, of which there are few. */
function isSmallAndBare(path: AbsolutePath): boolean {
  let left = ENTRIES_LOOKED_AT_MAX;
  const unlike = fail({ code: 'too-large', message: 'more than a look', effect: 'none' });
  const bare = withDirectory(path, (top) => {
    const mountId = mountIdOf(top);
    return walkTree(top, path, {
      entry: (directory, name) => {
        left -= 1;
        return left >= 0 && mountIdIn(directory, name) === mountId ? ok(false) : unlike;
      },
      finish: () => {
        left -= 1;
        return left < 0 ? unlike : done;
      },
      left: () => ok(false),
      mounted: () => unlike,
      refused: () => unlike,
      crowded: () => unlike,
    });
  });
  return bare.ok || bare.failure.code === 'path-missing';
}

/** A look first, so that a tree with a mount in it keeps every file. */
function refuseMountsBelow(path: AbsolutePath): Result<void> {
  if (isSmallAndBare(path)) return done;
  const mount = findMountBelow(path);
  if (!mount.ok) return mount;
  return mount.value === undefined ? done : failMounted(mount.value.target, 'none');
}

function empty(child: ChildPath, path: AbsolutePath, removal: Removal): Result<void> {
  return inDirectory(child, path, (top, mountId) => {
    // Somebody may have mounted there since it was looked at.
    if (mountId !== mountIdOf(child.parent)) return failMounted(path, effectOf(removal));
    return walkTree(top, path, visitOf(removal));
  });
}

function visitOf(removal: Removal): TreeVisit {
  return {
    entry: (directory, name) => loosened(directory, name, () => unlink(removal, directory, name)),
    finish: () => done,
    left: (parent, name) => {
      const remove = () => removeDirectoryAt(inside(parent, name), name.toString('utf8'), effectOf(removal));
      const removed = loosened(parent, name, remove);
      if (removed.ok) removal.deleted += 1;
      else if (!mayBeEmptiedAgain(removal, removed.failure)) return removed;
      return ok(!removed.ok);
    },
    mounted: (name) => failMounted(name.toString('utf8'), effectOf(removal)),
    // The directory they are in is not empty when the others have gone: it is read again.
    crowded: () => done,
    refused: (error, name) => {
      return errnoOf(error) === 'ENOENT'
        ? done
        : failErrno(error, `open ${name.toString('utf8')}`, effectOf(removal));
    },
  };
}

/** Deleting while reading may skip entries on some file systems: as long as something is deleted, it is read again. */
function mayBeEmptiedAgain(removal: Removal, { code }: Failure): boolean {
  if (code !== 'directory-not-empty' || removal.refusedAt === removal.deleted) return false;
  removal.refusedAt = removal.deleted;
  return true;
}

/** True when it is a directory after all. */
function unlink(removal: Removal, directory: OpenPath, name: Buffer): Result<boolean> {
  try {
    unlinkSync(inside(directory, name));
    removal.deleted += 1;
    return ok(false);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return ok(false);
    if (errno === 'EISDIR') return ok(true);
    return failErrno(error, `unlink ${name.toString('utf8')}`, effectOf(removal));
  }
}

/** A container that may set them leaves files and directories with flags that forbid their removal, by root as well. */
function loosened<T>(directory: OpenPath, name: Buffer, remove: () => Result<T>): Result<T> {
  const removed = remove();
  if (removed.ok || removed.failure.code !== 'permission-denied') return removed;
  loosen(directory, name);
  return remove();
}

/** Where chattr(1) finds the directory, which it has open: an entry is looked up in that very one. */
const DIRECTORY = '/proc/self/fd/3';

/** What it says is a hint: whoever removes sees. Its command line takes no name that is no text. */
function loosen(directory: OpenPath, name: Buffer): void {
  const text = name.toString('utf8');
  const entry = Buffer.from(text).equals(name) && isOnlyHere(directory, name) ? [`${DIRECTORY}/${text}`] : [];
  const argv = [CHANGEABLE, '--', `${DIRECTORY}/.`, ...entry];
  runShortTool({ tool: 'chattr', argv, open: [directory.descriptor], failed: 'permission-denied' });
}

/** A file of another mount is not of the tree, and one that has another name may be somebody else's as well. */
function isOnlyHere(directory: OpenPath, name: Buffer): boolean {
  const facts = lstatSync(inside(directory, name), { throwIfNoEntry: false });
  const isOne = facts?.isDirectory() === true || (facts?.isFile() === true && facts.nlink === 1);
  return isOne && mountIdIn(directory, name) === mountIdOf(directory);
}

function inside(place: OpenPath, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${place.path}/`), name]);
}

function effectOf({ deleted }: Removal): Effect {
  return deleted > 0 ? 'unknown' : 'none';
}

function failMounted(path: string, effect: Effect): { readonly ok: false; readonly failure: Failure } {
  return fail({
    code: 'mount-busy',
    message: `a mount is in the way: ${path}`,
    effect,
    blocker: path,
  });
}
