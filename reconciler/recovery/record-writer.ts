/**
 * Writes down what an operation taught, a little later: the next operation of the volume, which often follows at once,
 * writes it with its own beginning, and what is written already is not written again. One that runs beside it has begun
 * before, and its record does not have it. A crash meanwhile costs a repeated call, nothing else.
 */
import type { Cancel, Clock } from '../../mount/host.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from '../model/actual-state.ts';
import type { Log } from '../../mount/process/log.ts';
import type { RecordStore } from './record-store.ts';

const NOTE_DELAY_MS = 20;

export interface RecordWriterParts {
  readonly host: Clock;
  readonly records: RecordStore;
  readonly log: Log;
  readonly believed: (volume: VolumeId) => ActualVolume | undefined;
  readonly onNoted: () => void;
}

export interface RecordWriter {
  /**
   * Settles at once. `toldOnce`: no repeated call would tell it again, and this writer is closed when we are asked to
   * stop, so it settles when the record is on the disk, or could not be written.
   */
  note(volume: VolumeId, toldOnce: boolean): Promise<void>;
  /** Settles when the record is erased, or at once where erases wait for others to be written with. */
  forget(erased: Promise<unknown>): Promise<void>;
  /** Some of those are not written yet. */
  isErasing(): boolean;
  /** Nothing is waiting to be written or being written. */
  idle(): boolean;
  close(): void;
}

export function createRecordWriter(parts: RecordWriterParts): RecordWriter {
  const waiting = new Set<VolumeId>();
  let writing = 0;
  let erasing = 0;
  let cancel: Cancel | undefined;

  async function write(id: VolumeId): Promise<void> {
    const volume = parts.believed(id);
    if (volume === undefined) return;
    writing += 1;
    const saved = await parts.records.save(volume);
    writing -= 1;
    if (!saved.ok) parts.log.warn('record not updated', { volume: id, code: saved.failure.code });
    parts.onNoted();
  }

  function writeAll(): void {
    cancel = undefined;
    const due = [...waiting];
    waiting.clear();
    for (const id of due) void write(id);
    parts.onNoted();
  }

  return {
    async note(id, toldOnce) {
      waiting.add(id);
      cancel ??= parts.host.timer(NOTE_DELAY_MS, writeAll);
      const volume = parts.believed(id);
      if (volume !== undefined && toldOnce) await parts.records.save(volume);
    },
    async forget(erased) {
      if (!parts.records.gathersErases) return void (await erased);
      erasing += 1;
      void erased.then(() => {
        erasing -= 1;
        parts.onNoted();
      });
    },
    isErasing: () => erasing > 0,
    idle: () => waiting.size + writing + erasing === 0,
    close: () => cancel?.(),
  };
}
