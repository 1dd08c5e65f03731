/** The files of a directory of manifests, by name: what follows for all of them from looks at some. */
import { compareText } from '../../../mount/text/compare-text.ts';
import { podsOf } from './known-objects.ts';
import {
  confirm,
  type Listing,
  type Look,
  lookMs,
  type ManifestFile,
  observe,
  unconfirmed,
} from './manifest-file.ts';
import { holdNewPods } from './held-pods.ts';
import { missAnew, settleTogether } from './moved-objects.ts';
import { guard, type GuardFacts } from './mass-removal.ts';

export type ManifestFiles = ReadonlyMap<string, ManifestFile>;

/** The look at a file that is not there. */
export function missing(name: string): [string, Look] {
  return [name, { kind: 'missing' }];
}

/** Only those that were looked at can be as they were seen before; all can have settled, when others were read. */
export function afterLooks(
  before: ManifestFiles,
  looks: ReadonlyMap<string, Look>,
  listing: Listing,
  facts: GuardFacts,
): ManifestFiles {
  const names = [...new Set([...before.keys(), ...looks.keys()])].sort(compareText);
  const observed = names.flatMap((name) => {
    const file = before.get(name);
    const look = looks.get(name);
    return look === undefined ? (file ?? []) : observe(name, file, look, listing);
  });
  const missed = missAnew(before, observed, listing);
  const guarded = guard(holdNewPods(before, missed, listing), listing, facts).map((one) => {
    const look = looks.get(one.name);
    if (look === undefined) return one;
    return look.kind === 'waiting' ? unconfirmed(one) : confirm(one, listing);
  });
  return new Map(settleTogether(guarded, listing).map((one) => [one.name, one]));
}

/** Is there a pod in what a file says, or may one be in what it says in a moment? */
export function mayWantPods(files: ManifestFiles): boolean {
  return [...files.values()].some(({ known, pending, part, isBeingRead }) => {
    const isAwaited = isBeingRead === true || part.isAwaited === true || pending?.isHeld === true;
    return isAwaited || part.frozenPods.size > 0 || podsOf(known).length > 0;
  });
}

/** How many milliseconds of the host's clock there are to the next look; undefined when no file waits for one. */
export function nextLookMs(files: ManifestFiles, listing: Listing): number | undefined {
  const looks = [...files.values()].flatMap((file) => lookMs(file, listing) ?? []);
  return looks.length === 0 ? undefined : Math.max(1, Math.min(...looks) - listing.nowMs);
}

/** Whether another wish is said by now; what waits to be read is left out on demand. */
export function differ(before: ManifestFiles, after: ManifestFiles, exceptWaiting: boolean): boolean {
  for (const name of before.keys()) if (!after.has(name)) return true;
  for (const [name, { part, seen }] of after) {
    if (exceptWaiting && seen.kind === 'waiting') continue;
    if (before.get(name)?.part !== part) return true;
  }
  return false;
}
