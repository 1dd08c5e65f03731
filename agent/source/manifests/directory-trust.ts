/**
 * Which directory the wish is read from, remembered across restarts. One that is not the one it was is unknown, like
 * one that cannot be read (AP-12): somebody mounted another file system on it, or put another directory in its place,
 * and what is not in that one is not unwanted. It is the old one again, or an operator's word, that ends it.
 */
import { temporaryPath } from '../../../mount/temporary-file.ts';
import { done, fail, type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, DirectoryIdentity, Host } from '../../../mount/host.ts';
import type { Log } from '../../../mount/process/log.ts';
import type { ReplacedDirectory } from '../objects-source.ts';
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
  /** True while nothing stands and nothing is wanted: then another directory can take nothing from anybody. */
  readonly isNothingAtStake: () => boolean;
  readonly log: Log;
}

export interface DirectoryTrust {
  /**
   * The directory that may be read now; `directory-replaced` when another one is there. A listing of exactly this one
   * is the truth (`DirectoryReading.identity`).
   */
  identify(): Promise<Result<DirectoryIdentity>>;
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
  const { host, directory, note, log } = parts;
  let trusted: KnownDirectory | undefined;
  let isNoteRead = false;
  let isNoted = true;
  let stranger: { readonly seen: KnownDirectory; readonly sinceMs: number } | undefined;

  /** A note that cannot be believed is none; one that cannot be read may say anything. */
  async function readNote(): Promise<Result<void>> {
    if (isNoteRead) return done;
    // Harmless, and the next write would replace it: but that may never come.
    await host.removeFile(temporaryPath(note));
    const read = await host.readFile(note, NOTE_BYTES_MAX);
    if (!read.ok && read.failure.code !== 'path-missing') return read;
    isNoteRead = true;
    if (!read.ok) return done;
    const known = parseKnownDirectory(Buffer.from(read.value).toString('utf8'));
    if (known === undefined) log.warn('the note of the manifest directory cannot be read back', { note });
    else if (known.path === directory) trusted = known;
    else log.warn('manifests are read from another directory now', { was: known.path, is: directory });
    return done;
  }

  async function trust(seen: KnownDirectory): Promise<Result<void>> {
    trusted = seen;
    stranger = undefined;
    isNoted = false;
    const content = Buffer.from(formatKnownDirectory(seen));
    const written = await host.writeFile(note, content, { mode: 0o600, durable: true });
    isNoted = written.ok;
    return written;
  }

  async function describe(identity: DirectoryIdentity): Promise<Result<KnownDirectory>> {
    const table = await host.readMountTable(directory);
    if (!table.ok) return table;
    const mount = table.value.byId(identity.mountId);
    if (mount !== undefined) return ok(knownDirectory(directory, identity, mount, host.bootId));
    const message = `the mount that ${directory} is on has just gone`;
    return fail({ code: 'directory-replaced', message, effect: 'none', blocker: directory });
  }

  function refuse(was: KnownDirectory, seen: KnownDirectory): Failure {
    if (stranger === undefined || sightOf(stranger.seen) !== sightOf(seen)) {
      stranger = { seen, sinceMs: host.nowMs() };
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

  async function identify(): Promise<Result<DirectoryIdentity>> {
    const read = await readNote();
    if (!read.ok) return read;
    const identity = await host.identifyDirectory(directory);
    if (!identity.ok) return identity;
    if (trusted !== undefined && isNoted && isAsSeen(trusted, identity.value)) {
      stranger = undefined;
      return identity;
    }
    const seen = await describe(identity.value);
    if (!seen.ok) return seen;
    const was = trusted;
    if (was !== undefined && !isSameDirectory(was, seen.value)) {
      if (!parts.isNothingAtStake()) return fail(refuse(was, seen.value));
      log.info('the manifest directory is another one, and nothing depends on it', { directory });
    }
    // With a full disk it is remembered by this process alone, and written down at the next look.
    await trust(seen.value);
    return identity;
  }

  /** Nothing has happened to it since, without a look at the mount table. */
  function isAsSeen(known: KnownDirectory, { mountId, device, inode, bornNs }: DirectoryIdentity): boolean {
    const isSameMount = known.bootId === host.bootId && known.mountId === mountId && known.device === device;
    return isSameMount && known.inode === inode && known.bornNs === bornNs;
  }

  return {
    identify,
    replaced() {
      if (stranger === undefined || trusted === undefined) return undefined;
      const { seen, sinceMs } = stranger;
      const [was, is] = [describeDirectory(trusted), describeDirectory(seen)];
      return { directory, was, is, sight: sightOf(seen), sinceMs };
    },
    async accept(sight) {
      if (stranger === undefined || sightOf(stranger.seen) !== sight) {
        const message = `no directory of the sight "${sight.slice(0, 64)}" is in the place of ${directory}`;
        return fail({ code: 'reference-missing', message, effect: 'none' });
      }
      const { seen } = stranger;
      log.warn('the manifest directory is accepted as the right one', { is: describeDirectory(seen) });
      return trust(seen);
    },
  };
}
