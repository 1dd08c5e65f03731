/** Records in the journal: one durable write for all that is to be written down at a time. */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { FIRM_GROUND, type Ground } from '../../mount/ground.ts';
import { below, type Host } from '../../mount/host.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import { parseBody, recordOf, type VolumeRecord } from '../recovery/record.ts';
import type { LoadedRecords, RecordStore, UnreadableRecord } from '../recovery/record-store.ts';
import type { JournalEntry } from './journal-format.ts';
import { JournalDisk, RECORDS_MAX } from './journal-disk.ts';
import { JournalQueue, type RecordWish, type Refusals } from './journal-queue.ts';
import { FILE_NAMES, type JournalDamage, type JournalReading } from './journal-reading.ts';

/** The largest body of one record. */
const BODY_BYTES_MAX = 1_048_576;

const ROOMLESS: ReadonlySet<Failure['code']> = new Set(['disk-full', 'record-write']);
const TOO_MANY = refused(`there are ${RECORDS_MAX} records`);

export interface JournalStoreParts {
  readonly host: Host;
  readonly layout: Layout;
  /** A record is neither written nor looked for in what somebody mounted over its directory. */
  readonly ground?: Pick<Ground, 'refuseStranger'> | undefined;
  /** What a small node needs; smaller in tests. */
  readonly capacityBytes?: number | undefined;
  /** Damage that is found after the start; that of the start is among what is loaded. */
  readonly onDamage: (damage: UnreadableRecord) => void;
  /** Something else was written of this key, so what an older file says of it is not needed any more. */
  readonly onSettled?: (key: string) => void;
}

export interface JournalStore extends Omit<RecordStore, 'load' | 'takeOver'> {
  /** Undefined: there is no journal. A failure: nothing of it can be used, and it stays as it is. */
  load(): Promise<Result<LoadedRecords | undefined>>;
  /** Durable when it settles `ok`. */
  create(records: readonly VolumeRecord[]): Promise<Result<void>>;
  /** Before `remove`: whatever becomes of that, there is all of the journal then, or nothing. */
  retire(): Promise<Result<void>>;
  /** For good when it settles `ok`. */
  remove(): Promise<Result<void>>;
}

export function createJournalStore(parts: JournalStoreParts): JournalStore {
  return new RecordJournal(parts);
}

export function keyOf(volume: VolumeId): string {
  return sha256Hex(volume);
}

class RecordJournal implements JournalStore {
  readonly #parts: JournalStoreParts;
  readonly #disk: JournalDisk;
  readonly #queue: JournalQueue;
  /** Keys whose erase failed: to be tried again. */
  readonly #unerased = new Set<string>();

  constructor(parts: JournalStoreParts) {
    const { host, layout, capacityBytes, onDamage } = parts;
    this.#parts = parts;
    const told = (damage: JournalDamage): void => onDamage(unreadableOf(damage));
    this.#disk = new JournalDisk({ host, directory: layout.records, capacityBytes, onDamage: told });
    this.#queue = new JournalQueue(
      () => this.#grounded(),
      (wishes, grounded) => this.#write(wishes, grounded),
    );
  }

  async load(): Promise<Result<LoadedRecords | undefined>> {
    const there = await this.#disk.isThere();
    if (!there.ok || !there.value) return there.ok ? ok(undefined) : there;
    const reading = await this.#disk.read();
    if (!reading.ok || reading.value === undefined) return reading.ok ? ok(undefined) : reading;
    this.#disk.noteTold(reading.value);
    return ok(loaded(reading.value));
  }

  create(records: readonly VolumeRecord[]): Promise<Result<void>> {
    return this.#disk.create(
      records.map((record) => {
        return { key: keyOf(record.spec.id), body: JSON.stringify(record), isDoubtful: false };
      }),
    );
  }

  retire(): Promise<Result<void>> {
    return this.#disk.retire();
  }

  remove(): Promise<Result<void>> {
    return this.#disk.remove();
  }

  save(volume: Parameters<RecordStore['save']>[0]): Promise<Result<void>> {
    return this.#take(volume.spec.id, JSON.stringify(recordOf(volume, this.#parts.host.bootId)), false);
  }

  saveWithRoom(volume: Parameters<RecordStore['saveWithRoom']>[0]): Promise<Result<void>> {
    return this.#take(volume.spec.id, JSON.stringify(recordOf(volume, this.#parts.host.bootId)), true);
  }

  erase(volume: VolumeId): Promise<Result<void>> {
    return this.#take(volume, undefined, false);
  }

  sweep(): void {
    for (const key of this.#unerased)
      if (!this.#queue.isWaiting(key)) void this.#queue.take({ key, body: undefined, needsRoom: false });
  }

  async #take(volume: VolumeId, body: string | undefined, needsRoom: boolean): Promise<Result<void>> {
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    if (bytes > BODY_BYTES_MAX)
      return refused(`the record would have ${bytes} bytes, more than ${BODY_BYTES_MAX}`);
    return this.#queue.take({ key: keyOf(volume), body, needsRoom });
  }

  async #grounded(): Promise<Result<void>> {
    const { host, layout, ground = FIRM_GROUND } = this.#parts;
    const path = below(layout.records, FILE_NAMES[0]);
    const place = await host.mountPlaceOf(path);
    const grounded = place.ok ? await ground.refuseStranger(path, place.value.within) : place;
    return grounded.ok ? done : fail(asRecordFailure(grounded.failure));
  }

  async #write(wishes: readonly RecordWish[], grounded: Result<void>): Promise<Refusals> {
    const refusals = new Map<string, Failure>();
    const refuse = (entry: JournalEntry, failure: Failure): void => {
      refusals.set(entry.key, asRecordFailure(failure));
      if (entry.body === undefined) this.#unerased.add(entry.key);
    };
    const fitting: (JournalEntry & RecordWish)[] = [];
    for (const wish of wishes) {
      this.#unerased.delete(wish.key);
      const entry = { ...wish, isDoubtful: false };
      const isOneMore = wish.body !== undefined && !this.#disk.has(wish.key);
      if (!grounded.ok) refuse(entry, grounded.failure);
      else if (isOneMore && this.#disk.size() >= RECORDS_MAX) refuse(entry, TOO_MANY.failure);
      else fitting.push(entry);
    }
    const room = fitting.some(({ needsRoom }) => needsRoom) ? await this.#disk.makeRoom(fitting) : done;
    for (const entry of fitting) if (entry.needsRoom && !room.ok) refuse(entry, room.failure);
    const entries = fitting.filter(({ needsRoom }) => room.ok || !needsRoom);
    for (const part of await this.#writeParts(entries)) {
      for (const entry of part.entries) {
        if (!part.written.ok) refuse(entry, part.written.failure);
        else this.#parts.onSettled?.(entry.key);
      }
    }
    return refusals;
  }

  /** Together; where there is no room for that, one after the other. */
  async #writeParts(entries: readonly JournalEntry[]): Promise<readonly WrittenPart[]> {
    if (entries.length === 0) return [];
    const together = await this.#disk.write(entries);
    const isRoomless = !together.ok && ROOMLESS.has(together.failure.code);
    if (!isRoomless || entries.length === 1) return [{ entries, written: together }];
    const parts: WrittenPart[] = [];
    for (const entry of entries) parts.push({ entries: [entry], written: await this.#disk.write([entry]) });
    return parts;
  }
}

interface WrittenPart {
  readonly entries: readonly JournalEntry[];
  readonly written: Result<void>;
}

function loaded({ records, damages }: JournalReading): LoadedRecords {
  const found: VolumeRecord[] = [];
  const unreadable = damages.map(unreadableOf);
  for (const [key, { body, isDoubtful }] of records) {
    const parsed = parseBody({ body, isDoubtful, slots: undefined });
    if (parsed.ok) found.push(parsed.value);
    else unreadable.push({ file: `${key}.json`, failure: parsed.failure });
  }
  return { records: found, unreadable, roomless: [] };
}

/** As a record of its own is called, where it is known whose it was. */
function unreadableOf({ name, key, failure }: JournalDamage): UnreadableRecord {
  return { file: key === undefined ? name : `${key}.json`, failure };
}

function refused(message: string): { readonly ok: false; readonly failure: Failure } {
  return fail({ code: 'record-write', message, effect: 'none' });
}

function asRecordFailure(failure: Failure): Failure {
  return { ...failure, code: 'record-write', effect: 'none' };
}
