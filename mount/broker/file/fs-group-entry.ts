/** Giving one file or directory to a volume's group, and the count of what was seen, changed and refused. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  type Stats,
} from 'node:fs';
import { isYoung } from './content-stamp.ts';
import { linkedFile, type LinkedName, type OwnershipPart } from './ownership-part.ts';
import { bitsFor, isRight } from './group-bits.ts';
import { mountIdOf, O_PATH, type OpenPath, openPathOf } from '../path/path-walk.ts';
import { errnoOf } from '../../errno.ts';

export const MODE_BITS = 0o7777;
/**
 * What the kubelet only logs: read-only or immutable, not ours, gone meanwhile; a group that the server does not know
 * (NFS), a file system without owners, without room for another one (btrfs), or whose quota of the group is used up.
 */
const REFUSALS: ReadonlySet<string> = new Set([
  ...['EROFS', 'EPERM', 'EACCES', 'ENOENT'],
  ...['EINVAL', 'EOVERFLOW', 'ENOSYS', 'EOPNOTSUPP', 'ENOSPC', 'EDQUOT'],
]);

export interface Walk {
  readonly part: OwnershipPart;
  readonly mountId: number;
  readonly sign: (seen: number) => void;
  /** As in the report. */
  readonly linked: LinkedName[];
  /** As in the part. */
  readonly files: ReadonlySet<string>;
  seen: number;
  changed: number;
  refused: number;
}

/** So many names of files with several names are remembered of one part; such files stay as they are. */
const LINKED_MAX = 20_000;

/** An entry by its name, as it was when it was looked at. */
interface Entry {
  readonly parent: OpenPath;
  readonly name: Buffer;
  readonly path: Buffer;
}

/** True when it is a directory after all: some file systems do not tell when they list. */
export function changeEntry(walk: Walk, parent: OpenPath, name: Buffer): boolean {
  const path = Buffer.concat([Buffer.from(`${parent.path}/`), name]);
  const entry = { parent, name, path };
  const { scope } = walk.part;
  try {
    const seen = lstatSync(path);
    if (seen.isDirectory()) return true;
    if (scope === 'count' || scope === 'linked') {
      walk.sign(walk.seen);
      const act = scope === 'count' ? countLinked : changeLinked;
      if (seen.nlink > 1 && !isRight(seen, walk.part)) throughDescriptor(walk, entry, act);
    } else if (isRight(seen, walk.part)) see(walk);
    else throughDescriptor(walk, entry, changeOpened);
  } catch (error) {
    refuse(walk, error);
  }
  return false;
}

/**
 * What it is, and how many names it has, is asked of the very file that is changed: whoever renames in the volume may
 * have put another one there since. And its one name must lead to it after that was asked: the name by which it was
 * opened may have gone, and the one that is left be outside (SE-27).
 */
function changeOpened(walk: Walk, place: OpenPath, entry: Entry): void {
  see(walk);
  const seen = fstatSync(place.descriptor);
  if (!seen.isDirectory() && seen.nlink > 1) rememberLinked(walk, place, entry);
  else if (isSame(lstatSync(entry.path), seen)) apply(walk, place);
  else walk.refused += 1;
}

function isSame(a: Stats, b: Stats): boolean {
  return a.ino === b.ino && a.dev === b.dev;
}

/** Another name of it may be outside of the volume: the whole walk tells (SE-27). */
function rememberLinked(walk: Walk, place: OpenPath, { parent, name }: Entry): void {
  if (walk.linked.length >= LINKED_MAX) return;
  const seen = fstatSync(place.descriptor, { bigint: true });
  const young = isYoung(seen, walk.part.ageMs) ? { young: true as const } : {};
  const { ino } = fstatSync(parent.descriptor, { bigint: true });
  walk.linked.push({ file: linkedFile(seen), name: `${ino}/${name.toString('latin1')}`, ...young });
}

function countLinked(walk: Walk, place: OpenPath, entry: Entry): void {
  if (isAskedFor(walk, place)) rememberLinked(walk, place, entry);
}

/** A file that has changed since its names were counted may have them anywhere by now. */
function changeLinked(walk: Walk, place: OpenPath): void {
  if (isAskedFor(walk, place)) apply(walk, place);
  else walk.refused += 1;
}

function isAskedFor({ files }: Walk, { descriptor }: OpenPath): boolean {
  return files.has(linkedFile(fstatSync(descriptor, { bigint: true })));
}

type Act = (walk: Walk, place: OpenPath, entry: Entry) => void;

/** Through a descriptor: it is neither followed nor opened, and a file that is a mount of its own is left alone. */
function throughDescriptor(walk: Walk, entry: Entry, act: Act): void {
  const place = openPathOf(openSync(entry.path, O_PATH | constants.O_NOFOLLOW));
  try {
    if (mountIdOf(place) === walk.mountId) act(walk, place, entry);
  } finally {
    closeSync(place.descriptor);
  }
}

/** A root that is read-only or gone fails the walk: nothing below it can have been changed. */
export function changeDirectory(walk: Walk, place: OpenPath, isRoot: boolean): void {
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
function apply(walk: Walk, place: OpenPath): void {
  const { gid } = walk.part;
  if (fstatSync(place.descriptor).gid !== gid) chownSync(place.path, -1, gid);
  const seen = fstatSync(place.descriptor);
  const mode = seen.mode & MODE_BITS;
  const wanted = mode | bitsFor(seen, walk.part);
  if (mode !== wanted) chmodSync(place.path, wanted);
  walk.changed += 1;
}

function see(walk: Walk): void {
  walk.seen += 1;
  walk.sign(walk.seen);
}

export function refuse(walk: Walk, error: unknown): void {
  if (!REFUSALS.has(errnoOf(error))) throw error;
  walk.refused += 1;
}
