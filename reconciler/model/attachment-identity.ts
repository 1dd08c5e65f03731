/**
 * Which attachment a volume was set up under: an object deleted and made anew is another one (INV-31), and what stands
 * under the old one may be another disk by now (FN-01). Without a uid there is only the name, which tells nothing
 * apart. Pure.
 */
import type { Failure } from '../../mount/failure.ts';
import type { Needs, PublishContext } from '../../plugins/plugin.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import { type ActualVolume, isOnTheGround } from './actual-state.ts';
import type { DesiredState, DesiredVolume } from './desired-state.ts';

/** Whatever order its entries came in. */
export function isSameContext(a: PublishContext | undefined, b: PublishContext | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/**
 * Its attachment is the same, and says something else of it than what it was, or is to be, set up by (CSI
 * `publish_context`). No attacher that we know of does that; one that did would have the volume at another place.
 */
export function isContextOther(
  { attachment }: Pick<DesiredVolume, 'attachment'>,
  { attached, attachmentUid, publishContext }: ActualVolume,
): boolean {
  // In doubt it counts as well: a way down that has begun goes on.
  if (attached.kind === 'absent' || attachment === undefined || publishContext === undefined) return false;
  return attachment.uid === attachmentUid && !isSameContext(publishContext, attachment.publishContext);
}

/**
 * A call of ours has attached it under another node id than this one, be it what an attach would name today (DR-17) or
 * what a call named. As it is not known whether the two are one machine to the storage, they are two attachments.
 */
export function isNodeOther(
  named: Pick<Needs, 'node'> | undefined,
  { attached, attachedNode }: ActualVolume,
): boolean {
  if (attached.kind === 'absent' || attachedNode === undefined || named?.node === undefined) return false;
  return named.node !== attachedNode;
}

type Said = Pick<DesiredState, 'attachmentUids'>;

/** The one that a rung climbed now is climbed under; undefined where nobody says. */
export function attachmentUidNow({ attachmentUids }: Said, volume: VolumeId): string | undefined {
  return attachmentUids.get(volume)?.[0];
}

/** Something stands, was set up under one attachment, and all that are there now are others. */
export function isAttachmentReplaced({ attachmentUids }: Said, volume: ActualVolume): boolean {
  const { attachmentUid, quarantine } = volume;
  const uids = attachmentUids.get(volume.spec.id) ?? [];
  if (attachmentUid === undefined || uids.length === 0 || uids.includes(attachmentUid)) return false;
  // Once noticed it is an event that was, no state that is: its quarantine ends by the proof alone.
  return quarantine === undefined && !isOnTheGround(volume);
}

/**
 * Set up before anybody said under which attachment: a record of 0.2, an object without a uid, or none. The first that
 * is seen is taken for it, because an upgrade must not take every volume down.
 */
export function isAttachmentToBeNoted({ attachmentUids }: Said, volume: ActualVolume): boolean {
  const { spec, attachmentUid, quarantine } = volume;
  return (
    attachmentUid === undefined &&
    quarantine === undefined &&
    !isOnTheGround(volume) &&
    attachmentUids.has(spec.id)
  );
}

/**
 * Set up under an attachment that is not seen while a source cannot be read, as after a start: it may be another one,
 * and not known is not attached.
 */
export function whyAttachmentUnknown(
  gate: Partial<Said> & Pick<DesiredState, 'unknownOrigins'>,
  volume: ActualVolume | undefined,
): Failure | undefined {
  const [origin] = gate.unknownOrigins;
  if (volume?.attachmentUid === undefined || origin === undefined || isOnTheGround(volume)) return undefined;
  if (gate.attachmentUids?.has(volume.spec.id) !== false) return undefined;
  const message =
    `it was set up under the VolumeAttachment with uid ${volume.attachmentUid}, which is not seen, and ` +
    `${origin} cannot be read: it is not known whether it is still the same attachment`;
  return { code: 'not-attached', message, effect: 'none', blocker: origin };
}
