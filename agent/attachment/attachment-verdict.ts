/**
 * May a volume be on this node? From what the cluster says of it and what stands here. Pure; the table of
 * docs/KUBERNETES.md.
 */
import type { AttachmentSight } from '../../kubernetes/objects/attachment-sight.ts';
import type { Failure } from '../../mount/failure.ts';
import type { AttachmentSaid } from '../../reconciler/model/desired-state.ts';

/** What is known of the VolumeAttachment. `unknown`: it was never read; that it is denied never means absent. */
export type AttachmentAnswer =
  | { readonly kind: 'present'; readonly sight: AttachmentSight }
  /** `isConfirmed`: two reads that were apart have said so. */
  | { readonly kind: 'absent'; readonly isConfirmed: boolean }
  | { readonly kind: 'unknown'; readonly isDenied: boolean; readonly message: string };

export interface AttachmentFacts {
  /** The Node's status says that the volume is attached. */
  readonly isListed: boolean;
  /** It was made after the server had acknowledged that this node uses the volume: nobody is on the way to end it. */
  readonly isNew: boolean;
  /** It was asked for before anything of the volume stood here. */
  readonly isOfBefore: boolean;
  readonly answer: AttachmentAnswer;
  /** Told to people. */
  readonly name: string;
  readonly driver: string;
  readonly nodeName: string;
}

/** What stands here of the volume, and under which attachment it was set up as far as that is known. */
export interface Standing {
  readonly stands: boolean;
  readonly uid: string | undefined;
}

export type AttachmentVerdict =
  | (AttachmentSaid & { readonly kind: 'granted' })
  /** Nothing is set up; what stands stays. */
  | { readonly kind: 'wait'; readonly message: string }
  /** What stands may be somebody else's by now. */
  | { readonly kind: 'lost' | 'replaced'; readonly message: string };

/**
 * Guarantees: granted only what the attachment says and the Node lists, or what is attached since its use was
 * acknowledged (D-131), that is not being deleted, and not under another attachment than what stands; lost or
 * replaced only what stands, and never for want of an answer; lost not by an answer of before it stood.
 */
export function attachmentVerdict(facts: AttachmentFacts, standing: Standing): AttachmentVerdict {
  const { answer, name } = facts;
  if (answer.kind === 'unknown') return wait(whyUnknown(facts, answer, standing));
  if (answer.kind === 'absent') {
    const isLost = standing.stands && answer.isConfirmed;
    return isLost ? lost(facts, `VolumeAttachment ${name} is gone`) : wait(whyAbsent(facts, standing));
  }
  return judgePresent(facts, answer.sight, standing);
}

/** What stands since may be there because it is attached by now. */
function lost({ isOfBefore }: AttachmentFacts, message: string): AttachmentVerdict {
  return isOfBefore
    ? wait(
        `${message}: that was asked for before anything of the volume stood here, and is asked for once more`,
      )
    : { kind: 'lost', message };
}

function judgePresent(facts: AttachmentFacts, sight: AttachmentSight, standing: Standing): AttachmentVerdict {
  const { name, driver, nodeName, isListed, isNew } = facts;
  const { uid, publishContext } = sight;
  const title = `VolumeAttachment ${name}`;
  if (sight.nodeName !== nodeName || sight.attacher !== driver) {
    const whose = `node ${sight.nodeName} and driver ${sight.attacher}`;
    return wait(`${title} is of ${whose}: the administrator has to remove it`);
  }
  if (standing.stands && standing.uid !== undefined && standing.uid !== uid)
    return {
      kind: 'replaced',
      message: `${title} was deleted and made anew while the volume was set up here`,
    };
  if (!sight.attached && standing.stands)
    return lost(facts, `${title} says that it is not attached${why(sight.attachError)}`);
  if (sight.deleted)
    return wait(`${title} is being deleted: it is on its way off this node${why(sight.detachError)}`);
  if (!sight.attached) {
    const who = `csi-attacher of driver ${driver}`;
    return wait(`${title} is not attached yet: ${who} has to attach it${why(sight.attachError)}`);
  }
  if (isListed || isNew) return { kind: 'granted', uid, publishContext };
  const list = `status.volumesAttached of Node ${nodeName}`;
  return wait(`${title} is attached, and the attach/detach controller has not listed it in ${list} yet`);
}

const MAKER = 'the attach/detach controller of the cluster has to make it';

function whyAbsent({ name, isListed }: AttachmentFacts, { stands }: Standing): string {
  if (stands)
    return `VolumeAttachment ${name} was not found; it is asked for once more before that is believed`;
  const listed = isListed ? ', though the Node still lists the volume as attached' : '';
  return `there is no VolumeAttachment ${name}${listed}: ${MAKER}`;
}

function whyUnknown(
  { name, nodeName }: AttachmentFacts,
  { isDenied, message }: AttachmentAnswer & { readonly kind: 'unknown' },
  { stands }: Standing,
): string {
  const told = `the API server does not tell of VolumeAttachment ${name}: ${message}`;
  if (!isDenied) return told;
  const right = `system:node:${nodeName} to get volumeattachments.storage.k8s.io`;
  const allow = `the administrator has to allow ${right}`;
  if (stands) return `${told}; a pod of this node has to lead to it, or ${allow}`;
  // The Node authorizer knows of no way to what is not there.
  return `${told}; so a node is answered while there is none: ${MAKER}, or, if there is one, ${allow}`;
}

function wait(message: string): AttachmentVerdict {
  return { kind: 'wait', message };
}

function why(error: string | undefined): string {
  return error === undefined ? '' : ` (${error})`;
}

/** What those who wait for a volume are told; its driver is who keeps it back. */
export function notAttached(
  { driver }: Pick<AttachmentFacts, 'driver'>,
  verdict: Exclude<AttachmentVerdict, { readonly kind: 'granted' }>,
  effect: Failure['effect'],
): Failure {
  return { code: 'not-attached', message: verdict.message, effect, blocker: driver };
}
