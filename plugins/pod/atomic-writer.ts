/**
 * Replaces the content of a volume as one generation, in the kubelet's layout, which applications watch:
 *
 *     ..2026_01_31_15_04_05.1234567890/   one generation, the files in it
 *     ..data -> ..2026_01_31_15_04_05.1234567890
 *     key -> ..data/key                   one link for each first component
 *
 * Guarantees: `..data` always names exactly one complete generation (INV-24), because its rename is the only step that
 * changes what a reader sees. Whatever a crash leaves behind, the next write clears or completes, even when the content
 * is the same (RS-08, k/k#121472). The volume's root directory itself is never replaced (INV-22).
 * Assumes: one writer at a time, and a root directory that only root may write to.
 */
import { done, type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type FileEntry } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { type ContentDirectory, type ContentTree, ROOT_ENTRIES_MAX } from './content-tree.ts';
import { makeNestedMountPoints, nestedNames } from './nested-mount-points.ts';
import { doubtful, oneByOne } from '../steps.ts';

const DATA = '..data';
const DATA_NEW = '..data_tmp';
const LINK_NEW = '..link_tmp';
const GENERATION = /^\.\.[0-9]{4}(?:_[0-9]{2}){5}\.[0-9]{1,20}$/;
const DIRECTORY_MODE = 0o755;
const PERMISSION_BITS = 0o7777;
/** What Host.changeOwnership gives to the group of a volume that is only read. */
const GROUP_FILE_BITS = 0o440;
const GROUP_DIRECTORY_BITS = 0o2550;
const RANDOM_LIMIT = 2 ** 32;
const WALL_MS_MAX = Date.UTC(9999, 11, 31);

type RootEntries = ReadonlyMap<string, FileEntry>;

/** What is to be the content of the directory at `path`, which exists. */
export interface Generation extends TransitionArgs {
  readonly tree: ContentTree;
  /** The group that the files are for, which may read them all whatever their own mode says (KV-C14). */
  readonly gid: number | undefined;
}

/** A generation that is written and that nobody sees. */
export interface HiddenGeneration {
  readonly fresh: string;
  /** The one that readers see. */
  readonly current: string | undefined;
}

/**
 * Makes `tree` the content of the directory. Writes no file when it is so already. With a group it stops before what is
 * new is visible, and answers that: then it is to be given to the group, and shown by `showGeneration` or taken away by
 * `dropGeneration`, so that no file that is not that group's is ever visible.
 * A failure has effect `none` only if the generation that was visible before still is, byte for byte; `unknown` when
 * there was none, or when the new one is visible and only the links or the clearing up are unfinished.
 */
export function* writeGeneration(generation: Generation): Program<Result<HiddenGeneration | undefined>> {
  const { path: root, tree, gid } = generation;
  const entries = yield* listRoot(root);
  if (!entries.ok) return entries;
  const current = yield* currentGeneration(root, entries.value);
  if (!current.ok) return current;
  if (current.value !== undefined && (yield* holds(below(root, current.value), tree, gid)))
    return whole(yield* finish(generation, entries.value, current.value));
  const fresh = yield* freshName(entries.value);
  const hidden = { fresh, current: current.value };
  const written = yield* oneByOne(
    () => removeGenerations(root, entries.value, current.value),
    () => writeTree(below(root, fresh), tree),
  );
  if (!written.ok) return yield* giveUp(root, hidden, written.failure);
  if (gid !== undefined) return ok(hidden);
  const shown = yield* show(root, hidden);
  return shown.ok ? whole(yield* finish(generation, entries.value, fresh)) : shown;
}

export const showGeneration = transition<Generation & HiddenGeneration, void>(
  'show-generation',
  function* (generation) {
    const { path, fresh } = generation;
    const shown = yield* show(path, generation);
    if (!shown.ok) return shown;
    const entries = yield* listRoot(path);
    return entries.ok ? yield* finish(generation, entries.value, fresh) : doubtful<never>(entries);
  },
  { removesTrees: true },
);

/** Fails with what made it necessary. */
export const dropGeneration = transition<
  TransitionArgs & HiddenGeneration & { readonly failure: Failure },
  void
>('drop-generation', ({ path, failure, ...hidden }) => giveUp(path, hidden, failure), { removesTrees: true });

function whole(finished: Result<void>): Result<undefined> {
  return finished.ok ? ok(undefined) : finished;
}

/** What is not the content: links to it, and whatever else of ours is there. */
function* finish(
  { path: root, tree }: Generation,
  entries: RootEntries,
  visible: string,
): Program<Result<void>> {
  return doubtful(
    yield* oneByOne(
      () => makeVisible(root, tree, entries),
      () => hideStale(root, tree, entries),
      () => makeNestedMountPoints(root, tree),
      () => removeGenerations(root, entries, visible),
      ...[DATA_NEW, LINK_NEW]
        .filter((name) => entries.has(name))
        .map((name) => () => paths.removeFile(below(root, name))),
    ),
  );
}

/** Would `writeGeneration` find nothing to do: no file to write, no link to make, nothing to clear? Looks only. */
export const isWritten = transition<Generation, boolean>(
  'is-content-written',
  function* ({ path: root, tree, gid }) {
    const entries = yield* listRoot(root);
    if (!entries.ok) return ok(false);
    const current = yield* currentGeneration(root, entries.value);
    if (!current.ok || current.value === undefined) return ok(false);
    const names = [...tree.files.keys(), ...tree.directories.keys()];
    const nested = yield* nestedNames(root, tree, entries.value);
    // Beside the links there are `..data` and what it leads to.
    if (nested === undefined || entries.value.size !== names.length + nested.size + 2) return ok(false);
    for (const name of names) {
      if (entries.value.get(name)?.facts.kind !== 'symlink') return ok(false);
      const text = yield* paths.readLink(below(root, name));
      if (!text.ok || text.value !== `${DATA}/${name}`) return ok(false);
    }
    return ok(yield* holds(below(root, current.value), tree, gid));
  },
  { changesTheWorld: false },
);

function* listRoot(root: AbsolutePath): Program<Result<RootEntries>> {
  const entries = yield* paths.readDirectoryFiles(root, { entriesMax: ROOT_ENTRIES_MAX, fileBytesMax: 0 });
  return entries.ok ? ok(new Map(entries.value.map((entry) => [entry.name, entry]))) : entries;
}

/** The generation that readers see; undefined when `..data` is missing or names no generation of ours. */
function* currentGeneration(root: AbsolutePath, entries: RootEntries): Program<Result<string | undefined>> {
  if (entries.get(DATA)?.facts.kind !== 'symlink') return ok(undefined);
  const text = yield* paths.readLink(below(root, DATA));
  if (!text.ok) return text;
  return ok(isGeneration(entries.get(text.value)) ? text.value : undefined);
}

function isGeneration(entry: FileEntry | undefined): boolean {
  return entry !== undefined && entry.facts.kind === 'directory' && GENERATION.test(entry.name);
}

/** Is `tree` exactly what is at `path`, modes included? What cannot be read is not: writing it anew is the cure. */
function* holds(path: AbsolutePath, tree: ContentDirectory, gid: number | undefined): Program<boolean> {
  const entriesMax = tree.files.size + tree.directories.size;
  const fileBytesMax = Math.max(0, ...[...tree.files.values()].map((file) => file.content.byteLength));
  const entries = yield* paths.readDirectoryFiles(path, { entriesMax, fileBytesMax });
  if (!entries.ok || entries.value.length !== entriesMax) return false;
  for (const { name, facts, content } of entries.value) {
    const mode = facts.mode & PERMISSION_BITS;
    if (gid !== undefined && facts.gid !== gid) return false;
    const file = tree.files.get(name);
    const directory = tree.directories.get(name);
    if (facts.kind === 'file' && file !== undefined) {
      const wanted = file.mode | (gid === undefined ? 0 : GROUP_FILE_BITS);
      if (mode !== wanted || content?.ok !== true || Buffer.compare(content.value, file.content) !== 0)
        return false;
    } else if (facts.kind === 'directory' && directory !== undefined) {
      const wanted = DIRECTORY_MODE | (gid === undefined ? 0 : GROUP_DIRECTORY_BITS);
      if (mode !== wanted || !(yield* holds(below(path, name), directory, gid))) return false;
    } else {
      return false;
    }
  }
  return true;
}

/** As the kubelet names it (UTC), and a name that no crash has left behind. */
function* freshName(entries: RootEntries): Program<string> {
  const wallMs = Math.min(Math.max(yield* paths.wallMs(), 0), WALL_MS_MAX);
  const stamp = new Date(wallMs).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace(/[-:T]/g, '_');
  let digits = Math.floor((yield* paths.random()) * RANDOM_LIMIT);
  while (entries.has(`..${stamp}.${digits}`)) digits += 1;
  return `..${stamp}.${digits}`;
}

/** Up to and including the one rename that readers notice. */
function* show(root: AbsolutePath, hidden: HiddenGeneration): Program<Result<void>> {
  const { fresh, current } = hidden;
  const prepared = yield* oneByOne(
    () => paths.removeFile(below(root, DATA_NEW)),
    () => paths.makeLink(below(root, DATA_NEW), fresh),
  );
  if (!prepared.ok) return yield* giveUp(root, hidden, prepared.failure);
  const renamed = yield* paths.rename(below(root, DATA_NEW), below(root, DATA));
  if (renamed.ok) return done;
  const seen = yield* paths.readLink(below(root, DATA));
  if (seen.ok && seen.value === fresh) return done;
  const nothingChanged = seen.ok ? seen.value === current : seen.failure.code === 'path-missing';
  return nothingChanged ? yield* giveUp(root, hidden, renamed.failure) : doubtful(renamed);
}

/** Frees what the attempt took, as far as it can; nothing of it was ever visible. */
function* giveUp(
  root: AbsolutePath,
  { fresh, current }: HiddenGeneration,
  failure: Failure,
): Program<Result<never>> {
  yield* paths.removeFile(below(root, DATA_NEW));
  yield* paths.removeTree(below(root, fresh));
  return fail({ ...failure, effect: current === undefined ? 'unknown' : 'none' });
}

/**
 * Nobody sees it yet, so each file is made under its own name (`exclusive`): the temporary name of one may be the name
 * of another.
 */
function* writeTree(path: AbsolutePath, tree: ContentDirectory): Program<Result<void>> {
  const made = yield* paths.makeDirectory(path, DIRECTORY_MODE);
  if (!made.ok) return made;
  for (const [name, { content, mode }] of tree.files) {
    const options = { mode, durable: false, exclusive: true };
    const written = yield* paths.writeFile(below(path, name), content, options);
    if (!written.ok) return written;
  }
  for (const [name, directory] of tree.directories) {
    const written = yield* writeTree(below(path, name), directory);
    if (!written.ok) return written;
  }
  return done;
}

function* makeVisible(
  root: AbsolutePath,
  tree: ContentDirectory,
  entries: RootEntries,
): Program<Result<void>> {
  for (const name of [...tree.files.keys(), ...tree.directories.keys()]) {
    const linked = yield* linkToData(root, name, entries.get(name));
    if (!linked.ok) return linked;
  }
  return done;
}

/** A link that leads elsewhere is replaced by rename, so that a reader never misses it. Mount points stay. */
function* linkToData(root: AbsolutePath, name: string, entry: FileEntry | undefined): Program<Result<void>> {
  const path = below(root, name);
  const text = `${DATA}/${name}`;
  if (entry === undefined) return yield* paths.makeLink(path, text);
  if (entry.facts.kind === 'directory') return done;
  if (entry.facts.kind === 'symlink') {
    const found = yield* paths.readLink(path);
    if (!found.ok) return found;
    if (found.value === text) return done;
  }
  return yield* oneByOne(
    () => paths.removeFile(below(root, LINK_NEW)),
    () => paths.makeLink(below(root, LINK_NEW), text),
    () => paths.rename(below(root, LINK_NEW), path),
  );
}

/** Only links of our own making are removed; anything else in the root is not ours. */
function* hideStale(root: AbsolutePath, tree: ContentDirectory, entries: RootEntries): Program<Result<void>> {
  for (const { name, facts } of entries.values()) {
    if (
      facts.kind !== 'symlink' ||
      name.startsWith('..') ||
      tree.files.has(name) ||
      tree.directories.has(name)
    )
      continue;
    const text = yield* paths.readLink(below(root, name));
    if (!text.ok) return text;
    if (text.value !== `${DATA}/${name}`) continue;
    const removed = yield* paths.removeFile(below(root, name));
    if (!removed.ok) return removed;
  }
  return done;
}

/** Removes every listed generation but `keep`. */
function* removeGenerations(
  root: AbsolutePath,
  entries: RootEntries,
  keep: string | undefined,
): Program<Result<void>> {
  for (const entry of entries.values()) {
    if (!isGeneration(entry) || entry.name === keep) continue;
    const removed = yield* paths.removeTree(below(root, entry.name));
    if (!removed.ok) return removed;
  }
  return done;
}
