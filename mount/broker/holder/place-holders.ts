/** Who has something of our places, in whatever mount namespace: one pass over all processes. Path brokers only. */
import { readdirSync, readlinkSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { errnoOf } from '../../errno.ts';
import { fail, ok, type Result } from '../../failure.ts';
import type { PlaceHolder, PlaceHolders } from '../../holder/place-holder.ts';
import {
  type ForeignHold,
  type ForeignMount,
  type IndexedPlace,
  joined,
  PlaceIndex,
} from '../../holder/place-index.ts';
import { type AbsolutePath, isBelow, parentOf } from '../../host.ts';
import { readMountInfo } from '../../process/mount-info.ts';
import { aboutPath, ofDevices } from '../../mount-lines.ts';
import { createMountTable, type MountEntry, type MountTable, parseMountTable } from '../../mount-table.ts';
import { printable } from '../../text/printable.ts';
import { namesIn } from '../device/kernel-text.ts';
import { Unseen } from '../device/device-scan.ts';
import { aboutTask, isAlive, type Task } from '../device/task.ts';
import { follows, nameOf, sharedGround } from '../path/holders.ts';
import { type LinkEnd, linkEnd } from '../path/link-end.ts';
import { readMountTable } from '../path/mount-lookup.ts';

export interface PlacesAsked {
  readonly places: readonly AbsolutePath[];
  /** Where the pods have their volumes. */
  readonly within: AbsolutePath;
  /** Processes that are not looked at. */
  readonly except: readonly number[];
}

const HOLDERS_MAX = 8;
const SCAN_MS_MAX = 10_000;
const PATH_BYTES_MAX = 256;
const OWN_NAMESPACE = '/proc/self/ns/mnt';
const HIDDEN = 'hidden';
const DENIED: ReadonlySet<string> = new Set(['EACCES', 'EPERM']);

/** Another mount namespace, as far as it has anything of the file systems that are asked about. */
interface Namespace {
  readonly holds: readonly ForeignHold[];
  /** The key is where the mount is. */
  readonly mounts: ReadonlyMap<string, ForeignMount>;
  readonly byId: ReadonlyMap<number, ForeignMount>;
}

/**
 * In the order of the places, at most 8 of each. Complete or a failure: what cannot be looked at may be somebody. Asks
 * /proc alone, whose answers come from the kernel's own memory, so a file system that hangs holds nothing up.
 */
export function findPlaceHolders(asked: PlacesAsked): Result<PlaceHolders> {
  // Volumes are staged beside the pods' directory.
  const table = readMountTable(aboutPath(parentOf(asked.within)));
  if (!table.ok) return table;
  try {
    const found = new Search(asked, table.value).run();
    return ok(asked.places.map((path) => found.get(path) ?? []));
  } catch (error) {
    if (!(error instanceof Unseen)) throw error;
    return fail({ code: error.code, message: error.message, effect: 'none' });
  }
}

class Search {
  readonly #found = new Map<string, PlaceHolder[]>();
  readonly #namespaces = new Map<string, Namespace>();
  readonly #except: ReadonlySet<number>;
  readonly #devices: ReadonlySet<string>;
  readonly #index: PlaceIndex;
  readonly #own: MountTable;
  readonly #byRoot: PartsByRoot;
  readonly #untilMs = performance.now() + SCAN_MS_MAX;

  constructor({ places, within, except }: PlacesAsked, table: MountTable) {
    const byRoot = partsByRoot(table);
    const ours: OwnMounts = { within, asked: new Set(places), byRoot };
    const ways = places.map((path) => [path, table.way(path)] as const);
    this.#own = table;
    this.#byRoot = byRoot;
    this.#except = new Set([...except, process.pid]);
    this.#index = new PlaceIndex(ways.map(([path, way]) => placeAt(path, way, ours)));
    const asked = new Set(ways.flatMap(([, way]) => way.at(-1)?.device ?? []));
    // With those that our mounts of them lie on, which tell what follows ours.
    const grounds = table.entries
      .filter(({ device }) => asked.has(device))
      .flatMap(({ parentId }) => table.byId(parentId)?.device ?? []);
    this.#devices = new Set([...asked, ...grounds]);
  }

  run(): ReadonlyMap<string, readonly PlaceHolder[]> {
    const own = readlinkSync(OWN_NAMESPACE);
    const pids = namesIn('/proc').filter((name) => /^[1-9][0-9]*$/.test(name));
    for (const pid of pids.map(Number).sort((a, b) => a - b)) {
      if (performance.now() > this.#untilMs)
        throw new Unseen('deadline-passed', `more than ${SCAN_MS_MAX} ms for all processes`);
      if (!this.#except.has(pid)) this.#look(pid, own);
    }
    return this.#found;
  }

  #look(pid: number, own: string): void {
    const task: Task = { pid: String(pid), directory: `/proc/${pid}`, isLeader: true };
    const name = linkOf(task, 'ns/mnt');
    if (name === undefined) return;
    if (name === own || (name === HIDDEN && this.#isOurs(task))) {
      for (const end of usedBy(task)) {
        const path = this.#beginningOf(end, task, (mountId) => this.#own.byId(mountId));
        if (path !== undefined) this.#note(pid, this.#index.ownPlaceOf(path), path, 'uses');
      }
      return;
    }
    const known = name === HIDDEN ? undefined : this.#namespaces.get(name);
    const namespace = known ?? this.#namespaceOf(task);
    if (name !== HIDDEN) this.#namespaces.set(name, namespace);
    if (namespace.mounts.size === 0) return;
    for (const end of usedBy(task)) {
      const path = this.#beginningOf(end, task, (mountId) => namespace.byId.get(mountId));
      if (path === undefined) continue;
      for (const place of this.#index.foreignPlacesOf(path, namespace.mounts))
        this.#note(pid, place, path, 'uses');
    }
    if (known === undefined)
      for (const { place, target, how } of namespace.holds) this.#note(pid, place, target, how);
  }

  /** A path that tells in which place it is: where the mount is that a file is on, if it has none. */
  #beginningOf(
    end: LinkEnd,
    { pid }: Task,
    mountOf: (mountId: number) => Omit<ForeignMount, 'followsOurs'> | undefined,
  ): string | undefined {
    if (end.kind === 'path') return end.path;
    const mount = mountOf(end.mountId);
    if (mount === undefined || !this.#index.isAbovePlaces(mount)) return mount?.target;
    const message =
      `pid ${pid} (${nameOf(pid)}) has a file open at ${mount.target} whose path is longer than the kernel tells, ` +
      'so it may be in any directory there';
    throw new Unseen('too-large', message);
  }

  /** The number of a mount is one on the machine: who has one of ours is in our namespace. */
  #isOurs(task: Task): boolean {
    const table = this.#tableOf(task);
    return table.entries.some(({ mountId }) => this.#own.byId(mountId) !== undefined);
  }

  #tableOf({ pid, directory }: Task): MountTable {
    const text = readMountInfo(`${directory}/mountinfo`, ofDevices(this.#devices));
    const table = text.ok ? parseMountTable(text.value) : text;
    if (table.ok) return table.value;
    // It has just ended, or left its namespace: whoever is in there still is met, too.
    if (!isAlive(directory)) return createMountTable([]);
    throw new Unseen(table.failure.code, `the mounts of pid ${pid} cannot be seen: ${table.failure.message}`);
  }

  #namespaceOf(task: Task): Namespace {
    const table = this.#tableOf(task);
    const byId = new Map(
      table.entries.map((entry) => [entry.mountId, this.#foreignMount(entry, table)] as const),
    );
    const mounts = [...byId.values()];
    return {
      holds: this.#index.holdsOf(mounts),
      mounts: new Map(mounts.map((mount) => [mount.target, mount])),
      byId,
    };
  }

  /** A copy that follows any mount of ours, be it the stage, the place or a sub-path, is no hold. */
  #foreignMount(entry: MountEntry, table: MountTable): ForeignMount {
    const { device, root, target } = entry;
    const ours = this.#byRoot.get(rootKey(device, root));
    return { device, root, target, followsOurs: ours !== undefined && follows(entry, table, ours.grounds) };
  }

  #note(pid: number, place: IndexedPlace | undefined, path: string, how: PlaceHolder['how']): void {
    if (place === undefined) return;
    const holders = this.#found.get(place.path) ?? [];
    if (holders.some((one) => one.pid === pid)) return;
    const kept = holders.length < HOLDERS_MAX ? holders : withRoomFor(how, holders);
    if (kept === undefined) return;
    const command = nameOf(String(pid));
    this.#found.set(place.path, [...kept, { pid, command, path: printable(path, PATH_BYTES_MAX), how }]);
  }
}

/** Copies alone do not keep a volume for long: they make room for who has it in another way. */
function withRoomFor(how: PlaceHolder['how'], holders: readonly PlaceHolder[]): PlaceHolder[] | undefined {
  const copy = how === 'copy' ? -1 : holders.findLastIndex((one) => one.how === 'copy');
  return copy < 0 ? undefined : holders.filter((_, index) => index !== copy);
}

/** Where a process works, what it runs, and what it has open, as far as these have a path and are shown to us. */
function usedBy(task: Task): readonly LinkEnd[] {
  const files = unlessHidden(task, () => readdirSync(`${task.directory}/fd`));
  const names = Array.isArray(files) ? files.map((name) => `fd/${name}`) : [];
  return ['cwd', 'root', 'exe', ...names].flatMap((name) => {
    const end = unlessHidden(task, () => linkEnd(`${task.directory}/${name}`));
    if (end === undefined || end === HIDDEN) return [];
    return end.kind === 'mount' || end.path.startsWith('/') ? [end] : [];
  });
}

/** Undefined when the process has ended. */
function linkOf(task: Task, name: string): string | undefined {
  return unlessHidden(task, () => readlinkSync(`${task.directory}/${name}`));
}

/** Some are shown to nobody of our rights (a security module, a container's pid 1); their mounts are. */
function unlessHidden<T>(task: Task, read: () => T): T | typeof HIDDEN | undefined {
  return aboutTask(task, () => {
    try {
      return read();
    } catch (error) {
      if (DENIED.has(errnoOf(error))) return HIDDEN;
      throw error;
    }
  });
}

/** What all places have in common. */
interface OwnMounts {
  readonly within: AbsolutePath;
  readonly asked: ReadonlySet<string>;
  readonly byRoot: PartsByRoot;
}

/** Where we have a part of a file system, and the shared grounds of those mounts. */
interface OwnPart {
  readonly targets: AbsolutePath[];
  readonly grounds: Set<string>;
}

/** They are found by `rootKey`. */
type PartsByRoot = ReadonlyMap<string, OwnPart>;

const rootKey = (device: string, root: string): string => `${device} ${root}`;

function partsByRoot(table: MountTable): PartsByRoot {
  const parts = new Map<string, OwnPart>();
  for (const entry of table.entries) {
    const key = rootKey(entry.device, entry.root);
    const part = parts.get(key) ?? { targets: [], grounds: new Set() };
    parts.set(key, part);
    part.targets.push(entry.target);
    const ground = sharedGround(entry, table);
    if (ground !== undefined) part.grounds.add(ground);
  }
  return parts;
}

/** `way`: the mounts on the way to the path, as the table tells them. */
function placeAt(
  path: AbsolutePath,
  way: readonly MountEntry[],
  { within, asked, byRoot }: OwnMounts,
): IndexedPlace {
  const mount = way.at(-1);
  const above = mount === undefined || mount.target === '/' ? '' : mount.target;
  const device = mount?.device ?? '';
  const root = mount === undefined ? path : joined(mount.root, path.slice(above.length));
  const targets = byRoot.get(rootKey(device, root))?.targets ?? [];
  const elsewhere = targets.filter((target) => target !== path);
  const isShared = elsewhere.some((other) => isBelow(other, within) && !asked.has(other));
  return { path, device, root, isShared, elsewhere };
}
