/**
 * A small machine in memory: one tree of files with mounts on it, faults on demand, and a crash before any effect.
 *
 * Every single change of the tree is one effect, so a call such as removeTree or makeDirectory can be cut in its
 * middle. It is not the simulator's host: no drivers, no watches, no concurrency of its own.
 */
import { temporaryName, type WriteOptions } from '../../mount/temporary-file.ts';
import { aboutPath } from '../contract/about-path.ts';
import { withinRoom } from '../contract/content-room.ts';
import { done, type Failure, type FailureCode, fail, ok, type Result } from '../../mount/failure.ts';
import {
  type AbsolutePath,
  below,
  type DeviceNumber,
  type DirectoryReading,
  type FileEntry,
  type FileSystemProbe,
  type Host,
  isBelow,
  type MountLookup,
  type MountRequest,
  nameIn,
  parentOf,
  type PathFacts,
  type PathKind,
  wayTo,
} from '../../mount/host.ts';
import { type BoundPart, failRootLost, type PartBind } from '../../mount/part-bind.ts';
import type { OwnershipReport, OwnershipRequest } from '../../mount/ownership.ts';
import { type DeviceContent, isFileSystemType } from '../../mount/device/file-system-tools.ts';
import { createMountTable, type MountEntry } from '../../mount/mount-table.ts';
import { findPart } from '../part-of-tree.ts';
import { performStepwise } from '../perform-stepwise.ts';
import { SimDevices } from '../sim/sim-devices.ts';
import { SimInitiator } from '../sim/sim-initiator.ts';
import type { Room, Usage, UsageRequest } from '../../mount/usage.ts';
import { isOwned, modeAfterChown, ownedMode } from '../sim/tree-ownership.ts';

/** What a crash throws; nothing in Mooring catches it. */
export const CRASH = Symbol('crash');

interface Node {
  kind: Exclude<PathKind, 'absent'>;
  mode: number;
  readonly inode: number;
  gid: number;
  content: Uint8Array;
  text: string;
  /** The number of a block device node; undefined for all else. */
  readonly block: DeviceNumber | undefined;
  readonly children: Map<string, Node>;
}

/** `data`: bytes that blkid(8) does not know. */
export type DeviceOnDisk =
  | { readonly kind: 'blank' | 'data' }
  | Exclude<DeviceContent, { readonly kind: 'nothing' }>;

interface Mount {
  entry: MountEntry;
  readonly root: Node;
}

export type CallName = Exclude<
  keyof Host,
  'bootId' | 'nowMs' | 'wallMs' | 'timer' | 'random' | 'call' | 'watch' | 'notify'
>;

/** `before`: the call does nothing and says so. `after`: it does everything, and its answer is lost. */
export type FaultMoment = 'before' | 'after';

export interface MemoryHost extends Host {
  /** Changes of the tree so far. */
  effects(): number;
  /** Calls so far, those that change nothing included. */
  calls(): number;
  /** Throws CRASH instead of effect number `n` (from 1), counted from now on; undefined: never. */
  crashAt(n: number | undefined): void;
  /** Fails call number `n` (from 1), counted from now on. */
  failAt(n: number, code: FailureCode, moment: FaultMoment): void;
  /** Fails the next call of this method. */
  failNext(name: CallName, code: FailureCode, moment?: FaultMoment): void;
  onEffect(listener: () => void): void;
  /** The disks of the machine, who has them open, and what `holdDevice` holds. */
  readonly devices: SimDevices;
  /** Targets that a test has put into the network, and the sessions with them. */
  readonly initiator: SimInitiator;
  /** Mounts, devices and holds are gone, what is on disk stays. */
  reboot(): void;
  /** One line for each file, directory, link and mount below `path`; names of generations are made alike. */
  describe(path: AbsolutePath): readonly string[];
  /** Plants something without faults and without counting; parents are made 0755. */
  plant(
    path: string,
    node: {
      kind: Exclude<PathKind, 'absent'>;
      mode?: number;
      gid?: number;
      content?: string;
      text?: string;
      /** The number of a block device node: `host.devices.add()` gives one. */
      block?: DeviceNumber;
    },
  ): void;
  /** A device with its node, and what is on it. */
  plantDevice(path: string, content: DeviceOnDisk): DeviceNumber;
  /** Mounts something foreign on an existing directory; `content` is a file name in it. */
  plantMount(target: string, fsType: string, content?: string): void;
  /** Somebody takes the topmost mount away, held or not. */
  takeAway(target: AbsolutePath): void;
  depthAt(target: AbsolutePath): number;
  /** The options of the topmost mount. */
  optionsAt(target: AbsolutePath): readonly string[];
  /** The text of a file, following the links inside the tree. */
  read(path: string): string | undefined;
  names(path: string): readonly string[];
  knowsNoswap: boolean;
  wall: number;
  randomNumber: number;
}

const GENERATION = /\.\.[0-9]{4}(?:_[0-9]{2}){5}\.[0-9]+/g;

/** The file system of the root: no disk that a test adds has its number. */
const ROOT_DEVICE = '252:1';

export function createMemoryHost(): MemoryHost {
  let inodes = 1;
  const makeNode = (
    kind: Node['kind'],
    mode: number,
    content: Uint8Array = new Uint8Array(),
    text = '',
    block: DeviceNumber | undefined = undefined,
  ): Node => {
    inodes += 1;
    return { kind, mode, gid: 0, inode: inodes, content, text, block, children: new Map() };
  };
  const devices = new SimDevices();
  const top = makeNode('directory', 0o755);
  const mounts: Mount[] = [];
  let mountIds = 100;
  const onDevices = new Map<DeviceNumber, DeviceOnDisk>();
  const rootsOf = new Map<string, Node>();
  /** The file system that the path is in, and where in it. */
  function sourceOf(path: AbsolutePath): Pick<MountEntry, 'device' | 'root'> {
    const way = wayTo(path).toReversed();
    const within = way.map(mountAt).find((one) => one !== undefined)?.entry;
    if (within === undefined) return { device: ROOT_DEVICE, root: path };
    const root = `${within.root === '/' ? '' : within.root}${path.slice(within.target.length)}`;
    return { device: within.device, root: root === '' ? '/' : root };
  }

  let effects = 0;
  let calls = 0;
  let crashAtEffect: number | undefined;
  let failAtCall:
    | { readonly call: number; readonly code: FailureCode; readonly moment: FaultMoment }
    | undefined;
  const failNextOf = new Map<CallName, { readonly code: FailureCode; readonly moment: FaultMoment }>();
  const listeners: (() => void)[] = [];
  let now = 0;

  const mountAt = (path: string): Mount | undefined => mounts.findLast((one) => one.entry.target === path);
  const mountRound = (path: AbsolutePath): number => {
    const table = createMountTable(mounts.map(({ entry }) => entry));
    return table.way(parentOf(path)).at(-1)?.mountId ?? 1;
  };
  const atTop = (path: string, node: Node): Node => mountAt(path)?.root ?? node;

  function walk(path: AbsolutePath): Result<Node | undefined> {
    let node = atTop('/', top);
    let at = '';
    for (const name of path === '/' ? [] : path.slice(1).split('/')) {
      if (node.kind === 'symlink') return problem('path-unsafe', `a link on the way: ${at}`);
      if (node.kind !== 'directory') return problem('path-wrong-kind', `not a directory: ${at}`);
      const child = node.children.get(name);
      if (child === undefined) return ok(undefined);
      at = `${at}/${name}`;
      node = atTop(at, child);
    }
    return ok(node);
  }

  function directoryOf(path: AbsolutePath): Result<Node> {
    const node = walk(path);
    if (!node.ok) return node;
    if (node.value === undefined) return problem('path-missing', path);
    return node.value.kind === 'directory' ? ok(node.value) : problem('path-wrong-kind', path);
  }

  function change(apply: () => void): void {
    effects += 1;
    if (effects === crashAtEffect) throw CRASH;
    apply();
    for (const listener of listeners) listener();
  }

  async function asked<T>(name: CallName, answer: () => Result<T>): Promise<Result<T>> {
    await null;
    calls += 1;
    const fault = failAtCall?.call === calls ? failAtCall : failNextOf.get(name);
    failNextOf.delete(name);
    if (fault?.moment === 'before') return problem(fault.code, `injected before ${name}`);
    const result = answer();
    return fault === undefined
      ? result
      : fail({ code: fault.code, message: `injected after ${name}`, effect: 'unknown' });
  }

  function addNode(path: AbsolutePath, node: Node): Result<void> {
    const parent = directoryOf(parentOf(path));
    if (!parent.ok) return parent;
    change(() => parent.value.children.set(nameIn(path), node));
    return done;
  }

  function makeDirectory(path: AbsolutePath, mode: number): Result<void> {
    const existing = walk(path);
    if (!existing.ok) return existing;
    if (existing.value !== undefined) {
      const node = existing.value;
      if (node.kind !== 'directory') return problem('path-wrong-kind', path);
      if (node.mode !== mode)
        change(() => {
          node.mode = mode;
        });
      return done;
    }
    if (path !== '/') {
      const parent = walk(parentOf(path));
      if (!parent.ok) return parent;
      if (parent.value === undefined) {
        const made = makeDirectory(parentOf(path), 0o750);
        if (!made.ok) return made;
      }
    }
    return addNode(path, makeNode('directory', mode));
  }

  function mountedBelow(path: AbsolutePath): boolean {
    return mounts.some(({ entry }) => entry.target === path || isBelow(entry.target, path));
  }

  function removeChild(path: AbsolutePath): Result<void> {
    const parent = directoryOf(parentOf(path));
    if (!parent.ok) return parent.failure.code === 'path-missing' ? done : parent;
    if (parent.value.children.has(nameIn(path))) change(() => parent.value.children.delete(nameIn(path)));
    return done;
  }

  function removeTree(path: AbsolutePath): Result<void> {
    const node = walk(path);
    if (!node.ok) return node;
    if (node.value === undefined) return done;
    if (mountedBelow(path)) return problem('mount-busy', `a mount at or below ${path}`);
    if (node.value.kind === 'directory') {
      for (const name of [...node.value.children.keys()]) removeTree(below(path, name));
    }
    return removeChild(path);
  }

  function measureUsage({ path, scope }: UsageRequest): Result<Usage> {
    const isMounted = mountAt(path) !== undefined;
    if (isMounted !== (scope === 'file-system'))
      return problem(isMounted ? 'mount-foreign' : 'mount-lost', path);
    const top = directoryOf(path);
    if (!top.ok) return top;
    const sizes = sizesIn(top.value);
    const used = BigInt(sizes.reduce((sum, size) => sum + size, 0));
    const room = (count: bigint): Room => ({ used: count, total: undefined, available: undefined });
    return ok({ bytes: room(used), inodes: room(BigInt(sizes.length)), isWhole: true });
  }

  function sizesIn(node: Node): readonly number[] {
    return [node.content.byteLength, ...[...node.children.values()].flatMap(sizesIn)];
  }

  function factsOf(node: Node | undefined): PathFacts {
    if (node === undefined)
      return { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };
    const sizeBytes = node.content.byteLength;
    return {
      kind: node.kind,
      mode: node.mode,
      uid: 0,
      gid: node.gid,
      inode: node.inode,
      sizeBytes,
      modifiedMs: 0,
    };
  }

  /** Each entry is one effect; never over a mount, the root last. */
  function changeOwnership(request: OwnershipRequest): Result<OwnershipReport> {
    const found = walk(request.path);
    if (found.ok && found.value?.kind === 'symlink') return problem('path-unsafe', request.path);
    const root = directoryOf(request.path);
    if (!root.ok) return root;
    const { mountId } = request;
    if (mountId !== undefined && mountAt(request.path)?.entry.mountId !== mountId)
      return problem('mount-lost', request.path);
    const report = { seen: 0, changed: 0, refused: 0 };
    if (request.policy === 'on-root-mismatch' && isOwned(root.value, request))
      return ok({ ...report, seen: 1 });
    const visit = (path: string, node: Node): boolean => {
      for (const [name, child] of node.children) {
        const at = `${path}/${name}`;
        if (mountAt(at) === undefined && !visit(at, child)) return false;
      }
      if (request.isCancelled()) return false;
      report.seen += 1;
      if (isOwned(node, request)) return true;
      report.changed += 1;
      change(() => {
        node.mode = ownedMode({ ...node, mode: modeAfterChown(node, request.gid) }, request);
        node.gid = request.gid;
      });
      return true;
    };
    if (!visit(request.path, root.value))
      return fail({ code: 'no-longer-wanted', message: request.path, effect: 'unknown' });
    request.onProgress(report.seen);
    return ok(report);
  }

  function entriesOf(path: AbsolutePath, limits: DirectoryReading): Result<readonly FileEntry[]> {
    const node = directoryOf(path);
    if (!node.ok) return node;
    if (node.value.children.size > limits.entriesMax) return problem('too-large', path);
    return ok(
      withinRoom(
        [...node.value.children].map(([name, child]) => {
          const seen = atTop(`${path}/${name}`, child);
          const tooLarge = seen.content.byteLength > limits.fileBytesMax;
          const content = tooLarge ? problem('too-large', name) : ok(seen.content);
          return {
            name,
            facts: factsOf(seen),
            content: seen.kind === 'file' ? content : undefined,
            stamp: undefined,
          };
        }),
        limits,
      ),
    );
  }

  function writeFile(path: AbsolutePath, content: Uint8Array, options: WriteOptions): Result<void> {
    const found = walk(path);
    if (!found.ok) return found;
    if (found.value?.kind === 'directory') return problem('path-wrong-kind', path);
    if (found.value !== undefined && options.exclusive === true) return problem('path-wrong-kind', path);
    const parent = directoryOf(parentOf(path));
    if (!parent.ok) return parent;
    const node = makeNode('file', options.mode, Uint8Array.from(content));
    if (options.exclusive === true) {
      change(() => parent.value.children.set(nameIn(path), node));
      return done;
    }
    const temporary = temporaryName(nameIn(path));
    change(() => parent.value.children.set(temporary, node));
    change(() => {
      parent.value.children.delete(temporary);
      parent.value.children.set(nameIn(path), node);
    });
    return done;
  }

  function rename(from: AbsolutePath, to: AbsolutePath): Result<void> {
    const source = directoryOf(parentOf(from));
    const target = directoryOf(parentOf(to));
    if (!source.ok) return source;
    if (!target.ok) return target;
    const node = source.value.children.get(nameIn(from));
    if (node === undefined) return problem('path-missing', from);
    const replaced = target.value.children.get(nameIn(to));
    if (replaced?.kind === 'directory' && node.kind !== 'directory') return problem('path-wrong-kind', to);
    if (replaced?.kind === 'directory' && replaced.children.size > 0)
      return problem('directory-not-empty', to);
    change(() => {
      source.value.children.delete(nameIn(from));
      target.value.children.set(nameIn(to), node);
    });
    return done;
  }

  function whatIsMounted(source: string, bound: Node | undefined): Pick<MountEntry, 'device' | 'root'> {
    return bound === undefined ? { device: `0:${mountIds}`, root: '/' } : sourceOf(source as AbsolutePath);
  }

  /** The kernel marks a bind of what has no name any more. */
  function asListed({ entry, root }: Mount): MountEntry {
    const names = entry.root.split('/').filter((name) => name !== '');
    const named = names.reduce<Node | undefined>((node, name) => node?.children.get(name), top);
    const isNamed = entry.device !== ROOT_DEVICE || named === root;
    return isNamed ? entry : { ...entry, root: `${entry.root}//deleted` };
  }

  /** The mount that a new one at the target lies on. */
  function mountOver(target: AbsolutePath) {
    const over = mounts.filter(({ entry }) => entry.target === target || isBelow(target, entry.target));
    const deepest = Math.max(...over.map(({ entry }) => entry.target.length));
    return over.findLast(({ entry }) => entry.target.length === deepest);
  }

  function addMount(
    target: AbsolutePath,
    fsType: string,
    source: string,
    options: readonly string[],
    bound?: Node,
    block?: DeviceNumber,
  ): Node {
    const mode = options.find((one) => one.startsWith('mode='))?.slice('mode='.length) ?? '1777';
    const root = bound ?? makeNode('directory', Number.parseInt(mode, 8));
    mountIds += 1;
    const entry: MountEntry = {
      mountId: mountIds,
      parentId: mountOver(target)?.entry.mountId ?? 1,
      ...(block !== undefined ? { device: block, root: '/' } : whatIsMounted(source, bound)),
      target,
      options: ['rw', 'relatime'],
      propagation: [],
      fsType,
      source,
      superOptions: ['rw', ...options],
    };
    mounts.push({ entry, root });
    return root;
  }

  function mount({ fsType, source, target, options }: MountRequest): Result<void> {
    const bound = fsType === 'bind' ? walk(source as AbsolutePath) : ok(undefined);
    if (bound.ok && bound.value !== undefined && bound.value.kind !== 'directory') {
      const node = bound.value;
      const at = walk(target);
      if (!at.ok || at.value === undefined || at.value.kind === 'directory')
        return problem('mount-failed', target);
      change(() => addMount(target, fsType, source, options, node));
      return done;
    }
    if (isFileSystemType(fsType)) return mountDevice(fsType, source as AbsolutePath, target, options);
    const found = directoryOf(target);
    if (!found.ok) return problem('mount-failed', `${target}: ${found.failure.message}`);
    if (options.includes('noswap') && !host.knowsNoswap) return problem('mount-failed', 'unknown option');
    const shown = bound.ok ? bound.value : undefined;
    change(() => addMount(target, fsType, source, options, shown));
    return done;
  }

  function contentAt(path: AbsolutePath): { device: DeviceNumber; content: DeviceOnDisk } | undefined {
    const node = walk(path);
    const device = node.ok ? node.value?.block : undefined;
    const content = device === undefined ? undefined : onDevices.get(device);
    return device === undefined || content === undefined ? undefined : { device, content };
  }

  function mountDevice(
    fsType: string,
    source: AbsolutePath,
    target: AbsolutePath,
    options: readonly string[],
  ): Result<void> {
    const found = contentAt(source);
    const at = directoryOf(target);
    if (!at.ok || found?.content.kind !== 'file-system' || found.content.type !== fsType)
      return problem('mount-failed', target);
    const { device, content } = found;
    const root = nodesOf(content.type, device);
    change(() => addMount(target, fsType, source, options, root, device));
    return done;
  }

  /** What is on the device stays while it is not mounted. */
  function nodesOf(type: string, device: DeviceNumber): Node {
    const key = `${device} ${type}`;
    const known = rootsOf.get(key) ?? makeNode('directory', 0o755);
    rootsOf.set(key, known);
    return known;
  }

  function proveBlank(path: AbsolutePath): Result<void> {
    const found = contentAt(path);
    if (found === undefined) return problem('path-wrong-kind', path);
    if (mounts.some(({ entry }) => entry.device === found.device)) return problem('device-in-use', path);
    return found.content.kind === 'blank' ? done : problem('device-content', path);
  }

  function describeBelow(path: string, node: Node, lines: string[]): void {
    for (const [name, child] of [...node.children].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const at = path === '/' ? `/${name}` : `${path}/${name}`;
      const seen = atTop(at, child);
      const mounted = mounts.filter(({ entry }) => entry.target === at).length;
      const what =
        seen.kind === 'symlink' ? `-> ${seen.text}` : seen.kind === 'file' ? JSON.stringify(text(seen)) : '';
      lines.push(
        `${at} ${seen.kind} ${seen.mode.toString(8)} ${what}${mounted > 0 ? ` mounted x${mounted}` : ''}`
          .replaceAll(GENERATION, '..GENERATION')
          .trimEnd(),
      );
      describeBelow(at, seen, lines);
    }
  }

  /** Follows links; for tests only. */
  function follow(path: string, links = 0): Node | undefined {
    let node = atTop('/', top);
    const parts = path.split('/').filter((one) => one !== '');
    let at = '';
    for (const [index, name] of parts.entries()) {
      const child = node.children.get(name);
      if (child === undefined) return undefined;
      if (child.kind === 'symlink') {
        const base = child.text.startsWith('/') ? '' : at;
        return links > 40
          ? undefined
          : follow([base, child.text, ...parts.slice(index + 1)].join('/'), links + 1);
      }
      at = `${at}/${name}`;
      node = atTop(at, child);
    }
    return node;
  }

  function giveFlags(made: Mount, flags: readonly string[]): void {
    const options = [...made.entry.options.filter((one) => one !== 'rw' || !flags.includes('ro')), ...flags];
    made.entry = { ...made.entry, options };
  }

  function bindPart(request: PartBind): Result<BoundPart> {
    const { root, rootMountId } = request;
    if (rootMountId !== undefined && mountAt(root)?.entry.mountId !== rootMountId) return failRootLost(root);
    const kindAt = (path: AbsolutePath): PathKind => {
      const node = walk(path);
      return node.ok ? (node.value?.kind ?? 'absent') : 'absent';
    };
    const linkAt = (path: AbsolutePath): string => {
      const node = walk(path);
      return node.ok ? (node.value?.text ?? '') : '';
    };
    const mode = factsOf(valueOrNothing(walk(request.root))).mode;
    const make = (path: AbsolutePath): boolean => makeDirectory(path, mode).ok;
    const found = findPart({ kindAt, linkAt, makeDirectory: make }, request);
    if (!found.ok) return found;
    const { target } = request;
    const part = valueOrNothing(walk(found.value));
    const { flags = [] } = request;
    const before = mountAt(target);
    if (before !== undefined) {
      if (before.root !== part) return ok({ otherMountId: before.entry.mountId });
      if (flags.some((one) => !before.entry.options.includes(one))) change(() => giveFlags(before, flags));
      return ok('bound');
    }
    const isDirectory = part?.kind === 'directory';
    const made = makeDirectory(parentOf(target), 0o750);
    if (!made.ok) return made;
    const there = kindAt(target);
    if (there !== 'absent' && (there === 'directory') !== isDirectory) removeChild(target);
    if (kindAt(target) === 'absent') {
      if (isDirectory) makeDirectory(target, 0o750);
      else addNode(target, makeNode('file', 0o640));
    }
    const bound = mount({ fsType: 'bind', source: found.value, target, options: [] });
    const mounted = mountAt(target);
    if (!bound.ok || mounted === undefined || flags.length === 0) return bound.ok ? ok('bound') : bound;
    change(() => giveFlags(mounted, flags));
    return ok('bound');
  }

  const initiator = new SimInitiator({
    plug(iqn, _portal, lun) {
      const path = `/dev/disk-${iqn}-${lun}`.replaceAll(/[^A-Za-z0-9/-]/g, '-') as AbsolutePath;
      const node = walk(path);
      const known = node.ok ? node.value?.block : undefined;
      const device = known ?? host.plantDevice(path, { kind: 'blank' });
      return { node: path, device };
    },
    unplug() {},
  });

  const host: MemoryHost = {
    knowsNoswap: true,
    wall: Date.UTC(2026, 0, 31, 15, 4, 5),
    randomNumber: 0.25,
    bootId: '6b1c5a2e-0000-4000-8000-000000000001',
    random: () => host.randomNumber,
    nowMs: () => now,
    wallMs: () => host.wall,
    timer(delayMs, fire) {
      let cancelled = false;
      void Promise.resolve().then(() => {
        if (cancelled) return;
        now += delayMs;
        fire();
      });
      return () => {
        cancelled = true;
      };
    },
    inspect: (path) =>
      asked('inspect', () => {
        const listed = devices.listedAt(path);
        if (listed !== undefined) return ok({ ...factsOf(undefined), kind: listed ? 'symlink' : 'absent' });
        const node = walk(path);
        return node.ok ? ok(factsOf(node.value)) : node;
      }),
    perform(transition, args) {
      return performStepwise(this, transition, args);
    },
    inspectWay: () => Promise.reject(new Error('no socket in this host')),
    makeDirectory: (path, mode) => asked('makeDirectory', () => makeDirectory(path, mode)),
    removeEmptyDirectory: (path) =>
      asked('removeEmptyDirectory', () => {
        const node = walk(path);
        if (!node.ok) return node;
        if (node.value === undefined) return done;
        if (node.value.kind !== 'directory') return problem('path-wrong-kind', path);
        if (mountAt(path) !== undefined) return problem('mount-busy', path);
        return node.value.children.size > 0 ? problem('directory-not-empty', path) : removeChild(path);
      }),
    removeTree: (path) => asked('removeTree', () => removeTree(path)),
    listDirectory: (path, entriesMax) =>
      asked('listDirectory', () => {
        const node = directoryOf(path);
        if (!node.ok) return node;
        return node.value.children.size > entriesMax
          ? problem('too-large', path)
          : ok([...node.value.children.keys()]);
      }),
    identifyDirectory: (path) =>
      asked('identifyDirectory', () => {
        const node = directoryOf(path);
        if (!node.ok) return node;
        const { mountId = 1, device = ROOT_DEVICE } = mountAt(path)?.entry ?? {};
        return ok({ mountId, device, inode: String(node.value.inode), bornNs: undefined });
      }),
    readDirectoryFiles: (path, limits) => asked('readDirectoryFiles', () => entriesOf(path, limits)),
    readFile: (path, bytesMax) =>
      asked('readFile', () => {
        const node = walk(path);
        if (!node.ok) return node;
        if (node.value === undefined) return problem('path-missing', path);
        if (node.value.kind !== 'file') return problem('path-wrong-kind', path);
        return node.value.content.byteLength > bytesMax ? problem('too-large', path) : ok(node.value.content);
      }),
    writeFile: (path, content, options) => asked('writeFile', () => writeFile(path, content, options)),
    overwriteFile: (path, offsetBytes, content, within) =>
      asked('overwriteFile', () => {
        if (within !== undefined && mountRound(path) !== within) return problem('mount-foreign', path);
        const node = walk(path);
        if (!node.ok) return node;
        if (node.value === undefined) return problem('path-missing', path);
        const file = node.value;
        if (file.kind !== 'file')
          return problem(file.kind === 'symlink' ? 'path-unsafe' : 'path-wrong-kind', path);
        if (offsetBytes + content.byteLength > file.content.byteLength) return problem('too-large', path);
        change(() => {
          file.content = Uint8Array.from(file.content);
          file.content.set(content, offsetBytes);
        });
        return done;
      }),
    synchronise: (path) =>
      asked('synchronise', () => {
        const node = walk(path);
        if (!node.ok) return node;
        if (node.value === undefined) return problem('path-missing', path);
        if (node.value.kind === 'symlink') return problem('path-unsafe', path);
        const isPlain = node.value.kind === 'file' || node.value.kind === 'directory';
        return isPlain ? done : problem('path-wrong-kind', path);
      }),
    removeFile: (path) =>
      asked('removeFile', () => {
        const node = walk(path);
        if (!node.ok) return node;
        if (mountAt(path) !== undefined) return problem('mount-busy', path);
        return node.value?.kind === 'directory' ? problem('path-wrong-kind', path) : removeChild(path);
      }),
    rename: (from, to) => asked('rename', () => rename(from, to)),
    makeLink: (path, linkText) =>
      asked('makeLink', () => {
        const node = walk(path);
        if (!node.ok) return node;
        if (node.value !== undefined) return problem('path-wrong-kind', path);
        return addNode(path, makeNode('symlink', 0o777, undefined, linkText));
      }),
    readLink: (path) =>
      asked('readLink', () => {
        const node = walk(path);
        if (!node.ok) return node;
        if (node.value === undefined) return problem('path-missing', path);
        return node.value.kind === 'symlink' ? ok(node.value.text) : problem('path-wrong-kind', path);
      }),
    readMountTable: (about) =>
      asked('readMountTable', () => {
        return ok(createMountTable(aboutPath(mounts.map(asListed), about)));
      }),
    mountIdOf: (path) => asked('mountIdOf', () => ok(mountAt(path)?.entry.mountId)),
    mountPlaceOf: (path) =>
      asked('mountPlaceOf', () => {
        return ok({ mountId: mountAt(path)?.entry.mountId, within: mountRound(path) });
      }),
    lookUpMount: (path) =>
      asked<MountLookup>('lookUpMount', () => {
        const found = mountAt(path)?.entry;
        if (found === undefined) return ok({ mounted: false });
        return ok({ mounted: true, mountId: found.mountId, device: found.device });
      }),
    probeFileSystem: (path) =>
      asked<FileSystemProbe>('probeFileSystem', () => {
        const found = mountAt(path)?.entry;
        if (found === undefined) return ok({ kind: 'unmounted' });
        return ok({ kind: 'alive', readOnly: false, device: found.device });
      }),
    measureUsage: (request) => asked('measureUsage', () => measureUsage(request)),
    mount: (request) => asked('mount', () => mount(request)),
    bindPart: (request) => asked('bindPart', () => bindPart(request)),
    unmount: (target) =>
      asked('unmount', () => {
        const index = mounts.findLastIndex(({ entry }) => entry.target === target);
        if (index < 0) return problem('unmount-failed', `not mounted: ${target}`);
        const inUse = mounts.some(({ entry }) => isBelow(entry.target, target));
        if (inUse || devices.isHeldOn(mounts[index])) return problem('mount-busy', target);
        change(() => mounts.splice(index, 1));
        return done;
      }),
    readDeviceContent: (device) =>
      asked<DeviceContent>('readDeviceContent', () => {
        const { content } = contentAt(device) ?? { content: { kind: 'other', what: 'no device' } as const };
        if (content.kind === 'file-system') return ok(content);
        return ok(content.kind === 'other' ? content : { kind: 'nothing' });
      }),
    proveBlank: (device) => asked('proveBlank', () => proveBlank(device)),
    makeFileSystem: (device, type) =>
      asked('makeFileSystem', () => {
        const blank = proveBlank(device);
        const found = contentAt(device);
        if (!blank.ok || found === undefined) return blank;
        change(() => void onDevices.set(found.device, { kind: 'file-system', type }));
        return done;
      }),
    checkFileSystem: () => asked('checkFileSystem', () => done),
    growFileSystem: () => asked('growFileSystem', () => done),
    readIscsiSessions: () => asked('readIscsiSessions', () => ok(initiator.read())),
    logInToIscsi: (login) =>
      asked('logInToIscsi', () => {
        const answer = initiator.answer(login);
        if (answer === 'found') return ok('found');
        if (answer !== undefined)
          return fail({ code: answer, message: login.iqn, effect: 'none', blocker: login.portal });
        change(() => initiator.begin(login, 'agent'));
        return ok('made');
      }),
    scanIscsi: () => asked('scanIscsi', () => done),
    logOutOfIscsi: (way) =>
      asked('logOutOfIscsi', () => {
        const session = initiator.find(way);
        if (session !== undefined) change(() => initiator.end(session));
        return done;
      }),
    removeMultipath: (map) =>
      asked('removeMultipath', () => {
        if (initiator.hasMap(map)) change(() => initiator.removeMap(map));
        return done;
      }),
    findHolders: (target) =>
      asked('findHolders', () => ok(mountAt(target) === undefined ? [] : ['pid 7 (test)'])),
    findPlaceHolders: (places) => asked('findPlaceHolders', () => ok(places.map(() => []))),
    deviceOf: (path) =>
      asked('deviceOf', () => {
        const node = walk(path);
        return node.ok ? ok(node.value?.block) : node;
      }),
    identifyDisk: (path) =>
      asked('identifyDisk', () => {
        const node = walk(path);
        if (!node.ok) return node;
        const device = node.value?.block;
        return ok(device === undefined ? undefined : devices.diskOf(device));
      }),
    holdDevice: (path) =>
      asked('holdDevice', () => {
        const node = walk(path);
        if (!node.ok) return node;
        const device = node.value?.block;
        if (device === undefined) return problem('path-wrong-kind', path);
        const isHeld = devices.holds().some((one) => one.shown === path && one.device === device);
        if (isHeld) return done;
        if (!devices.has(device)) return problem('input-output', path);
        change(() => void devices.hold(path, device, mountAt(path)));
        return done;
      }),
    releaseDevice: (path) =>
      asked('releaseDevice', () => {
        if (devices.holds().some((one) => one.path === path)) change(() => devices.release(path));
        return done;
      }),
    heldPaths: (within) => asked('heldPaths', () => ok(devices.heldPaths(within))),
    findDeviceUsers: (device) =>
      asked('findDeviceUsers', () => {
        const mounted = mounts.filter(({ entry }) => entry.device === device);
        return ok([...mounted.map(({ entry }) => `mount ${entry.target}`), ...devices.usersOf(device)]);
      }),
    changeOwnership: (request) => asked('changeOwnership', () => changeOwnership(request)),
    call: () => {
      throw new Error('broken invariant: no kind of volume on this host calls a driver');
    },
    watch: () => () => {},
    notify: async () => done,

    effects: () => effects,
    calls: () => calls,
    crashAt(n) {
      crashAtEffect = n === undefined ? undefined : effects + n;
    },
    failAt(n, code, moment) {
      failAtCall = { call: calls + n, code, moment };
    },
    failNext(name, code, moment = 'before') {
      failNextOf.set(name, { code, moment });
    },
    onEffect(listener) {
      listeners.push(listener);
    },
    devices,
    initiator,
    reboot() {
      mounts.length = 0;
      initiator.losePower();
      devices.losePower();
    },
    describe(path) {
      const lines: string[] = [];
      const node = walk(path);
      if (node.ok && node.value !== undefined) describeBelow(path, node.value, lines);
      return lines;
    },
    plant(path, planting) {
      const { kind, content = '', text: linkText = '', block, gid = 0 } = planting;
      const { mode = kind === 'directory' ? 0o755 : 0o644 } = planting;
      let node = atTop('/', top);
      const parts = path.slice(1).split('/');
      for (const [index, name] of parts.slice(0, -1).entries()) {
        const next = node.children.get(name) ?? makeNode('directory', 0o755);
        node.children.set(name, next);
        node = atTop(`/${parts.slice(0, index + 1).join('/')}`, next);
      }
      const planted = makeNode(kind, mode, new TextEncoder().encode(content), linkText, block);
      planted.gid = gid;
      node.children.set(parts.at(-1) ?? '', planted);
    },
    plantDevice(path, content) {
      const device = devices.add();
      onDevices.set(device, content);
      host.plant(path, { kind: 'block', block: device });
      return device;
    },
    plantMount(target, fsType, content) {
      const root = addMount(target as AbsolutePath, fsType, '/dev/foreign', []);
      if (content !== undefined) root.children.set(content, makeNode('file', 0o644));
    },
    takeAway(target) {
      const index = mounts.findLastIndex(({ entry }) => entry.target === target);
      devices.loseName(mounts[index]);
      mounts.splice(index, 1);
    },
    depthAt: (target) => mounts.filter(({ entry }) => entry.target === target).length,
    optionsAt: (target) => mountAt(target)?.entry.superOptions ?? [],
    read(path) {
      const node = follow(path);
      return node?.kind === 'file' ? text(node) : undefined;
    },
    names(path) {
      return [...(follow(path)?.children.keys() ?? [])].sort();
    },
  };
  return host;
}

function text(node: Node): string {
  return new TextDecoder().decode(node.content);
}

function problem(code: FailureCode, message: string): { readonly ok: false; readonly failure: Failure } {
  return fail({ code, message, effect: 'none' });
}

function valueOrNothing<T>(result: Result<T | undefined>): T | undefined {
  return result.ok ? result.value : undefined;
}
