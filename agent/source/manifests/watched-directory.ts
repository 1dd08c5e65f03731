/** The directory of manifests as it is read: the one that is trusted and no other, watched wherever it lies now. */
import type { Result } from '../../../mount/failure.ts';
import type {
  AbsolutePath,
  Cancel,
  DirectoryIdentity,
  DirectoryReading,
  FileEntry,
  Host,
} from '../../../mount/host.ts';
import type { DirectoryTrust } from './directory-trust.ts';

export interface WatchedDirectoryParts {
  readonly host: Pick<Host, 'watch' | 'readDirectoryFiles'>;
  readonly directory: AbsolutePath;
  /** Which directory may be read; undefined: whichever is there. */
  readonly trust: Pick<DirectoryTrust, 'identify' | 'expected'> | undefined;
  /** Names that are read. */
  readonly concerns: (name: string) => boolean;
  /** Something in it may have changed. */
  readonly onHint: () => void;
  /** The last listing failed. */
  readonly isInTrouble: () => boolean;
}

export interface WatchedDirectory {
  watch(): void;
  /** A directory that is not trusted is a failure. */
  read(path: AbsolutePath, reading: DirectoryReading): Promise<Result<readonly FileEntry[]>>;
  stop(): void;
}

export function createWatchedDirectory(parts: WatchedDirectoryParts): WatchedDirectory {
  const { host, directory, trust, concerns, onHint } = parts;
  let cancelWatch: Cancel = () => {};
  let watched: string | undefined;

  function watch(): void {
    cancelWatch();
    cancelWatch = host.watch(directory, onHint, concerns);
  }

  /** What was mounted over it, or put in its place, may have been watched instead: nobody tells of a mount. */
  function watchAnew(identity: DirectoryIdentity): void {
    const now = nameOf(identity);
    if (now === watched) return;
    const isAsBegun = watched === undefined && !parts.isInTrouble();
    watched = now;
    if (!isAsBegun) watch();
  }

  /** The one that was looked at the last time, without a look before: a reading of another one fails. */
  async function readExpected(
    path: AbsolutePath,
    reading: DirectoryReading,
  ): Promise<Result<readonly FileEntry[]> | undefined> {
    const identity = trust?.expected();
    if (identity === undefined || nameOf(identity) !== watched) return undefined;
    const read = await host.readDirectoryFiles(path, { ...reading, identity });
    return read.ok ? read : undefined;
  }

  return {
    watch,
    async read(path, reading) {
      const asExpected = await readExpected(path, reading);
      if (asExpected !== undefined) return asExpected;
      const trusted = await trust?.identify();
      if (trusted?.ok === false) return trusted;
      if (trusted !== undefined) watchAnew(trusted.value);
      const identity = trusted === undefined ? {} : { identity: trusted.value };
      return host.readDirectoryFiles(path, { ...reading, ...identity });
    },
    stop: () => cancelWatch(),
  };
}

function nameOf({ mountId, device, inode }: DirectoryIdentity): string {
  return `${mountId} ${device} ${inode}`;
}
