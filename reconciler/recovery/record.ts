/**
 * A volume as it is recorded: the believed ActualVolume, as JSON, so that a restart continues from it. It holds no
 * secret. record-file.ts has the format of its file, record-store.ts says when it is written.
 */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { MountIdentity } from '../../mount/host.ts';
import { traitsOf } from '../../plugins/kinds/kinds.ts';
import type { Needs, PublishContext } from '../../plugins/plugin.ts';
import {
  type Bytes,
  RECONSTRUCTED,
  parsePodUid,
  type PublicationSpec,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import type { ActualVolume, Presence } from '../model/actual-state.ts';
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
  /** Absent in records of before, and where the stage is. */
  readonly stagedFor?: ActualVolume['stagedFor'];
  /** Absent in records of before, and where the path was none. */
  readonly wasMountPoint?: true | undefined;
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
    stagedFor: volume.stagedFor,
    wasMountPoint: volume.wasMountPoint,
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

/** Total, as parseRecord, of what a file was found to have. */
export function parseBody({ body, isDoubtful }: FoundRecord): Result<VolumeRecord> {
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

/** As a presence again; the reason of an `unsure` is the restart. */
export function presenceFrom(recorded: RecordedPresence): Presence {
  return recorded === 'unsure' ? { kind: 'unsure', because: 'restart' } : { kind: recorded };
}
