/**
 * One manifest file over time: what it says, what it said last while it cannot be read, and what waits to be believed.
 * Pure: each listing makes a new one from the last.
 *
 * A file is written by people and editors, in steps. So what it adds counts at once; that an object is gone or
 * different counts only after the same content (or absence) was seen in two listings, `settleMs` apart; and a file that
 * cannot be understood says nothing at all: its last good objects stay.
 */
import { isDeepStrictEqual } from 'node:util';
import { assert } from '../mount/failure.ts';
import type { FileEntry } from '../mount/host.ts';
import { Sensitive } from '../plugins/sensitive.ts';
import type { PodUid } from '../plugins/volume.ts';
import type { ManifestLimits } from './manifest-limits.ts';
import { type FileReading, type ReadObject, readManifestFile } from './manifest-reading.ts';
import { identityOf, sameContent, type Stamped, type WishObject } from './objects.ts';
import type { Rejection, SourceWish } from './wish.ts';

/** What the last listing showed. */
type Seen =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unreadable'; readonly message: string }
  | { readonly kind: 'content'; readonly bytes: Sensitive<Uint8Array>; readonly reading: FileReading };

interface Known {
  /** As read, for comparing; `stamped` is the same object as wanted. */
  readonly bare: WishObject;
  readonly stamped: Stamped<WishObject>;
}

/** All that is remembered of one file between two listings. */
export interface ManifestFile {
  readonly name: string;
  /** Replaced only when something in it changes: comparing it by identity tells whether the wish has changed. */
  readonly wish: SourceWish;
  readonly known: readonly Known[];
  /** The content that `known` was read from. */
  readonly good: Sensitive<Uint8Array> | undefined;
  readonly seen: Seen;
  /** Undefined when what is seen is what is believed. */
  readonly pending: Pending | undefined;
}

interface Pending {
  /** Host clock: when this content, or absence, was seen first. */
  readonly sinceMs: number;
  readonly settleMs: number;
  /** Pods that are no longer wanted once this is believed. */
  readonly losing: ReadonlySet<PodUid>;
}

/** What one listing of the directory brings with it for each of its files. */
export interface Listing {
  readonly nowMs: number;
  readonly settleMs: number;
  readonly limits: ManifestLimits;
  /** Each answer is greater than the one before, and none is ever given twice. */
  readonly nextRevision: () => number;
}

/** The file after a listing; nothing that waits is believed yet (see `settle`). `entry` is undefined if it is gone. */
export function observe(
  name: string,
  before: ManifestFile | undefined,
  entry: FileEntry | undefined,
  listing: Listing,
): ManifestFile {
  const file = before ?? nothingKnown(name);
  const seen = look(file, entry, listing.limits);
  if (before !== undefined && seen === file.seen) return file;
  if (seen.kind === 'unreadable') return unknown(file, seen, seen.message);
  if (seen.kind === 'missing') return wait({ ...file, seen }, new Set(podsOf(file.known)), listing);
  if (looksCut(file, seen)) return unknown(file, seen, 'it ends in the middle of what it said before');
  const next = believe({ ...file, seen }, seen.reading, seen.bytes, listing);
  const lost = lostObjects(file.known, next.known);
  const finished = before !== undefined && file.good !== undefined ? true : seen.reading.finished;
  if (lost.length === 0 && finished) return next;
  const kept = new Set(podsOf(next.known));
  const waiting = wait({ ...file, seen }, new Set(podsOf(lost).filter((pod) => !kept.has(pod))), listing);
  // Of a new file nothing is known until it has settled.
  return file.good === undefined ? { ...waiting, wish: { ...waiting.wish, unknown: true } } : waiting;
}

/** The file once what it waited for is due: undefined when it is believed to be gone. */
export function settle(file: ManifestFile, listing: Listing): ManifestFile | undefined {
  if (!isDue(file, listing.nowMs)) return file;
  if (file.seen.kind !== 'content') return undefined;
  return believe(file, file.seen.reading, file.seen.bytes, listing);
}

/** Host clock: when the file should be looked at again; undefined when nothing waits. */
export function dueMs(file: ManifestFile): number | undefined {
  return file.pending === undefined ? undefined : file.pending.sinceMs + file.pending.settleMs;
}

/** The same file, waiting for at least `settleMs`. */
export function waitLonger(file: ManifestFile, settleMs: number): ManifestFile {
  if (file.pending === undefined || file.pending.settleMs >= settleMs) return file;
  return { ...file, pending: { ...file.pending, settleMs } };
}

function isDue(file: ManifestFile, nowMs: number): boolean {
  const due = dueMs(file);
  return due !== undefined && due <= nowMs && file.pending?.sinceMs !== nowMs;
}

function nothingKnown(name: string): ManifestFile {
  const wish: SourceWish = { name, objects: [], rejected: [], unknown: false, frozenPods: new Set() };
  return { name, wish, known: [], good: undefined, seen: { kind: 'missing' }, pending: undefined };
}

/** The last sight again, the very same one, when nothing has changed. */
function look(file: ManifestFile, entry: FileEntry | undefined, limits: ManifestLimits): Seen {
  const { seen } = file;
  if (entry === undefined) return seen.kind === 'missing' ? seen : { kind: 'missing' };
  if (entry.facts.kind === 'file' && entry.content === undefined) {
    assert(seen.kind === 'content', 'only a file whose content is there is not read again');
    return seen;
  }
  const message = whyUnreadable(entry);
  if (message === undefined && entry.content?.ok === true) {
    const bytes = entry.content.value;
    if (seen.kind === 'content' && Buffer.compare(seen.bytes.reveal(), bytes) === 0) return seen;
    return {
      kind: 'content',
      bytes: new Sensitive(bytes),
      reading: readManifestFile(file.name, bytes, limits),
    };
  }
  const why = message ?? 'it cannot be read';
  return seen.kind === 'unreadable' && seen.message === why ? seen : { kind: 'unreadable', message: why };
}

function whyUnreadable({ facts, content }: FileEntry): string | undefined {
  if (facts.kind === 'symlink') {
    return (
      'it is a symbolic link, and only regular files are read (so a mounted ConfigMap, made of links into ' +
      '..data, cannot be the manifest directory: copy the files)'
    );
  }
  if (facts.kind !== 'file') return `it is of kind ${facts.kind}, and only regular files are read`;
  return content === undefined || content.ok ? undefined : content.failure.message;
}

/**
 * The beginning of what the file said before, and no end of a line where there was one: a write that was cut short, by
 * a full disk, say, and that no waiting will complete.
 */
function looksCut(file: ManifestFile, seen: Extract<Seen, { kind: 'content' }>): boolean {
  const good = file.good?.reveal();
  const bytes = seen.bytes.reveal();
  if (good === undefined || good.at(-1) !== NEWLINE || bytes.at(-1) === NEWLINE) return false;
  return bytes.length < good.length && Buffer.compare(good.subarray(0, bytes.length), bytes) === 0;
}

const NEWLINE = 0x0a;

function unknown(file: ManifestFile, seen: Seen, message: string): ManifestFile {
  const rejected: readonly Rejection[] = [{ origin: file.name, message }];
  return { ...file, seen, pending: undefined, wish: { ...file.wish, rejected, unknown: true } };
}

function wait(file: ManifestFile, losing: ReadonlySet<PodUid>, listing: Listing): ManifestFile {
  return { ...file, pending: { sinceMs: listing.nowMs, settleMs: listing.settleMs, losing } };
}

/** Takes a reading as what the file says. One that cannot be understood takes nothing. */
function believe(
  file: ManifestFile,
  reading: FileReading,
  bytes: Sensitive<Uint8Array>,
  listing: Listing,
): ManifestFile {
  if (reading.unreadable !== undefined) return unknown(file, file.seen, reading.unreadable);
  const before = new Map(file.known.map((one) => [identityOf(one.bare), one]));
  const read = reading.objects.map((one) =>
    know(file.name, one, before.get(identityOf(one.object)), listing),
  );
  const shown = new Set(read.map((one) => identityOf(one.bare)));
  // With a part refused, an object that is not there may be that part: it stays as it was.
  const kept =
    reading.refused.length === 0 ? [] : file.known.filter((one) => !shown.has(identityOf(one.bare)));
  const known = [...read, ...kept];
  const frozenPods = new Set([
    ...podsOf(kept),
    ...reading.refused.flatMap(({ subject }) => (subject?.pod === undefined ? [] : [subject.pod])),
  ]);
  const wish: SourceWish = {
    name: file.name,
    objects: known.map((one) => one.stamped),
    rejected: reading.rejected,
    unknown: reading.refused.some(({ subject }) => subject === undefined),
    frozenPods,
  };
  const same = known.every((one, index) => one === file.known[index]) && saysTheSame(wish, file.wish);
  return { ...file, known, wish: same ? file.wish : wish, good: bytes, pending: undefined };
}

/** Apart from the contents of objects, which the caller has compared. */
function saysTheSame(a: SourceWish, b: SourceWish): boolean {
  return (
    a.objects.length === b.objects.length &&
    a.unknown === b.unknown &&
    isDeepStrictEqual(a.rejected, b.rejected) &&
    isDeepStrictEqual(a.frozenPods, b.frozenPods)
  );
}

function know(origin: string, read: ReadObject, before: Known | undefined, listing: Listing): Known {
  const { object: bare, place } = read;
  const same = before !== undefined && sameContent(before.bare, bare);
  if (same && before.stamped.place === place) return before;
  const revision = same ? before.stamped.revision : listing.nextRevision();
  return { bare, stamped: { ...bare, origin, place, revision } };
}

/** What was known and is not known so any more. */
function lostObjects(before: readonly Known[], after: readonly Known[]): readonly Known[] {
  const revisions = new Map(after.map((one) => [identityOf(one.bare), one.stamped.revision]));
  return before.filter((one) => revisions.get(identityOf(one.bare)) !== one.stamped.revision);
}

function podsOf(known: readonly Known[]): readonly PodUid[] {
  return known.flatMap(({ bare }) => (bare.kind === 'Pod' ? [bare.reference.uid] : []));
}
