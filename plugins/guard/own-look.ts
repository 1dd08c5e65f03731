/** A look at a place that a verb takes by itself, in the call in which it begins, instead of one before it. */
import type { Result } from '../../mount/failure.ts';
import type { Ground } from '../../mount/ground.ts';
import type { AbsolutePath, MountIdentity } from '../../mount/host.ts';
import type { ExpectedPlace } from '../../mount/expected-place.ts';
import type { PublicationCall, VolumePlugin } from '../plugin.ts';

interface KnownPlace {
  readonly path: AbsolutePath;
  readonly proven: MountIdentity | undefined;
  readonly isDoubted: true | undefined;
}

type OwnLook = <T>(
  place: KnownPlace | undefined,
  call: PublicationCall,
  verb: (call: PublicationCall) => Promise<Result<T>>,
  look: () => Promise<Result<T>>,
) => Promise<Result<T>>;

/**
 * Where the plugin `looksItself`, the verb is told what it must see; where it sees something else it has done nothing,
 * and `look` has its turn, as it has where nothing can be expected.
 */
export function createOwnLook(ground: Pick<Ground, 'expectedRound'>, { looksItself }: VolumePlugin): OwnLook {
  return async (place, call, verb, look) => {
    const within = place && ground.expectedRound(place.path);
    if (looksItself !== true || place === undefined || within === undefined || isInDoubt(place))
      return look();
    const expected = { path: place.path, mountId: place.proven?.mountId, within };
    const result = await verb({ ...call, expected });
    return !result.ok && result.failure.isUnexpected === true ? look() : result;
  };
}

/**
 * What each of the places is to look like while nobody else has mounted anything; undefined: of one of them that is not
 * known, or was in doubt.
 */
export function expectedAt(
  ground: Pick<Ground, 'expectedRound'>,
  places: readonly (KnownPlace | undefined)[],
): readonly ExpectedPlace[] | undefined {
  const all: ExpectedPlace[] = [];
  for (const place of places) {
    if (place === undefined) continue;
    const within = ground.expectedRound(place.path);
    if (within === undefined || isInDoubt(place)) return undefined;
    all.push({ path: place.path, mountId: place.proven?.mountId, within });
  }
  return all;
}

/** What was proven may have gone meanwhile. */
export function isInDoubt({ proven, isDoubted }: Pick<KnownPlace, 'proven' | 'isDoubted'>): boolean {
  return proven !== undefined && isDoubted === true;
}
