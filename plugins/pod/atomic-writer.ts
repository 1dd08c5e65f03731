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
import { type AbsolutePath, below, type FileEntry, type Host } from '../../mount/host.ts';
import { CONTENT_FILES_MAX, type ContentDirectory } from './content-tree.ts';
import { doubtful, inOrder, type Step } from '../steps.ts';

const DATA = '..data';
const DATA_NEW = '..data_tmp';
const LINK_NEW = '..link_tmp';
const GENERATION = /^\.\.[0-9]{4}(?:_[0-9]{2}){5}\.[0-9]{1,20}$/;
const DIRECTORY_MODE = 0o755;
const PERMISSION_BITS = 0o7777;
/** What Host.changeOwnership gives to the group of a volume that is only read. */
const GROUP_FILE_BITS = 0o440;
const GROUP_DIRECTORY_BITS = 0o2550;
/** Links of the present and of the wanted generation, generations that crashes left, and our own names. */
const ROOT_ENTRIES_MAX = 2 * CONTENT_FILES_MAX + 1_024;
const RANDOM_LIMIT = 2 ** 32;
const WALL_MS_MAX = Date.UTC(9999, 11, 31);

type RootEntries = ReadonlyMap<string, FileEntry>;

/** The group that the files are for, which may read them all whatever their own mode says (KV-C14). */
export interface ContentGroup {
  readonly gid: number;
  /** Gives all of the volume to the group; called before what is new is visible. */
  readonly give: Step;
}

/**
 * Makes `tree` the content of the directory `root`, which exists. Writes no file when it is so already. With a group,
 * no file that is not that group's is ever visible.
 * A failure has effect `none` only if the generation that was visible before still is, byte for byte; `unknown` when
 * there was none, or when the new one is visible and only the links or the clearing up are unfinished.
 */
export async function writeGeneration(
  host: Host,
  root: AbsolutePath,
  tree: ContentDirectory,
  group?: ContentGroup,
): Promise<Result<void>> {
  const entries = await listRoot(host, root);
  if (!entries.ok) return entries;
  const current = await currentGeneration(host, root, entries.value);
  if (!current.ok) return current;
  let generation = current.value;
  if (generation === undefined || !(await holds(host, below(root, generation), tree, group?.gid))) {
    const fresh = freshName(host, entries.value);
    const replaced = await replace(host, root, {
      tree,
      entries: entries.value,
      current: generation,
      fresh,
      group,
    });
    if (!replaced.ok) return replaced;
    generation = fresh;
  }
  return doubtful(
    await inOrder(
      () => makeVisible(host, root, tree, entries.value),
      () => hideStale(host, root, tree, entries.value),
      () => removeGenerations(host, root, entries.value, generation),
      ...[DATA_NEW, LINK_NEW]
        .filter((name) => entries.value.has(name))
        .map(
          (name): Step =>
            () =>
              host.removeFile(below(root, name)),
        ),
    ),
  );
}

/** Would `writeGeneration` find nothing to do: no file to write, no link to make, nothing to clear? Looks only. */
export async function isWritten(
  host: Host,
  root: AbsolutePath,
  tree: ContentDirectory,
  gid: number | undefined,
): Promise<boolean> {
  const entries = await listRoot(host, root);
  if (!entries.ok) return false;
  const current = await currentGeneration(host, root, entries.value);
  if (!current.ok || current.value === undefined) return false;
  const names = [...tree.files.keys(), ...tree.directories.keys()];
  // Beside the links there are `..data` and what it leads to.
  if (entries.value.size !== names.length + 2) return false;
  for (const name of names) {
    if (entries.value.get(name)?.facts.kind !== 'symlink') return false;
    const text = await host.readLink(below(root, name));
    if (!text.ok || text.value !== `${DATA}/${name}`) return false;
  }
  return holds(host, below(root, current.value), tree, gid);
}

async function listRoot(host: Host, root: AbsolutePath): Promise<Result<RootEntries>> {
  const entries = await host.readDirectoryFiles(root, { entriesMax: ROOT_ENTRIES_MAX, fileBytesMax: 0 });
  return entries.ok ? ok(new Map(entries.value.map((entry) => [entry.name, entry]))) : entries;
}

/** The generation that readers see; undefined when `..data` is missing or names no generation of ours. */
async function currentGeneration(
  host: Host,
  root: AbsolutePath,
  entries: RootEntries,
): Promise<Result<string | undefined>> {
  if (entries.get(DATA)?.facts.kind !== 'symlink') return ok(undefined);
  const text = await host.readLink(below(root, DATA));
  if (!text.ok) return text;
  return ok(isGeneration(entries.get(text.value)) ? text.value : undefined);
}

function isGeneration(entry: FileEntry | undefined): boolean {
  return entry !== undefined && entry.facts.kind === 'directory' && GENERATION.test(entry.name);
}

/** Is `tree` exactly what is at `path`, modes included? What cannot be read is not: writing it anew is the cure. */
async function holds(
  host: Host,
  path: AbsolutePath,
  tree: ContentDirectory,
  gid: number | undefined,
): Promise<boolean> {
  const entriesMax = tree.files.size + tree.directories.size;
  const fileBytesMax = Math.max(0, ...[...tree.files.values()].map((file) => file.content.byteLength));
  const entries = await host.readDirectoryFiles(path, { entriesMax, fileBytesMax });
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
      if (mode !== wanted || !(await holds(host, below(path, name), directory, gid))) return false;
    } else {
      return false;
    }
  }
  return true;
}

/** As the kubelet names it (UTC), and a name that no crash has left behind. */
function freshName(host: Host, entries: RootEntries): string {
  const wallMs = Math.min(Math.max(host.wallMs(), 0), WALL_MS_MAX);
  const stamp = new Date(wallMs).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length).replace(/[-:T]/g, '_');
  let digits = Math.floor(host.random() * RANDOM_LIMIT);
  while (entries.has(`..${stamp}.${digits}`)) digits += 1;
  return `..${stamp}.${digits}`;
}

interface Replacement {
  readonly tree: ContentDirectory;
  readonly entries: RootEntries;
  readonly current: string | undefined;
  readonly fresh: string;
  readonly group: ContentGroup | undefined;
}

/** Up to and including the one rename that readers notice. */
async function replace(host: Host, root: AbsolutePath, change: Replacement): Promise<Result<void>> {
  const { tree, entries, current, fresh, group } = change;
  const prepared = await inOrder(
    () => removeGenerations(host, root, entries, current),
    () => writeTree(host, below(root, fresh), tree),
    ...(group === undefined ? [] : [group.give]),
    () => host.removeFile(below(root, DATA_NEW)),
    () => host.makeLink(below(root, DATA_NEW), fresh),
  );
  if (!prepared.ok) return giveUp(host, root, change, prepared.failure);
  const renamed = await host.rename(below(root, DATA_NEW), below(root, DATA));
  if (renamed.ok) return done;
  const seen = await host.readLink(below(root, DATA));
  if (seen.ok && seen.value === fresh) return done;
  const nothingChanged = seen.ok ? seen.value === current : seen.failure.code === 'path-missing';
  return nothingChanged ? giveUp(host, root, change, renamed.failure) : doubtful(renamed);
}

/** Frees what the attempt took, as far as it can; nothing of it was ever visible. */
async function giveUp(
  host: Host,
  root: AbsolutePath,
  change: Replacement,
  failure: Failure,
): Promise<Result<void>> {
  await host.removeFile(below(root, DATA_NEW));
  await host.removeTree(below(root, change.fresh));
  return fail({ ...failure, effect: change.current === undefined ? 'unknown' : 'none' });
}

/**
 * Short names first: Host.writeFile takes a temporary name that is longer than the file's own, and a file of the
 * payload that happens to have that name must come after it.
 */
async function writeTree(host: Host, path: AbsolutePath, tree: ContentDirectory): Promise<Result<void>> {
  const made = await host.makeDirectory(path, DIRECTORY_MODE);
  if (!made.ok) return made;
  const shortFirst = [...tree.files].sort(([a], [b]) => a.length - b.length);
  for (const [name, { content, mode }] of shortFirst) {
    const written = await host.writeFile(below(path, name), content, { mode, durable: false });
    if (!written.ok) return written;
  }
  for (const [name, directory] of tree.directories) {
    const written = await writeTree(host, below(path, name), directory);
    if (!written.ok) return written;
  }
  return done;
}

async function makeVisible(
  host: Host,
  root: AbsolutePath,
  tree: ContentDirectory,
  entries: RootEntries,
): Promise<Result<void>> {
  for (const name of [...tree.files.keys(), ...tree.directories.keys()]) {
    const linked = await linkToData(host, root, name, entries.get(name));
    if (!linked.ok) return linked;
  }
  return done;
}

/** A link that leads elsewhere is replaced by rename, so that a reader never misses it. */
async function linkToData(
  host: Host,
  root: AbsolutePath,
  name: string,
  entry: FileEntry | undefined,
): Promise<Result<void>> {
  const path = below(root, name);
  const text = `${DATA}/${name}`;
  if (entry === undefined) return host.makeLink(path, text);
  if (entry.facts.kind === 'symlink') {
    const found = await host.readLink(path);
    if (!found.ok) return found;
    if (found.value === text) return done;
  }
  return inOrder(
    () => host.removeFile(below(root, LINK_NEW)),
    () => host.makeLink(below(root, LINK_NEW), text),
    () => host.rename(below(root, LINK_NEW), path),
  );
}

/** Only links of our own making are removed; anything else in the root is not ours. */
async function hideStale(
  host: Host,
  root: AbsolutePath,
  tree: ContentDirectory,
  entries: RootEntries,
): Promise<Result<void>> {
  for (const { name, facts } of entries.values()) {
    if (
      facts.kind !== 'symlink' ||
      name.startsWith('..') ||
      tree.files.has(name) ||
      tree.directories.has(name)
    )
      continue;
    const text = await host.readLink(below(root, name));
    if (!text.ok) return text;
    if (text.value !== `${DATA}/${name}`) continue;
    const removed = await host.removeFile(below(root, name));
    if (!removed.ok) return removed;
  }
  return done;
}

/** Removes every listed generation but `keep`. */
async function removeGenerations(
  host: Host,
  root: AbsolutePath,
  entries: RootEntries,
  keep: string | undefined,
): Promise<Result<void>> {
  for (const entry of entries.values()) {
    if (!isGeneration(entry) || entry.name === keep) continue;
    const removed = await host.removeTree(below(root, entry.name));
    if (!removed.ok) return removed;
  }
  return done;
}
