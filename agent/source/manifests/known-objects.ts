/** The objects that are known of one manifest file, and what makes each of them the same one elsewhere. Pure. */
import type { PodUid } from '../../../plugins/volume.ts';
import { type ApiObject, identityOf, type Stamped } from '../../../kubernetes/objects/objects.ts';
import type { ReadObject } from './parse/file-reading.ts';

export interface Known {
  readonly digest: string;
  readonly stamped: Stamped<ApiObject>;
}

export function know(
  origin: string,
  { object, place, digest }: ReadObject,
  before: Known | undefined,
): Known {
  if (before?.digest === digest && before.stamped.place === place) return before;
  return { digest, stamped: { ...object, origin, place } };
}

/** Is anything that was known not known so any more? */
export function isOtherwise(before: readonly Known[], after: readonly Known[]): boolean {
  const digests = new Map(after.map(({ stamped, digest }) => [identityOf(stamped), digest]));
  return before.some(({ stamped, digest }) => digests.get(identityOf(stamped)) !== digest);
}

export function keysOf(known: readonly Known[]): readonly string[] {
  return known.map(({ stamped }) => keyOf(stamped));
}

/** What makes it the same object in whichever file: of a pod the uid. */
export function keyOf(object: ApiObject): string {
  return object.kind === 'Pod' ? object.reference.uid : identityOf(object);
}

/** Those that are wanted by what is known. */
export function podsOf(known: readonly Known[]): readonly PodUid[] {
  return known.flatMap(({ stamped }) => (stamped.kind === 'Pod' ? [stamped.reference.uid] : []));
}
