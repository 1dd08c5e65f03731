/**
 * What the kernel cannot remember for us: one durable file per volume that may be anything but absent, written before
 * the first effect and erased after the last (D-7).
 */
import { done, fail, type Failure, ok, type Result } from '../../mount/failure.ts';
import { FIRM_GROUND, type Ground, refuseStrangerOver } from '../../mount/ground.ts';
import type { Host } from '../../mount/host.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from '../model/actual-state.ts';
import { parseBody, recordOf, type VolumeRecord } from './record.ts';
import { type FoundFile, RecordDisk, type Written } from './record-disk.ts';
import { RecordTurns } from './record-turns.ts';

export interface UnreadableRecord {
  readonly file: string;
  readonly failure: Failure;
}

export interface LoadedRecords {
  readonly records: readonly VolumeRecord[];
  readonly unreadable: readonly UnreadableRecord[];
  /** Good records of 0.1 without room beside them: taking their volumes down may need room that a full disk has not. */
  readonly roomless: readonly UnreadableRecord[];
  /** Files beside them that a power cut left of writes that never counted, and that could not be removed yet. */
  readonly leftovers: readonly string[];
}

export interface RecordStore {
  /** Changes nothing but for what a power cut left: whose directory it is, is not known yet. */
  load(): Promise<Result<LoadedRecords>>;
  /**
   * Once, after `load` and before the first save, on known ground: what another form of records has is put into this
   * one, for good. A failure means that nothing may be written, and that nothing is lost.
   */
  takeOver(): Promise<Result<void>>;
  /** Durable when it settles `ok`. Concurrent saves of one volume share a write. */
  save(volume: ActualVolume): Promise<Result<void>>;
  /**
   * As `save`, and there is room now for the records that taking the volume down needs: a full disk fails none of them
   * where the file system writes in place. For what is set up: without the room it is `record-write`.
   */
  saveWithRoom(volume: ActualVolume): Promise<Result<void>>;
  /** It is not durable on purpose: a record that a power cut brings back only makes the next start more careful. */
  erase(volume: VolumeId): Promise<Result<void>>;
  /**
   * An erase waits for others to be written with, so nothing may wait for it but the end of this agent: a kill
   * meanwhile is as one before the erase.
   */
  readonly gathersErases: boolean;
  /** Tries again what could not be erased, and to get room for records that have none. */
  sweep(): void;
}

/** `ground`: a record is neither written nor looked for in what somebody mounted over its directory. */
export function createRecordStore(
  host: Host,
  layout: Layout,
  ground: Pick<Ground, 'refuseStranger'> = FIRM_GROUND,
): RecordStore {
  const disk = new RecordDisk(host, layout.records);
  /** Not erased, because their directory was covered. */
  const postponed = new Set<string>();
  /** In quarantine: with its newest slot damaged, the one before would let the volume be set up (INV-32). */
  const quarantined = new Set<string>();

  async function write(name: string, text: string | undefined): Promise<Result<Written>> {
    const grounded = await refuseStrangerOver({ host, ground }, layout.record(name));
    postponed.delete(name);
    if (grounded.ok)
      return text === undefined ? disk.erase(name) : disk.write(name, text, quarantined.has(name));
    if (text === undefined) postponed.add(name);
    return fail({ ...grounded.failure, code: 'record-write' });
  }

  const turns = new RecordTurns(write);
  const saveText = (volume: ActualVolume): Promise<Result<Written>> => {
    const name = fileNameOf(volume.spec.id);
    if (volume.quarantine === undefined) quarantined.delete(name);
    else quarantined.add(name);
    return turns.take(name, JSON.stringify(recordOf(volume, host.bootId)));
  };

  return {
    async load() {
      const files = await disk.load();
      return files.ok ? ok(await loaded(files.value, disk)) : files;
    },
    takeOver: async () => done,
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
      quarantined.delete(fileNameOf(volume));
      const erased = await turns.take(fileNameOf(volume), undefined);
      return erased.ok ? done : erased;
    },
    gathersErases: false,
    sweep() {
      disk.sweep();
      for (const name of [...disk.unerased(), ...postponed])
        if (!turns.isTaken(name)) void turns.take(name, undefined);
      for (const [name, text] of disk.roomless()) if (!turns.isTaken(name)) void turns.take(name, text);
    },
  };
}

/** A record of 0.1 has no room beside it for the next one: it is written anew, once. */
async function loaded(files: readonly FoundFile[], disk: RecordDisk): Promise<LoadedRecords> {
  const records: VolumeRecord[] = [];
  const unreadable: UnreadableRecord[] = [];
  const roomless: UnreadableRecord[] = [];
  for (const { name, found } of files) {
    const parsed = found.ok ? parseBody(found.value) : found;
    if (!parsed.ok) {
      unreadable.push({ file: name, failure: parsed.failure });
      continue;
    }
    records.push(parsed.value);
    if (!found.ok || found.value.slots !== undefined) continue;
    const written = await disk.write(name, JSON.stringify(parsed.value));
    const failure = written.ok ? written.value.noRoom : written.failure;
    if (failure !== undefined) roomless.push({ file: name, failure });
  }
  return { records, unreadable, roomless, leftovers: disk.leftovers() };
}

function fileNameOf(volume: VolumeId): string {
  return `${sha256Hex(volume)}.json`;
}
