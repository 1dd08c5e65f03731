/** Why it is not known yet what a pod leads to. Pure. */
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import { identify } from '../../../kubernetes/objects/read-metadata.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { Rejection } from '../objects-source.ts';
import type { Untold } from './named-object.ts';
import { type Reference, rightToRead } from './references.ts';

export type Lack = Pick<Rejection, 'message' | 'isPassing'>;

export const READ_AGAIN: Lack = { message: 'it is being read again', isPassing: true };

/** One that has just been bound is known to the server's authorizer a moment later. */
export function lackOf(reference: Reference, { message, isDenied, isBeingRead }: Untold): Lack {
  if (isBeingRead === true) return { message, isPassing: true };
  if (isDenied !== true) return { message };
  const right = `an administrator has to let this node ${rightToRead(reference)}`;
  // The Node authorizer knows of no way to a volume that is not there.
  const gone = reference.kind === 'PersistentVolume' ? 'it is gone, or ' : '';
  return { message: `${message}; if it stays so, ${gone}${right}` };
}

/** The same, of whoever leads there. */
export function lackBehind(subject: string, lack: Lack): Lack {
  return { ...lack, message: `${subject}: ${lack.message}` };
}

/** Also of a pod whose other fields cannot be read. */
export function waitingPod({ uid, value }: ApiObjectEnvelope): Pick<Rejection, 'pod'> {
  const identity = identify('Pod', value);
  if (identity === undefined) return {};
  const { namespace, name } = identity;
  return { pod: { namespace, name, uid: uid as PodUid } };
}
