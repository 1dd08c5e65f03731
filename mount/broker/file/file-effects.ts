/** The file calls of `Host`, done synchronously. Path brokers only: any of them may hang for ever. */
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  opendirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { refuseAnother } from './file-identity.ts';
import { removeDirectoryAt } from './file-tree.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Effect, fail, ok, type Result } from '../../failure.ts';
import {
  type AbsolutePath,
  below,
  type ContentStamp,
  type DirectoryReading,
  type FileEntry,
  type PathFacts,
  type PathKind,
  type WriteOptions,
  wayTo,
} from '../../host.ts';
import { temporaryName } from '../../temporary-file.ts';
import { mountIdAt } from '../path/mount-lookup.ts';
import { openPlace, type Place, type Spot, spotIn, withDirectory, withSpot } from '../path/path-walk.ts';

const PARENT_MODE = 0o750;
const MODE_BITS = 0o7777;

const ABSENT: PathFacts = { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };

export function inspect(path: AbsolutePath): Result<PathFacts> {
  if (path === '/') return withDirectory(path, ({ descriptor }) => ok(factsOf(fstatSync(descriptor))));
  const found = withSpot(path, (spot) => ok(factsAt(spot)));
  return isMissing(found) ? ok(ABSENT) : found;
}

/** Each from `/` anew: what comes later may have been exchanged only by who could do so before. */
export function inspectWay(path: AbsolutePath): Result<readonly PathFacts[]> {
  const way: PathFacts[] = [];
  for (const one of wayTo(path)) {
    const facts = inspect(one);
    if (!facts.ok) return facts;
    way.push(facts.value);
    if (facts.value.kind === 'absent') break;
  }
  return ok(way);
}

export function makeDirectory(path: AbsolutePath, mode: number): Result<void> {
  const found = withDirectory(path, (place) => setMode(place, mode, path, 'none'));
  if (!isMissing(found)) return found;
  let effect: Effect = 'none';
  let reached: AbsolutePath = '/' as AbsolutePath;
  for (const name of path.slice(1).split('/')) {
    const parent = reached;
    reached = below(parent, name);
    const made = withDirectory(parent, (place) => makeOne(spotIn(place, name), effect));
    if (!made.ok) return made;
    if (made.value) effect = 'unknown';
  }
  return withDirectory(path, (place) => setMode(place, mode, path, effect));
}

/** False when something of that name exists already; the walk to it will say what. */
function makeOne(spot: Spot, effect: Effect): Result<boolean> {
  try {
    mkdirSync(spot.path, PARENT_MODE);
    return ok(true);
  } catch (error) {
    return errnoOf(error) === 'EEXIST' ? ok(false) : failErrno(error, `mkdir ${spot.name}`, effect);
  }
}

/** chmod(2) through the descriptor, only where it changes something: a mounted file system may be read-only. */
function setMode(place: Place, mode: number, path: AbsolutePath, effect: Effect): Result<void> {
  if ((fstatSync(place.descriptor).mode & MODE_BITS) === mode) return done;
  return attempt(`chmod ${path}`, effect, () => chmodSync(place.path, mode));
}

export function removeEmptyDirectory(path: AbsolutePath): Result<void> {
  const removed = withSpot(path, (spot) => {
    const mounted = mountIdAt(spot);
    if (!mounted.ok) return mounted;
    if (mounted.value !== undefined) {
      return fail({ code: 'mount-busy', message: `${path} is a mount point`, effect: 'none', blocker: path });
    }
    return removeDirectoryAt(spot.path, path, 'none');
  });
  return isMissing(removed) ? done : removed;
}

export function listDirectory(path: AbsolutePath, entriesMax: number): Result<readonly string[]> {
  return withDirectory(path, (place) => namesIn(place, path, entriesMax));
}

function namesIn(place: Place, path: AbsolutePath, entriesMax: number): Result<readonly string[]> {
  const names: string[] = [];
  try {
    const directory = opendirSync(place.path);
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        names.push(entry.name);
        if (names.length > entriesMax) return failTooLarge(path, `has more than ${entriesMax} entries`);
      }
    } finally {
      directory.closeSync();
    }
  } catch (error) {
    return failErrno(error, `list ${path}`, 'none');
  }
  return ok(names);
}

export function readDirectoryFiles(
  path: AbsolutePath,
  reading: DirectoryReading,
  stampAgeMs: number,
): Result<readonly FileEntry[]> {
  const { entriesMax, fileBytesMax, known, contentBytesMax = Number.POSITIVE_INFINITY, only } = reading;
  return withDirectory(path, (place) => {
    const another = refuseAnother(place, path, reading.identity);
    if (another !== undefined) return another;
    const names = only === undefined ? namesIn(place, path, entriesMax) : ok([only]);
    if (!names.ok) return names;
    const seen = names.value.flatMap((name): Omit<FileEntry, 'content'>[] => {
      const stats = lstatSync(spotIn(place, name).path, { throwIfNoEntry: false, bigint: true });
      // Gone since it was listed: not there.
      if (stats === undefined) return [];
      const facts = factsOf(stats);
      // Of before it is read: written meanwhile, it has another one the next time.
      return [{ name, facts, stamp: facts.kind === 'file' ? stampOf(stats, stampAgeMs) : undefined }];
    });
    let left = contentBytesMax;
    return ok(
      seen
        .sort((a, b) => a.facts.sizeBytes - b.facts.sizeBytes)
        .map(({ name, facts, stamp }): FileEntry => {
          const isRead = facts.kind === 'file' && (stamp === undefined || stamp !== known?.get(name));
          if (!isRead) return { name, facts, content: undefined, stamp };
          // What is too long for one answer is refused by its own length, which the caller wants to know.
          const isTooLong = facts.sizeBytes > fileBytesMax;
          if (!isTooLong && facts.sizeBytes > left)
            return { name, facts, content: undefined, stamp: undefined, unread: true };
          const content = readSpot(spotIn(place, name), fileBytesMax);
          if (content.ok) left -= content.value.length;
          return { name, facts, content, stamp: content.ok ? stamp : undefined };
        }),
    );
  });
}

/**
 * The change time moves with every write, whatever is done to the time of modification; but a write in the same tick of
 * the clock moves nothing, so a file that is young has none. Nor has one from the future.
 */
function stampOf(stats: BigIntStats, ageMs: number): ContentStamp | undefined {
  if (Date.now() - Number(stats.ctimeMs) < ageMs) return undefined;
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ') as ContentStamp;
}

export function readFile(path: AbsolutePath, bytesMax: number): Result<Uint8Array> {
  return withSpot(path, (spot) => readSpot(spot, bytesMax));
}

/** Opens the place first and the file through it, so that no device, fifo or link is ever opened for reading. */
function readSpot(spot: Spot, bytesMax: number): Result<Uint8Array> {
  try {
    const place = openPlace(spot);
    try {
      const { kind } = factsOf(fstatSync(place.descriptor));
      if (kind !== 'file') return failKind(spot.name, kind);
      return readPlace(place, spot.name, bytesMax);
    } finally {
      closeSync(place.descriptor);
    }
  } catch (error) {
    return failErrno(error, `read ${spot.name}`, 'none');
  }
}

function readPlace(place: Place, name: string, bytesMax: number): Result<Uint8Array> {
  const descriptor = openSync(place.path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(descriptor);
    if (size > bytesMax) return failTooLarge(name, `has ${size} bytes, more than ${bytesMax}`);
    // One byte more than it may have, so that growth is seen. Size 0 may be a file of proc or sysfs.
    const buffer = new Uint8Array((size === 0 ? bytesMax : size) + 1);
    let length = 0;
    while (length < buffer.length) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (read === 0) return ok(buffer.slice(0, length));
      length += read;
    }
    return failTooLarge(name, 'grew while it was read, or has too many bytes');
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Temporary file and rename. The temporary name is fixed, so that what a dead agent left is found and replaced: the
 * caller never writes one path twice at the same time.
 */
export function writeFile(path: AbsolutePath, content: Uint8Array, options: WriteOptions): Result<void> {
  return withSpot(path, (spot) => {
    const temporary = spotIn(spot.parent, temporaryName(spot.name));
    const written = attempt(`write ${temporary.name} for ${path}`, 'none', () => {
      unlinkIfThere(temporary);
      writeNew(temporary, content, options);
    });
    const placed = written.ok ? putInPlace(temporary, spot, options) : written;
    if (!placed.ok) {
      attempt(`unlink ${temporary.name}`, 'none', () => unlinkIfThere(temporary));
      return placed;
    }
    return options.durable ? attempt(`fsync ${path}`, 'unknown', () => syncDirectory(spot.parent)) : done;
  });
}

function putInPlace(temporary: Spot, spot: Spot, options: WriteOptions): Result<void> {
  if (options.exclusive !== true) {
    return attempt(`rename to ${spot.name}`, 'none', () => renameSync(temporary.path, spot.path));
  }
  // link(2) is the rename that never replaces.
  const linked = attempt(`link to ${spot.name}`, 'none', () => linkSync(temporary.path, spot.path));
  return linked.ok
    ? attempt(`unlink ${temporary.name}`, 'unknown', () => unlinkSync(temporary.path))
    : linked;
}

function writeNew(spot: Spot, content: Uint8Array, { mode, durable }: WriteOptions): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const descriptor = openSync(spot.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let written = 0; written < content.length; ) {
      written += writeSync(descriptor, content, written, content.length - written);
    }
    fchmodSync(descriptor, mode);
    if (durable) fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function syncDirectory(place: Place): void {
  const descriptor = openSync(place.path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export function removeFile(path: AbsolutePath): Result<void> {
  const removed = withSpot(path, (spot) => attempt(`unlink ${path}`, 'none', () => unlinkIfThere(spot)));
  return isMissing(removed) ? done : removed;
}

export function rename(from: AbsolutePath, to: AbsolutePath): Result<void> {
  return withSpot(from, (source) =>
    withSpot(to, (target) => {
      try {
        renameSync(source.path, target.path);
        return done;
      } catch (error) {
        const failed = failErrno(error, `rename ${from} to ${to}`, 'none');
        // rename(2) says EEXIST or ENOTEMPTY for the same thing, by file system.
        return errnoOf(error) === 'EEXIST'
          ? fail({ ...failed.failure, code: 'directory-not-empty' })
          : failed;
      }
    }),
  );
}

export function makeLink(path: AbsolutePath, text: string): Result<void> {
  return withSpot(path, (spot) => attempt(`symlink ${path}`, 'none', () => symlinkSync(text, spot.path)));
}

export function readLink(path: AbsolutePath): Result<string> {
  return withSpot(path, (spot) => {
    try {
      return ok(readlinkSync(spot.path));
    } catch (error) {
      return failErrno(error, `readlink ${path}`, 'none');
    }
  });
}

function attempt(doing: string, effect: Effect, act: () => void): Result<void> {
  try {
    act();
    return done;
  } catch (error) {
    return failErrno(error, doing, effect);
  }
}

function unlinkIfThere(spot: Spot): void {
  try {
    unlinkSync(spot.path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

function factsAt(spot: Spot): PathFacts {
  const stats = lstatSync(spot.path, { throwIfNoEntry: false });
  return stats === undefined ? ABSENT : factsOf(stats);
}

function factsOf(stats: Stats | BigIntStats): PathFacts {
  return {
    kind: kindOf(stats),
    mode: Number(stats.mode) & MODE_BITS,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    inode: Number(stats.ino),
    sizeBytes: Number(stats.size),
    modifiedMs: Number(stats.mtimeMs),
  };
}

function kindOf(stats: Stats | BigIntStats): PathKind {
  if (stats.isDirectory()) return 'directory';
  if (stats.isFile()) return 'file';
  if (stats.isSymbolicLink()) return 'symlink';
  if (stats.isSocket()) return 'socket';
  if (stats.isFIFO()) return 'fifo';
  return stats.isBlockDevice() ? 'block' : 'character';
}

/** The path or its parent is not there: for many calls that is an answer. */
function isMissing(result: Result<unknown>): boolean {
  return !result.ok && result.failure.code === 'path-missing' && result.failure.effect === 'none';
}

function failKind(name: string, kind: PathKind): Result<never> {
  return fail({
    code: kind === 'symlink' ? 'path-unsafe' : 'path-wrong-kind',
    message: `${name} is a ${kind}`,
    effect: 'none',
  });
}

function failTooLarge(name: string, why: string): Result<never> {
  return fail({ code: 'too-large', message: `${name} ${why}`, effect: 'none' });
}
