/** Who is in quarantine: enters volumes, and lets them go when they may. */
import type { Belief } from '../model/belief.ts';
import { fail, type Result } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';
import type { Needs } from '../../plugins/plugin.ts';
import type { VolumeId, VolumeSpec } from '../../plugins/volume.ts';
import {
  type ActualVolume,
  isForgettable,
  isOnTheGround,
  onTheGround,
  type Quarantine,
  type QuarantineReason,
} from '../model/actual-state.ts';
import {
  attachmentUidNow,
  isAttachmentReplaced,
  isAttachmentToBeNoted,
} from '../model/attachment-identity.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Log } from '../../mount/process/log.ts';
import {
  enterQuarantine,
  isProofOutdated,
  leaveQuarantine,
  mayLeave,
  withoutProof,
} from '../model/quarantine.ts';
import type { RecordStore } from '../recovery/record-store.ts';

export interface QuarantineControlParts {
  readonly host: Clock;
  readonly records: Pick<RecordStore, 'save'>;
  readonly log: Log;
  /** Changed in place. */
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly canBeProvenClean: (spec: VolumeSpec) => boolean;
  readonly isBusy: (volume: VolumeId) => boolean;
  readonly needsOf: (spec: VolumeSpec) => Needs | undefined;
  /** Nothing of it is to be remembered; settles when its record is erased. */
  readonly forget: (volume: VolumeId) => Promise<Result<void>>;
  /** The quarantine of a volume began or ended, or it was learnt under which attachment it is here. */
  readonly onChanged: (volume: VolumeId) => void;
}

export interface QuarantineControl {
  /** What keeps the volume from being used here at this moment, by the wish alone. */
  reasonFor(volume: VolumeId): QuarantineReason | undefined;
  /** Before a volume is planned: it enters when there is a reason, and leaves when it is clean and there is none. */
  visit(volume: VolumeId): void;
  quarantine(volume: VolumeId): Promise<Result<void>>;
  release(volume: VolumeId): Promise<Result<void>>;
}

export function createQuarantineControl(parts: QuarantineControlParts): QuarantineControl {
  const gateway = new QuarantineGateway(parts);
  return {
    reasonFor: (volume) => gateway.reasonFor(volume),
    visit: (volume) => gateway.visit(volume),
    quarantine: (volume) => gateway.quarantine(volume),
    release: (volume) => gateway.release(volume),
  };
}

/** The way in and the way out. */
class QuarantineGateway implements QuarantineControl {
  readonly #parts: QuarantineControlParts;

  constructor(parts: QuarantineControlParts) {
    this.#parts = parts;
  }

  reasonFor(volume: VolumeId): QuarantineReason | undefined {
    const desired = this.#parts.desired();
    const wanted = desired.volumes.get(volume);
    const known = this.#known(volume);
    const spec = wanted?.spec ?? known?.spec;
    if (spec === undefined || !this.#parts.canBeProvenClean(spec)) return undefined;
    return desiredQuarantine(desired, volume, known);
  }

  visit(id: VolumeId): void {
    const volume = this.#known(id);
    if (volume === undefined) return;
    const reason = this.reasonFor(id);
    if (volume.quarantine === undefined && reason !== undefined && !isOnTheGround(volume)) {
      void this.#enter(volume, reason);
    } else if (isProofOutdated(volume)) {
      void this.#change(withoutProof(volume));
    } else if (mayLeave(volume, reason) && !this.#mayStillBeSaid(volume.quarantine)) {
      void this.#leave(volume);
    } else {
      this.#noteAttachment(volume);
    }
  }

  async quarantine(id: VolumeId): Promise<Result<void>> {
    const { records, desired, canBeProvenClean, needsOf } = this.#parts;
    const wanted = desired().volumes.get(id)?.spec;
    const known = this.#known(id);
    const spec = known?.spec ?? wanted;
    if (spec === undefined) return missing(`there is no volume ${id} here, and none is wanted`);
    if (!canBeProvenClean(spec)) return missing(`${id} belongs to this node alone: nobody else can have it`);
    // It may have begun a moment ago, or its record may have failed: the answer waits for what is on disk.
    if (known?.quarantine !== undefined) return records.save(known);
    const needs = needsOf(spec) ?? { attach: false, stage: false, expand: false };
    return this.#enter(known ?? onTheGround(spec, needs), 'operator');
  }

  async release(id: VolumeId): Promise<Result<void>> {
    const volume = this.#known(id);
    if (volume?.quarantine === undefined) return missing(`volume ${id} is not in quarantine`);
    const reason = this.reasonFor(id);
    if (reason !== undefined)
      return missing(`volume ${id} is in quarantine by the wish (${reason}), which stands`);
    // On disk first: what was answered as failed must still be in quarantine.
    const saved = await this.#parts.records.save(leaveQuarantine(volume));
    const now = this.#known(id);
    if (!saved.ok || now?.quarantine === undefined) return saved;
    // On the disk it has left already: a record that could not be erased is swept up later.
    await this.#leave(now);
    return saved;
  }

  #known(volume: VolumeId): ActualVolume | undefined {
    return this.#parts.belief.volumes.get(volume);
  }

  /** Unknown is not unwanted: after a start, whoever said so may be in a source that cannot be read now. */
  #mayStillBeSaid(quarantine: Quarantine | undefined): boolean {
    const { complete, unknownOrigins } = this.#parts.desired();
    return quarantine?.reason !== 'operator' && (!complete || unknownOrigins.size > 0);
  }

  /** Believed at once; a crash before it is written finds the same reason again, unless an operator was the reason. */
  async #set(volume: ActualVolume): Promise<Result<void>> {
    const { belief, records, log, isBusy, forget } = this.#parts;
    const { id } = volume.spec;
    // An operation in flight ends with a volume that is known, and forgets it then.
    if (isForgettable(volume) && !isBusy(id)) return forget(id);
    belief.quarantine(volume);
    const saved = await records.save(volume);
    if (!saved.ok) log.warn('record not updated', { volume: id, code: saved.failure.code });
    return saved;
  }

  #enter(volume: ActualVolume, reason: QuarantineReason): Promise<Result<void>> {
    this.#parts.log.warn('volume in quarantine', { volume: volume.spec.id, reason });
    return this.#change(enterQuarantine(volume, reason, this.#parts.host.wallMs()));
  }

  #leave(volume: ActualVolume): Promise<Result<void>> {
    this.#parts.log.info('volume out of quarantine', { volume: volume.spec.id });
    return this.#change(leaveQuarantine(volume));
  }

  /** What is told of it changes with the belief, however long its record takes. */
  #change(volume: ActualVolume): Promise<Result<void>> {
    const saved = this.#set(volume);
    this.#parts.onChanged(volume.spec.id);
    return saved;
  }

  #noteAttachment(volume: ActualVolume): void {
    const desired = this.#parts.desired();
    if (!isAttachmentToBeNoted(desired, volume)) return;
    void this.#change({ ...volume, attachmentUid: attachmentUidNow(desired, volume.spec.id) });
  }
}

/** What the wish alone has against the use of a volume here; asked of those that a cluster can give to another node. */
export function desiredQuarantine(
  desired: Pick<DesiredState, 'outOfService' | 'lostAttachments' | 'attachmentUids'>,
  id: VolumeId,
  known: ActualVolume | undefined,
): QuarantineReason | undefined {
  if (desired.outOfService) return 'node-out-of-service';
  if (desired.lostAttachments.has(id) && canLose(known)) return 'attachment-lost';
  return known !== undefined && isAttachmentReplaced(desired, known) ? 'attachment-replaced' : undefined;
}

/** What is not attached and never was here cannot be lost; the wish has it blocked. */
function canLose(volume: ActualVolume | undefined): boolean {
  return volume !== undefined && (volume.quarantine !== undefined || !isOnTheGround(volume));
}

function missing(message: string): Result<never> {
  return fail({ code: 'reference-missing', message, effect: 'none' });
}
