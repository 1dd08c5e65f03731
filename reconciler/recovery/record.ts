/**
 * What the kernel cannot remember for us: one durable file per volume that may be anything but absent, written before
 * the first effect and erased after the last (D-7).
 *
 * A record is the believed ActualVolume, as JSON, so a restart continues from it; it holds no secret.
 * record-file.ts has the format.
 */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { FIRM_GROUND, type Ground } from '../../mount/ground.ts';
import type { Host, MountIdentity } from '../../mount/host.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import type { Needs, PublishContext } from '../../plugins/plugin.ts';
import {
  type Bytes,
  RECONSTRUCTED,
  parsePodUid,
  type PublicationSpec,
  type VolumeId,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import type { ActualVolume, Presence } from '../model/actual-state.ts';
import { createRecordDisk, type Written } from './record-disk.ts';
import { formatFile, type FoundRecord, readRecordFile, slotBytesFor } from './record-file.ts';

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
  /** Absent in records of 0.2. */
  readonly attachmentUid?: string | undefined;
  readonly stagedMount: MountIdentity | undefined;
  readonly publications: readonly {
    readonly spec: PublicationSpec;
    readonly presence: RecordedPresence;
    readonly mount: MountIdentity | undefined;
    readonly ended?: true | undefined;
    readonly untold?: true | undefined;
  }[];
  readonly sizeBytes: Bytes | undefined;
  readonly refusedExpansion: ActualVolume['refusedExpansion'];
  readonly quarantine: ActualVolume['quarantine'];
  /** Absent in records of 0.2. */
  readonly tombstones?: ActualVolume['tombstones'];
}

export interface UnreadableRecord {
  readonly file: string;
  readonly failure: Failure;
}

export interface LoadedRecords {
  readonly records: readonly VolumeRecord[];
  readonly unreadable: readonly UnreadableRecord[];
  /** Good records of 0.1 without room beside them: taking their volumes down may need room that a full disk has not. */
  readonly roomless: readonly UnreadableRecord[];
}

export interface RecordStore {
  load(): Promise<Result<LoadedRecords>>;
  /** Durable when it settles `ok`. Concurrent saves of one volume share a write. */
  save(volume: ActualVolume): Promise<Result<void>>;
  /**
   * As `save`, and there is room now for the records that taking the volume down needs: a full disk fails none of them
   * where the file system writes in place. For what is set up: without the room it is `record-write`.
   */
  saveWithRoom(volume: ActualVolume): Promise<Result<void>>;
  /** Not durable on purpose: a record that a power cut brings back only makes the next start more careful. */
  erase(volume: VolumeId): Promise<Result<void>>;
  /** Tries again what could not be erased, and to get room for records that have none. */
  sweep(): void;
}

export function recordOf(volume: ActualVolume, bootId: string): VolumeRecord {
  return {
    bootId,
    spec: volume.spec,
    guessed: volume.reconstructed === true,
    needs: volume.needs,
    attached: volume.attached.kind,
    staged: volume.staged.kind,
    publishContext: volume.publishContext,
    attachedNode: volume.attachedNode,
    attachmentUid: volume.attachmentUid,
    stagedMount: volume.stagedMount,
    publications: [...volume.publications.values()].map(({ spec, presence, mount, ended, untold }) => {
      return { spec, presence: presence.kind, mount, ended, untold };
    }),
    sizeBytes: volume.sizeBytes,
    refusedExpansion: volume.refusedExpansion,
    quarantine: volume.quarantine,
    tombstones: volume.tombstones,
  };
}

/** A new file with the record in its first slot. */
export function formatRecord(record: VolumeRecord): string {
  const body = JSON.stringify(record);
  const slotBytes = slotBytesFor(Buffer.byteLength(body));
  return Buffer.from(formatFile(body, { slotBytes, sequence: 1 })).toString('utf8');
}

/** Total: any bytes in; a record that was once written whole, or the reason why it cannot be believed (INV-20). */
export function parseRecord(content: string | Uint8Array): Result<VolumeRecord> {
  const found = readRecordFile(typeof content === 'string' ? Buffer.from(content) : content);
  return found.ok ? parseBody(found.value) : found;
}

function parseBody({ body, isDoubtful }: FoundRecord): Result<VolumeRecord> {
  try {
    const record = JSON.parse(body) as VolumeRecord;
    if (!isSane(record)) return unreadable('fields are missing or malformed');
    return ok(isDoubtful ? doubted(completed(record)) : completed(record));
  } catch {
    return unreadable('body is not JSON');
  }
}

function unreadable(message: string): Result<never> {
  return fail({ code: 'record-unreadable', message, effect: 'none' });
}

/** A later record may have said that something of it was begun to be undone. */
function doubted(record: VolumeRecord): VolumeRecord {
  const unsure = (one: RecordedPresence): RecordedPresence => (one === 'present' ? 'unsure' : one);
  return {
    ...record,
    attached: unsure(record.attached),
    staged: unsure(record.staged),
    publications: record.publications.map((one) => ({ ...one, presence: unsure(one.presence) })),
  };
}

/** The checksum says that we wrote it; this says that it can be acted on without leaving the layout. */
function isSane(record: VolumeRecord): boolean {
  return (
    typeof record.bootId === 'string' &&
    typeof record.spec?.id === 'string' &&
    typeof record.needs?.attach === 'boolean' &&
    Array.isArray(record.publications) &&
    record.publications.every(({ spec }) => isSanePlace(spec)) &&
    (record.tombstones ?? []).every(
      ({ publication }) => publication === undefined || isSanePlace(publication),
    )
  );
}

function isSanePlace({ pod, specName }: PublicationSpec): boolean {
  return parsePodUid(pod.uid) !== undefined && !specName.includes('/');
}

/** Records of 0.1 lack the fields that came later; all of them have a value that says "as it was then". */
function completed(record: VolumeRecord): VolumeRecord {
  const { spec, needs } = record;
  return {
    ...record,
    spec: traitsOf(spec).completed?.(spec) ?? spec,
    needs: { ...needs, expand: needs.expand ?? false },
    guessed: record.guessed ?? wasGuessed(record),
  };
}

/** 0.1 told what it found on disk by its places alone. */
function wasGuessed({ spec, publications }: VolumeRecord): boolean {
  if (publications.length === 0) return traitsOf(spec).isNameless?.(spec) === true;
  return publications.every((one) => one.spec.origin === RECONSTRUCTED);
}

/** `ground`: a record is neither written nor looked for in what somebody mounted over its directory. */
export function createRecordStore(
  host: Host,
  layout: Layout,
  ground: Pick<Ground, 'refuseStranger'> = FIRM_GROUND,
): RecordStore {
  const disk = createRecordDisk(host, layout.records);
  /** By the names of their files. */
  const turns = new Map<string, Turn>();
  /** Not erased, because their directory was covered. */
  const postponed = new Set<string>();

  /** One file operation of a volume at a time; of several waiting, the last text wins and all share its result. */
  function enqueue(name: string, text: string | undefined): Promise<Result<Written>> {
    const current = turns.get(name);
    if (current === undefined) {
      const turn: Turn = { next: undefined, running: write(name, text) };
      turns.set(name, turn);
      void turn.running.then(() => advance(name, turn));
      return turn.running;
    }
    if (current.next === undefined) {
      const { promise, resolve } = withResolver<Result<Written>>();
      current.next = { text, promise, resolve };
    } else {
      current.next.text = text;
    }
    return current.next.promise;
  }

  function advance(name: string, turn: Turn): void {
    const { next } = turn;
    if (next === undefined) {
      turns.delete(name);
      return;
    }
    turn.next = undefined;
    turn.running = write(name, next.text);
    void turn.running.then((result) => {
      next.resolve(result);
      advance(name, turn);
    });
  }

  async function write(name: string, text: string | undefined): Promise<Result<Written>> {
    const path = layout.record(name);
    const place = await host.mountPlaceOf(path);
    const grounded = place.ok ? await ground.refuseStranger(path, place.value.within) : place;
    postponed.delete(name);
    if (grounded.ok) return text === undefined ? disk.erase(name) : disk.write(name, text);
    if (text === undefined) postponed.add(name);
    return fail({ ...grounded.failure, code: 'record-write', effect: 'none' });
  }

  const saveText = (volume: ActualVolume): Promise<Result<Written>> =>
    enqueue(fileNameOf(volume.spec.id), JSON.stringify(recordOf(volume, host.bootId)));

  return {
    async load() {
      const files = await disk.load();
      if (!files.ok) return files;
      const records: VolumeRecord[] = [];
      const unreadable: UnreadableRecord[] = [];
      const roomless: UnreadableRecord[] = [];
      for (const { name, found } of files.value) {
        const parsed = found.ok ? parseBody(found.value) : found;
        if (!parsed.ok) {
          unreadable.push({ file: name, failure: parsed.failure });
          continue;
        }
        records.push(parsed.value);
        if (!found.ok || found.value.slots !== undefined) continue;
        // A record of 0.1 has no room beside it for the next one.
        const written = await disk.write(name, JSON.stringify(parsed.value));
        const failure = written.ok ? written.value.noRoom : written.failure;
        if (failure !== undefined) roomless.push({ file: name, failure });
      }
      return ok({ records, unreadable, roomless });
    },
    async save(volume) {
      const written = await saveText(volume);
      return written.ok ? done : written;
    },
    async saveWithRoom(volume) {
      const written = await saveText(volume);
      if (!written.ok) return written;
      return written.value.noRoom === undefined ? done : fail(written.value.noRoom);
    },
    async erase(volume) {
      const erased = await enqueue(fileNameOf(volume), undefined);
      return erased.ok ? done : erased;
    },
    sweep() {
      disk.sweep();
      for (const name of [...disk.unerased(), ...postponed])
        if (!turns.has(name)) void enqueue(name, undefined);
      for (const [name, text] of disk.roomless()) if (!turns.has(name)) void enqueue(name, text);
    },
  };
}

function fileNameOf(volume: VolumeId): string {
  return `${sha256Hex(volume)}.json`;
}

interface Turn {
  running: Promise<Result<Written>>;
  next:
    | {
        text: string | undefined;
        promise: Promise<Result<Written>>;
        resolve: (result: Result<Written>) => void;
      }
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
