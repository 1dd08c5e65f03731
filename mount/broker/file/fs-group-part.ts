/** Giving a tree to a group, a part at a time; mount/agent-side/fs-group-walk.ts puts the parts together. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  type Dir,
  type Dirent,
  fstatSync,
  lchownSync,
  lstatSync,
  opendirSync,
  openSync,
  type Stats,
} from 'node:fs';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Failure, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath, OwnershipReport } from '../../host.ts';
import { mountIdOf, openChild, O_PATH, type Place, placeOf, withDirectory } from '../path/path-walk.ts';
import { identityOf, walkTree } from './file-walk.ts';

/** What one call does. */
export interface OwnershipPart {
  /** The root of the volume. */
  readonly path: AbsolutePath;
  /** The mount of the root, when a call before has seen it: another one is `mount-lost`. */
  readonly mountId: number | undefined;
  /** From the root to the directory that this part is about; names are bytes. */
  readonly names: readonly Uint8Array[];
  /**
   * `look`: changes nothing. `unmark`: a root that another group has stops saying so. `level`: the entries of the
   * directory that are no directories. `tree`: all below, then the directory. `self`: the directory alone.
   */
  readonly scope: 'look' | 'unmark' | 'level' | 'tree' | 'self';
  readonly gid: number;
  readonly readOnly: boolean;
}

export interface OwnershipPartReport extends OwnershipReport {
  readonly mountId: number;
  /** Of a `look`: device and inode of the directory, by which any path to it is known. */
  readonly identity?: string;
  /** The directory itself has the group and the bits. */
  readonly right: boolean;
  /** Of a `level`: the directories in it; undefined when there are too many for one answer. */
  readonly directories: readonly Uint8Array[] | undefined;
}

const MODE_BITS = 0o7777;
const WRITABLE_BITS = 0o660;
const READABLE_BITS = 0o440;
const DIRECTORY_BITS = 0o2110;
/** What a root has only when all of its volume is its group's. */
const SETGID = 0o2000;
const DIRECTORIES_MAX = 1_024;
/** A batch of getdents(2); more gains nothing. */
const ENTRIES_A_READ = 128;
/** What the kubelet only logs: read-only or immutable, not ours, gone meanwhile. */
const REFUSALS: ReadonlySet<string> = new Set(['EROFS', 'EPERM', 'EACCES', 'ENOENT', 'EOPNOTSUPP']);

interface Walk {
  readonly part: OwnershipPart;
  readonly mountId: number;
  readonly sign: (seen: number) => void;
  seen: number;
  changed: number;
  refused: number;
}

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
    const walk: Walk = { part, mountId, sign, seen: 0, changed: 0, refused: 0 };
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
  root: Place,
  names: readonly Uint8Array[],
  walk: Walk,
  use: (place: Place) => Result<OwnershipPartReport>,
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

function perform(walk: Walk, place: Place): Result<OwnershipPartReport> {
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
    case 'tree': {
      const walked = changeTree(walk, place, isRoot);
      return walked.ok ? ok(reportOf(walk, true, [])) : fail(blamed(walked.failure, walk));
    }
  }
}

function lookAt(walk: Walk, place: Place): OwnershipPartReport {
  const right = isRight(fstatSync(place.descriptor), walk.part);
  return { ...reportOf(walk, right, []), identity: identityOf(place) };
}

/** Without setgid it is right for no group, for us as for the kubelet. What refuses this refuses the rest, too. */
function unmark(walk: Walk, place: Place): void {
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

function changeLevel(walk: Walk, place: Place): readonly Uint8Array[] | undefined {
  const directories: Uint8Array[] = [];
  const directory = openEntries(walk, place);
  if (directory === undefined) return directories;
  try {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
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
function changeTree(walk: Walk, top: Place, isRoot: boolean): Result<void> {
  return walkTree(top, walk.part.path, {
    entry: (directory, name) => ok(changeEntry(walk, directory, name)),
    finish: (directory, depth) => {
      changeDirectory(walk, directory, isRoot && depth === 0);
      return done;
    },
    left: () => ok(false),
    mounted: () => done,
    refused: (error) => {
      // No directory any more.
      if (errnoOf(error) !== 'ENOTDIR') refuse(walk, error);
      return done;
    },
  });
}

/** Undefined when there is nothing for us: gone, no directory any more, or the root of another mount. */
function openDirectory(parent: Place, name: Buffer, walk: Walk): Place | undefined {
  let place: Place;
  try {
    place = openChild(parent, name);
  } catch (error) {
    if (errnoOf(error) !== 'ENOTDIR') refuse(walk, error);
    return undefined;
  }
  if (mountIdOf(place) === walk.mountId) return place;
  closeSync(place.descriptor);
  return undefined;
}

/** True when it is a directory after all: some file systems do not tell when they list. */
function changeEntry(walk: Walk, parent: Place, name: Buffer): boolean {
  const path = Buffer.concat([Buffer.from(`${parent.path}/`), name]);
  try {
    const seen = lstatSync(path);
    if (seen.isDirectory()) return true;
    if (isRight(seen, walk.part)) see(walk);
    else if (seen.isSymbolicLink()) {
      see(walk);
      lchownSync(path, -1, walk.part.gid);
      walk.changed += 1;
    } else changeFile(walk, path);
  } catch (error) {
    refuse(walk, error);
  }
  return false;
}

/** Through a descriptor: it is neither followed nor opened, and a file that is a mount of its own is left alone. */
function changeFile(walk: Walk, path: Buffer): void {
  const place = placeOf(openSync(path, O_PATH | constants.O_NOFOLLOW));
  try {
    if (mountIdOf(place) !== walk.mountId) return;
    see(walk);
    // Another thing has this name by now: whoever put it there gave it its group.
    if (fstatSync(place.descriptor).isSymbolicLink()) return;
    apply(walk, place);
  } finally {
    closeSync(place.descriptor);
  }
}

/** A root that is read-only or gone fails the walk: nothing below it can have been changed. */
function changeDirectory(walk: Walk, place: Place, isRoot: boolean): void {
  see(walk);
  try {
    if (!isRight(fstatSync(place.descriptor), walk.part)) apply(walk, place);
  } catch (error) {
    const errno = errnoOf(error);
    if (isRoot && (errno === 'EROFS' || errno === 'ENOENT')) throw error;
    refuse(walk, error);
  }
}

/** chown(2) takes setuid away, as it should from a file that another group may write now: the mode is read after it. */
function apply(walk: Walk, place: Place): void {
  const { gid } = walk.part;
  if (fstatSync(place.descriptor).gid !== gid) chownSync(place.path, -1, gid);
  const seen = fstatSync(place.descriptor);
  const mode = seen.mode & MODE_BITS;
  const wanted = mode | bitsFor(seen, walk.part);
  if (mode !== wanted) chmodSync(place.path, wanted);
  walk.changed += 1;
}

function isRight(seen: Stats, part: OwnershipPart): boolean {
  const bits = bitsFor(seen, part);
  return seen.gid === part.gid && (seen.mode & bits) === bits;
}

/**
 * The mode of a link means nothing, and chmod(2) would go through it. That of a device node says who may have the
 * device, which is no file of the volume.
 */
function bitsFor(seen: Stats, { readOnly }: OwnershipPart): number {
  if (seen.isSymbolicLink() || seen.isBlockDevice() || seen.isCharacterDevice()) return 0;
  return (readOnly ? READABLE_BITS : WRITABLE_BITS) | (seen.isDirectory() ? DIRECTORY_BITS : 0);
}

function see(walk: Walk): void {
  walk.seen += 1;
  walk.sign(walk.seen);
}

function refuse(walk: Walk, error: unknown): void {
  if (!REFUSALS.has(errnoOf(error))) throw error;
  walk.refused += 1;
}

/** Undefined when it is gone, or not for us. */
function openEntries(walk: Walk, place: Place): Dir | undefined {
  try {
    return opendirSync(place.path, { encoding: 'buffer' as BufferEncoding, bufferSize: ENTRIES_A_READ });
  } catch (error) {
    refuse(walk, error);
    return undefined;
  }
}

function nameOf(entry: Dirent): Buffer {
  return entry.name as unknown as Buffer;
}

function blamed(failure: Failure, walk: Walk): Failure {
  return walk.changed > 0 ? { ...failure, effect: 'unknown' } : failure;
}

function reportOf(
  { mountId, seen, changed, refused }: Walk,
  right: boolean,
  directories: readonly Uint8Array[] | undefined,
): OwnershipPartReport {
  return { mountId, seen, changed, refused, right, directories };
}
