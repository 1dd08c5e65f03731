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

/** The caller does one thing with one name at a time. */
export interface RecordDisk {
  load(): Promise<Result<readonly FoundFile[]>>;
  /**
   * Durable when it settles `ok`. In place when the file has room for it; else a larger one is put there. What is
   * there already is not written again.
   */
  write(name: string, body: string): Promise<Result<Written>>;
  erase(name: string): Promise<Result<Written>>;
  /** Names whose erase failed, and records that have no room beside them: to be tried again. */
  unerased(): readonly string[];
  roomless(): readonly (readonly [name: string, body: string])[];
  /** Tries again to remove what a power cut left of writes that never counted. */
  sweep(): void;
}

/** `body` undefined: the last write failed, and nobody knows what the slot beside the newest has. */
interface OnDisk {
  readonly slots: Slots;
  readonly body: string | undefined;
}

const ROOMY: Result<Written> = ok({ noRoom: undefined });

export function createRecordDisk(host: Host, directory: AbsolutePath): RecordDisk {
  const known = new Map<string, OnDisk>();
  /** Perhaps replaced by a write that failed with an unknown end: read before the next one. */
  const unread = new Set<string>();
  const unerased = new Set<string>();
  const roomless = new Map<string, string>();
  /** Temporary files of an earlier life that could not be removed. */
  const leftovers = new Set<string>();
  /** Names whose last replacement failed and may have left its temporary file. */
  const halfWritten = new Set<string>();

  const pathOf = (name: string): AbsolutePath => below(directory, name);

  /** A body is remembered by its hash: nothing here grows with what is in the records. */
  async function learn(name: string): Promise<void> {
    const content = await host.readFile(pathOf(name), FILE_BYTES_MAX);
    const found = content.ok ? readRecordFile(content.value) : content;
    unread.delete(name);
    known.delete(name);
    if (found.ok && found.value.slots !== undefined)
      known.set(name, { slots: found.value.slots, body: undefined });
  }

  async function overwrite(name: string, body: string, { slots }: OnDisk): Promise<Result<void>> {
    const { slotBytes, newest } = slots;
    const sequence = slots.sequence + 1;
    const slot = newest === 0 ? 1 : 0;
    const content = formatSlot(body, { slotBytes, sequence });
    const written = await host.overwriteFile(pathOf(name), slot * slotBytes, content);
    // The newest one stays where it is: what failed is written once more over itself.
    if (written.ok) known.set(name, { slots: { slotBytes, newest: slot, sequence }, body: sha256Hex(body) });
    else known.set(name, { slots, body: undefined });
    return written;
  }

  async function replace(name: string, body: string, before: OnDisk | undefined): Promise<Result<void>> {
    const slotBytes = slotBytesFor(Buffer.byteLength(body));
    const sequence = (before?.slots.sequence ?? 0) + 1;
    const content = formatFile(body, { slotBytes, sequence });
    const written = await host.writeFile(pathOf(name), content, { mode: 0o600, durable: true });
    if (written.ok) {
      known.set(name, { slots: { slotBytes, newest: 0, sequence }, body: sha256Hex(body) });
      halfWritten.delete(name);
    } else {
      halfWritten.add(name);
      if (written.failure.effect === 'unknown') unread.add(name);
      if (before !== undefined) known.set(name, { ...before, body: undefined });
    }
    return written;
  }

  /** Undefined when it is not there any more, or was cut short. */
  async function writeInPlace(name: string, body: string, before: OnDisk): Promise<Result<void> | undefined> {
    const written = await overwrite(name, body, before);
    if (written.ok) return written;
    const { code } = written.failure;
    if (code !== 'path-missing' && code !== 'too-large') return written;
    known.delete(name);
    return undefined;
  }

  async function write(name: string, body: string): Promise<Result<Written>> {
    const bytes = Buffer.byteLength(body);
    if (bytes > BODY_BYTES_MAX) return failed(`it would have ${bytes} bytes, more than ${BODY_BYTES_MAX}`);
    unerased.delete(name);
    if (unread.has(name)) await learn(name);
    const before = known.get(name);
    const isThere = before !== undefined && before.body === sha256Hex(body);
    if (before !== undefined && slotBytesFor(bytes) <= before.slots.slotBytes) {
      if (isThere) return ROOMY;
      const written = await writeInPlace(name, body, before);
      if (written !== undefined) return written.ok ? ROOMY : failed(written.failure);
    }
    const replaced = await replace(name, body, known.get(name));
    if (replaced.ok) return ROOMY;
    if (unread.has(name)) await learn(name);
    const left = known.get(name);
    if (left === undefined || !fits(bytes, left.slots.slotBytes)) return failed(replaced.failure);
    const written = await writeInPlace(name, body, left);
    if (written?.ok !== true) return failed(written?.failure ?? replaced.failure);
    roomless.set(name, body);
    return ok({ noRoom: asRecordFailure(replaced.failure) });
  }

  async function erase(name: string): Promise<Result<Written>> {
    known.delete(name);
    unread.delete(name);
    roomless.delete(name);
    unerased.delete(name);
    const removed = await host.removeFile(pathOf(name));
    const leftover = halfWritten.has(name) ? await host.removeFile(temporaryPath(pathOf(name))) : removed;
    const failure = [removed, leftover].find((result) => !result.ok);
    if (failure === undefined) halfWritten.delete(name);
    else unerased.add(name);
    return failure?.ok === false ? failure : ROOMY;
  }

  async function removeLeftover(name: string): Promise<void> {
    const removed = await host.removeFile(pathOf(name));
    if (removed.ok) leftovers.delete(name);
    else leftovers.add(name);
  }

  return {
    async load() {
      const made = await host.makeDirectory(directory, 0o700);
      if (!made.ok) return made;
      const files = await host.readDirectoryFiles(directory, {
        entriesMax: FILES_MAX,
        fileBytesMax: FILE_BYTES_MAX,
      });
      if (!files.ok) return files;
      const loaded: FoundFile[] = [];
      for (const { name, content } of files.value) {
        // What a power cut left of a write that never counted.
        if (name.startsWith('.')) await removeLeftover(name);
        if (!name.endsWith('.json') || name.startsWith('.') || content === undefined) continue;
        const found = content.ok ? readRecordFile(content.value) : content;
        loaded.push({ name, found });
        if (!found.ok || found.value.slots === undefined) continue;
        const { body, slots, isDoubtful } = found.value;
        known.set(name, { slots, body: isDoubtful ? undefined : sha256Hex(body) });
      }
      return ok(loaded);
    },
    async write(name, body) {
      roomless.delete(name);
      return write(name, body);
    },
    erase,
    unerased: () => [...unerased],
    roomless: () => [...roomless],
    sweep() {
      for (const name of leftovers) void removeLeftover(name);
    },
  };
}

function failed(why: Failure | string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    typeof why === 'string' ? { code: 'record-write', message: why, effect: 'none' } : asRecordFailure(why),
  );
}

function asRecordFailure(failure: Failure): Failure {
  return { ...failure, code: 'record-write', effect: 'none' };
}
