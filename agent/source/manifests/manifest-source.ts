/** A directory of manifests as a source of objects: the watcher says "look", the listing says what is (D-9). */
import type { Failure, Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Cancel, FileEntry, Host } from '../../../mount/host.ts';
import type { PodUid } from '../../../plugins/volume.ts';
import type { DirectoryTrust } from './directory-trust.ts';
import { createManifestDesk, type ManifestDesk } from './manifest-desk.ts';
import type { Listing, Look } from './manifest-file.ts';
import {
  afterLooks,
  differ,
  type ManifestFiles,
  mayWantPods,
  missing,
  nextLookMs,
} from './manifest-files.ts';
import { isManifestName, passedOver, passedOverText } from './manifest-name.ts';
import { DEFAULT_MANIFEST_LIMITS, type ManifestLimits } from './parse/manifest-limits.ts';
import type { ManifestParser } from './parse/manifest-parser.ts';
import { believeGone, isSameRemoval, massRemoval, stillLost } from './mass-removal.ts';
import { createWatchedDirectory, type WatchedDirectory } from './watched-directory.ts';
import type { MassRemoval, ObjectsSource, SourceReading, SourceReport } from '../objects-source.ts';

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
  readonly trust?: Pick<DirectoryTrust, 'identify' | 'expected'>;
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
  /** A pod is wanted by what was read, be it told or not, or may be by what is being read. */
  mayWantPods(): boolean;
}

const RESYNC_MS = 60_000;
const SETTLE_MS = 300;
/** After a listing that failed; doubled up to the resync. */
const RETRY_MS = 1_000;

/**
 * Guarantees: one listing at a time, and after every hint one that began later; a listing that fails changes nothing
 * that is wanted. After a hint only those files are read
 * that have other times than before; what changed behind its times (mapped memory, a file server's clock) is seen by
 * the next resync. A file that is yet to be read is unknown, and as long as one is that was there when what another
 * dropped had settled, what was dropped stays wanted.
 */
export function createManifestSource(parts: ManifestSourceParts): ManifestSource {
  return new ListedManifests(parts);
}

class ListedManifests implements ManifestSource {
  readonly name: AbsolutePath;
  readonly #parts: ManifestSourceParts;
  readonly #resyncMs: number;
  readonly #settleMs: number;
  readonly #listeners = new Set<() => void>();
  readonly #directory: WatchedDirectory;
  readonly #desk: ManifestDesk;
  #files: ManifestFiles = new Map();
  #toldFiles = this.#files;
  /** Host clock: of the first listing that succeeded. */
  #listedMs = Number.POSITIVE_INFINITY;
  #trouble: Failure | undefined;
  #leaving: MassRemoval | undefined;
  /** Files that are not read for their names. */
  #passedOver: readonly string[] = [];
  #isComplete = false;
  #retryMs = RETRY_MS;
  #state: 'new' | 'idle' | 'listing' | 'stale' | 'stopped' = 'new';
  #isResyncDue = true;
  #isAccepted = false;
  /** Host clock: of the first listing of a directory that was accepted, until all of it has been read. */
  #acceptedMs: number | undefined;
  #forgotten: ReadonlySet<PodUid> = new Set();
  #cancelLook: Cancel = () => {};
  #cancelResync: Cancel = () => {};

  constructor(parts: ManifestSourceParts) {
    const { host, directory, parser, limits = DEFAULT_MANIFEST_LIMITS } = parts;
    this.name = directory;
    this.#parts = parts;
    this.#resyncMs = parts.resyncMs ?? RESYNC_MS;
    this.#settleMs = parts.settleMs ?? SETTLE_MS;
    this.#directory = createWatchedDirectory({
      host,
      directory,
      trust: parts.trust,
      concerns: isManifestName,
      onHint: () => this.#hint(),
      isInTrouble: () => this.#trouble !== undefined,
    });
    this.#desk = createManifestDesk({
      host: { nowMs: () => host.nowMs(), readDirectoryFiles: this.#directory.read },
      directory,
      parser,
      limits,
      digestOf: (name) => {
        const seen = this.#files.get(name)?.seen;
        return seen?.kind === 'content' ? seen.digest : undefined;
      },
      onRead: (looks) => {
        if (this.#isStopped()) return;
        this.#look(looks, this.#listing());
        this.#told();
      },
    });
  }

  async start(): Promise<void> {
    if (this.#state !== 'new') return;
    this.#directory.watch();
    this.#state = 'idle';
    await this.#list();
    await this.#desk.quiet();
  }

  stop(): void {
    this.#state = 'stopped';
    this.#desk.stop();
    this.#directory.stop();
    this.#cancelLook();
    this.#cancelResync();
    this.#listeners.clear();
  }

  accepted(): void {
    this.#isAccepted = true;
    this.#isResyncDue = true;
    this.#hint();
  }

  forget(pods: Iterable<PodUid>): void {
    const forgotten = stillLost([...this.#forgotten, ...pods], this.#files.values());
    const settleMs = this.#settleMs;
    this.#forgotten = forgotten;
    this.#files = new Map(
      [...this.#files].map(([name, one]) => [name, believeGone(one, forgotten, { settleMs })]),
    );
    this.#hint();
  }

  mayWantPods(): boolean {
    return mayWantPods(this.#files);
  }

  current(): SourceReading {
    return {
      complete: this.#isComplete,
      parts: [...this.#files.values()].map((one) => one.part),
      doubt: this.#trouble,
      report: this.#report(),
    };
  }

  #report(): SourceReport {
    const remark = passedOverText(this.#passedOver);
    const massRemoval = this.#leaving;
    return { ...(massRemoval && { massRemoval }), ...(remark === undefined ? {} : { remark }) };
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #hint(): void {
    if (this.#state !== 'new') void this.#list();
  }

  /** Lists now, or once more when the listing under way has ended: a hint during it may be about what it has passed. */
  async #list(): Promise<void> {
    if (this.#state === 'stopped') return;
    if (this.#state === 'listing' || this.#state === 'stale') {
      this.#state = 'stale';
      return;
    }
    this.#state = 'listing';
    const isResync = this.#isResyncDue;
    const beganMs = this.#parts.host.nowMs();
    const listed = await this.#directory.read(this.name, this.#desk.reading(isResync));
    if (this.#isStopped()) return;
    const again = this.#hintedMeanwhile();
    this.#state = 'idle';
    if (listed.ok && isResync) this.#planResync();
    this.#take(listed, beganMs, isResync);
    if (again) void this.#list();
  }

  /** What is not in a directory that was just accepted vanished unseen, until all that is in it has been read. */
  #look(looks: ReadonlyMap<string, Look>, now: Listing): void {
    const holdMs = this.#acceptedMs === undefined ? undefined : this.#parts.holdMs;
    const facts = { missing: this.#parts.missing?.() ?? 0, holdMs, forgotten: this.#forgotten };
    this.#files = afterLooks(this.#files, looks, now, facts);
    this.#forgotten = stillLost(this.#forgotten, this.#files.values());
    if (this.#acceptedMs !== undefined && this.#desk.readingSinceMs() > this.#acceptedMs)
      this.#acceptedMs = undefined;
  }

  // Asked after an await, when the state may be another than the one the compiler has seen last.
  #isStopped(): boolean {
    return this.#state === 'stopped';
  }

  #hintedMeanwhile(): boolean {
    return this.#state === 'stale';
  }

  #listing(nowMs = this.#parts.host.nowMs(), beganMs = nowMs): Listing {
    return { nowMs, beganMs, settleMs: this.#settleMs, readingSinceMs: this.#desk.readingSinceMs() };
  }

  #take(listed: Result<readonly FileEntry[]>, beganMs: number, isResync: boolean): void {
    const troubleBefore = this.#trouble;
    const passedBefore = this.#passedOver;
    if (listed.ok) {
      const nowMs = this.#parts.host.nowMs();
      this.#listedMs = Math.min(this.#listedMs, nowMs);
      const manifests = listed.value.filter(({ name }) => isManifestName(name));
      this.#passedOver = passedOver(listed.value, passedBefore, !isResync);
      const looks = this.#desk.look(manifests, nowMs);
      const gone = [...this.#files.keys()].filter((name) => !looks.has(name));
      if (this.#isAccepted) this.#acceptedMs = nowMs;
      this.#isAccepted = false;
      this.#look(new Map([...gone.map(missing), ...looks]), this.#listing(nowMs, beganMs));
    }
    this.#trouble = listed.ok ? undefined : listed.failure;
    this.#retryMs = listed.ok ? RETRY_MS : Math.min(this.#retryMs * 2, this.#resyncMs);
    // What was listed is read in a moment, and then there is more to tell.
    const isTroubleNew = this.#trouble?.message !== troubleBefore?.message;
    this.#told(isTroubleNew || this.#passedOver !== passedBefore, true);
  }

  /** After every change of the files: what is wanted now, and when to look again. */
  #told(isRemarkNew = false, soonMore = false): void {
    const leavingBefore = this.#leaving;
    this.#leaving = massRemoval(this.#files.values(), { settleMs: this.#settleMs });
    const retryMs = Math.min(this.#retryMs, this.#resyncMs);
    this.#planLook(this.#trouble === undefined ? nextLookMs(this.#files, this.#listing()) : retryMs);
    const wasComplete = this.#isComplete;
    this.#isComplete ||= this.#desk.readingSinceMs() > this.#listedMs;
    const isNews = isRemarkNew || !isSameRemoval(leavingBefore, this.#leaving);
    if (this.#isComplete !== wasComplete || isNews || differ(this.#toldFiles, this.#files, soonMore)) {
      this.#toldFiles = this.#files;
      for (const listener of this.#listeners) listener();
    }
  }

  #planLook(delayMs: number | undefined): void {
    this.#cancelLook();
    if (delayMs !== undefined) this.#cancelLook = this.#parts.host.timer(delayMs, () => void this.#list());
  }

  #planResync(): void {
    this.#isResyncDue = false;
    // The one that was planned before an accepted directory made another one due.
    this.#cancelResync();
    this.#cancelResync = this.#parts.host.timer(this.#resyncMs, () => {
      this.#isResyncDue = true;
      void this.#list();
    });
  }
}
