/** A directory of manifests as a source of objects: the watcher says "look", the listing says what is (D-9). */
import type { Failure, Result } from '../../../mount/failure.ts';
import type {
  AbsolutePath,
  Cancel,
  DirectoryIdentity,
  DirectoryReading,
  FileEntry,
  Host,
} from '../../../mount/host.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { DirectoryTrust } from './directory-trust.ts';
import { createManifestDesk } from './manifest-desk.ts';
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
import { DEFAULT_MANIFEST_LIMITS, type ManifestLimits } from './manifest-limits.ts';
import type { ManifestParser } from './manifest-parser.ts';
import { ALL_SEEN, believeGone, guard, type GuardFacts, isSameRemoval, massRemoval } from './mass-removal.ts';
import { compareText } from '../desired-objects.ts';
import type { ObjectsSource, MassRemoval } from '../objects-source.ts';

/** What a manifest source is made of; times in milliseconds. */
export interface ManifestSourceParts {
  readonly host: Pick<Host, 'nowMs' | 'timer' | 'watch' | 'readDirectoryFiles'>;
  readonly directory: AbsolutePath;
  readonly parser: ManifestParser;
  readonly limits?: ManifestLimits;
  /** How often every file is read, hinted at or not. */
  readonly resyncMs?: number;
  /** How long a disappearance or a change must last before it counts. */
  readonly settleMs?: number;
  /** Which directory may be read; by default whichever is there. */
  readonly trust?: Pick<DirectoryTrust, 'identify'>;
  /** Pods that the records know and no manifest has; by default none. */
  readonly missing?: () => number;
  /** How long what is not in a directory that was accepted in the place of another one is kept. */
  readonly holdMs?: number;
}

export interface ManifestSource extends Omit<ObjectsSource, 'start' | 'keeping'> {
  /** As `ObjectsSource.start`. */
  start(): Promise<void>;
  /** The directory was accepted as the right one: it is read now, and what is not in it vanished unseen. */
  accepted(): void;
  /** An operator's word that these pods are gone: what of them is kept in case it is a mistake is kept no longer. */
  forget(pods: Iterable<PodUid>): void;
}

const RESYNC_MS = 60_000;
const SETTLE_MS = 300;
/** After a listing that failed; doubled up to the resync. */
const RETRY_MS = 1_000;
const MANIFEST_NAME = /^[^.].*\.(?:yaml|yml|json)$/s;

/**
 * Guarantees: one listing at a time, and after every hint one that began later; a listing that fails changes nothing
 * that is wanted. After a hint only those files are read
 * that have other times than before; what changed behind its times (mapped memory, a file server's clock) is seen by
 * the next resync. A file that is yet to be read is unknown, and as long as one is that was there when what another
 * dropped had settled, what was dropped stays wanted.
 */
export function createManifestSource(parts: ManifestSourceParts): ManifestSource {
  const {
    host,
    directory,
    parser,
    limits = DEFAULT_MANIFEST_LIMITS,
    resyncMs = RESYNC_MS,
    settleMs = SETTLE_MS,
  } = parts;
  const listeners = new Set<() => void>();
  let files: ReadonlyMap<string, ManifestFile> = new Map();
  const desk = createManifestDesk({
    host: { nowMs: () => host.nowMs(), readDirectoryFiles: read },
    directory,
    parser,
    limits,
    digestOf: (name) => {
      const seen = files.get(name)?.seen;
      return seen?.kind === 'content' ? seen.digest : undefined;
    },
    onRead: (looks) => {
      if (isStopped()) return;
      look(looks, listing());
      told();
    },
  });
  /** Host clock: of the first listing that succeeded. */
  let listedMs = Number.POSITIVE_INFINITY;
  let toldFiles = files;
  let trouble: Failure | undefined;
  let leaving: MassRemoval | undefined;
  let isComplete = false;
  let retryMs = RETRY_MS;
  let state: 'new' | 'idle' | 'listing' | 'stale' | 'stopped' = 'new';
  let cancelWatch: Cancel = () => {};
  let watched: string | undefined;
  let cancelLook: Cancel = () => {};
  let isResyncDue = true;
  let isAccepted = false;
  /** Host clock: of the first listing of a directory that was accepted, until all of it has been read. */
  let acceptedMs: number | undefined;
  let forgotten: ReadonlySet<PodUid> = new Set();
  let cancelResync: Cancel = () => {};

  /** Lists now, or once more when the listing under way has ended: a hint during it may be about what it has passed. */
  async function list(): Promise<void> {
    if (state === 'stopped') return;
    if (state === 'listing' || state === 'stale') {
      state = 'stale';
      return;
    }
    state = 'listing';
    const isResync = isResyncDue;
    const listed = await read(directory, desk.reading(isResync));
    if (isStopped()) return;
    const again = hintedMeanwhile();
    state = 'idle';
    if (listed.ok && isResync) planResync();
    take(listed);
    if (again) void list();
  }

  /** Reads the directory that is trusted, and no other. */
  async function read(path: AbsolutePath, reading: DirectoryReading): Promise<Result<readonly FileEntry[]>> {
    const trusted = await parts.trust?.identify();
    if (trusted?.ok === false) return trusted;
    if (trusted !== undefined) watchAnew(trusted.value);
    const identity = trusted === undefined ? {} : { identity: trusted.value };
    return host.readDirectoryFiles(path, { ...reading, ...identity });
  }

  function watch(): void {
    cancelWatch();
    cancelWatch = host.watch(directory, () => {
      if (state !== 'new') void list();
    });
  }

  /** What was mounted over it, or put in its place, may have been watched instead: nobody tells of a mount. */
  function watchAnew({ mountId, device, inode }: DirectoryIdentity): void {
    const now = `${mountId} ${device} ${inode}`;
    if (now === watched) return;
    const isAsBegun = watched === undefined && trouble === undefined;
    watched = now;
    if (!isAsBegun) watch();
  }

  /** What is not in a directory that was just accepted vanished unseen, until all that is in it has been read. */
  function look(looks: ReadonlyMap<string, Look>, now: Listing): void {
    const holdMs = acceptedMs === undefined ? undefined : parts.holdMs;
    files = afterLooks(files, looks, now, { missing: parts.missing?.() ?? 0, holdMs, forgotten });
    if (acceptedMs !== undefined && desk.readingSinceMs() > acceptedMs) acceptedMs = undefined;
  }

  // Asked after an await, when the state may be another than the one the compiler has seen last.
  function isStopped(): boolean {
    return state === 'stopped';
  }

  function hintedMeanwhile(): boolean {
    return state === 'stale';
  }

  function listing(nowMs = host.nowMs()): Listing {
    return { nowMs, settleMs, readingSinceMs: desk.readingSinceMs() };
  }

  function take(listed: Result<readonly FileEntry[]>): void {
    const troubleBefore = trouble;
    if (listed.ok) {
      const nowMs = host.nowMs();
      listedMs = Math.min(listedMs, nowMs);
      const manifests = listed.value.filter(({ name }) => MANIFEST_NAME.test(name));
      const looks = desk.look(manifests, nowMs);
      const gone = [...files.keys()].filter((name) => !looks.has(name));
      if (isAccepted) acceptedMs = nowMs;
      isAccepted = false;
      look(new Map([...gone.map(missing), ...looks]), listing(nowMs));
    }
    trouble = listed.ok ? undefined : listed.failure;
    retryMs = listed.ok ? RETRY_MS : Math.min(retryMs * 2, resyncMs);
    // What was listed is read in a moment, and then there is more to tell.
    told(trouble?.message !== troubleBefore?.message, true);
  }

  /** After every change of `files`: what is wanted now, and when to look again. */
  function told(isTroubleNew = false, soonMore = false): void {
    const leavingBefore = leaving;
    leaving = massRemoval(files.values(), { settleMs });
    planLook(trouble === undefined ? nextLookMs(files, listing()) : Math.min(retryMs, resyncMs));
    const wasComplete = isComplete;
    isComplete ||= desk.readingSinceMs() > listedMs;
    const isNews = isTroubleNew || !isSameRemoval(leavingBefore, leaving);
    if (isComplete !== wasComplete || isNews || differ(toldFiles, files, soonMore)) {
      toldFiles = files;
      for (const listener of listeners) listener();
    }
  }

  function planLook(delayMs: number | undefined): void {
    cancelLook();
    if (delayMs !== undefined) cancelLook = host.timer(delayMs, () => void list());
  }

  function planResync(): void {
    isResyncDue = false;
    cancelResync = host.timer(resyncMs, () => {
      isResyncDue = true;
      void list();
    });
  }

  return {
    name: directory,
    accepted() {
      isAccepted = true;
      isResyncDue = true;
      if (state !== 'new') void list();
    },
    forget(pods) {
      const said = new Set(podsIn(files.values()));
      forgotten = new Set([...forgotten, ...pods].filter((pod) => said.has(pod)));
      files = new Map([...files].map(([name, one]) => [name, believeGone(one, forgotten, { settleMs })]));
      if (state !== 'new') void list();
    },
    async start() {
      if (state !== 'new') return;
      watch();
      state = 'idle';
      await list();
      await desk.quiet();
    },
    stop() {
      state = 'stopped';
      desk.stop();
      cancelWatch();
      cancelLook();
      cancelResync();
      listeners.clear();
    },
    current: () => ({
      complete: isComplete,
      parts: [...files.values()].map((one) => one.wish),
      doubt: trouble,
      report: leaving === undefined ? undefined : { massRemoval: leaving },
    }),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function podsIn(files: Iterable<ManifestFile>): readonly PodUid[] {
  const objects = [...files].flatMap(({ wish }) => wish.objects);
  return objects.flatMap((one) => (one.kind === 'Pod' ? [one.reference.uid] : []));
}

function missing(name: string): [string, Look] {
  return [name, { kind: 'missing' }];
}

/** Only those that were looked at can be as they were seen before; all can have settled, when others were read. */
function afterLooks(
  before: ReadonlyMap<string, ManifestFile>,
  looks: ReadonlyMap<string, Look>,
  listing: Listing,
  facts: GuardFacts = ALL_SEEN,
): ReadonlyMap<string, ManifestFile> {
  const names = [...new Set([...before.keys(), ...looks.keys()])].sort(compareText);
  const observed = names.flatMap((name) => {
    const file = before.get(name);
    const look = looks.get(name);
    return look === undefined ? (file ?? []) : observe(name, file, look, listing);
  });
  const settled = guard(observed, facts).flatMap((one) => {
    const look = looks.get(one.name);
    if (look === undefined) return settle(one, listing) ?? [];
    if (look.kind === 'waiting') return unconfirmed(one);
    return settle(confirm(one, listing), listing) ?? [];
  });
  return new Map(settled.map((one) => [one.name, one]));
}

/** Undefined when no file waits for another look. */
function nextLookMs(
  files: ReadonlyMap<string, ManifestFile>,
  { nowMs, readingSinceMs }: Listing,
): number | undefined {
  const isReading = readingSinceMs < Number.POSITIVE_INFINITY;
  // What is due and waits for another file to be read is looked at when that has been.
  const dues = [...files.values()].flatMap((file) => dueMs(file) ?? []);
  const waiting = dues.filter((atMs) => !isReading || atMs > nowMs);
  return waiting.length === 0 ? undefined : Math.max(1, Math.min(...waiting) - nowMs);
}

function differ(
  before: ReadonlyMap<string, ManifestFile>,
  after: ReadonlyMap<string, ManifestFile>,
  exceptWaiting: boolean,
): boolean {
  for (const name of before.keys()) if (!after.has(name)) return true;
  for (const [name, { wish, seen }] of after) {
    if (exceptWaiting && seen.kind === 'waiting') continue;
    if (before.get(name)?.wish !== wish) return true;
  }
  return false;
}
