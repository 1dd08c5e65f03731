/** Through a tree to any depth, children before their directory, with few open descriptors. Path brokers only. */
import { closeSync, constants, type Dir, type Dirent, fstatSync, openSync } from 'node:fs';
import { nameOf, nextEntry, openEntries } from './directory-entries.ts';
import { errnoOf, failErrno } from '../../errno.ts';
import { assert, done, type Failure, fail, ok, type Result } from '../../failure.ts';
import { DeepLevels, type DirectoryNumbers } from '../path/deep-levels.ts';
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
  /** Far down there are more directories than are remembered: success goes on without the rest. */
  readonly crowded: () => Result<void>;
}

/**
 * So many levels are kept open, two descriptors each, and read entry by entry: however many there are, none is
 * remembered, and whoever moves a directory meanwhile does not disturb. Of a deeper level the names of its directories
 * are remembered and the level is closed; the way back is `..`, which must lead to the very same directory.
 */
const OPEN_LEVELS_MAX = 64;

interface Level {
  readonly name: Buffer;
  readonly place: OpenPath;
  /** What is still to be read. */
  readonly entries: Dir;
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
  /** Those that are open. */
  readonly #levels: Level[] = [];
  readonly #deep = new DeepLevels();
  /** The deepest level, when it is none of those. */
  #place: OpenPath | undefined;

  constructor(top: OpenPath, visit: TreeVisit) {
    this.#top = top;
    this.#visit = visit;
    this.#mountId = mountIdOf(top);
  }

  run(): Result<void> {
    const begun = this.#enter(this.#top, Buffer.alloc(0));
    if (!begun.ok) return begun;
    for (let level = this.#levels.at(-1); level !== undefined; level = this.#levels.at(-1)) {
      const moved = this.#place === undefined ? this.#go(level) : this.#goDeep(this.#place);
      if (!moved.ok) return moved;
    }
    return done;
  }

  /** Where it is, the first levels of it. */
  names(): readonly string[] {
    return this.#levels.slice(1).map(({ name }) => name.toString('utf8'));
  }

  close(): void {
    for (const level of this.#levels.splice(0)) this.#close(level);
    this.#moveTo(undefined);
  }

  #go(level: Level): Result<void> {
    const next = this.#next(level);
    if (!next.ok) return next;
    if (next.value !== undefined) return this.#descend(level.place, next.value);
    const finished = this.#visit.finish(level.place, this.#levels.length - 1);
    if (!finished.ok) return finished;
    this.#levels.pop();
    this.#close(level);
    const above = this.#levels.at(-1);
    return above === undefined ? done : this.#leave(above.place, level.name);
  }

  #goDeep(place: OpenPath): Result<void> {
    const name = this.#deep.next();
    if (name === undefined) return this.#ascend(place);
    // It stays the next one while it is walked through.
    const depth = this.#deep.depth;
    const entered = this.#descend(place, name);
    if (entered.ok && this.#deep.depth === depth) this.#deep.drop();
    return entered;
  }

  /** The next directory to go down into; undefined when there is none left. */
  #next({ entries, place }: Level): Result<Buffer | undefined> {
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

  #descend(place: OpenPath, name: Buffer): Result<void> {
    let child: OpenPath;
    try {
      child = openDirectoryIn(place, name);
    } catch (error) {
      return this.#visit.refused(error, name);
    }
    let isEntered = false;
    try {
      if (mountIdOf(child) !== this.#mountId) return this.#visit.mounted(name);
      const entered = this.#enter(child, name);
      isEntered = this.#place === child || this.#levels.at(-1)?.place === child;
      return entered;
    } finally {
      if (!isEntered) closeSync(child.descriptor);
    }
  }

  /** It is a level from then on, unless it cannot be listed. */
  #enter(place: OpenPath, name: Buffer): Result<void> {
    let entries: Dir;
    try {
      entries = openEntries(place);
    } catch (error) {
      return this.#visit.refused(error, name);
    }
    if (this.#levels.length < OPEN_LEVELS_MAX) {
      this.#levels.push({ name, place, entries });
      return done;
    }
    try {
      this.#deep.enter(name, numbersOf(place));
      this.#moveTo(place);
      return this.#readAll(place, entries);
    } finally {
      entries.closeSync();
    }
  }

  #readAll(place: OpenPath, entries: Dir): Result<void> {
    let isCrowded = false;
    for (let entry = nextEntry(entries); entry !== null; entry = nextEntry(entries)) {
      const isDirectory = this.#visitEntry(place, entry);
      if (!isDirectory.ok) return isDirectory;
      if (isDirectory.value && !this.#deep.add(nameOf(entry))) isCrowded = true;
    }
    return isCrowded ? this.#visit.crowded() : done;
  }

  /** From a deep level. A directory that was moved has another one above it: then nobody knows what was visited. */
  #ascend(place: OpenPath): Result<void> {
    const depth = OPEN_LEVELS_MAX + this.#deep.depth - 1;
    const finished = this.#visit.finish(place, depth);
    if (!finished.ok) return finished;
    const name = this.#deep.leave();
    const numbers = this.#deep.numbers();
    if (numbers === undefined) {
      this.#moveTo(undefined);
      const above = this.#levels.at(-1);
      assert(above !== undefined, 'a deep level lies in an open one');
      return this.#leave(above.place, name);
    }
    try {
      this.#moveTo(openDirectoryIn(place, '..'));
    } catch (error) {
      return failErrno(error, 'open the parent', 'unknown');
    }
    const parent = this.#place;
    assert(parent !== undefined, 'the parent is open');
    if (!isThat(parent, numbers) || mountIdOf(parent) !== this.#mountId) {
      const message = `a directory was moved meanwhile, ${depth - 1} levels deep`;
      return fail({ code: 'path-unsafe', message, effect: 'unknown' });
    }
    const left = this.#visit.left(parent, name);
    if (left.ok && !left.value) this.#deep.drop();
    return left.ok ? done : left;
  }

  /** Up to a level that is open. */
  #leave(above: OpenPath, name: Buffer): Result<void> {
    const again = this.#visit.left(above, name);
    if (!again.ok) return again;
    return again.value ? this.#descend(above, name) : done;
  }

  #moveTo(place: OpenPath | undefined): void {
    if (this.#place !== undefined) closeSync(this.#place.descriptor);
    this.#place = place;
  }

  #close({ entries, place }: Level): void {
    entries.closeSync();
    if (place !== this.#top) closeSync(place.descriptor);
  }
}

function numbersOf(place: OpenPath): DirectoryNumbers {
  const { dev, ino } = fstatSync(place.descriptor, { bigint: true });
  return { device: dev, inode: ino };
}

function isThat(place: OpenPath, { device, inode }: DirectoryNumbers): boolean {
  const seen = numbersOf(place);
  return seen.device === device && seen.inode === inode;
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
