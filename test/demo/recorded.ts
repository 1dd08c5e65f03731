/** What the records of an agent say, in whatever form they lie on the disk. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Result } from '../../mount/failure.ts';
import { FILE_NAMES, readJournal } from '../../reconciler/journal/journal-reading.ts';
import { parseBody, parseRecord, type VolumeRecord } from '../../reconciler/recovery/record.ts';

/** By the name that its own file has, or would have if it were not in the journal; and what of that is damaged. */
export function recordsIn(directory: string): ReadonlyMap<string, Result<VolumeRecord>> {
  const found = new Map<string, Result<VolumeRecord>>();
  const names = existsSync(directory) ? readdirSync(directory).filter((name) => !name.startsWith('.')) : [];
  const [a, b] = FILE_NAMES.map((name) =>
    names.includes(name) ? readFileSync(join(directory, name)) : undefined,
  );
  const journal = readJournal([a, b], readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  if (!journal.ok) found.set('journal', journal);
  for (const { name, failure } of (journal.ok && journal.value?.damages) || [])
    found.set(name, { ok: false, failure });
  for (const [key, record] of (journal.ok && journal.value?.records) || [])
    found.set(`${key}.json`, parseBody({ ...record, slots: undefined }));
  for (const name of names)
    if (!name.startsWith('journal-')) found.set(name, parseRecord(readFileSync(join(directory, name))));
  return found;
}
