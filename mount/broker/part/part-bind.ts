/** The bind of a part of a volume, from one descriptor to another. Path brokers only. */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
  unlinkSync,
} from 'node:fs';
import { failErrno } from '../../errno.ts';
import { type Effect, fail, ok, type Result } from '../../failure.ts';
import { type AbsolutePath, parentOf } from '../../host.ts';
import { type BoundPart, failRootLost, MOUNT_FLAGS, type MountFlag, type PartBind } from '../../part-bind.ts';
import { makeDirectory } from '../file/directory-effects.ts';
import {
  isClosedMountPoint,
  makeClosedMountPoint,
  protectMountPoint,
  removeMountPoint,
} from '../file/mount-point.ts';
import { runShortTool } from '../path/short-tool.ts';
import { findMount, mountIdAt } from '../path/mount-lookup.ts';
import {
  type ChildPath,
  mountIdOf,
  openPath,
  type OpenPath,
  withChild,
  withDirectory,
} from '../path/path-walk.ts';
import { openPart } from './part-walk.ts';

const DIRECTORY_MODE = 0o750;
const FILE_MODE = 0o640;
/** Where mount(8) finds the two: it has nothing else open but its standard descriptors. */
const SOURCE = '/proc/self/fd/3';
const TARGET = '/proc/self/fd/4';

/**
 * Since util-linux 2.39 mount(8) takes the kernel's newer calls, and does not have them follow the link that a
 * descriptor is in /proc; mount(2), as before, does.
 */
const MOUNT_ENVIRONMENT = { LIBMOUNT_FORCE_MOUNT2: 'always' };

/**
 * See `PartBind`. What is bound is what was walked to: mount(8) gets its descriptor, and the descriptor of the mount
 * point, so no name is looked up again. Then the mount point is looked at: it has to show the same inode of the same
 * device, through a mount of its own.
 */
export function bindPart(request: PartBind): Result<BoundPart> {
  const { root, rootMountId, part, target, makesMissing, flags = [] } = request;
  return withDirectory(root, (volume) => {
    if (rootMountId !== undefined && mountIdOf(volume) !== rootMountId) return failRootLost(root);
    const opened = openPart(volume, part, makesMissing);
    if (!opened.ok) return opened;
    const { place, effect } = opened.value;
    try {
      const isDirectory = fstatSync(place.descriptor).isDirectory();
      const prepared = makeDirectory(parentOf(target), DIRECTORY_MODE);
      if (!prepared.ok) return prepared;
      return withChild(target, (child) => {
        const bound = bindAt(place, child, target, isDirectory, effect);
        return bound.ok && bound.value === 'bound' ? giveFlags(child, flags) : bound;
      });
    } finally {
      closeSync(place.descriptor);
    }
  });
}

function bindAt(
  place: OpenPath,
  child: ChildPath,
  target: AbsolutePath,
  isDirectory: boolean,
  before: Effect,
): Result<BoundPart> {
  const mounted = mountIdAt(child);
  if (!mounted.ok) return mounted;
  if (mounted.value !== undefined) {
    const { mountId, isPart } = seenAt(child, place);
    if (isPart) return ok('bound');
    if (mountId !== undefined) return ok({ otherMountId: mountId });
  }
  const placed = placeMountPoint(child, target, isDirectory, before);
  if (!placed.ok) return placed;
  const said = bindDescriptors(place, placed.value);
  if (seenAt(child, place).isPart) return ok('bound');
  if (!said.ok) return said;
  const message = `mount said done, but what was walked to is not seen at ${child.name}`;
  return fail({ code: 'mount-failed', message, effect: 'unknown' });
}

interface SeenMount {
  /** Undefined: none is there, and one sees the mount point. */
  readonly mountId: number | undefined;
  /** Through it one sees what the descriptor is of. */
  readonly isPart: boolean;
}

function seenAt(child: ChildPath, place: OpenPath): SeenMount {
  const seen = openPath(child);
  try {
    const mountId = mountIdOf(seen);
    if (mountId === mountIdOf(child.parent)) return { mountId: undefined, isPart: false };
    const there = fstatSync(seen.descriptor, { bigint: true });
    const meant = fstatSync(place.descriptor, { bigint: true });
    return { mountId, isPart: there.dev === meant.dev && there.ino === meant.ino };
  } finally {
    closeSync(seen.descriptor);
  }
}

/** Before the kernel makes a mount with flags in one call (and mount(8) asks it to) they come after the bind. */
function giveFlags(child: ChildPath, flags: readonly MountFlag[]): Result<BoundPart> {
  const seen = openPath(child);
  try {
    const had = flags.length === 0 ? ok([]) : flagsOf(seen);
    if (!had.ok) return had;
    if (flags.every((one) => had.value.includes(one))) return ok('bound');
    // What is not named is taken away.
    const kept = had.value.filter((one) => one !== 'relatime' || !flags.includes('noatime'));
    const options = ['remount', 'bind', ...new Set([...kept, ...flags])].join(',');
    const said = runMount(['-c', '-o', options, '--', 'none', SOURCE], [seen.descriptor]);
    const has = flagsOf(seen);
    if (has.ok && flags.every((one) => has.value.includes(one))) return ok('bound');
    if (!has.ok) return fail({ ...has.failure, effect: 'unknown' });
    if (!said.ok) return said;
    const message = `mount said done, but what is mounted at ${child.name} is not ${flags.join(', ')}`;
    return fail({ code: 'mount-failed', message, effect: 'unknown' });
  } finally {
    closeSync(seen.descriptor);
  }
}

function flagsOf(place: OpenPath): Result<readonly MountFlag[]> {
  const entry = findMount(mountIdOf(place));
  return entry.ok ? ok(MOUNT_FLAGS.filter((one) => entry.value.options.includes(one))) : entry;
}

/** Opens it. One of the other kind, which is empty as all are that we make, gives way. */
function placeMountPoint(
  child: ChildPath,
  target: AbsolutePath,
  isDirectory: boolean,
  before: Effect,
): Result<OpenPath> {
  try {
    const there = lstatSync(child.path, { throwIfNoEntry: false });
    const isRight = isDirectory ? there?.isDirectory() : there !== undefined && isForFiles(there);
    if (there !== undefined && isRight !== true) {
      if (there.isDirectory()) {
        const removed = removeMountPoint(child, target, before);
        if (!removed.ok) return removed;
      } else if (there.size === 0) unlinkSync(child.path);
      else return fail({ code: 'path-wrong-kind', message: `not empty: ${child.name}`, effect: before });
    }
    if (isRight !== true) make(child, isDirectory);
    const place = openPath(child);
    if (isDirectory) protectMountPoint(place, child.parent);
    return ok(place);
  } catch (error) {
    return failErrno(error, `make the mount point ${child.name}`, 'unknown');
  }
}

const isForFiles = (facts: Stats): boolean => facts.isFile() || isClosedMountPoint(facts);

function make(child: ChildPath, isDirectory: boolean): void {
  if (isDirectory) mkdirSync(child.path, DIRECTORY_MODE);
  else if (!makeClosedMountPoint(child))
    closeSync(openSync(child.path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, FILE_MODE));
}

/** Closes the second one. The tool's word is a hint: the caller looks. */
function bindDescriptors(place: OpenPath, mountPoint: OpenPath): Result<void> {
  try {
    return runMount(['-c', '--bind', '--', SOURCE, TARGET], [place.descriptor, mountPoint.descriptor]);
  } finally {
    closeSync(mountPoint.descriptor);
  }
}

function runMount(argv: readonly string[], open: readonly number[]): Result<void> {
  return runShortTool({ tool: 'mount', argv, open, environment: MOUNT_ENVIRONMENT, failed: 'mount-failed' });
}
