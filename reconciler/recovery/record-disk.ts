/** The files of records, by name: what is on the disk of each, and the one way to write the next record over it. */
import { temporaryPath } from '../../mount/temporary-file.ts';
import { fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import {
  fits,
  formatFile,
  formatSlot,
  type FoundRecord,
  readRecordFile,
  type Slots,
  slotBytesFor,
} from './record-file.ts';

/** The largest body of one record; a place takes a few hundred bytes of it. */
const BODY_BYTES_MAX = 1_048_576;
const FILE_BYTES_MAX = 4 * BODY_BYTES_MAX;
const FILES_MAX = 100_000;

export interface Written {
  /** Why there is no room for the records that taking the volume down needs; undefined when there is. */
  readonly noRoom: Failure | undefined;
}

export interface FoundFile {
  readonly name: string;
  readonly found: Result<FoundRecord>;
}

/** `body` undefined: the last write failed, and nobody knows what the slot beside the newest has. */
interface OnDisk {
  readonly slots: Slots;
  readonly body: string | undefined;
}

const ROOMY: Result<Written> = ok({ noRoom: undefined });

/** The caller does one thing with one name at a time. */
export class RecordDisk {
  readonly #host: Host;
  readonly #directory: AbsolutePath;
  readonly #known = new Map<string, OnDisk>();
  /** Perhaps replaced by a write that failed with an unknown end: read before the next one. */
  readonly #unread = new Set<string>();
  readonly #unerased = new Set<string>();
  /** Names of files of which both slots have the same. */
  readonly #inBoth = new Set<string>();
  readonly #roomless = new Map<string, string>();
  /** Temporary files of an earlier life that could not be removed. */
  readonly #leftovers = new Set<string>();
  /** Names whose last replacement failed and may have left its temporary file. */
  readonly #halfWritten = new Set<string>();

  constructor(host: Host, directory: AbsolutePath) {
    this.#host = host;
    this.#directory = directory;
  }

  async load(): Promise<Result<readonly FoundFile[]>> {
    const made = await this.#host.makeDirectory(this.#directory, 0o700);
    if (!made.ok) return made;
    const files = await this.#host.readDirectoryFiles(this.#directory, {
      entriesMax: FILES_MAX,
      fileBytesMax: FILE_BYTES_MAX,
    });
    if (!files.ok) return files;
    const loaded: FoundFile[] = [];
    for (const { name, content } of files.value) {
      // What a power cut left of a write that never counted.
      if (name.startsWith('.')) await this.#removeLeftover(name);
      if (!name.endsWith('.json') || name.startsWith('.') || content === undefined) continue;
      const found = content.ok ? readRecordFile(content.value) : content;
      loaded.push({ name, found });
      if (!found.ok || found.value.slots === undefined) continue;
      const { body, slots, isDoubtful } = found.value;
      this.#known.set(name, { slots, body: isDoubtful ? undefined : sha256Hex(body) });
    }
    return ok(loaded);
  }

  /**
   * Durable when it settles `ok`. In place when the file has room for it; else a larger one is put there. What is
   * there already is not written again. `isInBoth`: damage to one of the slots loses nothing of it.
   */
  async write(name: string, body: string, isInBoth = false): Promise<Result<Written>> {
    const written = await this.#writeOnce(name, body);
    const now = this.#known.get(name);
    if (!isInBoth || !written.ok || now === undefined || this.#inBoth.has(name)) return written;
    // Where that fails the record is as durable as any other.
    const again = await this.#overwrite(name, body, now);
    if (again.ok) this.#inBoth.add(name);
    return written;
  }

  async #writeOnce(name: string, body: string): Promise<Result<Written>> {
    this.#roomless.delete(name);
    const bytes = Buffer.byteLength(body);
    if (bytes > BODY_BYTES_MAX) return failed(`it would have ${bytes} bytes, more than ${BODY_BYTES_MAX}`);
    this.#unerased.delete(name);
    if (this.#unread.has(name)) await this.#learn(name);
    const before = this.#known.get(name);
    const isThere = before !== undefined && before.body === sha256Hex(body);
    if (before !== undefined && slotBytesFor(bytes) <= before.slots.slotBytes) {
      if (isThere) return ROOMY;
      const written = await this.#writeInPlace(name, body, before);
      if (written !== undefined) return written.ok ? ROOMY : failed(written.failure);
    }
    const replaced = await this.#replace(name, body, this.#known.get(name));
    return replaced.ok ? ROOMY : this.#writeWithoutRoom(name, body, replaced.failure);
  }

  async erase(name: string): Promise<Result<Written>> {
    this.#known.delete(name);
    this.#inBoth.delete(name);
    this.#unread.delete(name);
    this.#roomless.delete(name);
    this.#unerased.delete(name);
    const path = this.#pathOf(name);
    const removed = await this.#host.removeFile(path);
    const leftover = this.#halfWritten.has(name) ? await this.#host.removeFile(temporaryPath(path)) : removed;
    const failure = [removed, leftover].find((result) => !result.ok);
    if (failure === undefined) this.#halfWritten.delete(name);
    else this.#unerased.add(name);
    return failure?.ok === false ? failure : ROOMY;
  }

  /** Names whose erase failed: to be tried again. */
  unerased(): readonly string[] {
    return [...this.#unerased];
  }

  /** Records that have no room beside them: to be written again. */
  roomless(): readonly (readonly [name: string, body: string])[] {
    return [...this.#roomless];
  }

  /** What a power cut left of writes that never counted, and could not be removed yet. */
  leftovers(): readonly string[] {
    return [...this.#leftovers];
  }

  /** Tries again to remove it. */
  sweep(): void {
    for (const name of this.#leftovers) void this.#removeLeftover(name);
  }

  #pathOf(name: string): AbsolutePath {
    return below(this.#directory, name);
  }

  /** A body is remembered by its hash: nothing here grows with what is in the records. */
  async #learn(name: string): Promise<void> {
    const content = await this.#host.readFile(this.#pathOf(name), FILE_BYTES_MAX);
    const found = content.ok ? readRecordFile(content.value) : content;
    this.#unread.delete(name);
    this.#known.delete(name);
    if (found.ok && found.value.slots !== undefined)
      this.#known.set(name, { slots: found.value.slots, body: undefined });
  }

  async #overwrite(name: string, body: string, { slots }: OnDisk): Promise<Result<void>> {
    const { slotBytes, newest } = slots;
    const sequence = slots.sequence + 1;
    const slot = newest === 0 ? 1 : 0;
    const content = formatSlot(body, { slotBytes, sequence });
    this.#inBoth.delete(name);
    const written = await this.#host.overwriteFile(this.#pathOf(name), slot * slotBytes, content);
    // The newest one stays where it is: what failed is written once more over itself.
    if (written.ok)
      this.#known.set(name, { slots: { slotBytes, newest: slot, sequence }, body: sha256Hex(body) });
    else this.#known.set(name, { slots, body: undefined });
    return written;
  }

  async #replace(name: string, body: string, before: OnDisk | undefined): Promise<Result<void>> {
    const slotBytes = slotBytesFor(Buffer.byteLength(body));
    const sequence = (before?.slots.sequence ?? 0) + 1;
    const content = formatFile(body, { slotBytes, sequence });
    this.#inBoth.delete(name);
    const written = await this.#host.writeFile(this.#pathOf(name), content, { mode: 0o600, durable: true });
    if (written.ok) {
      this.#known.set(name, { slots: { slotBytes, newest: 0, sequence }, body: sha256Hex(body) });
      this.#halfWritten.delete(name);
    } else {
      this.#halfWritten.add(name);
      if (written.failure.effect === 'unknown') this.#unread.add(name);
      if (before !== undefined) this.#known.set(name, { ...before, body: undefined });
    }
    return written;
  }

  /** Undefined when it is not there any more, or was cut short. */
  async #writeInPlace(name: string, body: string, before: OnDisk): Promise<Result<void> | undefined> {
    const written = await this.#overwrite(name, body, before);
    if (written.ok) return written;
    const { code } = written.failure;
    if (code !== 'path-missing' && code !== 'too-large') return written;
    this.#known.delete(name);
    return undefined;
  }

  /** Into what there is, though nothing is left beside it for the next one then. */
  async #writeWithoutRoom(name: string, body: string, why: Failure): Promise<Result<Written>> {
    if (this.#unread.has(name)) await this.#learn(name);
    const left = this.#known.get(name);
    if (left === undefined || !fits(Buffer.byteLength(body), left.slots.slotBytes)) return failed(why);
    const written = await this.#writeInPlace(name, body, left);
    if (written?.ok !== true) return failed(written?.failure ?? why);
    this.#roomless.set(name, body);
    return ok({ noRoom: asRecordFailure(why) });
  }

  async #removeLeftover(name: string): Promise<void> {
    const removed = await this.#host.removeFile(this.#pathOf(name));
    if (removed.ok) this.#leftovers.delete(name);
    else this.#leftovers.add(name);
  }
}

function failed(why: Failure | string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    typeof why === 'string' ? { code: 'record-write', message: why, effect: 'none' } : asRecordFailure(why),
  );
}

function asRecordFailure(failure: Failure): Failure {
  return { ...failure, code: 'record-write', effect: 'none' };
}
