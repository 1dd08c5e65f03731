/** The files of a directory of manifests, by name: what follows for all of them from looks at some. */
import type { PodUid } from '../../../plugins/volume.ts';
import { compareText } from '../../../mount/text/compare-text.ts';
import {
  confirm,
  dueMs,
  type Listing,
  type Look,
  type ManifestFile,
  observe,
  settle,
  unconfirmed,
} from './manifest-file.ts';
import { holdNewPods } from './held-pods.ts';
import { guard, type GuardFacts } from './mass-removal.ts';

export type ManifestFiles = ReadonlyMap<string, ManifestFile>;

/** Those that the files say are wanted. */
export function podsIn(files: Iterable<ManifestFile>): readonly PodUid[] {
  const objects = [...files].flatMap(({ part }) => part.objects);
  return objects.flatMap((one) => (one.kind === 'Pod' ? [one.reference.uid] : []));
}

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
  const settled = guard(holdNewPods(before, observed, listing), facts).flatMap((one) => {
    const look = looks.get(one.name);
    if (look === undefined) return settle(one, listing) ?? [];
    if (look.kind === 'waiting') return unconfirmed(one);
    return settle(confirm(one, listing), listing) ?? [];
  });
  return new Map(settled.map((one) => [one.name, one]));
}

/** How many milliseconds of the host's clock there are to the next look; undefined when no file waits for one. */
export function nextLookMs(files: ManifestFiles, { nowMs, readingSinceMs }: Listing): number | undefined {
  const isReading = readingSinceMs < Number.POSITIVE_INFINITY;
  // What is due and waits for another file to be read is looked at when that has been.
  const dues = [...files.values()].flatMap((file) => dueMs(file) ?? []);
  const waiting = dues.filter((atMs) => !isReading || atMs > nowMs);
  return waiting.length === 0 ? undefined : Math.max(1, Math.min(...waiting) - nowMs);
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
