/** Giving one file or directory to a volume's group, and the count of what was seen, changed and refused. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  type Stats,
} from 'node:fs';
import { linkedFile, type OwnershipPart } from './ownership-part.ts';
import { bitsFor, isRight } from './group-bits.ts';
import { mountIdOf, O_PATH, type OpenPath, openPathOf } from '../path/path-walk.ts';
import { errnoOf } from '../../errno.ts';

export const MODE_BITS = 0o7777;
/** What the kubelet only logs: read-only or immutable, not ours, gone meanwhile. */
const REFUSALS: ReadonlySet<string> = new Set(['EROFS', 'EPERM', 'EACCES', 'ENOENT', 'EOPNOTSUPP']);

export interface Walk {
  readonly part: OwnershipPart;
  readonly mountId: number;
  readonly sign: (seen: number) => void;
  /** As in the report. */
  readonly linked: string[];
  readonly wholes: ReadonlySet<string>;
  seen: number;
  changed: number;
  refused: number;
}

/** So many names of files with several names are remembered of one part; further ones are refused. */
const LINKED_MAX = 20_000;

/** True when it is a directory after all: some file systems do not tell when they list. */
export function changeEntry(walk: Walk, parent: OpenPath, name: Buffer): boolean {
  const path = Buffer.concat([Buffer.from(`${parent.path}/`), name]);
  try {
    const seen = lstatSync(path);
    if (seen.isDirectory()) return true;
    const isLinked = seen.isFile() && seen.nlink > 1;
    if (walk.part.scope === 'linked') {
      walk.sign(walk.seen);
      if (isLinked) throughDescriptor(walk, path, changeLinked);
    } else if (isRight(seen, walk.part)) see(walk);
    else if (isLinked) rememberLinked(walk, seen);
    else if (seen.isSymbolicLink()) {
      see(walk);
      lchownSync(path, -1, walk.part.gid);
      walk.changed += 1;
    } else throughDescriptor(walk, path, changeFile);
  } catch (error) {
    refuse(walk, error);
  }
  return false;
}

/** Another name of it may be outside of the volume: the whole walk tells (SE-27). */
function rememberLinked(walk: Walk, seen: Stats): void {
  see(walk);
  if (walk.linked.length < LINKED_MAX) walk.linked.push(linkedFile(seen));
  else walk.refused += 1;
}

/** What it is, and how many names it has, is asked of the very file that is changed. */
function changeLinked(walk: Walk, place: OpenPath): void {
  const seen = fstatSync(place.descriptor);
  if (!seen.isFile() || isRight(seen, walk.part)) return;
  if (walk.wholes.has(linkedFile(seen))) apply(walk, place);
  else walk.refused += 1;
}

function changeFile(walk: Walk, place: OpenPath): void {
  see(walk);
  // Another thing has this name by now: whoever put it there gave it its group.
  if (!fstatSync(place.descriptor).isSymbolicLink()) apply(walk, place);
}

/** Through a descriptor: it is neither followed nor opened, and a file that is a mount of its own is left alone. */
function throughDescriptor(walk: Walk, path: Buffer, change: (walk: Walk, place: OpenPath) => void): void {
  const place = openPathOf(openSync(path, O_PATH | constants.O_NOFOLLOW));
  try {
    if (mountIdOf(place) === walk.mountId) change(walk, place);
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
