/** Objects that are being deleted, and are held back for as long as something uses them. Pure. */
import { mappingIn, textsIn } from './plain-value.ts';

/** The finalizers that hold them back: the cluster takes one away when nothing uses the object any more. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

/** Its deletion was asked for, and it stays for now. */
export function isHeldBack(object: Readonly<Record<string, unknown>>, protection: string): boolean {
  return isDeleted(object) && isProtected(object, protection);
}

/** For whoever wants to begin with it, it is as good as gone. */
export function isLeaving(object: Readonly<Record<string, unknown>>, protection: string): boolean {
  return isDeleted(object) && !isProtected(object, protection);
}

function isDeleted(object: Readonly<Record<string, unknown>>): boolean {
  return mappingIn(object['metadata'])['deletionTimestamp'] !== undefined;
}

function isProtected(object: Readonly<Record<string, unknown>>, protection: string): boolean {
  return textsIn(mappingIn(object['metadata'])['finalizers']).includes(protection);
}
