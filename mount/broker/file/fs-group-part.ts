/** Giving a tree to a group, a part at a time; mount/agent-side/fs-group-walk.ts puts the parts together. */
import { chmodSync, closeSync, type Dir, fstatSync } from 'node:fs';
import { nameOf, nextEntry, openEntries } from './directory-entries.ts';
import { identityOf, walkTree } from './file-walk.ts';
import { changeDirectory, changeEntry, MODE_BITS, refuse, type Walk } from './fs-group-entry.ts';
import { isRight } from './group-bits.ts';
import type { OwnershipPart, OwnershipPartReport } from './ownership-part.ts';
import { mountIdOf, openDirectoryIn, type OpenPath, withDirectory } from '../path/path-walk.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, type Failure, ok, type Result } from '../../failure.ts';

/** What a root has only when all of its volume is its group's. */
const SETGID = 0o2000;
const DIRECTORIES_MAX = 1_024;

/** Does the part; `sign` is called with what was seen so far, once for each entry. */
export function changeOwnershipPart(
  part: OwnershipPart,
  sign: (seen: number) => void,
): Result<OwnershipPartReport> {
  return withDirectory(part.path, (root) => {
    const mountId = mountIdOf(root);
    if (part.mountId !== undefined && part.mountId !== mountId) {
      return fail({ code: 'mount-lost', message: `another mount is at ${part.path}`, effect: 'none' });
    }
    const counts = { seen: 0, changed: 0, refused: 0 };
    const walk: Walk = { part, mountId, sign, linked: [], files: new Set(part.files), ...counts };
    try {
      return withPlace(root, part.names, walk, (place) => perform(walk, place));
    } catch (error) {
      const { failure } = failErrno(error, `change the group of ${part.path}`, 'none');
      return fail(blamed(failure, walk));
    }
  });
}

/** Follows the names from the root; a directory that is gone, or is another mount by now, is nothing to do. */
function withPlace(
  root: OpenPath,
  names: readonly Uint8Array[],
  walk: Walk,
  use: (place: OpenPath) => Result<OwnershipPartReport>,
): Result<OwnershipPartReport> {
  let place = root;
  try {
    for (const name of names) {
      const child = openDirectory(place, Buffer.from(name), walk);
      if (place !== root) closeSync(place.descriptor);
      place = root;
      if (child === undefined) return ok(reportOf(walk, true, []));
      place = child;
    }
    return use(place);
  } finally {
    if (place !== root) closeSync(place.descriptor);
  }
}

function perform(walk: Walk, place: OpenPath): Result<OwnershipPartReport> {
  const { scope, names } = walk.part;
  const isRoot = names.length === 0;
  switch (scope) {
    case 'look':
      return ok(lookAt(walk, place));
    case 'unmark':
      unmark(walk, place);
      return ok(reportOf(walk, true, []));
    case 'level':
      return ok(reportOf(walk, true, changeLevel(walk, place)));
    case 'self':
      changeDirectory(walk, place, isRoot);
      return ok(reportOf(walk, true, []));
    case 'count':
    case 'linked':
    case 'tree': {
      const walked = changeTree(walk, place, isRoot);
      return walked.ok ? ok(reportOf(walk, true, [])) : fail(blamed(walked.failure, walk));
    }
  }
}

function lookAt(walk: Walk, place: OpenPath): OwnershipPartReport {
  const right = isRight(fstatSync(place.descriptor), walk.part);
  return { ...reportOf(walk, right, []), identity: identityOf(place) };
}

/** Without setgid it is right for no group, for us as for the kubelet. What refuses this refuses the rest, too. */
function unmark(walk: Walk, place: OpenPath): void {
  const { gid, mode } = fstatSync(place.descriptor);
  if (gid === walk.part.gid || (mode & SETGID) === 0) return;
  try {
    chmodSync(place.path, mode & MODE_BITS & ~SETGID);
    walk.changed += 1;
  } catch (error) {
    if (errnoOf(error) === 'EROFS') throw error;
    refuse(walk, error);
  }
}

function changeLevel(walk: Walk, place: OpenPath): readonly Uint8Array[] | undefined {
  const directories: Uint8Array[] = [];
  const directory = entriesOf(walk, place);
  if (directory === undefined) return directories;
  try {
    for (let entry = nextEntry(directory); entry !== null; entry = nextEntry(directory)) {
      const name = nameOf(entry);
      if (!entry.isDirectory() && !changeEntry(walk, place, name)) continue;
      directories.push(name);
      if (directories.length > DIRECTORIES_MAX) return undefined;
    }
  } finally {
    directory.closeSync();
  }
  return directories;
}

/** However deep it is, and however many entries one directory has. */
function changeTree(walk: Walk, top: OpenPath, isRoot: boolean): Result<void> {
  return walkTree(top, walk.part.path, {
    entry: (directory, name) => ok(changeEntry(walk, directory, name)),
    finish: (directory, depth) => {
      if (walk.part.scope === 'tree') changeDirectory(walk, directory, isRoot && depth === 0);
      return done;
    },
    left: () => ok(false),
    mounted: () => done,
    crowded: () => {
      const message = 'more directories are beside each other than are remembered';
      return fail({ code: 'too-large', message, effect: 'none' });
    },
    refused: (error) => {
      // No directory any more.
      if (errnoOf(error) !== 'ENOTDIR') refuse(walk, error);
      return done;
    },
  });
}

/** Undefined when there is nothing for us: gone, no directory any more, or the root of another mount. */
function openDirectory(parent: OpenPath, name: Buffer, walk: Walk): OpenPath | undefined {
  let place: OpenPath;
  try {
    place = openDirectoryIn(parent, name);
  } catch (error) {
    if (errnoOf(error) !== 'ENOTDIR') refuse(walk, error);
    return undefined;
  }
  let isOurs = false;
  try {
    isOurs = mountIdOf(place) === walk.mountId;
    return isOurs ? place : undefined;
  } finally {
    if (!isOurs) closeSync(place.descriptor);
  }
}

/** Undefined when it is gone, or not for us. */
function entriesOf(walk: Walk, place: OpenPath): Dir | undefined {
  try {
    return openEntries(place);
  } catch (error) {
    refuse(walk, error);
    return undefined;
  }
}

function blamed(failure: Failure, walk: Walk): Failure {
  return walk.changed > 0 ? { ...failure, effect: 'unknown' } : failure;
}

function reportOf(
  { mountId, seen, changed, refused, linked }: Walk,
  right: boolean,
  directories: readonly Uint8Array[] | undefined,
): OwnershipPartReport {
  return { mountId, seen, changed, refused, right, directories, ...(linked.length > 0 && { linked }) };
}
