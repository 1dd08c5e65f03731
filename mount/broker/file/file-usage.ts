/** How much room a tree of files or a mounted file system takes. Path brokers only. */
import { closeSync, fstatSync, lstatSync, type Stats, statfsSync } from 'node:fs';
import { errnoOf, failErrno } from '../../errno.ts';
import { done, fail, ok, type Result } from '../../failure.ts';
import type { AbsolutePath } from '../../host.ts';
import type { Usage, UsageRequest } from '../../usage.ts';
import { findMountBelow } from '../path/mount-lookup.ts';
import {
  type ChildPath,
  inDirectory,
  mountIdOf,
  openPath,
  type OpenPath,
  withChild,
} from '../path/path-walk.ts';
import { mountIdIn, walkTree } from './file-walk.ts';

/** What one question may look at. */
export interface UsageBounds {
  readonly entriesMax: number;
  readonly walkMsMax: number;
}

const BOUNDS: UsageBounds = { entriesMax: 1_000_000, walkMsMax: 20_000 };
/** Files of several names that are remembered, so that they count once. */
const LINKED_MAX = 100_000;
/** What st_blocks counts in, whatever the file system's blocks are (stat(2)). */
const BLOCK_BYTES = 512;
/** How many entries are looked at between two looks at the clock. */
const ENTRIES_A_LOOK = 256;

/** As `UsageQuestions.measureUsage`. */
export function measureUsage({ path, scope }: UsageRequest, bounds: UsageBounds = BOUNDS): Result<Usage> {
  return withChild(path, (child) => {
    try {
      return scope === 'tree' ? measureTree(child, path, bounds) : measureFileSystem(child, path);
    } catch (error) {
      return failErrno(error, `measure ${path}`, 'none');
    }
  });
}

function measureFileSystem(child: ChildPath, path: AbsolutePath): Result<Usage> {
  const place = openPath(child);
  try {
    if (mountIdOf(place) === mountIdOf(child.parent))
      return fail({ code: 'mount-lost', message: `nothing is mounted at ${path}`, effect: 'none' });
    const { bsize, blocks, bfree, bavail, files, ffree } = statfsSync(place.path, { bigint: true });
    const bytes = { used: (blocks - bfree) * bsize, total: blocks * bsize, available: bavail * bsize };
    return ok({ bytes, inodes: { used: files - ffree, total: files, available: ffree }, isWhole: true });
  } finally {
    closeSync(place.descriptor);
  }
}

function measureTree(child: ChildPath, path: AbsolutePath, bounds: UsageBounds): Result<Usage> {
  return inDirectory(child, path, (top, mountId) => {
    if (mountId !== mountIdOf(child.parent))
      return fail({ code: 'mount-foreign', message: `${path} is a mount point`, effect: 'none' });
    const below = findMountBelow(path);
    if (!below.ok) return below;
    // A file may be mounted on a file, and only its mount id tells: two more calls for each, where there is a mount.
    const count = new TreeCount(bounds, below.value === undefined ? undefined : mountId);
    return count.walk(top, path);
  });
}

const ENOUGH = fail({ code: 'too-large', message: 'more than one question may look at', effect: 'none' });

class TreeCount {
  readonly #bounds: UsageBounds;
  readonly #mountId: number | undefined;
  readonly #untilMs: number;
  /** Device and inode of files that have several names. */
  readonly #linked = new Set<string>();
  #blocks = 0n;
  #entries = 0;

  constructor(bounds: UsageBounds, mountId: number | undefined) {
    this.#bounds = bounds;
    this.#mountId = mountId;
    this.#untilMs = performance.now() + bounds.walkMsMax;
  }

  walk(top: OpenPath, path: AbsolutePath): Result<Usage> {
    const walked = walkTree(top, path, {
      entry: (directory, name) => this.#entry(directory, name),
      finish: (directory) => this.#count(fstatSync(directory.descriptor)),
      left: () => ok(false),
      mounted: () => done,
      crowded: () => ENOUGH,
      refused: (error, name) => (isGone(error) ? done : failErrno(error, `open ${name}`, 'none')),
    });
    const isCut = !walked.ok && walked.failure.code === 'too-large';
    if (!walked.ok && !isCut) return walked;
    const unbounded = { total: undefined, available: undefined };
    const bytes = { used: this.#blocks * BigInt(BLOCK_BYTES), ...unbounded };
    return ok({ bytes, inodes: { used: BigInt(this.#entries), ...unbounded }, isWhole: !isCut });
  }

  /** True: it is a directory after all. */
  #entry(directory: OpenPath, name: Buffer): Result<boolean> {
    if (this.#mountId !== undefined && mountIdIn(directory, name) !== this.#mountId) return ok(false);
    let facts: Stats;
    try {
      facts = lstatSync(Buffer.concat([Buffer.from(`${directory.path}/`), name]));
    } catch (error) {
      return isGone(error) ? ok(false) : failErrno(error, `look at ${name}`, 'none');
    }
    if (facts.isDirectory()) return ok(true);
    const counted = facts.nlink > 1 ? this.#countLinked(facts) : this.#count(facts);
    return counted.ok ? ok(false) : counted;
  }

  /** Once, by whichever of its names it is found first. */
  #countLinked(facts: Stats): Result<void> {
    const identity = `${facts.dev}:${facts.ino}`;
    if (this.#linked.has(identity)) return done;
    if (this.#linked.size >= LINKED_MAX) return ENOUGH;
    this.#linked.add(identity);
    return this.#count(facts);
  }

  #count({ blocks }: Stats): Result<void> {
    this.#blocks += BigInt(blocks);
    this.#entries += 1;
    if (this.#entries >= this.#bounds.entriesMax) return ENOUGH;
    const isLate = this.#entries % ENTRIES_A_LOOK === 0 && performance.now() > this.#untilMs;
    return isLate ? ENOUGH : done;
  }
}

/** Removed, or replaced by something else, since its name was read. */
function isGone(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === 'ENOENT' || errno === 'ENOTDIR';
}
