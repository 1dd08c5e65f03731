/** What attach/detach controllers say of this node's volumes (VolumeAttachment, storage.k8s.io/v1). Pure. */
import type { Failure } from '../../mount/failure.ts';
import { type Sliced, sorted } from '../../mount/process/slices.ts';
import { csiVolumeId, type VolumeId } from '../../plugins/volume.ts';
import { needsNoAttach } from '../source/attachment-remark.ts';
import { whyRefused } from './missing.ts';
import { identityOf, type Stamped, type VolumeAttachment } from '../../kubernetes/objects/objects.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import { compareText } from '../../mount/text/compare-text.ts';
import type { Rejection } from '../source/objects-source.ts';

/** What the cluster's attachments say of one volume on this node. */
export interface AttachmentWord {
  /** It is not attached: what stands of it here is in quarantine. */
  readonly lost: boolean;
  /** Why nothing of it is to be set up, by `not-attached`; as the kubelet, what stands is left alone by this. */
  readonly blocked: Failure;
}

/**
 * By which attachments the volumes are here: their uids, in the order in which a volume is to be set up under them: not
 * one that is on its way off this node, if there is another. Objects without a uid are told by their name alone, and
 * say nothing here.
 */
export function* attachmentUids(
  desired: Said,
  nodeName: string,
): Sliced<ReadonlyMap<VolumeId, readonly string[]>> {
  const uids = new Map<VolumeId, string[]>();
  const inOrder = yield* sorted(
    desired.attachments.values(),
    (a, b) => Number(a.deleted) - Number(b.deleted) || compareText(a.uid ?? '', b.uid ?? ''),
  );
  for (const { nodeName: node, volumeName, attacher, uid } of inOrder) {
    yield;
    const id = node === nodeName ? volumeOf(desired, volumeName, attacher) : undefined;
    if (id === undefined || uid === undefined) continue;
    const others = uids.get(id);
    if (others === undefined) uids.set(id, [uid]);
    else others.push(uid);
  }
  return uids;
}

type Said = Pick<DesiredObjects, 'attachments' | 'volumes' | 'drivers' | 'rejected'>;

/**
 * Only volumes of which something is said that keeps them down. Of several words on one volume `attached: false` wins,
 * whatever order they come in; one that was refused is not known, and not known is not attached.
 */
export function* attachmentWords(
  desired: Said,
  nodeName: string,
): Sliced<ReadonlyMap<VolumeId, AttachmentWord>> {
  const words = new Map<VolumeId, AttachmentWord>();
  const say = (id: VolumeId | undefined, word: AttachmentWord | undefined): void => {
    if (id === undefined || word === undefined) return;
    const known = words.get(id);
    if (known === undefined || (word.lost && !known.lost)) words.set(id, word);
  };
  for (const attachment of desired.attachments.values()) {
    yield;
    if (attachment.nodeName === nodeName)
      say(volumeOf(desired, attachment.volumeName, attachment.attacher), wordOf(attachment));
  }
  for (const rejection of desired.rejected) {
    yield;
    const { attachment } = rejection;
    if (attachment?.volumeName === undefined || (attachment.nodeName ?? nodeName) !== nodeName) continue;
    say(volumeOf(desired, attachment.volumeName), unknown(rejection));
  }
  return words;
}

/** Undefined when it is not ours, or of another driver, or of one that attaches nothing. */
function volumeOf({ volumes, drivers }: Said, name: string, attacher?: string): VolumeId | undefined {
  const source = volumes.get(name)?.source;
  if (source?.kind !== 'csi' || source.driver !== (attacher ?? source.driver)) return undefined;
  return needsNoAttach(drivers, source.driver) ? undefined : csiVolumeId(source.driver, source.volumeHandle);
}

function wordOf(attachment: Stamped<VolumeAttachment>): AttachmentWord | undefined {
  const { attached, attachError, deleted, place } = attachment;
  const title = `${identityOf(attachment)} (${place})`;
  if (attached === false) {
    const why = attachError === undefined ? '' : `: ${attachError}`;
    return { lost: true, blocked: notAttached(`${title} says that it is not attached to this node${why}`) };
  }
  // While it is on its way off this node the kubelet begins nothing (WaitForAttach), and takes nothing down.
  return deleted ? { lost: false, blocked: notAttached(`${title} is being deleted`) } : undefined;
}

function unknown(rejection: Rejection): AttachmentWord {
  const title = rejection.subject ?? 'a VolumeAttachment';
  const text = `${title} was refused (${whyRefused(rejection)}), so it is not known whether the volume is attached`;
  return { lost: false, blocked: notAttached(text) };
}

function notAttached(message: string): Failure {
  return refuse('not-attached', message).failure;
}
