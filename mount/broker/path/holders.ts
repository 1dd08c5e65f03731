/** Who keeps a mount busy, read from /proc. Path brokers only: reading about a stuck process may itself be slow. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { errnoOf } from '../../errno.ts';
import { ok, type Result } from '../../failure.ts';
import { type AbsolutePath, isBelow } from '../../host.ts';
import { mountIdOfPath, readMountTable } from './mount-lookup.ts';
import { readMountInfo } from '../../process/mount-info.ts';
import { type MountEntry, type MountTable, parseMountTable } from '../../mount-table.ts';

const HOLDERS_MAX = 8;
const SCAN_MS_MAX = 2_000;
const OWN_NAMESPACE = '/proc/self/ns/mnt';

/**
 * At most 8 of: mounts below it, processes that use a path below it, and other mount namespaces that hold the same file
 * system (MF-7: then umount succeeds here and the device stays busy). A namespace whose copy goes with ours,
 * as systemd gives to most services, holds nothing by itself: only who uses it in there does (mount_namespaces(7)).
 * Empty when nothing is mounted there. Never fails for one process that cannot be read. Never asks the mounted file
 * system: what is held may hang, and then it is asked for most.
 */
export function findHolders(target: AbsolutePath): Result<readonly string[]> {
  const untilMs = performance.now() + SCAN_MS_MAX;
  const found = mountIdOfPath(target);
  if (!found.ok) return found;
  const mountId = found.value;
  if (mountId === undefined) return ok([]);
  const table = readMountTable();
  if (!table.ok) return table;
  const ours = oursOf(table.value, mountId);
  const holders = table.value.entries
    .filter((one) => one.parentId === mountId)
    .map((one) => `mount ${one.target}`);
  const own = readLinkOrNothing(OWN_NAMESPACE);
  const copies = new Map<string, Copy>();
  for (const pid of processes()) {
    if (holders.length >= HOLDERS_MAX || performance.now() > untilMs) break;
    const namespace = readLinkOrNothing(`/proc/${pid}/ns/mnt`);
    if (namespace === undefined) continue;
    if (namespace === own) {
      if (uses(pid, target)) holders.push(`pid ${pid} (${nameOf(pid)})`);
      continue;
    }
    const known = copies.get(namespace);
    const copy = known ?? copyIn(pid, ours);
    copies.set(namespace, copy);
    const holds =
      copy.kind === 'follows'
        ? copy.targets.some((one) => uses(pid, one))
        : copy.kind === 'stays' && known === undefined;
    if (holds) holders.push(`pid ${pid} (${nameOf(pid)}) in its own mount namespace`);
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

/** What is mounted, and the shared grounds that it lies on in all places where it is mounted here. */
interface Ours extends Pick<MountEntry, 'device' | 'root'> {
  readonly grounds: ReadonlySet<string>;
}

function oursOf(table: MountTable, mountId: number): Ours | undefined {
  const mount = table.byId(mountId);
  if (mount === undefined) return undefined;
  const { device, root } = mount;
  const grounds = table.entries
    .filter((one) => one.device === device && one.root === root)
    .flatMap((one) => sharedGround(one, table) ?? []);
  return { device, root, grounds: new Set(grounds) };
}

/** How a mount is there in another namespace. `follows`: it is unmounted there when it is here. */
type Copy =
  | { readonly kind: 'none' | 'stays' }
  | { readonly kind: 'follows'; readonly targets: readonly AbsolutePath[] };

/**
 * The same part of the same file system, mounted in the namespace of another process; one that stays comes first. The
 * copy of a stage goes when that does, so it is none that stays of what is published from it.
 */
function copyIn(pid: string, ours: Ours | undefined): Copy {
  const text = readMountInfo(`/proc/${pid}/mountinfo`);
  const table = text.ok ? parseMountTable(text.value) : text;
  if (!table.ok || ours === undefined) return { kind: 'none' };
  const { device, root, grounds } = ours;
  const found = table.value.entries.filter((one) => one.device === device && one.root === root);
  if (found.length === 0) return { kind: 'none' };
  const stays = found.some((one) => !follows(one, table.value, grounds));
  return stays ? { kind: 'stays' } : { kind: 'follows', targets: found.map(({ target }) => target) };
}

/**
 * The group of peers that the ground of a mount of ours belongs to, and where the mount lies in its file system: the
 * same in each copy of it, whatever it is called there. Undefined when the ground is not shared, or not in the table.
 */
export function sharedGround(mount: MountEntry, table: MountTable): string | undefined {
  const ground = table.byId(mount.parentId);
  if (ground === undefined) return undefined;
  const group = groupOf(ground, 'shared:');
  return group === undefined ? undefined : `${group} ${within(ground, mount)}`;
}

/**
 * What is unmounted on our mount is unmounted on theirs: a peer or a slave of it, at the same place. What was bound
 * elsewhere on it stays, as what systemd gives to a service by BindPaths= does (mount_namespaces(7)). `grounds`: the
 * `sharedGround` of each of our mounts of the same part of the same file system.
 */
export function follows(theirs: MountEntry, table: MountTable, grounds: ReadonlySet<string>): boolean {
  const ground = table.byId(theirs.parentId);
  if (ground === undefined) return false;
  const at = within(ground, theirs);
  return (['shared:', 'master:'] as const).some((kind) => grounds.has(`${groupOf(ground, kind)} ${at}`));
}

function groupOf({ propagation }: MountEntry, kind: 'shared:' | 'master:'): string | undefined {
  return propagation.find((one) => one.startsWith(kind))?.slice(kind.length);
}

function within(ground: MountEntry, { target }: MountEntry): string {
  const rest = ground.target === '/' ? target : target.slice(ground.target.length);
  return ground.root === '/' ? rest : `${ground.root}${rest}`;
}

/** A process chooses its own name: letters, digits and a few signs are left, at most 32. Empty when it has ended. */
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
