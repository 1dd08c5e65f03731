/** A directory of ours for a volume. */
import type { Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';

const MODE = 0o750;

/** Another volume of the pod coming down may remove an empty parent between our steps: then once more. */
export function* makeVolumeDirectory(path: AbsolutePath): Program<Result<void>> {
  const made = yield* paths.makeDirectory(path, MODE);
  return made.ok || made.failure.code !== 'path-missing' ? made : yield* paths.makeDirectory(path, MODE);
}

export const placeDirectory = transition<TransitionArgs, void>('place-directory', ({ path }) =>
  makeVolumeDirectory(path),
);
