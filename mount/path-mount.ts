/** The question "is this a mount point, and of what?", without asking the mounted file system. Path brokers only. */
import { closeSync, openSync, readSync } from 'node:fs';
import { codeOfErrno, errnoOf, failErrno } from './errno.ts';
import { fail, ok, type Result } from './failure.ts';
import type { AbsolutePath, MountLookup } from './host.ts';
import { type MountEntry, type MountTable, parseMountLine, parseMountTable } from './mount-table.ts';
import { mountIdOf, openPlace, placeOf, type Spot, withSpot } from './path-walk.ts';

const MOUNTINFO = '/proc/self/mountinfo';
/** `fs.mount-max` is 100,000 mounts of at most some 8 KiB a line; a real table of that size has 15 MiB. */
const MOUNTINFO_BYTES_MAX = 128 * 1_024 * 1_024;
/** The kernel gives at most a page a time whatever the buffer (measured, 6.18). */
const CHUNK_BYTES = 65_536;
/** How often a mount that is gone from the table before it was found there is looked up again. */
const LOOKUPS_MAX = 3;

/**
 * Compares the mount of the path with the mount of its parent directory (29 µs at any table size; `st_dev` cannot tell
 * a bind mount, reliability.md F4).
 *
 * Because: the device comes from mountinfo, not from fstat: fstat on a dead file system hangs for ever, which would
 * make the one mount that must be taken down impossible to take down, and btrfs has another number there.
 */
export function lookUpMount(path: AbsolutePath): Result<MountLookup> {
  if (path === '/') return identify(mountIdOfRoot());
  for (let attempt = 1; ; attempt += 1) {
    const mountId = withSpot(path, mountIdAt);
    if (!mountId.ok) return mountId.failure.code === 'path-missing' ? ok({ mounted: false }) : mountId;
    if (mountId.value === undefined) return ok({ mounted: false });
    const found = identify(mountId.value);
    if (found.ok || attempt === LOOKUPS_MAX) return found;
  }
}

/** The mount of a spot when it is another than its parent's; undefined when it is the same or nothing is there. */
export function mountIdAt(spot: Spot): Result<number | undefined> {
  let place: ReturnType<typeof openPlace>;
  try {
    place = openPlace(spot);
  } catch (error) {
    return codeOfErrno(errnoOf(error)) === 'path-missing'
      ? ok(undefined)
      : failErrno(error, `look at ${spot.name}`, 'none');
  }
  try {
    const own = mountIdOf(place);
    return ok(own === mountIdOf(spot.parent) ? undefined : own);
  } finally {
    closeSync(place.descriptor);
  }
}

function mountIdOfRoot(): number {
  const descriptor = openSync('/', 'r');
  try {
    return mountIdOf(placeOf(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

function identify(mountId: number): Result<MountLookup> {
  const entry = findMount(mountId);
  return entry.ok ? ok({ mounted: true, mountId, device: entry.value.device }) : entry;
}

/** The table's line of one mount id. `table-unreadable` when it has none: the mount has just gone. */
export function findMount(mountId: number): Result<MountEntry> {
  const text = readMountInfo();
  if (!text.ok) return text;
  const start = text.value.startsWith(`${mountId} `) ? 0 : text.value.indexOf(`\n${mountId} `) + 1;
  if (start === 0 && !text.value.startsWith(`${mountId} `)) {
    return fail({
      code: 'table-unreadable',
      message: `mount ${mountId} is not in the table`,
      effect: 'none',
    });
  }
  return parseMountLine(text.value.slice(start, text.value.indexOf('\n', start)));
}

export function readMountTable(): Result<MountTable> {
  const text = readMountInfo();
  return text.ok ? parseMountTable(text.value) : text;
}

/**
 * The whole of mountinfo, through one descriptor, so that lines of mounts that stay are neither lost nor doubled
 * (809 reads under churn, Linux 6.18). Touches no file system but proc.
 */
export function readMountInfo(file = MOUNTINFO): Result<string> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const chunks: Buffer[] = [];
    let bytes = 0;
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const read = readSync(descriptor, chunk, 0, CHUNK_BYTES, null);
      if (read === 0) break;
      chunks.push(chunk.subarray(0, read));
      bytes += read;
      if (bytes > MOUNTINFO_BYTES_MAX) {
        return fail({
          code: 'table-unreadable',
          message: `${file} has more than ${MOUNTINFO_BYTES_MAX} bytes`,
          effect: 'none',
        });
      }
    }
    return ok(Buffer.concat(chunks, bytes).toString('utf8'));
  } catch (error) {
    return fail({ code: 'table-unreadable', message: `${file}: ${errnoOf(error)}`, effect: 'none' });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
