/** Is the mount that was once proven at a path what one sees there now, and what lies over it? Pure. */
import { printable } from './text/printable.ts';
import { nameOfRoot } from './text/root-name.ts';
import type { AbsolutePath, MountIdentity } from './host.ts';
import type { MountEntry, MountTable } from './mount-table.ts';

/**
 * `seen`: it is what one sees. `covered`: it is there, and another file system lies over it or over a directory above
 * it. `gone`: it is not there any more; `shown` is what one sees in its place, among it the same file system mounted
 * once more.
 */
export type Sight =
  | { readonly kind: 'seen'; readonly entry: MountEntry }
  | { readonly kind: 'covered'; readonly by: MountEntry }
  | { readonly kind: 'gone'; readonly shown: MountEntry | undefined };

/** Layers on the path of a bound device node (`blockDevice`) are ours, whatever they are of. */
export function sightOf(table: MountTable, path: AbsolutePath, proven: MountIdentity): Sight {
  const shown = table.at(path).at(-1);
  if (shown !== undefined && isProven(shown, proven)) return { kind: 'seen', entry: shown };
  const own = table.byId(proven.mountId);
  if (own === undefined || own.target !== path || !isProven(own, proven)) return { kind: 'gone', shown };
  if (shown !== undefined && (proven.blockDevice !== undefined || isSameVolume(shown, own)))
    return { kind: 'gone', shown };
  const by = coverOf(table, path, own);
  return by === undefined ? { kind: 'gone', shown } : { kind: 'covered', by };
}

/**
 * The parent is left out: the kernel may tuck a mount in beneath ours. So is whether what is mounted still has a name:
 * it stays what it was when its directory or device node is deleted.
 */
export function isProven(entry: MountEntry, { mountId, device, root }: MountIdentity): boolean {
  if (entry.mountId !== mountId || entry.device !== device) return false;
  return root === undefined || entry.root === root || nameOfRoot(entry.root) === root;
}

/** The same part of the same file system. */
function isSameVolume(a: MountEntry, b: MountEntry): boolean {
  return a.device === b.device && a.root === b.root;
}

/** The first mount on the way to the path that is neither `own` nor one that it hangs on. */
export function coverOf(table: MountTable, path: AbsolutePath, own: MountEntry): MountEntry | undefined {
  const below = new Set<number>();
  for (let mount: MountEntry | undefined = own; mount !== undefined && !below.has(mount.mountId); ) {
    below.add(mount.mountId);
    mount = table.byId(mount.parentId);
  }
  return table.way(path).find(({ mountId }) => !below.has(mountId));
}

const NAME_BYTES_MAX = 512;

/** With the noun for people: `tmpfs "evil" (mount 123) at /path`. */
export function nameOfMount({ fsType, source, mountId, target }: MountEntry): string {
  return printable(`${fsType} ${JSON.stringify(source)} (mount ${mountId}) at ${target}`, NAME_BYTES_MAX);
}
