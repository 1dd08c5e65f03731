/** What we wrote into a content volume's directory after somebody had taken its tmpfs away. */
import { done, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';

const ENTRIES_MAX = 16_384;
const DATA_LINK = '..data/';

/**
 * Removes what only the atomic writer makes: names that begin with `..` and links into `..data`. A secret must not
 * stay on disk (SE-34); anything else is somebody's data and stays (ST-05).
 * Assumes: nothing is mounted at the directory any more.
 */
export async function removeOwnLeftovers(host: Host, directory: AbsolutePath): Promise<Result<void>> {
  const names = await host.listDirectory(directory, ENTRIES_MAX);
  if (!names.ok) return names.failure.code === 'path-missing' ? done : names;
  for (const name of names.value) {
    const removed = await removeIfOurs(host, below(directory, name), name);
    if (!removed.ok) return removed;
  }
  return done;
}

async function removeIfOurs(host: Host, path: AbsolutePath, name: string): Promise<Result<void>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind } = facts.value;
  if (name.startsWith('..')) return kind === 'directory' ? host.removeTree(path) : host.removeFile(path);
  if (kind !== 'symlink') return done;
  const text = await host.readLink(path);
  if (!text.ok) return text;
  return text.value.startsWith(DATA_LINK) ? host.removeFile(path) : done;
}
