/**
 * The desk where manifests wait to be read: one at a time, small ones first, so that what is made to be slow holds up
 * nothing but itself. What was read is not read again before it changes.
 */
import { createHash } from 'node:crypto';
import type { AbsolutePath, ContentStamp, DirectoryReading, FileEntry, Host } from '../../../mount/host.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import type { Look } from './manifest-file.ts';
import type { ManifestLimits } from './manifest-limits.ts';
import { whyUntrusted } from './manifest-owner.ts';
import type { ManifestParser } from './manifest-parser.ts';
import { compareText } from '../desired-objects.ts';

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
  readonly reading: (all: boolean) => DirectoryReading;
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
  const { host, directory, parser, limits } = parts;
  /** One for each file that waits; the one that is being read is among them. */
  const jobs = new Map<string, Job>();
  const stamps = new Map<string, ContentStamp>();
  let looks = new Map<string, Look>();
  let toldMs = host.nowMs();
  let working = false;
  let stopped = false;
  const waiters: (() => void)[] = [];
  let busySinceMs = 0;

  function lookAt(entry: FileEntry, nowMs: number): Look {
    const { name, facts, content, stamp } = entry;
    const message = whyUnreadable(entry);
    if (message !== undefined) return forget(name, { kind: 'unreadable', message });
    if (content === undefined && jobs.has(name) && entry.unread !== true) return { kind: 'waiting' };
    // What was held when the listing began may be held no more: then it is read by itself.
    if (content === undefined && stamp !== undefined && stamps.get(name) === stamp) return { kind: 'same' };
    stamps.delete(name);
    const read = content?.ok === true ? contentOf(content.value, stamp) : undefined;
    const known = jobs.get(name);
    if (read !== undefined && known === undefined && read.digest === parts.digestOf(name))
      return keep(name, stamp, { kind: 'same' });
    const isSame = read !== undefined && read.digest === known?.content?.digest;
    const sinceMs = known?.sinceMs ?? nowMs;
    const losses = isSame ? known.losses : 0;
    jobs.set(name, { name, sizeBytes: facts.sizeBytes, sinceMs, content: read, losses });
    return keep(name, stamp, { kind: 'waiting' });
  }

  function keep(name: string, stamp: ContentStamp | undefined, look: Look): Look {
    if (stamp !== undefined) stamps.set(name, stamp);
    return look;
  }

  function forget(name: string, look: Look): Look {
    jobs.delete(name);
    stamps.delete(name);
    looks.delete(name);
    return look;
  }

  async function work(): Promise<void> {
    if (working) return;
    working = true;
    busySinceMs = host.nowMs();
    for (let job = nextJob(jobs); job !== undefined && !stopped; job = nextJob(jobs)) {
      if (isTimeToTell(job)) tell(true);
      const content = job.content ?? (await fetch(job));
      if (stopped) break;
      if (content === undefined) continue;
      const look = await read(job, content);
      if (stopped) break;
      if (look !== undefined) note(job, content, look);
    }
    working = false;
    // With nothing read, too: somebody may wait until nothing is left to be.
    if (!stopped) tell(true);
  }

  function isTimeToTell({ sizeBytes }: Job): boolean {
    return sizeBytes > QUICK_BYTES_MAX || host.nowMs() - toldMs >= TELL_MS_MAX;
  }

  /** Reads a file that had no room in the listing. What is there now counts; undefined: nothing of it does. */
  async function fetch(job: Job): Promise<Content | undefined> {
    const listed = await host.readDirectoryFiles(directory, { ...boundsOf(limits), only: job.name });
    if (jobs.get(job.name) !== job) return undefined;
    const [entry] = listed.ok ? listed.value : [];
    if (entry?.content?.ok === true) return contentOf(entry.content.value, entry.stamp);
    jobs.delete(job.name);
    stamps.delete(job.name);
    const message = listed.ok ? entry && whyUnreadable(entry) : listed.failure.message;
    // Gone, or another directory: the next listing says which.
    if (message !== undefined) looks.set(job.name, { kind: 'unreadable', message });
    return undefined;
  }

  /** Undefined when the parser failed and the file has to wait for its turn again. */
  async function read(job: Job, content: Content): Promise<Look | undefined> {
    const { name } = job;
    const { bytes, digest } = content;
    if (digest === parts.digestOf(name)) return { kind: 'same' };
    const said = await parser.parse({ origin: name, bytes, limits });
    if (said.ok) return { kind: 'content', bytes: new Sensitive(bytes), digest, reading: said.value };
    const losses = job.losses + 1;
    if (losses >= LOSSES_MAX) return { kind: 'unreadable', message: said.failure.message };
    const now = jobs.get(name);
    if (now === job || now?.content?.digest === digest) jobs.set(name, { ...job, content, losses });
    return undefined;
  }

  /** What came meanwhile waits for its own turn; what is gone meanwhile says nothing any more. */
  function note(job: Job, { digest, stamp }: Content, look: Look): void {
    const { name } = job;
    const now = jobs.get(name);
    if (now === undefined) return;
    looks.set(name, look);
    const isNewer = now !== job && now.content?.digest !== digest;
    if (isNewer) jobs.set(name, { ...now, sinceMs: host.nowMs() });
    else jobs.delete(name);
    if (look.kind === 'unreadable') stamps.delete(name);
    else if (!isNewer && stamp !== undefined) stamps.set(name, stamp);
  }

  function tell(evenNothing = false): void {
    toldMs = host.nowMs();
    const told = looks;
    looks = new Map();
    if (told.size > 0 || evenNothing) parts.onRead(told);
    const isLong = toldMs - busySinceMs >= QUIET_MS_MAX || (nextJob(jobs)?.sizeBytes ?? 0) > QUICK_BYTES_MAX;
    if (jobs.size > 0 && !isLong) return;
    for (const done of waiters.splice(0)) done();
  }

  return {
    reading: (all) => ({
      ...boundsOf(limits),
      contentBytesMax: CONTENT_BYTES_MAX,
      ...(all ? {} : { known: new Map(stamps) }),
    }),
    look(entries, nowMs) {
      // What was read before this listing was seen before it.
      tell();
      const listed = new Set(entries.map(({ name }) => name));
      for (const name of [...jobs.keys(), ...stamps.keys()]) if (!listed.has(name)) forget(name, MISSING);
      let left = limits.allBytesMax;
      const seen = new Map<string, Look>();
      for (const entry of entries.toSorted(bySize)) {
        left -= entry.facts.kind === 'file' ? entry.facts.sizeBytes : 0;
        const look = left < 0 ? forget(entry.name, tooMuch(limits)) : lookAt(entry, nowMs);
        seen.set(entry.name, look);
      }
      void work();
      return seen;
    },
    readingSinceMs: () => {
      let sinceMs = Number.POSITIVE_INFINITY;
      for (const job of jobs.values()) sinceMs = Math.min(sinceMs, job.sinceMs);
      return sinceMs;
    },
    quiet: async () => {
      if (jobs.size > 0) await new Promise<void>((resolve) => waiters.push(resolve));
    },
    stop() {
      stopped = true;
      for (const done of waiters.splice(0)) done();
    },
  };
}

const MISSING: Look = { kind: 'missing' };

function tooMuch({ allBytesMax }: ManifestLimits): Look {
  return { kind: 'unreadable', message: `with it the manifests have more than ${allBytesMax} bytes` };
}

function boundsOf({ filesMax, fileBytesMax }: ManifestLimits): DirectoryReading {
  return { entriesMax: filesMax, fileBytesMax };
}

function contentOf(bytes: Uint8Array, stamp: ContentStamp | undefined): Content {
  return { bytes, digest: createHash('sha256').update(bytes).digest('base64'), stamp };
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
