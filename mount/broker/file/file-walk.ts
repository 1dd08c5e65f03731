/** Through a tree to any depth, children before their directory, with few open descriptors. Path brokers only. */
import { closeSync, constants, type Dir, type Dirent, fstatSync, openSync } from 'node:fs';
import { nameOf, nextEntry, openEntries } from './directory-entries.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, type Failure, fail, ok, type Result } from '../../failure.ts';
import { mountIdOf, O_PATH, openDirectoryIn, type OpenPath, openPathOf } from '../path/path-walk.ts';

/** What is done on the way; the first failure ends the walk. */
export interface TreeVisit {
  /** Called for something that the listing does not call a directory. True: it is one after all. */
  readonly entry: (directory: OpenPath, name: Buffer) => Result<boolean>;
  /** All that is in it was visited; the top of the tree is depth 0. */
  readonly finish: (directory: OpenPath, depth: number) => Result<void>;
  /** It is closed, and the one it is in is open. True: all that is in it is to be visited again. */
  readonly left: (parent: OpenPath, name: Buffer) => Result<boolean>;
  /** The root of another mount: not entered. */
  readonly mounted: (name: Buffer) => Result<void>;
  /** It could not be opened or listed: success goes on without it. */
  readonly refused: (error: unknown, name: Buffer) => Result<void>;
}

/**
 * So many levels are kept open, two descriptors each, and read entry by entry: however many there are, none is
 * remembered, and whoever moves a directory meanwhile does not disturb. Of a deeper level the names of its directories
 * are remembered and the level is closed; the way back is `..`, which must lead to the very same directory.
 */
const OPEN_LEVELS_MAX = 64;

interface Level {
  readonly name: Buffer;
  readonly depth: number;
  /** Undefined while a deep level waits for what is below it. */
  place: OpenPath | undefined;
  /** What is still to be read; a deep level has been read. */
  readonly entries: Dir | undefined;
  /** Directories of a deep level that are still to be visited. */
  readonly names: Buffer[];
  readonly identity: string;
}

/** Never crosses a mount (by mount id) nor follows a link. `top` stays open; `path` is what people call it. */
export function walkTree(top: OpenPath, path: string, visit: TreeVisit): Result<void> {
  const walk = new TreeWalk(top, visit);
  try {
    const walked = walk.run();
    return walked.ok ? done : fail(located(walked.failure, [path, ...walk.names()]));
  } finally {
    walk.close();
  }
}

function located(failure: Failure, names: readonly string[]): Failure {
  return { ...failure, message: `${failure.message} in ${names.join('/')}` };
}

class TreeWalk {
  readonly #visit: TreeVisit;
  readonly #mountId: number;
  readonly #top: OpenPath;
  readonly #levels: Level[] = [];

  constructor(top: OpenPath, visit: TreeVisit) {
    this.#top = top;
    this.#visit = visit;
    this.#mountId = mountIdOf(top);
  }

  run(): Result<void> {
    const begun = this.#enter(this.#top, Buffer.alloc(0));
    if (!begun.ok) return begun;
    for (let level = this.#levels.at(-1); level !== undefined; level = this.#levels.at(-1)) {
      const next = this.#next(level);
      if (!next.ok) return next;
      const moved = next.value === undefined ? this.#ascend(level) : this.#descend(level, next.value);
      if (!moved.ok) return moved;
    }
    return done;
  }

  /** Where it is, the first levels of it. */
  names(): readonly string[] {
    return this.#levels.slice(1, OPEN_LEVELS_MAX).map(({ name }) => name.toString('utf8'));
  }

  close(): void {
    for (const level of this.#levels) this.#close(level);
  }

  /** The next directory to go down into; undefined when there is none left. */
  #next({ entries, place, names }: Level): Result<Buffer | undefined> {
    if (entries === undefined || place === undefined) return ok(names.pop());
    for (let entry = nextEntry(entries); entry !== null; entry = nextEntry(entries)) {
      const isDirectory = this.#visitEntry(place, entry);
      if (!isDirectory.ok) return isDirectory;
      if (isDirectory.value) return ok(nameOf(entry));
    }
    return ok(undefined);
  }

  #visitEntry(place: OpenPath, entry: Dirent): Result<boolean> {
    return entry.isDirectory() ? ok(true) : this.#visit.entry(place, nameOf(entry));
  }

  #descend(level: Level, name: Buffer): Result<void> {
    const { place } = level;
    if (place === undefined) throw new Error('broken invariant: down from a level that is closed');
    let child: OpenPath;
    try {
      child = openDirectoryIn(place, name);
    } catch (error) {
      return this.#visit.refused(error, name);
    }
    try {
      return mountIdOf(child) === this.#mountId ? this.#enter(child, name) : this.#visit.mounted(name);
    } finally {
      if (this.#levels.at(-1) === level) closeSync(child.descriptor);
      else if (level.entries === undefined) closePlace(level);
    }
  }

  #enter(place: OpenPath, name: Buffer): Result<void> {
    const depth = this.#levels.length;
    let entries: Dir;
    try {
      entries = openEntries(place);
    } catch (error) {
      return this.#visit.refused(error, name);
    }
    const isOpen = depth < OPEN_LEVELS_MAX;
    const names: Buffer[] = [];
    let identity = '';
    try {
      if (!isOpen) identity = identityOf(place);
      const read = isOpen ? done : this.#readAll(place, entries, names);
      if (!read.ok) return read;
    } finally {
      if (!isOpen) entries.closeSync();
    }
    this.#levels.push({ name, depth, place, entries: isOpen ? entries : undefined, names, identity });
    return done;
  }

  #readAll(place: OpenPath, entries: Dir, names: Buffer[]): Result<void> {
    for (let entry = nextEntry(entries); entry !== null; entry = nextEntry(entries)) {
      const isDirectory = this.#visitEntry(place, entry);
      if (!isDirectory.ok) return isDirectory;
      if (isDirectory.value) names.push(nameOf(entry));
    }
    return done;
  }

  #ascend(level: Level): Result<void> {
    const { place, name, depth } = level;
    if (place === undefined) throw new Error('broken invariant: up from a level that is closed');
    const finished = this.#visit.finish(place, depth);
    if (!finished.ok) return finished;
    const above = this.#levels[depth - 1];
    const reopened = above === undefined ? done : this.#reopen(above, place);
    if (!reopened.ok) return reopened;
    this.#levels.pop();
    this.#close(level);
    if (above?.place === undefined) return done;
    const again = this.#visit.left(above.place, name);
    if (!again.ok) return again;
    return again.value ? this.#descend(above, name) : done;
  }

  /** A directory that was moved has another one above it: then nobody knows what was visited. */
  #reopen(level: Level, child: OpenPath): Result<void> {
    if (level.place !== undefined) return done;
    try {
      level.place = openDirectoryIn(child, '..');
    } catch (error) {
      return failErrno(error, 'open the parent', 'unknown');
    }
    if (identityOf(level.place) === level.identity && mountIdOf(level.place) === this.#mountId) return done;
    closePlace(level);
    const message = `a directory was moved meanwhile, ${level.depth} levels deep`;
    return fail({ code: 'path-unsafe', message, effect: 'unknown' });
  }

  #close(level: Level): void {
    level.entries?.closeSync();
    if (level.depth > 0) closePlace(level);
  }
}

function closePlace(level: Level): void {
  if (level.place !== undefined) closeSync(level.place.descriptor);
  level.place = undefined;
}

/** Device and inode: no other directory has them while this one is there. */
export function identityOf(place: OpenPath): string {
  const { dev, ino } = fstatSync(place.descriptor, { bigint: true });
  return `${dev}:${ino}`;
}

/** The mount id of whatever has the name; undefined when it cannot be looked at. */
export function mountIdIn(directory: OpenPath, name: Buffer): number | undefined {
  let place: OpenPath;
  try {
    place = openPathOf(
      openSync(Buffer.concat([Buffer.from(`${directory.path}/`), name]), O_PATH | constants.O_NOFOLLOW),
    );
  } catch (error) {
    errnoOf(error);
    return undefined;
  }
  try {
    return mountIdOf(place);
  } finally {
    closeSync(place.descriptor);
  }
}
