/** What a place is to look like before a verb does anything there: a look within the verb's own first transition. */
import { done, fail, ok, type Result } from './failure.ts';
import type { AbsolutePath, MountPlace } from './host.ts';
import { paths } from './path-steps.ts';
import { type Program, transition, type TransitionArgs } from './transition.ts';

export interface ExpectedPlace extends MountPlace {
  readonly path: AbsolutePath;
}

/** Fails with `isUnexpected` when it looks otherwise, or cannot be looked at; nothing was done then. */
export function* asExpected(expected: ExpectedPlace | undefined): Program<Result<void>> {
  if (expected === undefined) return done;
  const place = yield* paths.mountPlaceOf(expected.path);
  if (!place.ok) return fail({ ...place.failure, effect: 'none', isUnexpected: true });
  if (place.value.mountId === expected.mountId && place.value.within === expected.within) return done;
  const message = `not what is known is mounted at ${expected.path}, or above it`;
  return fail({ code: 'mount-foreign', message, effect: 'none', isUnexpected: true });
}

/** How each of the places looks, until one cannot be looked at. */
export const lookAtPlaces = transition<
  TransitionArgs & { readonly places: readonly AbsolutePath[] },
  readonly MountPlace[]
>(
  'look-at-places',
  function* ({ places }) {
    const seen: MountPlace[] = [];
    for (const place of places) {
      const look = yield* paths.mountPlaceOf(place);
      if (!look.ok) return look;
      seen.push(look.value);
    }
    return ok(seen);
  },
  { changesTheWorld: false },
);
