/** The kernel's mount table, read from /proc/self/mountinfo (proc(5)), the richer form of /proc/mounts. */
import { printable } from './text/printable.ts';
import { fail, ok, type Result } from './failure.ts';
import type { AbsolutePath } from './absolute-path.ts';

export interface MountEntry {
  readonly mountId: number;
  readonly parentId: number;
  /** `major:minor`; for btrfs an anonymous device that stat(2) does not show. */
  readonly device: string;
  /** What of the file system is mounted; `/` unless it is a bind of a part; may end in `//deleted`. */
  readonly root: string;
  readonly target: AbsolutePath;
  /** Per-mount options: `ro` here is a read-only bind. */
  readonly options: readonly string[];
  /** shared:N, master:N, propagate_from:N, unbindable. */
  readonly propagation: readonly string[];
  readonly fsType: string;
  readonly source: string;
  /** Options of the file system itself; `ro` or `emergency_ro` here is a sick or read-only file system. */
  readonly superOptions: readonly string[];
}

/**
 * The mounts of a namespace as a walk from our root directory meets them (path_resolution(7)): at each directory
 * that is a mount point of the mount one is in, one goes on at the root of the mount on it, and of the mount on that
 * one, and so on. The chain of parents decides, never the order of the lines nor the text of a target alone: one of
 * two with the same text is hidden when something lies over it, or over a directory above it, or when it hangs on
 * another mount of the root than ours (the root bound onto itself on a shared `/` doubles every line).
 */
export interface MountTable {
  /** All entries, in the kernel's order, which says nothing of what one sees. */
  readonly entries: readonly MountEntry[];
  /** What is stacked at a path, lowest first: the last one is what one sees. Empty when one sees no mount point. */
  at(target: AbsolutePath): readonly MountEntry[];
  /** The mounts that a walk to the path goes through, in that order: the last one is the mount that one is in there. */
  way(path: AbsolutePath): readonly MountEntry[];
  /** All with this target, seen or hidden: is anything mounted there at all, however little of it one sees? */
  named(target: AbsolutePath): readonly MountEntry[];
  byId(mountId: number): MountEntry | undefined;
}

/** Stands for the mount that our root directory is inside of, when the table does not show it (chroot(2)). */
const UNLISTED_ROOT = -1;

/** `rootId`: the mount of this process's root directory; guessed when it is left out (right but for odd chroots). */
export function createMountTable(entries: readonly MountEntry[], rootId?: number): MountTable {
  const byId = new Map(entries.map((entry) => [entry.mountId, entry]));
  const parentOf = ({ mountId, parentId }: MountEntry): number =>
    parentId !== mountId && byId.has(parentId) ? parentId : UNLISTED_ROOT;
  const root =
    rootId === undefined
      ? entries.find((entry) => entry.target === '/' && parentOf(entry) === UNLISTED_ROOT)
      : byId.get(rootId);
  const children = new Map<number, Map<string, MountEntry>>();
  for (const entry of entries) {
    if (entry === root) continue;
    const parent = parentOf(entry);
    const siblings = children.get(parent) ?? new Map<string, MountEntry>();
    // What hangs beside the root where the table ends hangs on the root, as far as anybody can see.
    children.set(parent, siblings.set(entry.target, entry));
  }
  if (root !== undefined) hangOnRoot(children, root.mountId);
  let named: Map<string, MountEntry[]> | undefined;

  function way(path: AbsolutePath): readonly MountEntry[] {
    const mounts: MountEntry[] = root === undefined ? [] : [root];
    let mount = root?.mountId ?? UNLISTED_ROOT;
    // The walk begins in the root directory itself: what is mounted on it is not gone into.
    for (let end = nextEnd(path, 0); end > 0; end = nextEnd(path, end)) {
      const prefix = path.slice(0, end);
      // Lines of a table that changed while it was read may make a ring.
      for (let on = children.get(mount)?.get(prefix); on !== undefined && mounts.length <= entries.length; ) {
        mounts.push(on);
        mount = on.mountId;
        on = children.get(mount)?.get(prefix);
      }
    }
    return mounts;
  }

  return {
    entries,
    way,
    at: (target) => way(target).filter((entry) => entry.target === target),
    named: (target) => {
      named ??= groupByTarget(entries);
      return named.get(target) ?? NOTHING;
    },
    byId: (mountId) => byId.get(mountId),
  };
}

const NOTHING: readonly MountEntry[] = [];

function hangOnRoot(children: Map<number, Map<string, MountEntry>>, rootId: number): void {
  const stray = children.get(UNLISTED_ROOT);
  if (stray === undefined) return;
  children.set(rootId, new Map([...stray, ...(children.get(rootId) ?? [])]));
  children.delete(UNLISTED_ROOT);
}

/** Where the next component of the path ends; 0 after the last one. */
function nextEnd(path: string, end: number): number {
  if (end + 1 >= path.length) return 0;
  const next = path.indexOf('/', end + 1);
  return next < 0 ? path.length : next;
}

function groupByTarget(entries: readonly MountEntry[]): Map<string, MountEntry[]> {
  const groups = new Map<string, MountEntry[]>();
  for (const entry of entries) {
    const group = groups.get(entry.target);
    if (group === undefined) groups.set(entry.target, [entry]);
    else group.push(entry);
  }
  return groups;
}

/** Pure and total: any bytes in, a table or a failure that shows the line. Undoes the kernel's octal escapes. */
export function parseMountTable(text: string, rootId?: number): Result<MountTable> {
  const entries: MountEntry[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const entry = parseMountLine(line);
    if (!entry.ok) return entry;
    entries.push(entry.value);
  }
  return ok(createMountTable(entries, rootId));
}

const MOUNT_ID = /^[0-9]{1,10}$/;
const DEVICE = /^[0-9]{1,10}:[0-9]{1,10}$/;

export function parseMountLine(line: string): Result<MountEntry> {
  const fields = line.split(' ');
  const separator = fields.indexOf('-', 6);
  const [id, parent, device, root, target, options] = fields;
  const [fsType, source, ...superFields] = separator < 0 ? [] : fields.slice(separator + 1);
  if (
    id === undefined ||
    !MOUNT_ID.test(id) ||
    parent === undefined ||
    !MOUNT_ID.test(parent) ||
    device === undefined ||
    !DEVICE.test(device) ||
    root === undefined ||
    root === '' ||
    !target?.startsWith('/') ||
    options === undefined ||
    fsType === undefined ||
    source === undefined ||
    superFields.length === 0
  ) {
    return fail({
      code: 'table-unreadable',
      message: `mountinfo line: ${printable(line, 256)}`,
      effect: 'none',
    });
  }
  return ok({
    mountId: Number(id),
    parentId: Number(parent),
    device,
    root: unescapeOctal(root),
    target: unescapeOctal(target) as AbsolutePath,
    options: options.split(','),
    propagation: fields.slice(6, separator),
    fsType: unescapeOctal(fsType),
    source: unescapeOctal(source),
    // The last field is the file system's own, and some do not escape a space in it.
    superOptions: superFields.join(' ').split(','),
  });
}

/** proc(5): the kernel escapes space, tab, newline, backslash and `#`, a byte at a time. */
const OCTAL = /(?:\\[0-3][0-7]{2})+/g;

function unescapeOctal(field: string): string {
  if (!field.includes('\\')) return field;
  return field.replace(OCTAL, (escapes) =>
    Buffer.from(
      escapes
        .slice(1)
        .split('\\')
        .map((digits) => Number.parseInt(digits, 8)),
    ).toString('utf8'),
  );
}
