/**
 * Objects that move from one file to another in two writes. Each file is believed in its own time, and the one that has
 * an object now may wait longer than the one that has dropped it: nothing is dropped while another file shows it. Pure.
 */
import { keyOf, keysOf } from './known-objects.ts';
import { isDue, type Listing, type ManifestFile, settle } from './manifest-file.ts';

/**
 * The files after a look; what a file showed until then, and was not believed, is missing elsewhere from then on. One
 * that cannot be read any more may have it still.
 */
export function missAnew(
  before: ReadonlyMap<string, ManifestFile>,
  looked: readonly ManifestFile[],
  { nowMs }: Listing,
): readonly ManifestFile[] {
  const after = looked.map((file) => withHidden(before.get(file.name), file, nowMs));
  const unshown = new Set(after.flatMap((file) => shownNoMore(before.get(file.name), file)));
  if (unshown.size === 0) return after;
  return after.map((file) => {
    const { pending } = file;
    if (pending === undefined || ![...pending.dropped].some((key) => unshown.has(key))) return file;
    return { ...file, pending: { ...pending, sinceMs: nowMs, confirmedMs: undefined } };
  });
}

/** With what it may have of others, and since when, by this look. */
function withHidden(earlier: ManifestFile | undefined, file: ManifestFile, nowMs: number): ManifestFile {
  if (file === earlier) return file;
  const { showed: _, hidesSinceMs: __, ...rest } = file;
  const hides = mayHide(file);
  const isDoubted = hides || file.isBeingRead === true || file.pending !== undefined;
  const now = { ...rest, doubtSinceMs: isDoubted ? (file.doubtSinceMs ?? nowMs) : undefined };
  if (!hides) return now;
  const hidesSinceMs = earlier?.seen === file.seen ? (earlier.hidesSinceMs ?? nowMs) : nowMs;
  const showed = earlier === undefined ? [] : shownIn(earlier);
  return { ...now, hidesSinceMs, ...(showed.length === 0 ? {} : { showed }) };
}

/** Not all of what is there now can be understood: what is not seen in it may be there all the same. */
function mayHide({ seen, part, pending }: ManifestFile): boolean {
  if (seen.kind !== 'content') return seen.kind === 'unreadable';
  const { unreadable, refused } = seen.reading;
  if (unreadable !== undefined || refused.some(({ subject }) => subject === undefined)) return true;
  // It was cut short.
  return part.unknown && part.isAwaited !== true && pending === undefined;
}

function shownNoMore(earlier: ManifestFile | undefined, file: ManifestFile): readonly string[] {
  if (earlier === undefined || earlier.seen === file.seen) return [];
  const there = new Set([...shownIn(file), ...keysOf(file.known)]);
  return shownIn(earlier).filter((key) => !there.has(key));
}

/**
 * The files once what is due in them counts, without those that are believed to be gone. Those that drop what another
 * one shows wait for it; those that wait for nobody but each other count together. One that drops anything when another
 * was written that cannot be understood waits until that can: it may be there.
 */
export function settleTogether(files: readonly ManifestFile[], listing: Listing): readonly ManifestFile[] {
  const hiding = files.filter(({ hidesSinceMs }) => hidesSinceMs !== undefined);
  const hiddenIn = new Map<ManifestFile, string>();
  const due = new Set<ManifestFile>();
  for (const file of files) {
    if (!isDue(file, listing)) continue;
    const other = hiding.find((one) => mayHaveTaken(one, file, listing));
    if (other === undefined) due.add(file);
    else hiddenIn.set(file, other.name);
  }
  const droppedBy = new Map<string, ManifestFile[]>();
  for (const file of due) {
    for (const key of file.pending?.dropped ?? []) {
      const those = droppedBy.get(key);
      if (those === undefined) droppedBy.set(key, [file]);
      else those.push(file);
    }
  }
  const isWaiting = (file: ManifestFile): boolean => file.pending !== undefined && !due.has(file);
  const holding = files.filter((file) => isWaiting(file) || file.showed !== undefined);
  // Grows meanwhile: what shows something and has to wait keeps others waiting.
  for (const file of droppedBy.size === 0 ? [] : holding) {
    for (const key of (due.has(file) ? file.showed : shownIn(file)) ?? []) {
      for (const other of droppedBy.get(key) ?? []) if (due.delete(other)) holding.push(other);
      droppedBy.delete(key);
    }
  }
  return files.flatMap((file) => {
    const place = hiddenIn.get(file);
    if (place !== undefined) return keptFor(place, file);
    return due.has(file) ? (settle(file) ?? []) : file;
  });
}

/** It was written, or broke, after the other one may have dropped something, or a little before. */
function mayHaveTaken(
  { name, seen, hidesSinceMs = Number.NEGATIVE_INFINITY }: ManifestFile,
  { name: from, pending, doubtSinceMs }: ManifestFile,
  { settleMs }: Listing,
): boolean {
  if (pending === undefined || pending.dropped.size === 0 || name === from) return false;
  const isFile = seen.kind !== 'unreadable' || seen.of !== undefined;
  return isFile && hidesSinceMs >= (doubtSinceMs ?? pending.sinceMs) - settleMs;
}

function keptFor(place: string, file: ManifestFile): ManifestFile {
  const message = `what is not in it any more stays wanted until ${place} can be read: it may be there`;
  const [told] = file.part.rejected;
  if (file.part.rejected.length === 1 && told?.message === message) return file;
  return { ...file, part: { ...file.part, rejected: [{ origin: file.name, message }] } };
}

/** What some file says and does not drop, or shows and does not say yet; as `keyOf` has it. */
export function saidIn(files: readonly ManifestFile[]): ReadonlySet<string> {
  const said = new Set<string>();
  for (const file of files) {
    for (const key of keysOf(file.known)) if (file.pending?.dropped.has(key) !== true) said.add(key);
    for (const key of shownIn(file)) said.add(key);
  }
  return said;
}

/**
 * What the file showed last and does not say yet, because it waits to be believed or cannot be read any more; as
 * `keyOf` has it.
 */
function shownIn({ pending, seen, showed = [] }: ManifestFile): readonly string[] {
  if (pending === undefined || seen.kind !== 'content') return showed;
  const { objects, refused } = seen.reading;
  // A pod that is refused there is frozen once that is believed.
  return [
    ...showed,
    ...objects.map(({ object }) => keyOf(object)),
    ...refused.flatMap(({ subject }) => subject?.pod ?? []),
  ];
}
