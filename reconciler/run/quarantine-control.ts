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
import { enterQuarantine, leaveQuarantine, mayLeave } from '../model/quarantine.ts';
import type { RecordStore } from '../recovery/record.ts';

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
  /** The quarantine of a volume began or ended. */
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
  const { belief, records, log } = parts;
  const actual = belief.volumes;

  function standing(volume: VolumeId): QuarantineReason | undefined {
    const desired = parts.desired();
    const wanted = desired.volumes.get(volume);
    const known = actual.get(volume);
    const spec = wanted?.spec ?? known?.spec;
    if (spec === undefined || !parts.canBeProvenClean(spec)) return undefined;
    return desiredQuarantine(desired, volume, known);
  }

  /** Unknown is not unwanted: after a start, whoever said so may be in a source that cannot be read now. */
  function mayStillBeSaid(quarantine: Quarantine | undefined): boolean {
    const { complete, unknownOrigins } = parts.desired();
    return quarantine?.reason !== 'operator' && (!complete || unknownOrigins.size > 0);
  }

  /** Believed at once; a crash before it is written finds the same reason again, unless an operator was the reason. */
  async function set(volume: ActualVolume): Promise<Result<void>> {
    const { id } = volume.spec;
    // An operation in flight ends with a volume that is known, and forgets it then.
    if (isForgettable(volume) && !parts.isBusy(id)) return parts.forget(id);
    belief.quarantine(volume);
    const saved = await records.save(volume);
    if (!saved.ok) log.warn('record not updated', { volume: id, code: saved.failure.code });
    return saved;
  }

  function enter(volume: ActualVolume, reason: QuarantineReason): Promise<Result<void>> {
    log.warn('volume in quarantine', { volume: volume.spec.id, reason });
    return set(enterQuarantine(volume, reason, parts.host.wallMs()));
  }

  function noteAttachment(volume: ActualVolume): void {
    const desired = parts.desired();
    if (!isAttachmentToBeNoted(desired, volume)) return;
    void set({ ...volume, attachmentUid: attachmentUidNow(desired, volume.spec.id) });
  }

  function leave(volume: ActualVolume): Promise<Result<void>> {
    log.info('volume out of quarantine', { volume: volume.spec.id });
    return set(leaveQuarantine(volume));
  }

  return {
    reasonFor: standing,
    visit(id) {
      const volume = actual.get(id);
      if (volume === undefined) return;
      const reason = standing(id);
      if (volume.quarantine === undefined && reason !== undefined && !isOnTheGround(volume)) {
        void enter(volume, reason);
      } else if (mayLeave(volume, reason) && !mayStillBeSaid(volume.quarantine)) {
        void leave(volume);
      } else {
        noteAttachment(volume);
        return;
      }
      parts.onChanged(id);
    },
    async quarantine(id) {
      const wanted = parts.desired().volumes.get(id)?.spec;
      const known = actual.get(id);
      const spec = known?.spec ?? wanted;
      if (spec === undefined) return missing(`there is no volume ${id} here, and none is wanted`);
      if (!parts.canBeProvenClean(spec))
        return missing(`${id} belongs to this node alone: nobody else can have it`);
      // It may have begun a moment ago, or its record may have failed: the answer waits for what is on disk.
      if (known?.quarantine !== undefined) return records.save(known);
      const needs = parts.needsOf(spec) ?? { attach: false, stage: false, expand: false };
      const saved = await enter(known ?? onTheGround(spec, needs), 'operator');
      parts.onChanged(id);
      return saved;
    },
    async release(id) {
      const volume = actual.get(id);
      if (volume?.quarantine === undefined) return missing(`volume ${id} is not in quarantine`);
      const reason = standing(id);
      if (reason !== undefined)
        return missing(`volume ${id} is in quarantine by the wish (${reason}), which stands`);
      // On disk first: what was answered as failed must still be in quarantine.
      const saved = await records.save(leaveQuarantine(volume));
      const now = actual.get(id);
      if (!saved.ok || now?.quarantine === undefined) return saved;
      // On the disk it has left already: a record that could not be erased is swept up later.
      await leave(now);
      parts.onChanged(id);
      return saved;
    },
  };
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
