/** Which directories are watched for whom: one watch per directory, however many care. */
import type { AbsolutePath, Cancel, Host } from '../../mount/host.ts';

export interface WatchList<Owner> {
  /** From now on hints of this directory go to the owner; one directory per owner. */
  keep(owner: Owner, directory: AbsolutePath): void;
  drop(owner: Owner): void;
  stop(): void;
}

export function createWatchList<Owner>(
  host: Pick<Host, 'watch'>,
  hint: (owner: Owner) => void,
): WatchList<Owner> {
  const directories = new Map<AbsolutePath, { readonly owners: Set<Owner>; readonly cancel: Cancel }>();
  const places = new Map<Owner, AbsolutePath>();

  function drop(owner: Owner): void {
    const directory = places.get(owner);
    places.delete(owner);
    const watched = directory === undefined ? undefined : directories.get(directory);
    if (directory === undefined || watched === undefined) return;
    watched.owners.delete(owner);
    if (watched.owners.size > 0) return;
    directories.delete(directory);
    watched.cancel();
  }

  return {
    keep: (owner, directory) => {
      if (places.get(owner) === directory) return;
      drop(owner);
      places.set(owner, directory);
      const watched = directories.get(directory);
      if (watched !== undefined) {
        watched.owners.add(owner);
        return;
      }
      const owners = new Set([owner]);
      const cancel = host.watch(directory, () => {
        for (const one of [...owners]) hint(one);
      });
      directories.set(directory, { owners, cancel });
    },
    drop,
    stop: () => {
      for (const { cancel } of directories.values()) cancel();
      directories.clear();
      places.clear();
    },
  };
}
