/**
 * The desk where manifests wait to be read: one at a time, small ones first, so that what is made to be slow holds up
 * nothing but itself. What was read is not read again before it changes.
 */
import { createHash } from 'node:crypto';
import type { AbsolutePath, ContentStamp, DirectoryReading, FileEntry, Host } from '../../../mount/host.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import type { Look } from './manifest-file.ts';
import type { ManifestLimits } from './parse/manifest-limits.ts';
import { whyUntrusted } from '../../../mount/process/file-owner.ts';
import type { ManifestParser } from './parse/manifest-parser.ts';
import { compareText } from '../../../mount/text/compare-text.ts';

export interface ManifestDeskParts {
  readonly host: Pick<Host, 'nowMs' | 'readDirectoryFiles'>;
  readonly directory: AbsolutePath;
  readonly parser: ManifestParser;
  readonly limits: ManifestLimits;
  /** The digest of the content that was seen of this file last; undefined when none was. */
  readonly digestOf: (name: string) => string | undefined;
  /** What was read since the last time, by name; nothing, when what waits takes long, or nothing waits any more. */
  readonly onRead: (looks: ReadonlyMap<string, Look>) => void;
}

export interface ManifestDesk {
  /** How the directory is to be read next: `all` for everything. */
  reading(all: boolean): DirectoryReading;
  /** A listing of the whole directory: what is seen at once; the rest is `waiting`, and comes by `onRead`. */
  look(entries: readonly FileEntry[], nowMs: number): ReadonlyMap<string, Look>;
  /** Host clock: since when the file that waits longest has been waiting; infinite when none is. */
  readingSinceMs(): number;
  /** Settles when nothing waits, or what waits takes long. */
  quiet(): Promise<void>;
  stop(): void;
}

/** How much content one answer of the host has: so much is copied in milliseconds. */
const CONTENT_BYTES_MAX = 1_048_576;
/** One of this size is read in milliseconds; before a larger one, what is known by now is told. */
const QUICK_BYTES_MAX = 65_536;
const TELL_MS_MAX = 20;
const QUIET_MS_MAX = 1_000;
/** A parser that ended so often while it read one file does not read it again before it is looked at anew. */
const LOSSES_MAX = 3;

interface Job {
  readonly name: string;
  readonly sizeBytes: number;
  readonly sinceMs: number;
  /** Host clock: when a listing showed first what is there now; before that something else may have waited. */
  readonly listedMs: number;
  /** Undefined while it is not read from the disk. */
  readonly content: Content | undefined;
  readonly losses: number;
}

interface Content {
  readonly bytes: Uint8Array;
  readonly digest: string;
  readonly stamp: ContentStamp | undefined;
}

export function createManifestDesk(parts: ManifestDeskParts): ManifestDesk {
  return new Desk(parts);
}

class Desk implements ManifestDesk {
  readonly #parts: ManifestDeskParts;
  /** One for each file that waits; the one that is being read is among them. */
  readonly #jobs = new Map<string, Job>();
  readonly #stamps = new Map<string, ContentStamp>();
  #looks = new Map<string, Look>();
  #toldMs: number;
  #isWorking = false;
  #isStopped = false;
  readonly #waiters: (() => void)[] = [];
  #busySinceMs = 0;

  constructor(parts: ManifestDeskParts) {
    this.#parts = parts;
    this.#toldMs = parts.host.nowMs();
  }

  reading(all: boolean): DirectoryReading {
    const known = all ? {} : { known: new Map(this.#stamps) };
    return { ...boundsOf(this.#parts.limits), contentBytesMax: CONTENT_BYTES_MAX, ...known };
  }

  look(entries: readonly FileEntry[], nowMs: number): ReadonlyMap<string, Look> {
    // What was read before this listing was seen before it.
    this.#tell();
    const { limits } = this.#parts;
    const listed = new Set(entries.map(({ name }) => name));
    for (const name of [...this.#jobs.keys(), ...this.#stamps.keys()])
      if (!listed.has(name)) this.#forget(name, MISSING);
    let left = limits.allBytesMax;
    const seen = new Map<string, Look>();
    for (const entry of entries.toSorted(bySize)) {
      left -= entry.facts.kind === 'file' ? entry.facts.sizeBytes : 0;
      const look =
        left < 0
          ? this.#forget(entry.name, unreadable(tooMuch(limits), entry.facts))
          : this.#lookAt(entry, nowMs);
      seen.set(entry.name, look);
    }
    void this.#work();
    return seen;
  }

  readingSinceMs(): number {
    let sinceMs = Number.POSITIVE_INFINITY;
    for (const job of this.#jobs.values()) sinceMs = Math.min(sinceMs, job.sinceMs);
    return sinceMs;
  }

  async quiet(): Promise<void> {
    if (this.#jobs.size > 0) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  stop(): void {
    this.#isStopped = true;
    for (const done of this.#waiters.splice(0)) done();
  }

  #lookAt(entry: FileEntry, nowMs: number): Look {
    const { name, facts, content, stamp } = entry;
    const message = whyUnreadable(entry);
    if (message !== undefined) return this.#forget(name, unreadable(message, facts));
    if (content === undefined && this.#jobs.has(name) && entry.unread !== true) return { kind: 'waiting' };
    // What was held when the listing began may be held no more: then it is read by itself.
    if (content === undefined && stamp !== undefined && this.#stamps.get(name) === stamp)
      return { kind: 'same' };
    this.#stamps.delete(name);
    const read = content?.ok === true ? contentOf(content.value, stamp) : undefined;
    const known = this.#jobs.get(name);
    if (read !== undefined && known === undefined && read.digest === this.#parts.digestOf(name))
      return this.#keep(name, stamp, { kind: 'same' });
    const isSame = read !== undefined && read.digest === known?.content?.digest;
    const sinceMs = known?.sinceMs ?? nowMs;
    const { losses, listedMs } = isSame ? known : { losses: 0, listedMs: nowMs };
    this.#jobs.set(name, { name, sizeBytes: facts.sizeBytes, sinceMs, listedMs, content: read, losses });
    return this.#keep(name, stamp, { kind: 'waiting' });
  }

  #keep(name: string, stamp: ContentStamp | undefined, look: Look): Look {
    if (stamp !== undefined) this.#stamps.set(name, stamp);
    return look;
  }

  #forget(name: string, look: Look): Look {
    this.#jobs.delete(name);
    this.#stamps.delete(name);
    this.#looks.delete(name);
    return look;
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#busySinceMs = this.#parts.host.nowMs();
    for (let job = nextJob(this.#jobs); job !== undefined && !this.#isStopped; job = nextJob(this.#jobs)) {
      if (this.#isTimeToTell(job)) this.#tell(true);
      const content = job.content ?? (await this.#fetch(job));
      if (this.#isStopped) break;
      if (content === undefined) continue;
      const look = await this.#read(job, content);
      if (this.#isStopped) break;
      if (look !== undefined) this.#note(job, content, look);
    }
    this.#isWorking = false;
    // With nothing read, too: somebody may wait until nothing is left to be.
    if (!this.#isStopped) this.#tell(true);
  }

  #isTimeToTell({ sizeBytes }: Job): boolean {
    return sizeBytes > QUICK_BYTES_MAX || this.#parts.host.nowMs() - this.#toldMs >= TELL_MS_MAX;
  }

  /** Reads a file that had no room in the listing. What is there now counts; undefined: nothing of it does. */
  async #fetch(job: Job): Promise<Content | undefined> {
    const { host, directory, limits } = this.#parts;
    const listed = await host.readDirectoryFiles(directory, { ...boundsOf(limits), only: job.name });
    if (this.#jobs.get(job.name) !== job) return undefined;
    const [entry] = listed.ok ? listed.value : [];
    if (entry?.content?.ok === true) return contentOf(entry.content.value, entry.stamp);
    this.#jobs.delete(job.name);
    this.#stamps.delete(job.name);
    const message = listed.ok ? entry && whyUnreadable(entry) : listed.failure.message;
    // Gone, or another directory: the next listing says which.
    if (message === undefined) return undefined;
    const look: Look = entry ? unreadable(message, entry.facts) : { kind: 'unreadable', message, of: '' };
    this.#looks.set(job.name, look);
    return undefined;
  }

  /** Undefined when the parser failed and the file has to wait for its turn again. */
  async #read(job: Job, content: Content): Promise<Look | undefined> {
    const { name } = job;
    const { bytes, digest } = content;
    if (digest === this.#parts.digestOf(name)) return { kind: 'same' };
    const said = await this.#parts.parser.parse({ origin: name, bytes, limits: this.#parts.limits });
    if (said.ok) return { kind: 'content', bytes: new Sensitive(bytes), digest, reading: said.value };
    const losses = job.losses + 1;
    if (losses >= LOSSES_MAX) return { kind: 'unreadable', message: said.failure.message, of: digest };
    const now = this.#jobs.get(name);
    if (now === job || now?.content?.digest === digest) this.#jobs.set(name, { ...job, content, losses });
    return undefined;
  }

  /** What came meanwhile waits for its own turn; what is gone meanwhile says nothing any more. */
  #note(job: Job, { digest, stamp }: Content, look: Look): void {
    const { name } = job;
    const now = this.#jobs.get(name);
    if (now === undefined) return;
    this.#looks.set(name, look);
    const isNewer = now !== job && now.content?.digest !== digest;
    if (isNewer) this.#jobs.set(name, { ...now, sinceMs: now.listedMs });
    else this.#jobs.delete(name);
    if (look.kind === 'unreadable') this.#stamps.delete(name);
    else if (!isNewer && stamp !== undefined) this.#stamps.set(name, stamp);
  }

  #tell(evenNothing = false): void {
    this.#toldMs = this.#parts.host.nowMs();
    const told = this.#looks;
    this.#looks = new Map();
    if (told.size > 0 || evenNothing) this.#parts.onRead(told);
    const isLarge = (nextJob(this.#jobs)?.sizeBytes ?? 0) > QUICK_BYTES_MAX;
    const isLong = isLarge || this.#toldMs - this.#busySinceMs >= QUIET_MS_MAX;
    if (this.#jobs.size > 0 && !isLong) return;
    for (const done of this.#waiters.splice(0)) done();
  }
}

const MISSING: Look = { kind: 'missing' };

function tooMuch({ allBytesMax }: ManifestLimits): string {
  return `with it the manifests have more than ${allBytesMax} bytes`;
}

function boundsOf({ filesMax, fileBytesMax }: ManifestLimits): DirectoryReading {
  return { entriesMax: filesMax, fileBytesMax };
}

function contentOf(bytes: Uint8Array, stamp: ContentStamp | undefined): Content {
  return { bytes, digest: createHash('sha256').update(bytes).digest('base64'), stamp };
}

function unreadable(message: string, { kind, inode, sizeBytes, modifiedMs }: FileEntry['facts']): Look {
  const of = `${inode} ${sizeBytes} ${modifiedMs}`;
  return { kind: 'unreadable', message, ...(kind === 'file' || kind === 'symlink' ? { of } : {}) };
}

/** Undefined for a regular file with a content, or one that is yet to be read. */
function whyUnreadable({ facts, content }: FileEntry): string | undefined {
  if (facts.kind === 'symlink') {
    return (
      'it is a symbolic link, and only regular files are read (so a mounted ConfigMap, made of links into ' +
      '..data, cannot be the manifest directory: copy the files)'
    );
  }
  if (facts.kind !== 'file') return `it is of kind ${facts.kind}, and only regular files are read`;
  const untrusted = whyUntrusted(facts);
  if (untrusted !== undefined) return untrusted;
  return content === undefined || content.ok ? undefined : content.failure.message;
}

function bySize(a: FileEntry, b: FileEntry): number {
  return a.facts.sizeBytes - b.facts.sizeBytes || compareText(a.name, b.name);
}

/** One that has cost the parser its life comes last. */
function nextJob(jobs: ReadonlyMap<string, Job>): Job | undefined {
  let next: Job | undefined;
  for (const job of jobs.values()) if (next === undefined || isBefore(job, next)) next = job;
  return next;
}

function isBefore(a: Job, b: Job): boolean {
  return (a.losses - b.losses || a.sizeBytes - b.sizeBytes || compareText(a.name, b.name)) < 0;
}
