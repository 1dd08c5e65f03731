/** The part of a Host that a manifest source needs: one directory in memory, and time that moves when told to. */
import { fail, type FailureCode, ok, type Result } from '../../mount/failure.ts';
import type { Cancel, FileEntry, Host, PathKind } from '../../mount/host.ts';

interface Timer {
  readonly atMs: number;
  readonly fire: () => void;
}

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
    });
  }

  makeUnreadable(name: string, code: FailureCode, message: string): void {
    const entry = this.#files.get(name);
    if (entry === undefined) throw new Error(`no file ${name}`);
    this.#files.set(name, { ...entry, content: fail({ code, message, effect: 'none' }) });
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

  async readDirectoryFiles(): Promise<Result<readonly FileEntry[]>> {
    this.listings += 1;
    if (this.trouble !== undefined)
      return fail({ code: this.trouble, message: 'not to be listed', effect: 'none' });
    return ok([...this.#files.values()]);
  }
}

/** Every promise that can go on without time has gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
