/** Paths of the host that no pod may have, whatever name it calls them by (SE-06). */
import { overlap } from '../../mount/absolute-path.ts';
import { done, fail, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, parentOf } from '../../mount/host.ts';
import type { Program } from '../../mount/transition.ts';
import { type RealPath, resolveRealPath } from './real-path.ts';

export interface HostPlace {
  /** For people: `hostPath /srv/data`. */
  readonly title: string;
  /** As it is written. */
  readonly path: AbsolutePath;
  readonly found: RealPath;
}

/** Why a path is denied by its name alone; undefined: it is not. Where links lead is looked at when it is set up. */
export function whyDenied(
  { title, path }: Pick<HostPlace, 'title' | 'path'>,
  denied: readonly AbsolutePath[],
): string | undefined {
  const cause = denied.find((one) => overlap(path, one));
  return cause === undefined ? undefined : `${title} is denied, because of ${cause}`;
}

/** `host-path-check` for what is at, below or above a denied path, which may be written by a link too. No effect. */
export function* refuseDenied(
  { title, path, found }: HostPlace,
  denied: readonly AbsolutePath[],
): Program<Result<void>> {
  const real = endOf(found);
  for (const one of denied) {
    const place = yield* resolveRealPath(one);
    if (!place.ok && place.failure.code !== 'path-unsafe') return place;
    const end = place.ok ? endOf(place.value) : one;
    if (!overlap(real, end)) continue;
    const message = `${title.slice(0, 540)} leads to ${real.slice(0, 300)}, which is denied, because of ${one}`;
    return fail({ code: 'host-path-check', message, effect: 'none', blocker: path });
  }
  return done;
}

/** With what does not exist of it, as if all of that were directories. */
function endOf({ path, missing }: RealPath): AbsolutePath {
  return missing.reduce<AbsolutePath>((end, one) => (one === '..' ? parentOf(end) : below(end, one)), path);
}
