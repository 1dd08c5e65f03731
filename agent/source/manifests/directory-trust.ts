/**
 * Which directory the wish is read from, remembered across restarts. One that is not the one it was is unknown, like
 * one that cannot be read (AP-12): somebody mounted another file system on it, or put another directory in its place,
 * and what is not in that one is not unwanted. It is the old one again, or an operator's word, that ends it.
 */
import { temporaryPath } from '../../../mount/temporary-file.ts';
import { done, fail, type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, DirectoryIdentity, Host } from '../../../mount/host.ts';
import type { Log } from '../../../mount/process/log.ts';
import type { NodeSight, ReplacedDirectory, Stake } from '../objects-source.ts';
import {
  describeDirectory,
  formatKnownDirectory,
  isSameDirectory,
  type KnownDirectory,
  knownDirectory,
  parseKnownDirectory,
  sightOf,
} from './known-directory.ts';

export interface DirectoryTrustParts {
  readonly host: Pick<
    Host,
    'nowMs' | 'bootId' | 'identifyDirectory' | 'readMountTable' | 'readFile' | 'writeFile' | 'removeFile'
  >;
  readonly directory: AbsolutePath;
  /** Where it is remembered. */
  readonly note: AbsolutePath;
  /** While it is `nothing`, another directory can take nothing from anybody. */
  readonly stake: () => Stake;
  readonly refuseStranger: NodeSight['refuseStranger'];
  readonly log: Log;
}

export interface DirectoryTrust {
  /**
   * The directory that may be read now; `directory-replaced` when another one is there, and why it cannot be
   * remembered, unless something is known to depend on it. A listing of exactly this one is the truth
   * (`DirectoryReading.identity`).
   */
  identify(): Promise<Result<DirectoryIdentity>>;
  /** The one that `identify` would answer if it is still there; undefined: it has to be looked at. */
  expected(): DirectoryIdentity | undefined;
  /** Undefined when the last look found the right one, or none. */
  replaced(): ReplacedDirectory | undefined;
  /**
   * An operator's word: the directory of this sight is the right one from now on. Durable when it settles `ok`;
   * `reference-missing` when another one is there, or none that is in doubt.
   */
  accept(sight: string): Promise<Result<void>>;
}

const NOTE_BYTES_MAX = 65_536;

export function createDirectoryTrust(parts: DirectoryTrustParts): DirectoryTrust {
  return new RememberedDirectory(parts);
}

class RememberedDirectory implements DirectoryTrust {
  readonly #parts: DirectoryTrustParts;
  #trusted: KnownDirectory | undefined;
  #isNoteRead = false;
  #isNoted = true;
  #isUnnotedTold = false;
  #isUnseenTold = false;
  #stranger: { readonly seen: KnownDirectory; readonly sinceMs: number } | undefined;

  constructor(parts: DirectoryTrustParts) {
    this.#parts = parts;
  }

  async identify(): Promise<Result<DirectoryIdentity>> {
    const { host, directory, log } = this.#parts;
    const read = await this.#readNote();
    if (!read.ok) return read;
    const identity = await host.identifyDirectory(directory);
    if (!identity.ok) return fail(this.#unseen(identity.failure));
    this.#isUnseenTold = false;
    if (this.#isNoted && isAsSeen(this.#trusted, identity.value, host.bootId)) {
      this.#stranger = undefined;
      return identity;
    }
    const seen = await this.#describe(identity.value);
    if (!seen.ok) return seen;
    const was = this.#trusted;
    if (was !== undefined && !isSameDirectory(was, seen.value)) {
      if (this.#parts.stake() !== 'nothing') return fail(this.#refuse(was, seen.value));
      log.info('the manifest directory is another one, and nothing depends on it', { directory });
    }
    const noted = await this.#trust(seen.value);
    if (noted.ok) return identity;
    // Nothing is to depend on what a restart would not know: another directory could be taken for it.
    if (this.#parts.stake() !== 'something') return noted;
    // What stands goes on: it is remembered by this process alone, and written down at the next look that can.
    this.#tellUnnoted(noted.failure);
    return identity;
  }

  expected(): DirectoryIdentity | undefined {
    const trusted = this.#trusted;
    const isSettled = this.#isNoteRead && this.#isNoted && this.#stranger === undefined;
    if (!isSettled || trusted?.bootId !== this.#parts.host.bootId) return undefined;
    const { mountId, device, inode, bornNs } = trusted;
    return { mountId, device, inode, bornNs };
  }

  replaced(): ReplacedDirectory | undefined {
    if (this.#stranger === undefined || this.#trusted === undefined) return undefined;
    const { directory } = this.#parts;
    const { seen, sinceMs } = this.#stranger;
    const [was, is] = [describeDirectory(this.#trusted), describeDirectory(seen)];
    return { directory, was, is, sight: sightOf(seen), sinceMs };
  }

  async accept(sight: string): Promise<Result<void>> {
    if (this.#stranger === undefined || sightOf(this.#stranger.seen) !== sight) {
      const { directory } = this.#parts;
      const message = `no directory of the sight "${sight.slice(0, 64)}" is in the place of ${directory}`;
      return fail({ code: 'reference-missing', message, effect: 'none' });
    }
    const { seen } = this.#stranger;
    this.#parts.log.warn('the manifest directory is accepted as the right one', {
      is: describeDirectory(seen),
    });
    return this.#trust(seen);
  }

  /** A note that cannot be believed is none; one that cannot be read, or is covered, may say anything. */
  async #readNote(): Promise<Result<void>> {
    if (this.#isNoteRead) return done;
    const { directory, note, log } = this.#parts;
    const read = await this.#onGround(async (host) => {
      // Harmless, and the next write would replace it: but that may never come.
      await host.removeFile(temporaryPath(note));
      return host.readFile(note, NOTE_BYTES_MAX);
    });
    if (!read.ok && read.failure.code !== 'path-missing') return read;
    this.#isNoteRead = true;
    if (!read.ok) return done;
    const known = parseKnownDirectory(Buffer.from(read.value).toString('utf8'));
    if (known === undefined) log.warn('the note of the manifest directory cannot be read back', { note });
    else if (known.path === directory) this.#trusted = known;
    else log.warn('manifests are read from another directory now', { was: known.path, is: directory });
    return done;
  }

  async #trust(seen: KnownDirectory): Promise<Result<void>> {
    const { note } = this.#parts;
    this.#trusted = seen;
    this.#stranger = undefined;
    this.#isNoted = false;
    const content = Buffer.from(formatKnownDirectory(seen));
    const written = await this.#onGround((host) =>
      host.writeFile(note, content, { mode: 0o600, durable: true }),
    );
    this.#isNoted = written.ok;
    if (written.ok) this.#isUnnotedTold = false;
    return written;
  }

  /** What is done to the note in somebody's file system is done to no note; he may come while it is done. */
  async #onGround<T>(act: (host: DirectoryTrustParts['host']) => Promise<Result<T>>): Promise<Result<T>> {
    const { host, note, refuseStranger } = this.#parts;
    const before = await refuseStranger(note);
    if (!before.ok) return before;
    const answer = await act(host);
    const after = await refuseStranger(note);
    return after.ok ? answer : after;
  }

  #tellUnnoted({ code, message }: Failure): void {
    if (this.#isUnnotedTold) return;
    this.#isUnnotedTold = true;
    const { directory, log } = this.#parts;
    log.warn('the manifest directory cannot be noted: after a restart another one could be taken for it', {
      directory,
      code,
      message,
    });
  }

  #unseen(failure: Failure): Failure {
    const { directory, log } = this.#parts;
    const { code } = failure;
    const missing = `there is no directory ${directory}: make it, or correct "manifests" in the configuration`;
    const message = code === 'path-missing' ? missing : failure.message;
    if (!this.#isUnseenTold)
      log.warn('the manifest directory cannot be looked at', { directory, code, message });
    this.#isUnseenTold = true;
    return { ...failure, message };
  }

  async #describe(identity: DirectoryIdentity): Promise<Result<KnownDirectory>> {
    const { host, directory } = this.#parts;
    const table = await host.readMountTable(directory);
    if (!table.ok) return table;
    const mount = table.value.byId(identity.mountId);
    if (mount !== undefined) return ok(knownDirectory(directory, identity, mount, host.bootId));
    const message = `the mount that ${directory} is on has just gone`;
    return fail({ code: 'directory-replaced', message, effect: 'none', blocker: directory });
  }

  #refuse(was: KnownDirectory, seen: KnownDirectory): Failure {
    const { host, directory, log } = this.#parts;
    if (this.#stranger === undefined || sightOf(this.#stranger.seen) !== sightOf(seen)) {
      this.#stranger = { seen, sinceMs: host.nowMs() };
      log.error('the manifest directory is another one: nothing of it is read, and nothing is taken down', {
        directory,
        was: describeDirectory(was),
        is: describeDirectory(seen),
        command: 'mooring manifests accept',
      });
    }
    const message =
      `another directory is in its place (${describeDirectory(seen)}; it was ${describeDirectory(was)}): nothing of ` +
      'it is read, and nothing is taken down; "mooring manifests accept" says that it is the right one';
    return {
      code: 'directory-replaced',
      message,
      effect: 'none',
      blocker: directory,
    };
  }
}

/** Nothing has happened to it since, without a look at the mount table. */
function isAsSeen(
  known: KnownDirectory | undefined,
  { mountId, device, inode, bornNs }: DirectoryIdentity,
  bootId: string,
): boolean {
  if (known === undefined) return false;
  const isSameMount = known.bootId === bootId && known.mountId === mountId && known.device === device;
  return isSameMount && known.inode === inode && known.bornNs === bornNs;
}
