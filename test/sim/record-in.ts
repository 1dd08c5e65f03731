/** What records on the disk say, in any form, read once for the same bytes: who changes a file replaces them. */
import type { Result } from '../../mount/failure.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { FILE_NAMES, type JournalReading, readJournal } from '../../reconciler/journal/journal-reading.ts';
import { parseBody, parseRecord, type VolumeRecord } from '../../reconciler/recovery/record.ts';
import type { Inode } from './file-tree.ts';
import type { SimKernel } from './sim-kernel.ts';

const known = new WeakMap<Uint8Array, Result<VolumeRecord>>();
const journals = new WeakMap<Uint8Array, Map<Uint8Array | undefined, JournalReading | undefined>>();

export function recordIn({ content }: Inode): Result<VolumeRecord> {
  const record = known.get(content) ?? parseRecord(content);
  known.set(content, record);
  return record;
}

/** By the name that a record's own file has or would have. */
export function recordsOn(kernel: SimKernel, layout: Layout): ReadonlyMap<string, Result<VolumeRecord>> {
  const directory = kernel.walk(layout.records);
  if (typeof directory === 'string') return new Map();
  const { entries } = directory.inode;
  const journal = journalIn(entries, kernel.bootId);
  if (journal === undefined)
    return new Map(
      [...entries].filter(([name]) => !isOfJournal(name)).map(([name, inode]) => [name, recordIn(inode)]),
    );
  return new Map(
    [...journal.records].map(([key, record]) => [`${key}.json`, parseBody({ ...record, slots: undefined })]),
  );
}

export function isOfJournal(name: string): boolean {
  return FILE_NAMES.some((one) => name === one || name === `.${one}.tmp`);
}

function journalIn(entries: ReadonlyMap<string, Inode>, bootId: string): JournalReading | undefined {
  const [a, b] = FILE_NAMES.map((name) => entries.get(name)?.content);
  const first = a ?? b;
  if (first === undefined) return undefined;
  const seconds = journals.get(first) ?? new Map();
  journals.set(first, seconds);
  if (!seconds.has(b)) {
    const reading = readJournal([a, b], bootId);
    seconds.clear();
    seconds.set(b, reading.ok ? reading.value : undefined);
  }
  return seconds.get(b);
}
