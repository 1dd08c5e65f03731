/**
 * The verbs: the ladder's three pairs; `expand`, which grows what stands; `clean`, which proves that nobody on this
 * machine uses a quarantined volume any more. Nothing else is an operation.
 */
import type { PublicationKey, VolumeId } from '../../plugins/volume.ts';

export type Operation =
  | {
      readonly kind: 'attach' | 'stage' | 'expand' | 'unstage' | 'detach' | 'clean';
      readonly volume: VolumeId;
    }
  | {
      readonly kind: 'publish' | 'unpublish';
      readonly volume: VolumeId;
      readonly publication: PublicationKey;
      /** The unpublish is not of what stands, but of what may have come late beside it. */
      readonly beside?: true;
    };

export type OperationKind = Operation['kind'];

/** The pod, or undefined for an operation on the whole volume. */
export function publicationOf(operation: Operation): PublicationKey | undefined {
  return 'publication' in operation ? operation.publication : undefined;
}

export function isBeside(operation: Operation): boolean {
  return 'beside' in operation && operation.beside === true;
}

export function isSameOperation(a: Operation, b: Operation): boolean {
  const isOfSame = a.volume === b.volume && publicationOf(a) === publicationOf(b);
  return isOfSame && a.kind === b.kind && isBeside(a) === isBeside(b);
}

/** The whole nested rule: same volume, and either is about the whole volume or both are about the same place. */
export function conflicts(a: Operation, b: Operation): boolean {
  if (a.volume !== b.volume) return false;
  const left = publicationOf(a);
  const right = publicationOf(b);
  return left === undefined || right === undefined || left === right;
}

export function climbs(kind: OperationKind): boolean {
  return kind === 'attach' || kind === 'stage' || kind === 'publish' || kind === 'expand';
}
