/** Who keeps a mount busy, read from /proc. Path brokers only: reading about a stuck process may itself be slow. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { errnoOf } from './errno.ts';
import { ok, type Result } from './failure.ts';
import { type AbsolutePath, isBelow } from './host.ts';
import { lookUpMount, readMountInfo, readMountTable } from './path-mount.ts';
import { type MountEntry, parseMountTable } from './mount-table.ts';

const HOLDERS_MAX = 8;
const SCAN_MS_MAX = 2_000;
const OWN_NAMESPACE = '/proc/self/ns/mnt';

/**
 * At most 8 of: mounts below it, processes of this mount namespace that use a path below it, and other mount
 * namespaces that hold the same file system (test-bed.md §1: then umount succeeds here and the device stays busy).
 * Empty when nothing is mounted there. Never fails for one process that cannot be read.
 */
export function findHolders(target: AbsolutePath): Result<readonly string[]> {
  const untilMs = performance.now() + SCAN_MS_MAX;
  const mount = lookUpMount(target);
  if (!mount.ok) return mount;
  if (!mount.value.mounted) return ok([]);
  const { mountId } = mount.value;
  const table = readMountTable();
  if (!table.ok) return table;
  const entry = table.value.entries.find((one) => one.mountId === mountId);
  const holders = table.value.entries
    .filter((one) => one.parentId === mountId)
    .map((one) => `mount ${one.target}`);
  const namespaces = new Set([readLinkOrNothing(OWN_NAMESPACE)]);
  for (const pid of processes()) {
    if (holders.length >= HOLDERS_MAX || performance.now() > untilMs) break;
    const namespace = readLinkOrNothing(`/proc/${pid}/ns/mnt`);
    if (namespace === readLinkOrNothing(OWN_NAMESPACE)) {
      if (uses(pid, target)) holders.push(`pid ${pid} (${nameOf(pid)})`);
    } else if (namespace !== undefined && !namespaces.has(namespace)) {
      namespaces.add(namespace);
      if (entry !== undefined && hasCopyOf(pid, entry))
        holders.push(`pid ${pid} (${nameOf(pid)}) in its own mount namespace`);
    }
  }
  return ok(holders.slice(0, HOLDERS_MAX));
}

function processes(): readonly string[] {
  return readdirSync('/proc').filter((name) => /^[1-9][0-9]*$/.test(name) && Number(name) !== process.pid);
}

function uses(pid: string, target: AbsolutePath): boolean {
  const links = ['cwd', 'root', 'exe', ...namesOrNothing(`/proc/${pid}/fd`).map((name) => `fd/${name}`)];
  return links.some((link) => {
    const path = readLinkOrNothing(`/proc/${pid}/${link}`);
    return path !== undefined && (path === target || isBelow(path as AbsolutePath, target));
  });
}

/** The same part of the same file system, mounted in the namespace of another process. */
function hasCopyOf(pid: string, entry: MountEntry): boolean {
  const text = readMountInfo(`/proc/${pid}/mountinfo`);
  const table = text.ok ? parseMountTable(text.value) : text;
  return (
    table.ok && table.value.entries.some(({ device, root }) => device === entry.device && root === entry.root)
  );
}

/** Only letters, digits and a few signs, at most 32: a process chooses its own name. Empty when it has ended. */
export function nameOf(pid: string): string {
  return (orNothing(() => readFileSync(`/proc/${pid}/comm`, 'utf8')) ?? '')
    .replace(/[^-\w.+:@/ ]/g, '')
    .slice(0, 32);
}

function readLinkOrNothing(path: string): string | undefined {
  return orNothing(() => readlinkSync(path));
}

function namesOrNothing(path: string): readonly string[] {
  return orNothing(() => readdirSync(path)) ?? [];
}

/** A process may end while it is read about. */
function orNothing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    errnoOf(error);
    return undefined;
  }
}
