/** The part of a Host that a manifest source needs: one directory in memory, and time that moves when told to. */
import { withinRoom } from '../contract/content-room.ts';
import { fail, type FailureCode, ok, type Result } from '../../mount/failure.ts';
import type { Cancel, ContentStamp, DirectoryReading, FileEntry, Host, PathKind } from '../../mount/host.ts';

interface Timer {
  readonly atMs: number;
  readonly fire: () => void;
}

const STAMP_AGE_MS = 3_000;

export class DirectoryHost
  implements Pick<Host, 'nowMs' | 'timer' | 'random' | 'watch' | 'readDirectoryFiles'>
{
  readonly #files = new Map<string, FileEntry>();
  readonly #timers = new Set<Timer>();
  readonly #hints = new Set<() => void>();
  #nowMs = 1_000_000;
  #inode = 1;
  /** The directory cannot be listed while this is set. */
  trouble: FailureCode | undefined;
  listings = 0;
  /** Happens after a directory was listed and before that is answered. */
  beforeAnswer: (() => Promise<void>) | undefined;
  #read: string[] = [];

  write(name: string, content: string | Uint8Array, kind: PathKind = 'file'): void {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    this.#inode += 1;
    this.#files.set(name, {
      name,
      facts: {
        kind,
        mode: 0o644,
        uid: 0,
        gid: 0,
        inode: this.#inode,
        sizeBytes: bytes.length,
        modifiedMs: this.#nowMs,
      },
      content: kind === 'file' ? ok(bytes) : undefined,
      stamp: kind === 'file' ? (`${this.#inode}` as ContentStamp) : undefined,
    });
  }

  /** Other bytes with the times of before: what nobody sees who looks at the times. */
  writeBehindItsTimes(name: string, content: string): void {
    const entry = this.#entry(name);
    this.#files.set(name, { ...entry, content: ok(Buffer.from(content)) });
  }

  /** chmod(1) or chown(1). */
  giveAway(name: string, facts: Partial<Pick<FileEntry['facts'], 'mode' | 'uid'>>): void {
    const entry = this.#entry(name);
    this.#files.set(name, { ...entry, facts: { ...entry.facts, ...facts } });
  }

  #entry(name: string): FileEntry {
    const entry = this.#files.get(name);
    if (entry === undefined) throw new Error(`no file ${name}`);
    return entry;
  }

  makeUnreadable(name: string, code: FailureCode, message: string): void {
    const content = fail({ code, message, effect: 'none' });
    this.#files.set(name, { ...this.#entry(name), content, stamp: undefined });
  }

  /** Names of the files that were read since this was asked last, sorted. */
  readSince(): readonly string[] {
    return this.#read.splice(0).sort();
  }

  remove(name: string): void {
    this.#files.delete(name);
  }

  /** The watcher says "look", and the listing it causes has ended. */
  async hint(): Promise<void> {
    for (const hint of this.#hints) hint();
    await this.advance(0);
  }

  /** Lets time pass, firing timers in order. */
  async advance(ms: number): Promise<void> {
    const until = this.#nowMs + ms;
    await settled();
    for (;;) {
      const [next] = [...this.#timers].filter((one) => one.atMs <= until).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = next.atMs;
      next.fire();
      await settled();
    }
    this.#nowMs = until;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  random(): number {
    return 0.25;
  }

  timer(delayMs: number, fire: () => void): Cancel {
    const timer = { atMs: this.#nowMs + delayMs, fire };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  watch(_directory: string, hint: () => void): Cancel {
    this.#hints.add(hint);
    return () => this.#hints.delete(hint);
  }

  async readDirectoryFiles(
    _directory: string,
    reading: DirectoryReading,
  ): Promise<Result<readonly FileEntry[]>> {
    const { known, only } = reading;
    if (only === undefined) this.listings += 1;
    if (this.trouble !== undefined)
      return fail({ code: this.trouble, message: 'not to be listed', effect: 'none' });
    const isRead = (one: FileEntry): boolean => {
      return one.facts.kind === 'file' && (one.stamp === undefined || one.stamp !== known?.get(one.name));
    };
    const entries = [...this.#files.values()].map((one) => {
      const isYoung = this.#nowMs - one.facts.modifiedMs < STAMP_AGE_MS;
      return isYoung ? { ...one, stamp: undefined } : one;
    });
    const given = withinRoom(
      entries.map((one) => (isRead(one) ? one : { ...one, content: undefined })),
      reading,
    );
    this.#read.push(...given.flatMap(({ name, content }) => (content === undefined ? [] : [name])));
    await this.beforeAnswer?.();
    return ok(given);
  }
}

/** Every promise that can go on without time has gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
