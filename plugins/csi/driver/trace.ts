/** What one listing of a directory shows of each file in it: another trace than before is a reason to look again. */
import { ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, type FileEntry, type Host, nameIn, type PathFacts } from '../../../mount/host.ts';

/** What is listed at most, at once. */
const TRACE_ENTRIES_MAX = 10_000;

export interface DirectoryTraces {
  /** What is told of a file, also of one that is not there, and of its directory, which every look is about. */
  of(file: AbsolutePath): string;
}

/** The names and facts of a directory, no contents. */
export function listFacts(
  host: Pick<Host, 'readDirectoryFiles'>,
  directory: AbsolutePath,
): Promise<Result<readonly FileEntry[]>> {
  const bounds = { entriesMax: TRACE_ENTRIES_MAX, fileBytesMax: Number.MAX_SAFE_INTEGER, contentBytesMax: 0 };
  return host.readDirectoryFiles(directory, bounds);
}

/** The time of the directory does not count: it moves with every file in it. */
export async function readTraces(
  host: Pick<Host, 'inspect' | 'readDirectoryFiles'>,
  directory: AbsolutePath,
): Promise<Result<DirectoryTraces>> {
  const own = await host.inspect(directory);
  if (!own.ok) return own;
  const entries = await listFacts(host, directory);
  if (!entries.ok) return entries;
  const { mode, uid, inode } = own.value;
  const traces = new Map(entries.value.map(({ name, facts }) => [name, traceOf(facts)]));
  return ok({ of: (file) => `${mode} ${uid} ${inode}: ${traces.get(nameIn(file)) ?? ABSENT}` });
}

export const ABSENT = 'absent';

export function traceOf({ kind, uid, inode, modifiedMs }: PathFacts): string {
  return `${kind} ${uid} ${inode} ${modifiedMs}`;
}
