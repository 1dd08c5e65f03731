/** Pods that come while other files change: they wait until those have settled. Pure. */
import { podsOf } from './known-objects.ts';
import { awaited, type Listing, type ManifestFile, nothingKnown, type Pending } from './manifest-file.ts';

/**
 * The files after a look, where pods that came with it wait while another file is being changed: what they name may be
 * what is different there, a password say, and it counts only once it has settled. They wait no longer than that takes
 * a file, or for `HELD_MS_MAX` more while others are read.
 */
export function holdNewPods(
  before: ReadonlyMap<string, ManifestFile>,
  after: readonly ManifestFile[],
  listing: Listing,
): readonly ManifestFile[] {
  const changing = after.filter(isChanging);
  if (changing.length === 0) return after;
  return after.map((file) => {
    const earlier = before.get(file.name);
    const isBeside = changing.some(({ name }) => name !== file.name);
    return file.pending === undefined && isBeside && addsPods(earlier, file)
      ? held(earlier ?? nothingKnown(file.name), file, listing)
      : file;
  });
}

function isChanging({ good, pending, seen, isBeingRead }: ManifestFile): boolean {
  if (good === undefined) return false;
  return (
    isBeingRead === true || (pending !== undefined && pending.isHeld !== true && seen.kind === 'content')
  );
}

function addsPods(earlier: ManifestFile | undefined, { known }: ManifestFile): boolean {
  const there = new Set(podsOf(earlier?.known ?? []));
  return podsOf(known).some((pod) => !there.has(pod));
}

function held(earlier: ManifestFile, { seen }: ManifestFile, listing: Listing): ManifestFile {
  const { nowMs: sinceMs, settleMs } = listing;
  const pending: Pending = { sinceMs, settleMs, losing: new Set(), dropped: new Set(), isHeld: true };
  const waiting = { ...earlier, seen, pending };
  // Nothing is known of a new file until then.
  return earlier.good === undefined ? awaited(waiting, HELD) : waiting;
}

const HELD = 'it has a new pod, and waits until what is being changed in other manifests has settled';
