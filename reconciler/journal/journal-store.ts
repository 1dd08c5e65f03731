/** Records in the journal: one durable write for all that is to be written down at a time. */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { FIRM_GROUND, type Ground } from '../../mount/ground.ts';
import type { Host } from '../../mount/host.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import { parseBody, recordOf, type VolumeRecord } from '../recovery/record.ts';
import type { LoadedRecords, RecordStore, UnreadableRecord } from '../recovery/record-store.ts';
import { JournalDisk, RECORDS_MAX } from './journal-disk.ts';
import type { JournalEntry } from './journal-format.ts';
import type { RoomyEntry } from './journal-state.ts';
import { JournalQueue, type WantedRecord, type Refusals } from './journal-queue.ts';
import type { JournalDamage, JournalReading } from './journal-reading.ts';

/** The largest body of one record. */
const BODY_BYTES_MAX = 1_048_576;

const ROOMLESS: ReadonlySet<Failure['code']> = new Set(['disk-full', 'record-write']);
const TOO_MANY = refused(`there are ${RECORDS_MAX} records`);

export interface JournalStoreParts {
  readonly host: Host;
  readonly layout: Layout;
  /** A record is neither written nor looked for in what somebody mounted over its directory. */
  readonly ground?: Pick<Ground, 'expectedRound' | 'refuseStranger'> | undefined;
  /** What a small node needs; smaller in tests. */
  readonly capacityBytes?: number | undefined;
  /** Damage that is found after the start; that of the start is among what is loaded. */
  readonly onDamage: (damage: UnreadableRecord) => void;
  /** Something else was written of this key, so what an older file says of it is not needed any more. */
  readonly onSettled?: (key: string) => void;
}

export interface JournalStore extends Omit<RecordStore, 'load' | 'takeOver' | 'gathersErases'> {
  /** Undefined: there is no journal. A failure: nothing of it can be used, and it stays as it is. */
  load(): Promise<Result<LoadedRecords | undefined>>;
  /** Durable when it settles `ok`. */
  create(records: readonly VolumeRecord[]): Promise<Result<void>>;
  /** Before `remove`: whatever becomes of that, there is all of the journal then, or nothing. */
  retire(): Promise<Result<void>>;
  /** It is gone for good when this settles `ok`. */
  remove(): Promise<Result<void>>;
  /** Takes away what a kill while it was made or removed has left, which nobody believes; where `load` found none. */
  clear(): Promise<Result<void>>;
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
  #isLeftOver = false;
  /** Keys whose erase failed: to be tried again. */
  readonly #unerased = new Set<string>();

  constructor(parts: JournalStoreParts) {
    const { host, layout, ground = FIRM_GROUND, capacityBytes, onDamage } = parts;
    this.#parts = parts;
    const told = (damage: JournalDamage): void => onDamage(unreadableOf(damage));
    this.#disk = new JournalDisk({ host, directory: layout.records, ground, capacityBytes, onDamage: told });
    this.#queue = new JournalQueue(host, (wanted) => this.#write(wanted));
  }

  async load(): Promise<Result<LoadedRecords | undefined>> {
    const there = await this.#disk.isThere();
    if (!there.ok || !there.value) return there.ok ? ok(undefined) : there;
    const reading = await this.#disk.read();
    this.#isLeftOver = reading.ok && reading.value === undefined;
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

  clear(): Promise<Result<void>> {
    return this.#isLeftOver ? this.#disk.remove() : Promise.resolve(done);
  }

  save(volume: Parameters<RecordStore['save']>[0]): Promise<Result<void>> {
    return this.#take(volume.spec.id, 'undo', JSON.stringify(recordOf(volume, this.#parts.host.bootId)));
  }

  saveWithRoom(volume: Parameters<RecordStore['saveWithRoom']>[0]): Promise<Result<void>> {
    return this.#take(volume.spec.id, 'climb', JSON.stringify(recordOf(volume, this.#parts.host.bootId)));
  }

  erase(volume: VolumeId): Promise<Result<void>> {
    return this.#take(volume, 'undo', undefined);
  }

  sweep(): void {
    for (const key of this.#unerased)
      if (!this.#queue.isWaiting(key)) void this.#queue.take(key, 'undo', undefined);
  }

  async #take(volume: VolumeId, kind: 'climb' | 'undo', body: string | undefined): Promise<Result<void>> {
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    if (bytes > BODY_BYTES_MAX)
      return refused(`the record would have ${bytes} bytes, more than ${BODY_BYTES_MAX}`);
    return this.#queue.take(keyOf(volume), kind, body);
  }

  async #write(wanted: readonly WantedRecord[]): Promise<Refusals> {
    const climbs = new Map<string, Failure>();
    const undos = new Map<string, Failure>();
    const refuse = (key: string, failure: Failure): void => {
      climbs.set(key, asRecordFailure(failure));
      undos.set(key, asRecordFailure(failure));
    };
    const due: DueEntry[] = [];
    for (const { key, climb, undo } of wanted) {
      this.#unerased.delete(key);
      const meant = climb ?? undo;
      const entry = { key, body: meant?.body, isDoubtful: false, needsRoom: climb !== undefined, undo };
      const isOneMore = entry.body !== undefined && !this.#disk.has(key);
      if (isOneMore && this.#disk.size() >= RECORDS_MAX) refuse(key, TOO_MANY.failure);
      else due.push(entry);
    }
    const roomy = await this.#withRoom(due);
    for (const { key } of due)
      if (roomy.failure !== undefined) climbs.set(key, asRecordFailure(roomy.failure));
    for (const { key } of roomy.entries) climbs.delete(key);
    const entries = [...roomy.entries, ...undoing(due, roomy.entries)];
    for (const part of await this.#writeParts(entries)) {
      for (const { key, body } of part.entries) {
        if (part.written.ok) this.#parts.onSettled?.(key);
        else refuse(key, part.written.failure);
        if (!part.written.ok && body === undefined) this.#unerased.add(key);
      }
    }
    return { climbs, undos };
  }

  /** Those that are written, and why the others are not: one that is too large keeps nobody else from climbing. */
  async #withRoom(entries: readonly DueEntry[]): Promise<RoomyEntries> {
    if (!entries.some(({ needsRoom }) => needsRoom)) return { entries, failure: undefined };
    const room = await this.#disk.makeRoom(entries);
    if (room.ok) return { entries, failure: undefined };
    const fitting = await this.#disk.fitting(entries);
    const left = fitting.ok ? fitting.value : entries.filter(({ needsRoom }) => !needsRoom);
    return { entries: left, failure: room.failure };
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

interface DueEntry extends RoomyEntry {
  /** What is written where there is no room for what needs it. */
  readonly undo: WantedRecord['undo'];
}

interface RoomyEntries {
  readonly entries: readonly DueEntry[];
  readonly failure: Failure | undefined;
}

/** What was to be undone of those that were to climb and have no room. */
function undoing(all: readonly DueEntry[], roomy: readonly DueEntry[]): readonly DueEntry[] {
  const isRoomy = new Set(roomy);
  return all.flatMap((entry) => {
    const { undo } = entry;
    return isRoomy.has(entry) || undo === undefined ? [] : [{ ...entry, body: undo.body, needsRoom: false }];
  });
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
  return { records: found, unreadable, roomless: [], leftovers: [] };
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
