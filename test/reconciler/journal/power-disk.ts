/**
 * A directory on a disk with a page cache: what is written is seen at once, and on the disk only after a
 * synchronisation. A power cut leaves any of the sectors that were on their way, and any prefix of the changes of
 * names.
 */
import { done, fail, type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../../mount/host.ts';

const SECTOR_BYTES = 512;
/** All of it is seen, and nothing of it is ever on the disk. */
const SICK = 0.75;

const FACTS = { kind: 'file', mode: 0o600, uid: 0, gid: 0, inode: 1, sizeBytes: 1, modifiedMs: 0 } as const;

interface PowerFile {
  seen: Uint8Array;
  durable: Uint8Array;
  /** Sectors that the kernel still means to write. */
  readonly dirty: Set<number>;
}

export interface Fate {
  /** Which effect is the last one of this life, counted from 1. */
  readonly dieAt: number;
  /** It comes to nothing, to a part, or to all of it. */
  readonly next: () => number;
  /** Effects that are answered by nobody: done, done in part, or not done, and the process goes on. */
  readonly unheard: number;
  /** What is unheard has failed, and the kernel takes for written what is not, as Linux does. */
  readonly isSick?: boolean;
}

export class PowerDisk {
  effects = 0;
  #boots = 1;
  hasDied = false;
  #names = new Map<string, PowerFile>();
  /** The names as they are on the disk, and each change since. */
  #durableNames = new Map<string, PowerFile>();
  #changes: ((names: Map<string, PowerFile>) => void)[] = [];

  /** One life's view; after its end no promise of it settles. `died` settles at the end. */
  host(fate: Fate, died: () => void): Host {
    const act = async (apply: (share: number) => Result<void>): Promise<Result<void>> => {
      if (this.hasDied) return new Promise(() => {});
      this.effects += 1;
      const isLast = this.effects === fate.dieAt;
      const isUnheard = !isLast && fate.next() < fate.unheard;
      if (!isLast && !isUnheard) return apply(1);
      const chance = fate.next();
      if (isUnheard && fate.isSick === true) apply(SICK);
      else if (chance > 0.25) apply(chance > 0.6 ? 1 : fate.next());
      if (isUnheard) return fail({ code: 'broker-lost', message: 'unheard', effect: 'unknown' });
      this.hasDied = true;
      died();
      return new Promise(() => {});
    };
    const host: Partial<Host> = {
      bootId: `boot-${this.#boots}`,
      timer: (_, fire) => {
        const timer = setImmediate(fire);
        return () => clearImmediate(timer);
      },
      makeDirectory: async () => done,
      mountPlaceOf: async () => ok({ mountId: undefined, within: 1 }),
      listDirectory: async () => ok([...this.#names.keys()].map(nameOf)),
      readDirectoryFiles: async () =>
        ok(
          [...this.#names].map(([path, { seen }]) => {
            return { name: nameOf(path), facts: FACTS, content: ok(Uint8Array.from(seen)), stamp: undefined };
          }),
        ),
      readFile: async (path) => {
        const file = this.#names.get(path);
        return file === undefined ? missing(path) : ok(Uint8Array.from(file.seen));
      },
      writeFile: (path, content) => act((share) => this.#writeFile(path, content, share)),
      overwriteFile: (path, at, content) => act((share) => this.#overwrite(path, at, content, share)),
      synchronise: (path) => act((share) => (share < 1 ? done : this.#synchronise(path))),
      removeFile: (path) => act((share) => (share < 1 ? done : this.#change((names) => names.delete(path)))),
    };
    return host as Host;
  }

  /** The process is gone; all that was written is seen by the next one. */
  endLife(): void {
    this.effects = 0;
    this.hasDied = false;
  }

  cutPower(next: () => number): void {
    this.#boots += 1;
    const kept = Math.floor(next() * (this.#changes.length + 1));
    for (const change of this.#changes.slice(0, kept)) change(this.#durableNames);
    this.#changes = [];
    this.#names = new Map(this.#durableNames);
    for (const file of this.#names.values()) {
      const after = Uint8Array.from(file.durable);
      for (const at of file.dirty) if (next() < 0.5) after.set(file.seen.subarray(at, at + SECTOR_BYTES), at);
      file.dirty.clear();
      file.seen = after;
      file.durable = Uint8Array.from(after);
    }
  }

  #writeFile(path: AbsolutePath, content: Uint8Array, share: number): Result<void> {
    if (share < 0.4) return done;
    const file = {
      seen: Uint8Array.from(content),
      durable: Uint8Array.from(content),
      dirty: new Set<number>(),
    };
    this.#change((names) => names.set(path, file));
    return share < 1 ? done : this.#synchroniseNames();
  }

  #overwrite(path: AbsolutePath, at: number, content: Uint8Array, share: number): Result<void> {
    const file = this.#names.get(path);
    if (file === undefined) return missing(path);
    if (at + content.length > file.seen.length) return fail(problem('too-large', path));
    const bytes = share > 0.5 ? content.length : Math.floor(2 * share * content.length);
    file.seen.set(content.subarray(0, bytes), at);
    for (let sector = at - (at % SECTOR_BYTES); sector < at + bytes; sector += SECTOR_BYTES)
      file.dirty.add(sector);
    if (share === 1) flush(file);
    else if (share === SICK) file.dirty.clear();
    return done;
  }

  #synchronise(path: string): Result<void> {
    const file = this.#names.get(path);
    if (file !== undefined) flush(file);
    else if (![...this.#names.keys()].some((one) => one.startsWith(`${path}/`)) && path.includes('journal-'))
      return missing(path);
    return file === undefined ? this.#synchroniseNames() : done;
  }

  #synchroniseNames(): Result<void> {
    this.#changes = [];
    this.#durableNames = new Map(this.#names);
    return done;
  }

  #change(change: (names: Map<string, PowerFile>) => void): Result<void> {
    change(this.#names);
    this.#changes.push(change);
    return done;
  }
}

function flush({ seen, durable, dirty }: PowerFile): void {
  for (const at of dirty) durable.set(seen.subarray(at, at + SECTOR_BYTES), at);
  dirty.clear();
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function problem(code: Failure['code'], message: string): Failure {
  return { code, message, effect: 'none' };
}

function missing(path: string): Result<never> {
  return fail(problem('path-missing', path));
}
