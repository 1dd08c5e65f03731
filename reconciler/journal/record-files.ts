/** Files of records beside a journal: which of them say something, and which are damaged. */
import { ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import { parseBody } from '../recovery/record.ts';
import { RecordDisk } from '../recovery/record-disk.ts';
import type { UnreadableRecord } from '../recovery/record-store.ts';

const FILES_MAX = 100_000;

export interface RecordFiles {
  readonly readable: readonly string[];
  readonly unreadable: readonly UnreadableRecord[];
  /** What a power cut left of writes that never counted, and could not be removed yet. */
  readonly leftovers: readonly string[];
}

/** Without any file one listing is all it costs; what a power cut left of writes that never counted goes. */
export async function readableFiles(host: Host, directory: AbsolutePath): Promise<Result<RecordFiles>> {
  const names = await host.listDirectory(directory, FILES_MAX + 16);
  if (!names.ok) return names;
  if (!names.value.some((name) => name.startsWith('.') || name.endsWith('.json')))
    return ok({ readable: [], unreadable: [], leftovers: [] });
  const disk = new RecordDisk(host, directory);
  const files = await disk.load();
  if (!files.ok) return files;
  const readable: string[] = [];
  const unreadable: UnreadableRecord[] = [];
  for (const { name, found } of files.value) {
    const parsed = found.ok ? parseBody(found.value) : found;
    if (parsed.ok) readable.push(name);
    else unreadable.push({ file: name, failure: parsed.failure });
  }
  return ok({ readable, unreadable, leftovers: disk.leftovers() });
}
