/**
 * Records in the form that is configured. What the other form has is taken over at the start, for good, before anything
 * is written; where that cannot be done, as on a full disk, the records stay in the form that they have for this life.
 *
 * Which form stands can be told at any instant: a journal comes into being whole and goes whole, so where there is one,
 * it is what counts, and files beside it are what was taken over already or was about to be.
 */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import type { Ground } from '../../mount/ground.ts';
import { below, type Host } from '../../mount/host.ts';
import { temporaryPath } from '../../mount/temporary-file.ts';
import type { Log } from '../../mount/process/log.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { VolumeRecord } from '../recovery/record.ts';
import { RecordDisk } from '../recovery/record-disk.ts';
import { readableFiles } from './record-files.ts';
import {
  createRecordStore,
  type LoadedRecords,
  type RecordStore,
  type UnreadableRecord,
} from '../recovery/record-store.ts';
import { createJournalStore, type JournalStore, keyOf } from './journal-store.ts';

export type RecordForm = 'files' | 'journal';

export interface RecordFormParts {
  readonly form: RecordForm;
  readonly host: Host;
  readonly layout: Layout;
  readonly ground?: Pick<Ground, 'expectedRound' | 'refuseStranger'> | undefined;
  readonly log: Pick<Log, 'warn'>;
  /** What a small node needs; smaller in tests. */
  readonly journalBytes?: number | undefined;
}

export function createRecords(parts: RecordFormParts): RecordStore {
  return new FormedRecords(parts);
}

class FormedRecords implements RecordStore {
  readonly #parts: RecordFormParts;
  readonly #files: RecordStore;
  readonly #journal: JournalStore;
  #standing: RecordForm = 'files';
  #loaded: LoadedRecords = { records: [], unreadable: [], roomless: [], leftovers: [] };
  /** What the journal cannot say any more, and nothing but the journal can tell. */
  #lossInJournal: Failure | undefined;
  /** Files beside the journal that it has taken over. */
  #takenFiles: readonly string[] = [];
  /** Damaged files beside the journal, by key: each goes when something else is known of its volume. */
  readonly #damagedFiles = new Set<string>();
  /** What a power cut left of files, beside a journal, and could not be removed yet. */
  readonly #leftovers = new Set<string>();

  constructor(parts: RecordFormParts) {
    const { host, layout, ground, journalBytes: capacityBytes } = parts;
    this.#parts = parts;
    this.#files = createRecordStore(host, layout, ground);
    const onDamage = ({ file, failure }: UnreadableRecord): void =>
      parts.log.warn('record unreadable', { file, code: failure.code, message: failure.message });
    const onSettled = (key: string): void => void this.#dropDamagedFile(key);
    this.#journal = createJournalStore({ host, layout, ground, capacityBytes, onDamage, onSettled });
  }

  async load(): Promise<Result<LoadedRecords>> {
    const inJournal = await this.#journal.load();
    if (!inJournal.ok) return inJournal;
    this.#standing = inJournal.value === undefined ? 'files' : 'journal';
    const loaded = inJournal.value === undefined ? await this.#files.load() : ok(inJournal.value);
    if (!loaded.ok) return loaded;
    const damaged = inJournal.value === undefined ? ok([]) : await this.#filesBesideJournal();
    if (!damaged.ok) return damaged;
    const { unreadable } = loaded.value;
    this.#lossInJournal = inJournal.value?.unreadable[0]?.failure;
    this.#loaded = { ...loaded.value, unreadable: [...unreadable, ...damaged.value] };
    return ok(this.#loaded);
  }

  async takeOver(): Promise<Result<void>> {
    const { form, log } = this.#parts;
    // Where it cannot be taken away it stays without harm, and the next start tries again.
    if (this.#standing === 'files' && form === 'files') await this.#journal.clear();
    if (this.#standing === form) {
      await this.#clearOrTell();
      return done;
    }
    const taken = form === 'journal' ? await this.#intoJournal() : await this.#intoFiles();
    if (!taken.ok) return taken;
    if (taken.value === undefined) return done;
    const { code, message } = taken.value;
    log.warn('records stay in the form they have', { form: this.#standing, wanted: form, code, message });
    return done;
  }

  save(volume: Parameters<RecordStore['save']>[0]): Promise<Result<void>> {
    return this.#store().save(volume);
  }

  saveWithRoom(volume: Parameters<RecordStore['saveWithRoom']>[0]): Promise<Result<void>> {
    return this.#store().saveWithRoom(volume);
  }

  erase(volume: Parameters<RecordStore['erase']>[0]): Promise<Result<void>> {
    return this.#store().erase(volume);
  }

  get gathersErases(): boolean {
    return this.#standing === 'journal';
  }

  sweep(): void {
    this.#store().sweep();
    if (this.#standing !== 'journal') return;
    void this.#clearFiles();
    for (const name of this.#leftovers) void this.#removeLeftover(name);
  }

  #store(): Omit<RecordStore, 'load' | 'takeOver' | 'gathersErases'> {
    return this.#standing === 'journal' ? this.#journal : this.#files;
  }

  /** `ok` with a failure: nothing was changed, because of that. */
  async #intoJournal(): Promise<Result<Failure | undefined>> {
    const { records, unreadable } = this.#loaded;
    // What cannot be read now may be read later, and would then be older than the journal.
    const unread = unreadable.find(({ failure }) => failure.code !== 'record-unreadable');
    if (unread !== undefined) return ok(unread.failure);
    const created = await this.#journal.create(records);
    if (!created.ok) {
      const removed = await this.#journal.remove();
      return removed.ok ? ok(created.failure) : removed;
    }
    this.#standing = 'journal';
    this.#takenFiles = records.map(nameOf);
    for (const { file } of unreadable) this.#damagedFiles.add(keyOfFile(file));
    for (const name of this.#loaded.leftovers) this.#leftovers.add(name);
    await this.#clearOrTell();
    return ok(undefined);
  }

  async #intoFiles(): Promise<Result<Failure | undefined>> {
    // With the journal it would go without a trace, and the next agent would take the node for known (D-107).
    if (this.#lossInJournal !== undefined) return ok(this.#lossInJournal);
    const written = await this.#writeFiles();
    const retired = written.ok ? await this.#journal.retire() : written;
    if (!retired.ok) {
      await this.#clearFiles();
      return ok(retired.failure);
    }
    const removed = await this.#journal.remove();
    if (!removed.ok) return removed;
    this.#standing = 'files';
    this.#takenFiles = [];
    const reloaded = await this.#files.load();
    return reloaded.ok ? ok(undefined) : reloaded;
  }

  /** What an earlier try has left of volumes that are gone since must not be there when the journal goes. */
  async #writeFiles(): Promise<Result<void>> {
    const { host, layout } = this.#parts;
    const cleared = await this.#clearFiles();
    if (!cleared.ok) return cleared;
    const disk = new RecordDisk(host, layout.records);
    const found = await disk.load();
    if (!found.ok) return found;
    this.#takenFiles = this.#loaded.records.map(nameOf);
    for (const record of this.#loaded.records) {
      const written = await disk.write(nameOf(record), JSON.stringify(record));
      const failure = written.ok ? written.value.noRoom : written.failure;
      if (failure !== undefined) return fail(failure);
    }
    return done;
  }

  async #filesBesideJournal(): Promise<Result<readonly UnreadableRecord[]>> {
    const files = await readableFiles(this.#parts.host, this.#parts.layout.records);
    if (!files.ok) return files;
    this.#takenFiles = files.value.readable;
    for (const { file } of files.value.unreadable) this.#damagedFiles.add(keyOfFile(file));
    for (const name of files.value.leftovers) this.#leftovers.add(name);
    return ok(files.value.unreadable);
  }

  /** They have been taken over: none of them may come back when the journal says something newer. */
  async #clearFiles(): Promise<Result<void>> {
    const { host, layout } = this.#parts;
    if (this.#takenFiles.length === 0) return done;
    const paths = this.#takenFiles.map((name) => below(layout.records, name));
    for (const path of paths.flatMap((one) => [one, temporaryPath(one)])) {
      const removed = await host.removeFile(path);
      if (!removed.ok) return removed;
    }
    const settled = await host.synchronise(layout.records);
    if (settled.ok) this.#takenFiles = [];
    return settled;
  }

  /** While there is a journal, no file beside it is believed: one that stays is tried again at each resync. */
  async #clearOrTell(): Promise<void> {
    const cleared = await this.#clearFiles();
    if (cleared.ok) return;
    const { code, message } = cleared.failure;
    this.#parts.log.warn('records of before not removed', { code, message });
  }

  async #removeLeftover(name: string): Promise<void> {
    const { host, layout } = this.#parts;
    const removed = await host.removeFile(below(layout.records, name));
    if (removed.ok) this.#leftovers.delete(name);
  }

  async #dropDamagedFile(key: string): Promise<void> {
    if (!this.#damagedFiles.delete(key)) return;
    const { host, layout } = this.#parts;
    const removed = await host.removeFile(below(layout.records, `${key}.json`));
    if (!removed.ok) this.#damagedFiles.add(key);
  }
}

function nameOf({ spec }: VolumeRecord): string {
  return `${keyOf(spec.id)}.json`;
}

function keyOfFile(file: string): string {
  return file.replace(/\.json$/, '');
}
