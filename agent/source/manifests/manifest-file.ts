/**
 * One manifest file over time: what it says, what it said last while it cannot be read, and what waits to be believed.
 * Pure: each listing makes a new one from the last.
 *
 * A file is written by people and editors, in steps. So what it adds counts at once, but for pods while another file
 * changes; that an object is gone or different counts only after the same content (or absence) was seen in two
 * listings, `settleMs` apart, after all that the second one showed was read, and when no other file shows it that waits
 * itself; and a file that cannot be understood says nothing at all: its last good objects stay.
 */
import { isDeepStrictEqual } from 'node:util';
import { assert } from '../../../mount/failure.ts';
import type { Sensitive } from '../../../plugins/secret/sensitive.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { FileReading } from './parse/file-reading.ts';
import { identityOf } from '../../../kubernetes/objects/objects.ts';
import { isOtherwise, keyOf, keysOf, know, type Known, podsOf } from './known-objects.ts';
import type { Rejection, SourcePart } from '../objects-source.ts';

/** What a look at the file showed. */
export type Look =
  | { readonly kind: 'missing' }
  /** `of`: what is there, as far as that can be told unread; another one when it was written again, absent: no file. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly of?: string }
  /** It is there, and what it says will be known when it was read. */
  | { readonly kind: 'waiting' }
  /** The content of the look before. */
  | { readonly kind: 'same' }
  | {
      readonly kind: 'content';
      readonly bytes: Sensitive<Uint8Array>;
      /** The digest of the bytes. */
      readonly digest: string;
      readonly reading: FileReading;
    };

/** What was seen of it last. */
type Seen =
  | Exclude<Look, { kind: 'same' | 'content' }>
  | {
      readonly kind: 'content';
      /** Kept only where something could be read from them. */
      readonly bytes: Sensitive<Uint8Array> | undefined;
      readonly digest: string;
      readonly reading: FileReading;
    };

/** All that is remembered of one file between two listings. */
export interface ManifestFile {
  readonly name: string;
  /** Replaced only when something in it changes: comparing it by identity tells whether the wish has changed. */
  readonly part: SourcePart;
  readonly known: readonly Known[];
  /** The content that `known` was read from. */
  readonly good: Sensitive<Uint8Array> | undefined;
  readonly seen: Seen;
  /** Undefined when what is seen is what is believed. */
  readonly pending: Pending | undefined;
  /** It has changed, and how is not known before it is read. */
  readonly isBeingRead?: boolean;
  /** What it showed and had not said yet when it could not be read any more; as `keyOf` has it. */
  readonly showed?: readonly string[];
  /** Host clock: since when it has what cannot be understood. */
  readonly hidesSinceMs?: number;
  /** Host clock: since when it may say something else than is believed of it. */
  readonly doubtSinceMs?: number | undefined;
}

export interface Pending {
  /** Host clock: when this content, or absence, was seen first. */
  readonly sinceMs: number;
  readonly settleMs: number;
  /** Host clock: when a listing showed it still so, and it was due; undefined before. */
  readonly confirmedMs?: number | undefined;
  /** Pods that are no longer wanted once this is believed. */
  readonly losing: ReadonlySet<PodUid>;
  /** All that the file says no longer then, as `keyOf` has it. */
  readonly dropped: ReadonlySet<string>;
  /** It adds pods, and waits for what changed before them in other files (see `holdNewPods`). */
  readonly isHeld?: true;
}

/** So long after it is due what was held waits for other files to be read; then it counts all the same. */
const HELD_MS_MAX = 3_000;

/** What one look at the directory, or at some of it, brings with it for each of its files. */
export interface Listing {
  readonly nowMs: number;
  /** Host clock: when it began; what it shows may be as old. */
  readonly beganMs: number;
  readonly settleMs: number;
  /** Host clock: since when the file that waits longest has been waiting to be read; infinite when none is. */
  readonly readingSinceMs: number;
}

/** The file after a look; nothing that waits is believed yet (see `settle`). */
export function observe(
  name: string,
  before: ManifestFile | undefined,
  look: Look,
  listing: Listing,
): ManifestFile {
  if (look.kind === 'waiting')
    return before === undefined ? notReadYet(name) : { ...before, isBeingRead: true };
  const file =
    before?.isBeingRead === true ? { ...before, isBeingRead: false } : (before ?? nothingKnown(name));
  const { seen } = file;
  switch (look.kind) {
    case 'same':
      assert(seen.kind === 'content', 'only a content is the same again');
      return file;
    case 'missing':
      if (seen.kind === 'missing') return file;
      return wait({ ...file, seen: look }, [], listing);
    case 'unreadable':
      // Written again, and no more is known of it: nobody is told.
      if (seen.kind === 'unreadable' && seen.message === look.message)
        return seen.of === look.of ? file : { ...file, seen: look };
      return unknown(file, look, look.message);
    case 'content':
      return observeContent(file, look, listing);
  }
}

function observeContent(
  file: ManifestFile,
  look: Extract<Look, { kind: 'content' }>,
  listing: Listing,
): ManifestFile {
  const { bytes, digest, reading } = look;
  const isOfUse = reading.unreadable === undefined;
  const seen: Seen = { kind: 'content', bytes: isOfUse ? bytes : undefined, digest, reading };
  if (looksCut(file, bytes.reveal()))
    return unknown(file, seen, 'it ends in the middle of what it said before');
  const next = believe({ ...file, seen }, seen);
  if ((file.good !== undefined || reading.finished) && !isOtherwise(file.known, next.known)) return next;
  const waiting = wait({ ...file, seen }, next.known, listing);
  // Nothing is known of a new file until it has settled.
  return file.good === undefined ? awaited(waiting, UNFINISHED) : waiting;
}

/** The file after a look that showed it as it is believed to be soon: when that is due, it waits for no other look. */
export function confirm(file: ManifestFile, { nowMs, beganMs }: Listing): ManifestFile {
  const { pending } = file;
  if (pending === undefined || isConfirmed(pending)) return file;
  if (pending.sinceMs >= beganMs || dueOf(pending) > beganMs) return file;
  return { ...file, pending: { ...pending, confirmedMs: nowMs } };
}

/** It has changed again, and how is not known before it is read. */
export function unconfirmed(file: ManifestFile): ManifestFile {
  if (file.pending?.confirmedMs === undefined) return file;
  return { ...file, pending: { ...file.pending, confirmedMs: undefined } };
}

/**
 * May what the file waits for count? What one file does not say any more another may say that was there by then, so all
 * of those are read before; what they show and do not say yet is for `settleTogether`.
 */
export function isDue({ pending }: ManifestFile, listing: Listing): boolean {
  if (pending === undefined || !isConfirmed(pending)) return false;
  const isOver = pending.isHeld === true && listing.nowMs >= dueOf(pending) + HELD_MS_MAX;
  return pending.confirmedMs < listing.readingSinceMs || isOver;
}

/** The file when what it waited for counts: undefined when it is believed to be gone. */
export function settle(file: ManifestFile): ManifestFile | undefined {
  return file.seen.kind === 'content' ? believe(file, file.seen) : undefined;
}

/** Host clock: when what is pending is due by the clock alone; undefined when nothing waits. */
export function dueMs(file: ManifestFile): number | undefined {
  const { pending } = file;
  if (pending === undefined) return undefined;
  return pending.isHeld === true && isConfirmed(pending) ? dueOf(pending) + HELD_MS_MAX : dueOf(pending);
}

/** Host clock: when the file should be looked at again; undefined when nothing waits, or for other files alone. */
export function lookMs(file: ManifestFile, { nowMs }: Listing): number | undefined {
  const atMs = dueMs(file);
  if (atMs === undefined || atMs > nowMs) return atMs;
  // When it has been read, or another one has, or that one counts, there is a look for all.
  const waits = file.isBeingRead === true || (file.pending !== undefined && isConfirmed(file.pending));
  return waits ? undefined : atMs;
}

/** The same file, waiting for at least `settleMs`. */
export function waitLonger(file: ManifestFile, settleMs: number): ManifestFile {
  if (file.pending === undefined || file.pending.settleMs >= settleMs) return file;
  return { ...file, pending: { ...file.pending, settleMs } };
}

function dueOf({ sinceMs, settleMs }: Pending): number {
  return sinceMs + settleMs;
}

/** Since then it may have to wait longer. */
function isConfirmed(pending: Pending): pending is Pending & { readonly confirmedMs: number } {
  return pending.confirmedMs !== undefined && pending.confirmedMs >= dueOf(pending);
}

export function nothingKnown(name: string): ManifestFile {
  const part: SourcePart = { name, objects: [], rejected: [], unknown: false, frozenPods: new Set() };
  return { name, part, known: [], good: undefined, seen: { kind: 'missing' }, pending: undefined };
}

function notReadYet(name: string): ManifestFile {
  return awaited({ ...nothingKnown(name), seen: { kind: 'waiting' } }, 'it is waiting to be read');
}

const UNFINISHED = 'it ends as if it were still being written, and waits until it is still';

/** The file of which nothing is known, and will be in a moment; `why` not yet is told to people. */
export function awaited(file: ManifestFile, why: string): ManifestFile {
  const rejected: readonly Rejection[] = [{ origin: file.name, message: why, isPassing: true }];
  return { ...file, part: { ...file.part, rejected, unknown: true, isAwaited: true } };
}

/**
 * The beginning of what the file said before, and no end of a line where there was one: a write that was cut short, by
 * a full disk, say, and that no waiting will complete.
 */
function looksCut(file: ManifestFile, bytes: Uint8Array): boolean {
  const good = file.good?.reveal();
  if (good === undefined || good.at(-1) !== NEWLINE || bytes.at(-1) === NEWLINE) return false;
  return bytes.length < good.length && Buffer.compare(good.subarray(0, bytes.length), bytes) === 0;
}

const NEWLINE = 0x0a;

function unknown(file: ManifestFile, seen: Seen, message: string): ManifestFile {
  const rejected: readonly Rejection[] = [{ origin: file.name, message }];
  const { isAwaited: _, ...rest } = file.part;
  const part = { ...rest, rejected, unknown: true, isUnread: file.good === undefined };
  return { ...file, seen, pending: undefined, part };
}

/** `next`: what is known once it is believed. */
function wait(file: ManifestFile, next: readonly Known[], listing: Listing): ManifestFile {
  const { nowMs: sinceMs, settleMs } = listing;
  const kept = new Set(keysOf(next));
  const gone = file.known.filter((one) => !kept.has(keyOf(one.stamped)));
  const pending = { sinceMs, settleMs, losing: new Set(podsOf(gone)), dropped: new Set(keysOf(gone)) };
  return { ...file, pending };
}

/** Takes a reading as what the file says. One that cannot be understood takes nothing. */
function believe(file: ManifestFile, { reading, bytes }: Extract<Seen, { kind: 'content' }>): ManifestFile {
  if (reading.unreadable !== undefined) return unknown(file, file.seen, reading.unreadable);
  const before = new Map(file.known.map((one) => [identityOf(one.stamped), one]));
  const read = reading.objects.map((one) => know(file.name, one, before.get(identityOf(one.object))));
  const shown = new Set(read.map((one) => identityOf(one.stamped)));
  // With a part refused, an object that is not there may be that part: it stays as it was.
  const kept =
    reading.refused.length === 0 ? [] : file.known.filter((one) => !shown.has(identityOf(one.stamped)));
  const known = [...read, ...kept];
  const frozenPods = new Set([
    ...podsOf(kept),
    ...reading.refused.flatMap(({ subject }) => (subject?.pod === undefined ? [] : [subject.pod])),
  ]);
  const part: SourcePart = {
    name: file.name,
    objects: known.map((one) => one.stamped),
    rejected: reading.rejected,
    unknown: reading.refused.some(({ subject }) => subject === undefined),
    frozenPods,
  };
  const same = known.every((one, index) => one === file.known[index]) && saysTheSame(part, file.part);
  const believed = { known, part: same ? file.part : part, good: bytes };
  return { ...file, ...believed, pending: undefined, doubtSinceMs: undefined };
}

/** Apart from the contents of objects, which the caller has compared. */
function saysTheSame(a: SourcePart, b: SourcePart): boolean {
  return (
    a.objects.length === b.objects.length &&
    a.unknown === b.unknown &&
    a.isAwaited === b.isAwaited &&
    isDeepStrictEqual(a.rejected, b.rejected) &&
    isDeepStrictEqual(a.frozenPods, b.frozenPods)
  );
}
