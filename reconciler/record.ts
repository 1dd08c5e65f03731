/**
 * What the kernel cannot remember for us: one durable file per volume that may be anything but absent, written before
 * the first effect and erased after the last (decision 7).
 *
 * A record is the believed ActualVolume, so a restart continues from it; it holds no secret. Format: one header line
 * `mooring-record <version> <sha256 of the body>`, then the body as JSON.
 */
import { fail, type Failure, ok, type Result } from '../mount/failure.ts';
import { below, type Host, type MountIdentity } from '../mount/host.ts';
import { type Layout, sha256Hex } from '../plugins/layout.ts';
import type { Needs, PublishContext } from '../plugins/plugin.ts';
import {
  type Bytes,
  CSI_DEFAULTS,
  FOUND_ON_DISK,
  parsePodUid,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../plugins/volume.ts';
import type { ActualVolume, Presence, RefusedExpansion } from './actual-state.ts';
import type { Quarantine } from './quarantine.ts';

const RECORD_VERSION = 1;
const RECORD_BYTES_MAX = 1_048_576;
const RECORDS_MAX = 100_000;

/** Presence as recorded: a reason does not outlive the process that knew it. */
export type RecordedPresence = 'absent' | 'present' | 'unsure';

export interface VolumeRecord {
  readonly bootId: string;
  readonly spec: VolumeSpec;
  /** Absent in records of 0.1. */
  readonly guessed?: boolean;
  readonly needs: Needs;
  readonly attached: RecordedPresence;
  readonly staged: RecordedPresence;
  readonly publishContext: PublishContext | undefined;
  readonly attachedNode?: string | undefined;
  readonly stagedMount: MountIdentity | undefined;
  readonly publications: readonly {
    readonly spec: PublicationSpec;
    readonly presence: RecordedPresence;
    readonly mount: MountIdentity | undefined;
    readonly ended?: true | undefined;
    readonly untold?: true | undefined;
  }[];
  readonly sizeBytes: Bytes | undefined;
  readonly refusedExpansion: RefusedExpansion | undefined;
  readonly quarantine: Quarantine | undefined;
}

export interface UnreadableRecord {
  readonly file: string;
  readonly failure: Failure;
}

export interface LoadedRecords {
  readonly records: readonly VolumeRecord[];
  readonly unreadable: readonly UnreadableRecord[];
}

export interface RecordStore {
  load(): Promise<Result<LoadedRecords>>;
  /** Durable when it settles `ok`. Concurrent saves of one volume share a write. */
  save(volume: ActualVolume): Promise<Result<void>>;
  /** Not durable on purpose: a record that a power cut brings back only makes the next start more careful. */
  erase(volume: VolumeId): Promise<Result<void>>;
  /** Tries again what could not be erased. */
  sweep(): void;
}

export function recordOf(volume: ActualVolume, bootId: string): VolumeRecord {
  return {
    bootId,
    spec: volume.spec,
    guessed: volume.guessed === true,
    needs: volume.needs,
    attached: volume.attached.kind,
    staged: volume.staged.kind,
    publishContext: volume.publishContext,
    attachedNode: volume.attachedNode,
    stagedMount: volume.stagedMount,
    publications: [...volume.publications.values()].map(({ spec, presence, mount, ended, untold }) => {
      return { spec, presence: presence.kind, mount, ended, untold };
    }),
    sizeBytes: volume.sizeBytes,
    refusedExpansion: volume.refusedExpansion,
    quarantine: volume.quarantine,
  };
}

export function formatRecord(record: VolumeRecord): string {
  const body = JSON.stringify(record);
  return `mooring-record ${RECORD_VERSION} ${sha256Hex(body)}\n${body}\n`;
}

/** Total: any bytes in; a record that was once written whole, or the reason why it cannot be believed (INV-20). */
export function parseRecord(text: string): Result<VolumeRecord> {
  const unreadable = (message: string): Result<never> =>
    fail({ code: 'record-unreadable', message, effect: 'none' });
  const [header, body, end, ...rest] = text.split('\n');
  const [name, version, checksum, ...more] = header?.split(' ') ?? [];
  if (name !== 'mooring-record' || body === undefined || end !== '' || rest.length > 0 || more.length > 0) {
    return unreadable('not a record, or cut short');
  }
  if (version !== String(RECORD_VERSION))
    return unreadable(`record version ${version?.slice(0, 16)}; this build reads 1`);
  if (checksum !== sha256Hex(body)) return unreadable('checksum does not match');
  try {
    const record = JSON.parse(body) as VolumeRecord;
    return isSane(record) ? ok(completed(record)) : unreadable('fields are missing or malformed');
  } catch {
    return unreadable('body is not JSON');
  }
}

/** The checksum says that we wrote it; this says that it can be acted on without leaving the layout. */
function isSane(record: VolumeRecord): boolean {
  return (
    typeof record.bootId === 'string' &&
    typeof record.spec?.id === 'string' &&
    typeof record.needs?.attach === 'boolean' &&
    Array.isArray(record.publications) &&
    record.publications.every(
      ({ spec }) => parsePodUid(spec.pod.uid) !== undefined && !spec.specName.includes('/'),
    )
  );
}

/** Records of 0.1 lack the fields that came later; all of them have a value that says "as it was then". */
function completed(record: VolumeRecord): VolumeRecord {
  const { spec, needs } = record;
  const missing = Object.entries(CSI_DEFAULTS).filter(([field]) => !Object.hasOwn(spec, field));
  return {
    ...record,
    spec: spec.kind === 'csi' ? { ...spec, ...Object.fromEntries(missing) } : spec,
    needs: { ...needs, expand: needs.expand ?? false },
    guessed: record.guessed ?? wasGuessed(record),
  };
}

/** 0.1 told what it found on disk by its places alone. */
function wasGuessed({ spec, publications }: VolumeRecord): boolean {
  if (publications.length === 0) return spec.kind === 'csi' && spec.specName === '';
  return publications.every((one) => one.spec.origin === FOUND_ON_DISK);
}

export function createRecordStore(host: Host, layout: Layout): RecordStore {
  /** Checksums of what is on disk. */
  const written = new Map<VolumeId, string>();
  const turns = new Map<VolumeId, Turn>();
  const unerased = new Set<VolumeId>();
  /** Temporary files of an earlier life that could not be removed. */
  const leftovers = new Set<string>();
  /** Volumes whose last write failed and may have left its temporary file. */
  const halfWritten = new Set<VolumeId>();

  /** One file operation of a volume at a time; of several waiting, the last text wins and all share its result. */
  function enqueue(volume: VolumeId, text: string | undefined): Promise<Result<void>> {
    const current = turns.get(volume);
    if (current === undefined) {
      const turn: Turn = { next: undefined, running: write(volume, text) };
      turns.set(volume, turn);
      void turn.running.then(() => advance(volume, turn));
      return turn.running;
    }
    if (current.next === undefined) {
      const { promise, resolve } = withResolver<Result<void>>();
      current.next = { text, promise, resolve };
    } else {
      current.next.text = text;
    }
    return current.next.promise;
  }

  function advance(volume: VolumeId, turn: Turn): void {
    const { next } = turn;
    if (next === undefined) {
      turns.delete(volume);
      return;
    }
    turn.next = undefined;
    turn.running = write(volume, next.text);
    void turn.running.then((result) => {
      next.resolve(result);
      advance(volume, turn);
    });
  }

  async function write(volume: VolumeId, text: string | undefined): Promise<Result<void>> {
    const checksum = text === undefined ? undefined : sha256Hex(text);
    if (checksum !== undefined && checksum === written.get(volume)) return ok(undefined);
    written.delete(volume);
    const path = below(layout.records, fileNameOf(volume));
    unerased.delete(volume);
    if (text === undefined) return erase(volume);
    const result = await host.writeFile(path, Buffer.from(text), { mode: 0o600, durable: true });
    if (result.ok) {
      if (checksum !== undefined) written.set(volume, checksum);
      halfWritten.delete(volume);
      return result;
    }
    halfWritten.add(volume);
    return fail({ ...result.failure, code: 'record-write', effect: 'none' });
  }

  async function removeLeftover(name: string): Promise<void> {
    const removed = await host.removeFile(below(layout.records, name));
    if (removed.ok) leftovers.delete(name);
    else leftovers.add(name);
  }

  async function erase(volume: VolumeId): Promise<Result<void>> {
    const { records } = layout;
    const name = fileNameOf(volume);
    const removed = await host.removeFile(below(records, name));
    const leftover = halfWritten.has(volume)
      ? await host.removeFile(below(records, `.${name}.tmp`))
      : removed;
    const failed = [removed, leftover].find((result) => !result.ok);
    if (failed === undefined) halfWritten.delete(volume);
    else unerased.add(volume);
    return failed ?? removed;
  }

  return {
    async load() {
      const made = await host.makeDirectory(layout.records, 0o700);
      if (!made.ok) return made;
      const files = await host.readDirectoryFiles(layout.records, {
        entriesMax: RECORDS_MAX,
        fileBytesMax: RECORD_BYTES_MAX,
      });
      if (!files.ok) return files;
      const records: VolumeRecord[] = [];
      const unreadable: UnreadableRecord[] = [];
      for (const { name, content } of files.value) {
        // What a power cut left of a write that never counted.
        if (name.startsWith('.')) await removeLeftover(name);
        if (!name.endsWith('.json') || name.startsWith('.') || content === undefined) continue;
        const text = content.ok ? Buffer.from(content.value).toString('utf8') : '';
        const parsed = content.ok ? parseRecord(text) : content;
        if (parsed.ok) {
          records.push(parsed.value);
          written.set(parsed.value.spec.id, sha256Hex(text));
        } else unreadable.push({ file: name, failure: parsed.failure });
      }
      return ok({ records, unreadable });
    },
    save: (volume) => enqueue(volume.spec.id, formatRecord(recordOf(volume, host.bootId))),
    erase: (volume) => enqueue(volume, undefined),
    sweep() {
      for (const name of leftovers) void removeLeftover(name);
      for (const volume of unerased) if (!turns.has(volume)) void enqueue(volume, undefined);
    },
  };
}

function fileNameOf(volume: VolumeId): string {
  return `${sha256Hex(volume)}.json`;
}

interface Turn {
  running: Promise<Result<void>>;
  next:
    | { text: string | undefined; promise: Promise<Result<void>>; resolve: (result: Result<void>) => void }
    | undefined;
}

function withResolver<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** As a presence again; the reason of an `unsure` is the restart. */
export function presenceFrom(recorded: RecordedPresence): Presence {
  return recorded === 'unsure' ? { kind: 'unsure', because: 'restart' } : { kind: recorded };
}
