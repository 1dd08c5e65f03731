/** What we wrote into a content volume's directory after somebody had taken its tmpfs away. */
import { done, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import type { Program } from '../../mount/transition.ts';

const ENTRIES_MAX = 16_384;
const DATA_LINK = '..data/';

/**
 * Removes what only the writer makes: names that begin with `..`, links into `..data`, and directories with nothing in
 * them that something was to be mounted on. A secret must not stay on disk (SE-34); anything else is somebody's data
 * and stays (ST-05).
 * Assumes: nothing is mounted at the directory any more.
 */
export function* removeOwnLeftovers(directory: AbsolutePath): Program<Result<void>> {
  const names = yield* paths.listDirectory(directory, ENTRIES_MAX);
  if (!names.ok) return names.failure.code === 'path-missing' ? done : names;
  for (const name of names.value) {
    const removed = yield* removeIfOurs(below(directory, name), name);
    if (!removed.ok) return removed;
  }
  return done;
}

function* removeIfOurs(path: AbsolutePath, name: string): Program<Result<void>> {
  const facts = yield* paths.inspect(path);
  if (!facts.ok) return facts;
  const { kind } = facts.value;
  if (name.startsWith('..'))
    return yield* kind === 'directory' ? paths.removeTree(path) : paths.removeFile(path);
  if (kind === 'directory') return yield* removeEmptyDirectories(path);
  if (kind !== 'symlink') return done;
  const text = yield* paths.readLink(path);
  if (!text.ok) return text;
  return text.value.startsWith(DATA_LINK) ? yield* paths.removeFile(path) : done;
}

function* removeEmptyDirectories(path: AbsolutePath): Program<Result<void>> {
  const names = yield* paths.listDirectory(path, ENTRIES_MAX);
  if (!names.ok) return names;
  for (const name of names.value) {
    const facts = yield* paths.inspect(below(path, name));
    if (!facts.ok) return facts;
    const removed =
      facts.value.kind === 'directory' ? yield* removeEmptyDirectories(below(path, name)) : done;
    if (!removed.ok) return removed;
  }
  const removed = yield* paths.removeEmptyDirectory(path);
  return removed.ok || removed.failure.code !== 'directory-not-empty' ? removed : done;
}
