/** Which files are watched for whom: one watch per directory, and of many owners only those whose file changed. */
import { type AbsolutePath, type Cancel, type Clock, type Host, parentOf } from '../../../mount/host.ts';
import { createPacedLook, type PacedLook } from './coalesced-task.ts';
import { type DirectoryTraces, readTraces } from './trace.ts';

export interface WatchList<Owner> {
  /** From now on changes of this file, or of its directory, are hints for the owner; one file per owner. */
  keep(owner: Owner, file: AbsolutePath): void;
  drop(owner: Owner): void;
  stop(): void;
}

interface Watched<Owner> {
  /** With what the last listing showed of the file of each; undefined before the first. */
  readonly owners: Map<Owner, string | undefined>;
  readonly listing: PacedLook;
  readonly cancel: Cancel;
}

const LISTING_SPACING_MS = 20;

/**
 * The watch of a directory does not say what changed in it. Its one owner is hinted at once; of several each would look
 * at its own file for every change of another's, so the directory is listed, once for all of them.
 */
export function createWatchList<Owner>(
  host: Pick<Host, keyof Clock | 'watch' | 'inspect' | 'readDirectoryFiles'>,
  hint: (owner: Owner) => void,
): WatchList<Owner> {
  const directories = new Map<AbsolutePath, Watched<Owner>>();
  const files = new Map<Owner, AbsolutePath>();

  function end({ cancel, listing }: Watched<Owner>): void {
    cancel();
    listing.stop();
  }

  function drop(owner: Owner): void {
    const file = files.get(owner);
    files.delete(owner);
    const watched = file === undefined ? undefined : directories.get(parentOf(file));
    if (file === undefined || watched === undefined) return;
    watched.owners.delete(owner);
    if (watched.owners.size > 0) return;
    directories.delete(parentOf(file));
    end(watched);
  }

  function watchDirectory(directory: AbsolutePath): Watched<Owner> {
    const owners: Watched<Owner>['owners'] = new Map();
    const listing = createPacedLook(host, LISTING_SPACING_MS, async () => {
      const traces = await readTraces(host, directory);
      if (directories.get(directory)?.owners === owners)
        hintChanged(owners, traces.ok ? traces.value : undefined);
    });
    const cancel = host.watch(directory, () => {
      const [only] = owners.keys();
      if (owners.size === 1 && only !== undefined) hint(only);
      else void listing.ask();
    });
    return { owners, listing, cancel };
  }

  /** All of them when the directory could not be listed. */
  function hintChanged(owners: Watched<Owner>['owners'], traces: DirectoryTraces | undefined): void {
    for (const [owner, before] of [...owners]) {
      const file = files.get(owner);
      const trace = file === undefined ? undefined : traces?.of(file);
      owners.set(owner, trace);
      if (trace === undefined || trace !== before) hint(owner);
    }
  }

  return {
    keep: (owner, file) => {
      if (files.get(owner) === file) return;
      drop(owner);
      files.set(owner, file);
      const directory = parentOf(file);
      const watched = directories.get(directory) ?? watchDirectory(directory);
      directories.set(directory, watched);
      watched.owners.set(owner, undefined);
    },
    drop,
    stop: () => {
      for (const watched of directories.values()) end(watched);
      directories.clear();
      files.clear();
    },
  };
}
