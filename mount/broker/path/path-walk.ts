/**
 * From an absolute path to a descriptor, without ever following a symbolic link. Runs in path brokers only.
 * Because node has no openat2(2): /proc/self/fd/N/<component> is openat(2) in disguise.
 */
import { closeSync, constants, lstatSync, openSync, readlinkSync, readSync } from 'node:fs';
import { errnoOf, failErrno } from '../../errno.ts';
import { fail, ok, type Result } from '../../failure.ts';
import { type AbsolutePath, nameIn, parentOf } from '../../host.ts';

/** linux/fcntl.h; node does not export it. Opens a place without touching its file system. */
export const O_PATH = 0o10000000;

const PLACE = O_PATH | constants.O_NOFOLLOW;
const DIRECTORY = PLACE | constants.O_DIRECTORY;
/** d_path(9) puts it behind the path of a directory or file that is gone. */
export const DELETED_MARK = ' (deleted)';

/** Is it what d_path(9) shows of what is, or was, at exactly this path? */
export function isShownOf(shown: string, path: string): boolean {
  return shown === path || shown === `${path}${DELETED_MARK}`;
}

/** An open place. `path` leads to it through its descriptor: good for any call that may follow this one last link. */
export interface OpenPath {
  readonly descriptor: number;
  readonly path: string;
}

/** The last component of a path, reached through its parent: for calls that do not follow a link at the end. */
export interface ChildPath {
  /** `/proc/self/fd/N/<name>` */
  readonly path: string;
  readonly name: string;
  readonly parent: OpenPath;
}

/** While a transition runs: all that it walked to and keeps open, and what of that is good for the next step. */
interface Walked {
  readonly opened: OpenPath[];
  readonly places: Map<AbsolutePath, OpenPath>;
}

let walked: Walked | undefined;
/** What is beyond is walked to each time. */
const WALKED_MAX = 8;

/**
 * While `act` runs, the directories that were walked to stay open: the steps of a transition are about the same few,
 * and the walks were half of what they cost. One that the kernel names otherwise by now is walked to again.
 */
export function keepWalked<T>(act: () => T): T {
  const opened: OpenPath[] = [];
  walked = { opened, places: new Map() };
  try {
    return act();
  } finally {
    walked = undefined;
    for (const { descriptor } of opened) closeSync(descriptor);
  }
}

/** After a mount of our own, which lies over a directory and leaves its name. */
export function forgetWalked(): void {
  walked?.places.clear();
}

/**
 * Opens the directory and hands it to `use`, closed again afterwards. A link on the way or at the end is
 * `path-unsafe`, a missing component `path-missing`, anything else that is no directory `path-wrong-kind`; all with
 * effect `none`.
 */
export function withDirectory<T>(path: AbsolutePath, use: (place: OpenPath) => Result<T>): Result<T> {
  const kept = keptDirectory(path);
  if (kept !== undefined) return use(kept);
  const opened = openDirectory(path);
  if (!opened.ok) return opened;
  const place = opened.value;
  if (keep(path, place)) return use(place);
  try {
    return use(place);
  } finally {
    closeSync(place.descriptor);
  }
}

/** One that is not what it was stays open: whoever is at work on it may be the one who asks. */
function keptDirectory(path: AbsolutePath): OpenPath | undefined {
  const place = walked?.places.get(path);
  if (place === undefined || readlinkSync(place.path) === path) return place;
  walked?.places.delete(path);
  return undefined;
}

/** The nearest directory above a path that is kept; nothing is, most often. */
function keptAbove(
  path: AbsolutePath,
): { readonly place: OpenPath; readonly names: readonly string[] } | undefined {
  if (walked === undefined || walked.places.size === 0) return undefined;
  const names: string[] = [];
  for (let above = path; above !== '/'; above = parentOf(above)) {
    const place = keptDirectory(above);
    if (place !== undefined) return { place, names };
    names.unshift(nameIn(above));
  }
  return undefined;
}

function keep(path: AbsolutePath, place: OpenPath): boolean {
  if (walked === undefined || walked.opened.length >= WALKED_MAX) return false;
  walked.opened.push(place);
  walked.places.set(path, place);
  return true;
}

/** As withDirectory, for the parent of `path`; `path` itself may be absent, or anything. `/` is `path-wrong-kind`. */
export function withChild<T>(path: AbsolutePath, use: (child: ChildPath) => Result<T>): Result<T> {
  if (path === '/') return fail({ code: 'path-wrong-kind', message: 'the root directory', effect: 'none' });
  return withDirectory(parentOf(path), (parent) => use(childIn(parent, nameIn(path))));
}

/** A name below an open directory. */
export function childIn(parent: OpenPath, name: string): ChildPath {
  return { path: `${parent.path}/${name}`, name, parent };
}

/** Opens what is there, whatever it is, a link itself included; throws node's errno exceptions. */
export function openPath(child: ChildPath): OpenPath {
  return openPathOf(openSync(child.path, PLACE));
}

/** As openPlace for a directory of that name; ENOTDIR for a link. */
export function openDirectoryIn(parent: OpenPath, name: string | Buffer): OpenPath {
  const path =
    typeof name === 'string'
      ? `${parent.path}/${name}`
      : Buffer.concat([Buffer.from(`${parent.path}/`), name]);
  return openPathOf(openSync(path, DIRECTORY));
}

/** A place around an open descriptor. */
export function openPathOf(descriptor: number): OpenPath {
  return { descriptor, path: `/proc/self/fd/${descriptor}` };
}

/** A few lines, the mount's id among the first; nobody else reads while one is read. */
const FDINFO = Buffer.alloc(1_024);

/** What an open file or directory is in the mount of, it stays in. */
const MOUNT_IDS = new WeakMap<OpenPath, number>();

/** Which mount an open place is on; valid while it is open (proc(5), fdinfo). No file system is asked. */
export function mountIdOf(place: OpenPath): number {
  const known = MOUNT_IDS.get(place);
  if (known !== undefined) return known;
  const mountId = readMountId(place);
  MOUNT_IDS.set(place, mountId);
  return mountId;
}

function readMountId(place: OpenPath): number {
  const info = openSync(`/proc/self/fdinfo/${place.descriptor}`, constants.O_RDONLY);
  let text: string;
  try {
    text = FDINFO.toString('latin1', 0, readSync(info, FDINFO, 0, FDINFO.length, 0));
  } finally {
    closeSync(info);
  }
  const found = /^mnt_id:\s*(\d+)$/m.exec(text)?.[1];
  if (found === undefined) throw new Error('broken invariant: fdinfo names the mount of a descriptor');
  return Number(found);
}

function openDirectory(path: AbsolutePath): Result<OpenPath> {
  const reached = openDeepest(path);
  if (!reached.ok) return reached;
  const { place, missing } = reached.value;
  const [first] = missing;
  if (first === undefined) return ok(place);
  if (!keep(ancestor(path, missing.length), place)) closeSync(place.descriptor);
  return failMissing(first, path);
}

function ancestor(path: AbsolutePath, levels: number): AbsolutePath {
  return levels === 0 ? path : ancestor(parentOf(path), levels - 1);
}

/** As `openDeepest`, closed again afterwards. */
export function withDeepest<T>(path: AbsolutePath, use: (deepest: Deepest) => Result<T>): Result<T> {
  const reached = openDeepest(path);
  if (!reached.ok) return reached;
  const { place, missing } = reached.value;
  const isKept = keep(ancestor(path, missing.length), place);
  try {
    return use(reached.value);
  } finally {
    if (!isKept) closeSync(place.descriptor);
  }
}

/** The deepest directory on the way to a path that is there, and what is missing below it, the highest first. */
export interface Deepest {
  readonly place: OpenPath;
  readonly missing: readonly string[];
}

/**
 * Opens it; whoever asks closes it. Two calls where all is there, and two more for each component that is not, instead
 * of one for each that is; below a directory that is kept, one for each that is there. Fails as `withDirectory` does,
 * but for what is missing.
 *
 * Guarantees: no link was followed. The kernel names an open directory by the real directories above it (d_path), so
 * when that name is the path asked for, no link led there, or it has since become true without one. Below a directory
 * that was reached so, what is missing is told by its name alone.
 */
export function openDeepest(path: AbsolutePath): Result<Deepest> {
  const kept = keptAbove(path);
  if (kept !== undefined) return below(openDirectoryIn(kept.place, '.'), kept.names, path);
  const missing: string[] = [];
  let above = path;
  while (above !== '/' && !above.endsWith(DELETED_MARK)) {
    const opened = openAtOnce(above);
    if (opened === 'astray') break;
    if (opened !== 'missing') return below(opened, missing, path);
    missing.unshift(nameIn(above));
    above = parentOf(above);
  }
  return below(
    openPathOf(openSync('/', DIRECTORY)),
    path.split('/').filter((component) => component !== ''),
    path,
  );
}

/** `missing`: it, or what a link on the way leads to, is not there; `astray`: something else is in the way. */
function openAtOnce(path: AbsolutePath): OpenPath | 'missing' | 'astray' {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, DIRECTORY);
    if (readlinkSync(`/proc/self/fd/${descriptor}`) === path) return openPathOf(descriptor);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' && descriptor === undefined) return 'missing';
  }
  if (descriptor !== undefined) closeSync(descriptor);
  return 'astray';
}

/** One component after the other, until one is not there. */
function below(from: OpenPath, names: readonly string[], path: AbsolutePath): Result<Deepest> {
  let place = from;
  for (const [index, name] of names.entries()) {
    try {
      const child = openDirectoryIn(place, name);
      closeSync(place.descriptor);
      place = child;
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return ok({ place, missing: names.slice(index) });
      try {
        return blameComponent(childIn(place, name), path, error);
      } finally {
        closeSync(place.descriptor);
      }
    }
  }
  return ok({ place, missing: [] });
}

function failMissing(name: string, path: AbsolutePath): Result<never> {
  return fail({ code: 'path-missing', message: `walk to ${name} in ${path}: ENOENT`, effect: 'none' });
}

/** The directory itself is opened, whose mount id tells whether somebody mounted on it, and closed again. */
export function inDirectory<T>(
  child: ChildPath,
  path: AbsolutePath,
  act: (top: OpenPath, mountId: number) => Result<T>,
): Result<T> {
  let top: OpenPath;
  try {
    top = openDirectoryIn(child.parent, child.name);
  } catch (error) {
    return blameComponent(child, path, error);
  }
  try {
    return act(top, mountIdOf(top));
  } finally {
    closeSync(top.descriptor);
  }
}

/** Why a directory could not be opened there: ENOTDIR says both "a link" and "a file". */
export function blameComponent(child: ChildPath, path: AbsolutePath, error: unknown): Result<never> {
  if (
    errnoOf(error) === 'ENOTDIR' &&
    lstatSync(child.path, { throwIfNoEntry: false })?.isSymbolicLink() !== false
  ) {
    const message = `a symbolic link on the way: ${child.name} in ${path}`;
    return fail({ code: 'path-unsafe', message, effect: 'none', blocker: child.name });
  }
  return failErrno(error, `walk to ${child.name} in ${path}`, 'none');
}
