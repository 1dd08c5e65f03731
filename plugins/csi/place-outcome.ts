/** What became of a place after a call of the driver: kept as it was, taken away, or held by somebody. */
import { done, fail, type Failure, type Result } from '../../mount/failure.ts';
import type { DriverPath, Prepared } from './call/volume-directory.ts';
import { doubtful } from '../steps.ts';
import type { CsiVolumeSpec } from '../volume.ts';

/**
 * The promise of effect `none` is kept or withdrawn: drivers mount and then answer with an error, too (DR-04). A
 * republish that failed, whatever the answer or without one, and left the pod its mount has taken nothing away; what
 * a late one changes is seen by the mount's identity.
 */
export async function refused(
  prepared: Prepared,
  failure: Failure,
  isRefresh = false,
): Promise<Result<never>> {
  const mayBeNone = isRefresh ? prepared.mountedBefore : failure.effect === 'none';
  if (!mayBeNone) return doubtful<never>(fail(failure));
  return (await prepared.undo()) ? fail({ ...failure, effect: 'none' }) : doubtful<never>(fail(failure));
}

/** The kernel is the judge of a teardown, OK and NOT_FOUND alike (GR-05); then what is left is ours to remove. */
export async function takeAway(
  spec: CsiVolumeSpec,
  place: DriverPath,
  code: 'unpublished-still-mounted' | 'unstaged-still-mounted',
  method: string,
): Promise<Result<void>> {
  const taken = await place.takeAway();
  // Something the driver had mounted in its place, and left there.
  if (!taken.ok) return taken.failure.code === 'mount-busy' ? fail({ ...taken.failure, code }) : taken;
  if (!taken.value.isMounted) return done;
  const message = `${method} was answered, but ${place.path} is still mounted`;
  return heldAt(place, { code, message, effect: 'unknown', blocker: spec.driver });
}

/** A driver says "busy" at best; who keeps it busy is in /proc. */
export function heldAt(place: DriverPath, failure: Failure): Result<never> {
  return fail({ ...failure, heldAt: place.path });
}
