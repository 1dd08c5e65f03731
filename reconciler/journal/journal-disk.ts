/** The two files of the journal: read and believed, appended to, and written anew, each time by one durable write. */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { below, type Host } from '../../mount/host.ts';
import {
  entryBytes,
  formatAppend,
  formatBeginning,
  formatJournal,
  type JournalEntry,
  PAGE_BYTES,
  pagesOf,
} from './journal-format.ts';
import { CAPACITY_BYTES, CAPACITY_BYTES_MAX, capacityFor, needOf, roomOf } from './journal-room.ts';
import { type GroundParts, overwriteOnGround, refuseStranger } from './journal-ground.ts';
import {
  entriesOf,
  fitting,
  isRecorded,
  type JournalState as State,
  learnt,
  placeIn,
  type RoomyEntry,
  roomWith,
  stateOf,
} from './journal-state.ts';
import {
  FILE_NAMES,
  type FileIndex,
  type JournalDamage,
  type JournalReading,
  readJournal,
} from './journal-reading.ts';

export const RECORDS_MAX = 100_000;
/** The largest part of a journal that is written anew by one call. */
const PART_BYTES_MAX = 4_194_304;
/** With as many files of records, before they are taken over. */
const ENTRIES_MAX = 2 * RECORDS_MAX;

const NOT_THERE = unwritten('the journal of records is not there');
const TOO_LARGE = unwritten(`the journal of records would have more than ${CAPACITY_BYTES_MAX} bytes`);

export interface JournalDiskParts extends GroundParts {
  readonly host: Host;
  readonly capacityBytes?: number | undefined;
  /** It is told of each damage once, when that is found. */
  readonly onDamage: (damage: JournalDamage) => void;
}

/** The caller does one thing at a time. */
export class JournalDisk {
  readonly #parts: JournalDiskParts;
  readonly #capacityBytes: number;
  #state: State | undefined;
  /** A write had no answer: what is read may be in the page cache alone, however well it looks. */
  #isSuspect = false;
  /** It was being written anew then: the other one has the same, and stays as it is until this one is whole. */
  #unfinished: FileIndex | undefined;
  /** As it was when it was retired; the first one is there last while the journal is made. */
  #active: FileIndex = 0;
  /** Messages of the damage that was told. */
  readonly #told = new Set<string>();

  constructor(parts: JournalDiskParts) {
    this.#parts = parts;
    this.#capacityBytes = parts.capacityBytes ?? CAPACITY_BYTES;
  }

  /** Is there any file of it? */
  async isThere(): Promise<Result<boolean>> {
    const names = await this.#parts.host.listDirectory(this.#parts.directory, ENTRIES_MAX);
    if (!names.ok) return names.failure.code === 'path-missing' ? ok(false) : names;
    return ok(names.value.some((name) => FILE_NAMES.some((one) => one === name)));
  }

  /** Nothing is believed that a power cut could take back: both files are synchronised before they are read. */
  async read(): Promise<Result<JournalReading | undefined>> {
    const { host, directory } = this.#parts;
    this.#state = undefined;
    const contents: (Uint8Array | undefined)[] = [];
    const synchronised = await host.synchronise(directory);
    if (!synchronised.ok) return synchronised;
    for (const name of FILE_NAMES) {
      const path = below(directory, name);
      const settled = await host.synchronise(path);
      const content = settled.ok ? await host.readFile(path, CAPACITY_BYTES_MAX) : settled;
      if (!content.ok && content.failure.code !== 'path-missing') return content;
      contents.push(content.ok ? content.value : undefined);
    }
    const reading = readJournal([contents[0], contents[1]], host.bootId);
    if (reading.ok && reading.value !== undefined) this.#learn(reading.value);
    return reading;
  }

  /** Both files, where there are none; the one in use comes last. */
  async create(entries: readonly JournalEntry[]): Promise<Result<void>> {
    const { bootId } = this.#parts.host;
    const room = entries.reduce((sum, { body = '' }) => sum + roomOf(Buffer.byteLength(body)), 0);
    const capacityBytes = capacityFor(needOf(room), this.#capacityBytes);
    if (capacityBytes === undefined) return TOO_LARGE;
    for (const [name, epoch] of [
      [FILE_NAMES[1], 0],
      [FILE_NAMES[0], 1],
    ] as const) {
      const content = formatJournal(epoch === 0 ? [] : entries, { epoch, capacityBytes, bootId });
      const written = await this.#put(name, content);
      if (!written.ok) return written;
    }
    const reading = await this.read();
    return reading.ok ? done : reading;
  }

  /** The file that is not in use is as it was when the first one was made: without that one there is no journal. */
  async retire(): Promise<Result<void>> {
    const state = await this.#known();
    if (!state.ok) return state;
    this.#state = undefined;
    this.#active = state.value.active;
    const content = formatJournal([], {
      epoch: 0,
      capacityBytes: PAGE_BYTES,
      bootId: this.#parts.host.bootId,
    });
    return this.#put(FILE_NAMES[otherOf(this.#active)], content);
  }

  /** The one in use first, and each of them for good: what is left over is never believed again. */
  async remove(): Promise<Result<void>> {
    const { host, directory } = this.#parts;
    this.#state = undefined;
    for (const index of [this.#active, otherOf(this.#active)]) {
      const removed = await host.removeFile(below(directory, FILE_NAMES[index]));
      const settled = removed.ok ? await host.synchronise(directory) : removed;
      if (!settled.ok) return settled;
    }
    return done;
  }

  /** Durable when it settles `ok`; what is there already is not written again. */
  async write(entries: readonly JournalEntry[]): Promise<Result<void>> {
    const state = await this.#known();
    if (!state.ok) return state;
    const changes = entries.filter((entry) => !isRecorded(state.value, entry));
    if (changes.length === 0) return done;
    const content = this.#formatted(state.value, changes);
    const { isClean, endBytes, active, sizesBytes } = state.value;
    if (isClean && endBytes + content.length <= sizesBytes[active])
      return this.#append(state.value, changes, content);
    const bytes = changes.reduce((sum, { body = '' }) => sum + entryBytes(Buffer.byteLength(body)), 0);
    const renewed = await this.#renew({ moreBytes: bytes + PAGE_BYTES, leastBytes: 0 });
    if (!renewed.ok) return renewed;
    const now = await this.#known();
    return now.ok ? this.#append(now.value, changes, this.#formatted(now.value, changes)) : now;
  }

  /** `ok`: whatever is recorded, with these entries, has room to be written down while it is undone. */
  async makeRoom(entries: readonly JournalEntry[]): Promise<Result<void>> {
    for (let turn = 0; turn < 4; turn += 1) {
      const state = await this.#known();
      if (!state.ok) return state;
      const need = needOf(roomWith(state.value, entries));
      const { active, sizesBytes } = state.value;
      if (Math.min(...sizesBytes) >= need) return done;
      const isSpareSmall = sizesBytes[otherOf(active)] < need;
      const renewed = await this.#renew({ moreBytes: 0, leastBytes: isSpareSmall ? need : 0 });
      if (!renewed.ok) return renewed;
    }
    return TOO_LARGE;
  }

  /** For when the files cannot be made larger. */
  async fitting<Entry extends RoomyEntry>(entries: readonly Entry[]): Promise<Result<readonly Entry[]>> {
    const state = await this.#known();
    return state.ok ? ok(fitting(state.value, entries)) : state;
  }

  /** It is told by whoever loads. */
  noteTold({ damages }: JournalReading): void {
    for (const { failure } of damages) this.#told.add(failure.message);
  }

  /** How many records there are. */
  size(): number {
    return this.#state?.known.size ?? 0;
  }

  has(key: string): boolean {
    return this.#state?.known.has(key) === true;
  }

  #tell({ damages }: JournalReading): void {
    for (const damage of damages) {
      const { message } = damage.failure;
      if (!this.#told.has(message)) this.#parts.onDamage(damage);
      this.#told.add(message);
    }
  }

  async #known(): Promise<Result<State>> {
    if (this.#state !== undefined) return ok(this.#state);
    const firm = await refuseStranger(this.#parts);
    const reading = firm.ok ? await this.read() : firm;
    if (!reading.ok) return reading;
    return this.#state === undefined ? NOT_THERE : ok(this.#state);
  }

  #learn(reading: JournalReading): void {
    const isClean = reading.isClean && !this.#isSuspect;
    this.#state = { ...stateOf(reading), isClean };
  }

  #formatted(state: State, entries: readonly JournalEntry[]): Uint8Array {
    return formatAppend(entries, placeIn(state, this.#parts.host.bootId));
  }

  async #append(state: State, entries: readonly JournalEntry[], content: Uint8Array): Promise<Result<void>> {
    const path = below(this.#parts.directory, FILE_NAMES[state.active]);
    const written = await overwriteOnGround(this.#parts, path, state.endBytes, content);
    if (!written.ok) return this.#failed(written.failure);
    this.#state = learnt(state, entries, state.endBytes + content.length);
    return done;
  }

  /**
   * All that is recorded, as it is on the disk, into the other file, with room for so many bytes more; nothing new with
   * it, so that both files say the same until something is appended.
   */
  async #renew(room: { readonly moreBytes: number; readonly leastBytes: number }): Promise<Result<void>> {
    const firm = await refuseStranger(this.#parts);
    const reading = firm.ok ? await this.read() : firm;
    if (!reading.ok) return reading;
    const state = this.#state;
    if (state === undefined || reading.value === undefined) return NOT_THERE;
    this.#tell(reading.value);
    const { bootId } = this.#parts.host;
    const entries = entriesOf(reading.value, bootId);
    const target = this.#unfinished ?? otherOf(state.active);
    const epoch = state.epochMax + 1;
    const sizeBytes = state.sizesBytes[target];
    const formatted = (capacityBytes: number) => formatBeginning(entries, { epoch, capacityBytes, bootId });
    const leastBytes = Math.max(formatted(sizeBytes).length + pagesOf(room.moreBytes), room.leastBytes);
    const isRoomy = sizeBytes >= leastBytes && sizeBytes % PAGE_BYTES === 0;
    const capacityBytes = isRoomy ? sizeBytes : capacityFor(leastBytes, this.#capacityBytes);
    if (capacityBytes === undefined) return TOO_LARGE;
    const written = isRoomy
      ? await this.#overwrite(FILE_NAMES[target], formatted(capacityBytes))
      : await this.#put(FILE_NAMES[target], formatJournal(entries, { epoch, capacityBytes, bootId }));
    if (!written.ok) return this.#failed(written.failure, target);
    const sizesBytes = state.sizesBytes.with(target, capacityBytes) as [number, number];
    const endBytes = formatted(capacityBytes).length;
    const place = { active: target, epoch, epochMax: epoch, sequence: 0, endBytes, sizesBytes };
    this.#isSuspect = false;
    this.#unfinished = undefined;
    this.#state = { ...state, ...place, isClean: true };
    return done;
  }

  async #overwrite(name: string, content: Uint8Array): Promise<Result<void>> {
    const path = below(this.#parts.directory, name);
    for (let at = 0; at < content.length; at += PART_BYTES_MAX) {
      const part = content.subarray(at, at + PART_BYTES_MAX);
      const written = await this.#parts.host.overwriteFile(path, at, part);
      if (!written.ok) return at === 0 ? written : fail({ ...written.failure, effect: 'unknown' });
    }
    return done;
  }

  #put(name: string, content: Uint8Array): Promise<Result<void>> {
    const { host, directory } = this.#parts;
    return host.writeFile(below(directory, name), content, { mode: 0o600, durable: true });
  }

  #failed(failure: Failure, unfinished?: FileIndex): Result<void> {
    const isAsBefore =
      failure.effect === 'none' && failure.code !== 'path-missing' && failure.code !== 'too-large';
    if (!isAsBefore) {
      this.#state = undefined;
      this.#isSuspect = true;
      this.#unfinished ??= unfinished;
    }
    return fail(failure);
  }
}

function otherOf(index: FileIndex): FileIndex {
  return index === 0 ? 1 : 0;
}

function unwritten(message: string): Result<never> {
  return fail({ code: 'record-write', message, effect: 'none' });
}
