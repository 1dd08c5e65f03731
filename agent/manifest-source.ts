/** A directory of manifests as a source of the wish: the watcher says "look", the listing says what is (decision 9). */
import type { Failure, Result } from '../mount/failure.ts';
import type { AbsolutePath, Cancel, ContentStamp, FileEntry, Host } from '../mount/host.ts';
import { dueMs, type Listing, type ManifestFile, observe, settle } from './manifest-file.ts';
import { DEFAULT_MANIFEST_LIMITS, type ManifestLimits } from './manifest-limits.ts';
import { guard, isSameVanishing, vanishing, type Vanishing } from './vanishing.ts';
import { assembleWish, compareText, EMPTY_WISH, type Rejection, type Wish, type WishSource } from './wish.ts';

/** What a manifest source is made of; times in milliseconds. */
export interface ManifestSourceParts {
  readonly host: Pick<Host, 'nowMs' | 'timer' | 'random' | 'watch' | 'readDirectoryFiles'>;
  readonly directory: AbsolutePath;
  readonly limits?: ManifestLimits;
  /** How often every file is read, hinted at or not. */
  readonly resyncMs?: number;
  /** How long a disappearance or a change must last before it counts. */
  readonly settleMs?: number;
}

const RESYNC_MS = 60_000;
const SETTLE_MS = 300;
/** After a listing that failed; doubled up to the resync. */
const RETRY_MS = 1_000;
const MANIFEST_NAME = /^[^.].*\.(?:yaml|yml|json)$/s;
/** Revisions begin anywhere below this, so that one of an earlier life is not met again by chance. */
const FIRST_REVISION_MAX = 2 ** 40;

/**
 * Guarantees: one listing at a time, and after every hint one that began later; a listing that fails changes nothing
 * that is wanted; `current()` is replaced as a whole and never changed in place. After a hint only those files are read
 * that have other times than before; what changed behind its times (mapped memory, a file server's clock) is seen by
 * the next resync.
 */
export function createManifestSource(parts: ManifestSourceParts): WishSource {
  const {
    host,
    directory,
    limits = DEFAULT_MANIFEST_LIMITS,
    resyncMs = RESYNC_MS,
    settleMs = SETTLE_MS,
  } = parts;
  const listeners = new Set<() => void>();
  let files: ReadonlyMap<string, ManifestFile> = new Map();
  let stamps: ReadonlyMap<string, ContentStamp> = new Map();
  let trouble: Failure | undefined;
  let leaving: Vanishing | undefined;
  let wish: Wish = EMPTY_WISH;
  let revision = Math.floor(host.random() * FIRST_REVISION_MAX);
  let retryMs = RETRY_MS;
  let state: 'new' | 'idle' | 'listing' | 'stale' | 'stopped' = 'new';
  let cancelWatch: Cancel = () => {};
  let cancelLook: Cancel = () => {};
  let isResyncDue = true;
  let cancelResync: Cancel = () => {};

  function nextRevision(): number {
    revision += 1;
    return revision;
  }

  /** Lists now, or once more when the listing under way has ended: a hint during it may be about what it has passed. */
  async function list(): Promise<void> {
    if (state === 'stopped') return;
    if (state === 'listing' || state === 'stale') {
      state = 'stale';
      return;
    }
    state = 'listing';
    const isResync = isResyncDue;
    const listed = await host.readDirectoryFiles(directory, {
      entriesMax: limits.filesMax,
      fileBytesMax: limits.fileBytesMax,
      ...(isResync ? {} : { known: stamps }),
    });
    if (isStopped()) return;
    const again = hintedMeanwhile();
    state = 'idle';
    if (listed.ok && isResync) planResync();
    take(listed);
    if (again) void list();
  }

  // Asked after an await, when the state may be another than the one the compiler has seen last.
  function isStopped(): boolean {
    return state === 'stopped';
  }

  function hintedMeanwhile(): boolean {
    return state === 'stale';
  }

  function take(listed: Result<readonly FileEntry[]>): void {
    const nowMs = host.nowMs();
    const before = files;
    const troubleBefore = trouble;
    const leavingBefore = leaving;
    if (listed.ok) {
      files = afterListing(files, manifestsOf(listed.value), { nowMs, settleMs, limits, nextRevision });
      stamps = stampsOf(listed.value);
    }
    leaving = vanishing(files.values(), { settleMs });
    trouble = listed.ok ? undefined : listed.failure;
    retryMs = listed.ok ? RETRY_MS : Math.min(retryMs * 2, resyncMs);
    planLook(listed.ok ? nextLookMs(files, nowMs) : Math.min(retryMs, resyncMs));
    const complete = wish.complete || listed.ok;
    const isNews = trouble?.message !== troubleBefore?.message || !isSameVanishing(leavingBefore, leaving);
    if (complete !== wish.complete || isNews || differ(before, files)) {
      wish = assemble(complete);
      for (const listener of listeners) listener();
    }
  }

  function assemble(complete: boolean): Wish {
    const sources = [...files.values()].map((one) => one.wish);
    const said: Wish = { ...assembleWish(complete, sources, limits.objectsMax), vanishing: leaving };
    if (trouble === undefined) return said;
    // What the files said last stays wanted as it is; only that the directory cannot be read has to be told.
    const rejection: Rejection = { origin: directory, message: trouble.message };
    return {
      ...said,
      rejected: [rejection, ...said.rejected],
      unknownOrigins: new Set([...said.unknownOrigins, directory]),
    };
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
    async start() {
      if (state !== 'new') return;
      cancelWatch = host.watch(directory, () => {
        if (state !== 'new') void list();
      });
      state = 'idle';
      await list();
    },
    stop() {
      state = 'stopped';
      cancelWatch();
      cancelLook();
      cancelResync();
      listeners.clear();
    },
    current: () => wish,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function manifestsOf(entries: readonly FileEntry[]): ReadonlyMap<string, FileEntry> {
  return new Map(entries.filter(({ name }) => MANIFEST_NAME.test(name)).map((one) => [one.name, one]));
}

function stampsOf(entries: readonly FileEntry[]): ReadonlyMap<string, ContentStamp> {
  return new Map(entries.flatMap(({ name, stamp }) => (stamp === undefined ? [] : [[name, stamp]])));
}

function afterListing(
  before: ReadonlyMap<string, ManifestFile>,
  entries: ReadonlyMap<string, FileEntry>,
  listing: Listing,
): ReadonlyMap<string, ManifestFile> {
  const names = [...new Set([...before.keys(), ...entries.keys()])].sort(compareText);
  const observed = names.map((name) => observe(name, before.get(name), entries.get(name), listing));
  const settled = guard(observed).flatMap((one) => settle(one, listing) ?? []);
  return new Map(settled.map((one) => [one.name, one]));
}

/** Undefined when no file waits for another look. */
function nextLookMs(files: ReadonlyMap<string, ManifestFile>, nowMs: number): number | undefined {
  const dues = [...files.values()].flatMap((file) => dueMs(file) ?? []);
  return dues.length === 0 ? undefined : Math.max(1, Math.min(...dues) - nowMs);
}

function differ(
  before: ReadonlyMap<string, ManifestFile>,
  after: ReadonlyMap<string, ManifestFile>,
): boolean {
  if (before.size !== after.size) return true;
  for (const [name, { wish }] of after) if (before.get(name)?.wish !== wish) return true;
  return false;
}
