/** The questions "is this a mount point?" and "of what?". Path brokers only. */
import { closeSync, fstatSync, openSync, statfsSync } from 'node:fs';
import { codeOfErrno, errnoOf, failErrno } from '../../errno.ts';
import { type DeathCause, fail, ok, type Result } from '../../failure.ts';
import { deathInOptions, deathOf, isReadOnly, optionsOfExt4 } from './file-system-death.ts';
import {
  type AbsolutePath,
  isBelow,
  type MountLookup,
  type MountPlace,
  nameIn,
  parentOf,
} from '../../host.ts';
import { atOrBelow, type LineFilter, withId } from '../../mount-lines.ts';
import { readOwnMountInfo } from '../../process/mount-info.ts';
import { type MountEntry, type MountTable, parseMountLine, parseMountTable } from '../../mount-table.ts';
import {
  mountIdOf,
  O_PATH,
  openPath,
  type OpenPath,
  openPathOf,
  type ChildPath,
  childIn,
  withChild,
  withDeepest,
} from './path-walk.ts';

/** How often a mount that is gone from the table before it was found there is looked up again. */
const LOOKUPS_MAX = 3;

/**
 * Compares the mount of the path with the mount of its parent directory (29 µs at any table size; `st_dev` cannot tell
 * a bind mount, MF-4). Never asks the mounted file system.
 */
export function mountIdOfPath(path: AbsolutePath): Result<number | undefined> {
  if (path === '/') return ok(mountIdOfRoot());
  const mountId = withChild(path, mountIdAt);
  return !mountId.ok && mountId.failure.code === 'path-missing' ? ok(undefined) : mountId;
}

/** With the mount that the directory above is in, or the nearest one above that is there. */
export function mountPlaceOf(path: AbsolutePath): Result<MountPlace> {
  if (path === '/') return ok({ mountId: mountIdOfRoot(), within: mountIdOfRoot() });
  return withDeepest(parentOf(path), ({ place, missing }): Result<MountPlace> => {
    const within = mountIdOf(place);
    if (missing.length > 0) return ok({ mountId: undefined, within });
    const mountId = mountIdAt(childIn(place, nameIn(path)));
    return mountId.ok ? ok({ mountId: mountId.value, within }) : mountId;
  });
}

/** As above, with the device: from fstat, but for btrfs, whose st_dev is another number than mountinfo shows. */
export function lookUpMount(path: AbsolutePath): Result<MountLookup> {
  for (let attempt = 1; ; attempt += 1) {
    const seen = path === '/' ? ok({ mountId: mountIdOfRoot() }) : withChild(path, see);
    if (!seen.ok && seen.failure.code === 'path-missing') return ok({ mounted: false });
    if (!seen.ok) return seen;
    const found = identify(seen.value);
    if (found.ok || attempt === LOOKUPS_MAX) return found;
  }
}

/** The mount at a path when it is another than its parent's; undefined when it is the same or nothing is there. */
export function mountIdAt(child: ChildPath): Result<number | undefined> {
  const seen = atMount(child, (_, mountId) => ({ mountId }));
  return seen.ok ? ok(seen.value?.mountId) : seen;
}

/** What is mounted at a child, while it is open; undefined when nothing is, or the child is not there. */
function atMount<T>(child: ChildPath, look: (place: OpenPath, mountId: number) => T): Result<T | undefined> {
  let place: OpenPath;
  try {
    place = openPath(child);
  } catch (error) {
    return codeOfErrno(errnoOf(error)) === 'path-missing'
      ? ok(undefined)
      : failErrno(error, `look at ${child.name}`, 'none');
  }
  try {
    const own = mountIdOf(place);
    return ok(own === mountIdOf(child.parent) ? undefined : look(place, own));
  } finally {
    closeSync(place.descriptor);
  }
}

/** The mount id of this process's root, where every walk begins; it is no mount point, whatever is mounted on it. */
function mountIdOfRoot(): number {
  const descriptor = openSync('/', O_PATH);
  try {
    return mountIdOf(openPathOf(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

const BTRFS_MAGIC = 0x9123683e;
const TMPFS_MAGIC = 0x01021994;
/** ext2, 3 and 4 (statfs(2)): a dead one answers all the same. */
const EXT_MAGIC = 0xef53;

/** What is mounted somewhere; undefined: nothing is. */
type Mounted = ({ readonly mountId: number } & Seen) | undefined;

function see(child: ChildPath): Result<Mounted> {
  return atMount(child, (place, mountId) => ({ mountId, ...seeFileSystem(place, mountId) }));
}

function identify(mounted: Mounted): Result<MountLookup> {
  if (mounted === undefined) return ok({ mounted: false });
  const { device, ...rest } = mounted;
  if (device !== undefined) return ok({ mounted: true, device, ...rest });
  const entry = findMount(rest.mountId);
  return entry.ok ? ok({ mounted: true, device: entry.value.device, ...rest }) : entry;
}

/** How a mounted file system shows itself. */
export interface Seen {
  /** Undefined when stat(2) does not tell: btrfs, or one that answers with errors. */
  readonly device?: string;
  readonly death?: DeathCause;
  readonly readOnly?: true;
  /** See MountLookup. */
  readonly turnedReadOnly?: true;
  /** Where statfs(2) tells it beyond doubt. */
  readonly fsType?: 'tmpfs';
}

const NOTHING_SEEN: Seen = {};

/** Asks it; the same cost at any table size. */
export function seeFileSystem(place: OpenPath, mountId: number): Seen {
  const death = deathOf(place);
  if (death !== undefined) return { death };
  try {
    const { type } = statfsSync(place.path);
    const mode = isReadOnly(place) ? readOnlyMode(type, mountId) : {};
    if (type === BTRFS_MAGIC) return mode;
    const device = formatDevice(fstatSync(place.descriptor, { bigint: true }).dev);
    const told = type === EXT_MAGIC ? deathInOptions(optionsOfExt(device, mountId)) : undefined;
    const kind = type === TMPFS_MAGIC ? ({ fsType: 'tmpfs' } as const) : {};
    return { device, ...(told === undefined ? {} : { death: told }), ...mode, ...kind };
  } catch {
    return NOTHING_SEEN;
  }
}

/**
 * Whoever mounts read-only makes the mount so as well, mount(8) also where the device is write-protected; an error
 * makes the file system so, and no mount. Others than these are never written, or tell of an error by other means.
 */
function readOnlyMode(type: number, mountId: number): Pick<Seen, 'readOnly' | 'turnedReadOnly'> {
  if (type !== EXT_MAGIC && type !== BTRFS_MAGIC) return { readOnly: true };
  const entry = findMount(mountId);
  const isMadeSo = !entry.ok || entry.value.options.includes('ro');
  return isMadeSo ? { readOnly: true } : { readOnly: true, turnedReadOnly: true };
}

function optionsOfExt(device: string, mountId: number): readonly string[] {
  const options = optionsOfExt4(device);
  if (options !== undefined) return options;
  const entry = findMount(mountId);
  return entry.ok ? entry.value.superOptions : [];
}

/** Linux dev_t, as makedev(3) packs it. */
export function formatDevice(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}

/** The table's line of one mount id. `table-unreadable` when it has none: the mount has just gone. */
export function findMount(mountId: number): Result<MountEntry> {
  const text = readOwnMountInfo(withId(mountId));
  if (!text.ok) return text;
  const end = text.value.indexOf('\n');
  if (end > 0) return parseMountLine(text.value.slice(0, end));
  const message = `mount ${mountId} is not in the table`;
  return fail({ code: 'table-unreadable', message, effect: 'none' });
}

/** Any mount at the path or below it; undefined when there is none. */
export function findMountBelow(path: AbsolutePath): Result<MountEntry | undefined> {
  const text = readOwnMountInfo(atOrBelow(path));
  if (!text.ok) return text;
  for (const line of text.value.split('\n').slice(0, -1)) {
    const mount = parseMountLine(line);
    if (!mount.ok || mount.value.target === path || isBelow(mount.value.target, path)) return mount;
  }
  return ok(undefined);
}

/** With `keep`, of what it asks for. */
export function readMountTable(keep?: LineFilter): Result<MountTable> {
  const text = readOwnMountInfo(keep);
  return text.ok ? parseMountTable(text.value, mountIdOfRoot()) : text;
}
