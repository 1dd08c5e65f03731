/**
 * The machine that survives the agent: a tree of files, a stack of mounts, and what a power cut leaves of them.
 *
 * Follows Linux where the product could notice: mounts are keyed by (parent mount, directory) so that a second mount on
 * one target stacks; mount ids and anonymous device numbers are the lowest free ones; a bind shares the file system of
 * its source; umount of a path takes the top layer and is refused while something is mounted below or held open; a
 * directory that is a mount point can be neither removed nor renamed. One mount namespace, no propagation.
 */
import { SimNfsServer } from './nfs-volumes.ts';
import { SimTargets } from './sim-targets.ts';
import {
  type AbsolutePath,
  type Cancel,
  type DeviceNumber,
  type FileSystemProbe,
  type MountLookup,
  parentOf,
  type PathFacts,
  wayTo,
  type MemoryFileSystem,
} from '../../mount/host.ts';
import type { MountEntry } from '../../mount/mount-table.ts';
import {
  createFileSystem,
  createInode,
  type Errno,
  type FileSystem,
  type Inode,
  type InodeNumbers,
  link,
  losePower,
  pathInside,
  setContent,
  setGroup,
  setMode,
  sizeOf,
  synchronise,
  unlink,
} from './file-tree.ts';
import type { Random } from './random.ts';
import { LocalDisks } from './local-disks.ts';
import { type Hold, SimDevices } from './sim-devices.ts';

export interface Mount {
  readonly id: number;
  readonly parent: Mount | undefined;
  readonly fileSystem: FileSystem;
  readonly root: Inode;
  readonly target: AbsolutePath;
  readonly source: string;
  options: readonly string[];
  readonly children: Map<Inode, Mount>;
  /** Somebody has an open file below: umount says EBUSY. */
  held: boolean;
}

export interface Position {
  readonly mount: Mount;
  readonly inode: Inode;
}

/** A name that is there. */
interface Entry {
  readonly mount: Mount;
  readonly directory: Inode;
  readonly name: string;
  readonly child: Inode;
}

const ABSENT: PathFacts = { kind: 'absent', mode: 0, uid: 0, gid: 0, inode: 0, sizeBytes: 0, modifiedMs: 0 };
const FIRST_MOUNT_ID = 24;
const FIRST_ANONYMOUS_MINOR = 30;
const ROOT = '/' as AbsolutePath;
const TWIN_ID = 1_000_000;

/** What a mount has for itself, besides `ro`. */
const OF_ONE_MOUNT = ['nosuid', 'nodev', 'noexec', 'noatime', 'nosymfollow'] as const;

export class SimKernel {
  readonly #random: Random;
  /** The time of day, by the clock of this machine. */
  readonly wallMs: () => number;
  readonly #mounts: Mount[] = [];
  readonly #mountIds = new Set<number>();
  /** The numbers of what was mounted last at each place, and is not any more. */
  readonly #lastIds = new Map<AbsolutePath, number>();
  readonly #minors = new Set<number>();
  readonly #components = new Map<string, readonly string[]>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #inodeNumbers: InodeNumbers = { next: 2 };
  readonly #disk: FileSystem;
  /** The disks of the machine, who has them open, and the loop devices that hold them. */
  readonly localDisks = new LocalDisks(this);
  readonly devices = new SimDevices();
  readonly nfs: SimNfsServer;
  readonly targets: SimTargets;
  /** Mounts that are neither the agent's nor a driver's. */
  readonly strangers = new Set<Mount>();
  #root: Mount;
  bootId = '';
  /** When that began, of virtual time: the monotonic clock of a machine counts from there. */
  bootedMs = 0;
  /** Counts changes of the mount table; a cheap "did anything change?". */
  mountChanges = 0;
  /** A look at them is an effect only where some do. */
  fileSystemsDie = false;
  /** Whoever may hang is asked as on the real host only where some do. */
  fileSystemsHang = false;
  /** Room is measured as on the real host only where pods fill their directories. */
  directoriesFill = false;
  /** tmpfs knows the option `noswap` (Linux 6.4). */
  knowsNoswap = true;

  constructor(random: Random, wallMs: () => number) {
    this.#random = random;
    this.wallMs = wallMs;
    this.#disk = this.makeFileSystem('ext4', '/dev/vda1', true);
    this.#root = this.#boot();
    this.nfs = new SimNfsServer(this);
    this.targets = new SimTargets(this);
  }

  // Looking.

  /** Follows mounts, never a link: a link on the way is ELOOP, as it is for the walk the host makes. */
  walk(path: AbsolutePath): Position | Errno {
    let mount = this.#root;
    let inode = mount.root;
    for (const component of this.#componentsOf(path)) {
      if (inode.kind === 'symlink') return 'ELOOP';
      if (inode.kind !== 'directory') return 'ENOTDIR';
      const next = inode.entries.get(component);
      if (next === undefined) return 'ENOENT';
      inode = next;
      for (let on = mount.children.get(inode); on !== undefined; on = mount.children.get(inode)) {
        mount = on;
        inode = on.root;
      }
    }
    return { mount, inode };
  }

  inspect(path: AbsolutePath): PathFacts | Errno {
    const device = this.devices.listedAt(path);
    if (device !== undefined) return device ? { ...ABSENT, kind: 'symlink' } : ABSENT;
    const at = this.walk(path);
    if (at === 'ENOENT') return ABSENT;
    return typeof at === 'string' ? at : factsOf(at.inode);
  }

  lookUpMount(path: AbsolutePath): MountLookup | Errno {
    const at = this.walk(path);
    if (at === 'ENOENT') return { mounted: false };
    if (typeof at === 'string') return at;
    if (at.inode !== at.mount.root) return { mounted: false };
    const { id, fileSystem, options } = at.mount;
    const cause = fileSystem.death?.cause;
    const death = cause === undefined || cause === 'read-only' ? {} : { death: cause };
    const isMadeSo = options.includes('ro');
    const mode = isMadeSo || cause === 'read-only' ? ({ readOnly: true } as const) : {};
    const turned = cause === 'read-only' && !isMadeSo ? ({ turnedReadOnly: true } as const) : {};
    return { mounted: true, mountId: id, device: fileSystem.device, ...death, ...mode, ...turned };
  }

  /** As Host.probeFileSystem has it; it never hangs by itself. */
  probe(path: AbsolutePath): FileSystemProbe | Errno {
    const seen = this.lookUpMount(path);
    if (typeof seen === 'string') return seen;
    if (!seen.mounted) return { kind: 'unmounted' };
    const { death, device, readOnly = false } = seen;
    return death === undefined ? { kind: 'alive', readOnly, device } : { kind: 'dead', cause: death };
  }

  /** The first one that hangs of those that are asked on the way to the path, what is mounted there included. */
  hungOnWay(path: AbsolutePath): FileSystem | undefined {
    const way = wayTo(path).map((one) => this.walk(one));
    for (const at of way) {
      if (typeof at === 'string') return undefined;
      if (at.mount.fileSystem.hang !== undefined) return at.mount.fileSystem;
    }
    return undefined;
  }

  /** Would a file of this path be in memory only? */
  isInMemory(path: AbsolutePath): boolean {
    const at = this.#place(path);
    return typeof at !== 'string' && at.mount.fileSystem.type !== 'ext4';
  }

  mounts(): readonly Mount[] {
    return this.#mounts;
  }

  /** The stack on a target, lowest first, as it is below what strangers laid over it. */
  mountsAt(target: string): readonly Mount[] {
    return this.#mounts.filter((mount) => mount.target === target && !this.strangers.has(mount));
  }

  /** Does one who goes there go through the file system of a stranger? */
  isUnderStranger(path: AbsolutePath): boolean {
    if (this.strangers.size === 0) return false;
    const at = this.walk(path);
    if (typeof at === 'string') return path !== ROOT && this.isUnderStranger(parentOf(path));
    for (let mount: Mount | undefined = at.mount; mount !== undefined; mount = mount.parent)
      if (this.strangers.has(mount)) return true;
    return false;
  }

  /** The mount that the directory above is in, or the nearest above that is there. */
  mountRound(path: AbsolutePath): Mount {
    for (let above = parentOf(path); ; above = parentOf(above)) {
      const at = this.walk(above);
      if (typeof at !== 'string') return at.mount;
    }
  }

  /** Would what is mounted there next have the number of what was mounted there last? */
  isLastAgain(target: AbsolutePath): boolean {
    const next = takeLowest(new Set(this.#mountIds), FIRST_MOUNT_ID);
    return this.#lastIds.get(target) === next;
  }

  /** A tmpfs that nobody asked for; undefined where none can be mounted. */
  putStranger(label: string, target: AbsolutePath): Mount | undefined {
    if (this.mountTmpfs(label, target, []) !== undefined) return undefined;
    const mount = this.#mounts.at(-1);
    if (mount !== undefined) this.strangers.add(mount);
    return mount;
  }

  /** False: it is busy. */
  removeStranger(mount: Mount): boolean {
    if (mount.held || mount.children.size > 0) return false;
    this.strangers.delete(mount);
    if (this.#mounts.includes(mount)) this.#detach(mount);
    return true;
  }

  /**
   * `doubled`: the root was bound onto itself where it is shared, and every mount hangs on that one, too, where nobody
   * sees it (as for a kubelet in a container).
   */
  entries(doubled = false): MountEntry[] {
    const entries = this.#entries();
    if (!doubled) return entries;
    const twins = entries.map((entry) => ({
      ...entry,
      mountId: entry.mountId + TWIN_ID,
      parentId: entry.target === ROOT ? entry.mountId : entry.parentId + TWIN_ID,
    }));
    return [...entries, ...twins];
  }

  #entries(): MountEntry[] {
    return this.#mounts.map((mount) => ({
      mountId: mount.id,
      parentId: mount.parent?.id ?? 1,
      device: mount.fileSystem.device,
      root: pathInside(mount.root),
      target: mount.target,
      options: mount.options,
      propagation: ['shared:1'],
      fsType: mount.fileSystem.type,
      source: mount.source,
      superOptions: ['rw'],
    }));
  }

  /** Calls `hint` at once after each change of the names in a directory, or of its name. */
  watch(directory: AbsolutePath, hint: () => void): Cancel {
    const hints = this.#watchers.get(directory) ?? new Set();
    this.#watchers.set(directory, hints.add(hint));
    return () => hints.delete(hint);
  }

  // Files.

  makeDirectory(path: AbsolutePath, mode: number): Errno | undefined {
    return this.#create(path, 'directory', mode, () => undefined);
  }

  makeSocket(path: AbsolutePath): Inode | Errno {
    const denied = this.#create(path, 'socket', 0o755, () => undefined);
    if (denied !== undefined) return denied;
    const at = this.walk(path);
    return typeof at === 'string' ? at : at.inode;
  }

  makeLink(path: AbsolutePath, text: string): Errno | undefined {
    return this.#create(path, 'symlink', 0o777, (inode) => {
      inode.linkText = text;
    });
  }

  /** A new file, complete at once; the atomic replacement is `rename`. */
  makeFile(path: AbsolutePath, content: Uint8Array, mode: number): Errno | undefined {
    return this.#create(path, 'file', mode, (inode) => {
      inode.content = content;
    });
  }

  /** pwrite(2) within a file; false: it ends before. */
  writeOver(path: AbsolutePath, offset: number, bytes: Uint8Array): Errno | boolean {
    const at = this.walk(path);
    if (typeof at === 'string') return at;
    if (at.inode.kind !== 'file') return at.inode.kind === 'symlink' ? 'ELOOP' : 'EISDIR';
    if (at.mount.options.includes('ro')) return 'EROFS';
    if (offset + bytes.length > at.inode.content.length) return false;
    const content = new Uint8Array(at.inode.content);
    content.set(bytes, offset);
    setContent(at.inode, content);
    return true;
  }

  /** mknod(2) of a block device; `removeFile` takes it away. The number need not be that of a device that exists. */
  makeDeviceNode(path: AbsolutePath, device: DeviceNumber): Errno | undefined {
    return this.#create(path, 'block', 0o660, (inode) => {
      inode.block = device;
    });
  }

  /** The device whose node is at the path, through the mounts on it. */
  deviceOf(path: AbsolutePath): DeviceNumber | undefined | Errno {
    const at = this.walk(path);
    if (at === 'ENOENT') return undefined;
    return typeof at === 'string' ? at : at.inode.block;
  }

  /** A loop device with the node at `path` as its file; the mount it is on is busy from then on. EIO: no such disk. */
  holdDevice(path: AbsolutePath): Errno | undefined {
    const at = this.walk(path);
    if (typeof at === 'string') return at;
    const device = at.inode.block;
    if (device === undefined) return 'ENOTBLK';
    return this.devices.hold(path, device, at.mount) ? undefined : 'EIO';
  }

  /**
   * Everybody who uses the device, as `Host.findDeviceUsers` puts it. Of a device that has gone from the machine
   * nothing is left but the path of a loop device, and that leads to what is bound there since (seed 1382269414).
   */
  usersOf(device: DeviceNumber): string[] {
    const isSeen = ({ shown }: Hold): boolean => {
      const at = this.devices.has(device) ? 'there' : this.walk(shown as AbsolutePath);
      return typeof at === 'string' || (at.inode.block ?? device) === device;
    };
    return [
      ...this.#mounts
        .filter(({ fileSystem }) => fileSystem.device === device)
        .map(({ target }) => `mount ${target}`),
      ...this.devices.usersOf(device, isSeen),
    ];
  }

  changeGroup(mount: Mount, inode: Inode, gid: number, mode: number): Errno | undefined {
    if (mount.options.includes('ro') || mount.fileSystem.death !== undefined) return 'EROFS';
    setGroup(inode, gid);
    setMode(inode, mode);
    return undefined;
  }

  changeMode(path: AbsolutePath, mode: number): Errno | undefined {
    const at = this.walk(path);
    if (typeof at === 'string') return at;
    setMode(at.inode, mode);
    return undefined;
  }

  removeDirectory(path: AbsolutePath): Errno | undefined {
    const at = this.#entry(path);
    return typeof at === 'string' ? at : this.#removeEmpty(path, at);
  }

  #removeEmpty(path: AbsolutePath, { directory, name, child }: Entry): Errno | undefined {
    if (child.kind !== 'directory') return 'ENOTDIR';
    if (child.mountsOn > 0) return 'EBUSY';
    if (child.entries.size > 0) return 'ENOTEMPTY';
    unlink(directory, name, this.wallMs());
    this.#changed(path);
    return undefined;
  }

  /** rmdir(2) of a directory that is there now by its open parent, whatever is mounted over the way there by then. */
  keepHold(path: AbsolutePath): (() => Errno | undefined) | undefined {
    const kept = this.#entry(path);
    if (typeof kept === 'string') return undefined;
    return () => {
      if (kept.directory.entries.get(kept.name) !== kept.child) return 'ENOENT';
      return this.#removeEmpty(path, kept);
    };
  }

  /**
   * As devtmpfs does with the node of a disk that is gone, from a mount namespace of its own: what is mounted on it is
   * no hindrance and goes with it, as by umount -l (detach_mounts, since Linux 3.18; seed 872890538).
   */
  removeNode(path: AbsolutePath): Errno | undefined {
    const at = this.#entry(path);
    if (typeof at === 'string') return at;
    for (const mount of [...this.#mounts].reverse()) {
      if (mount.parent?.children.get(at.child) !== mount) continue;
      this.devices.loseName(mount);
      this.#detach(mount);
    }
    return this.removeFile(path);
  }

  removeFile(path: AbsolutePath): Errno | undefined {
    const at = this.#entry(path);
    if (typeof at === 'string') return at;
    if (at.child.kind === 'directory') return 'EISDIR';
    if (at.child.mountsOn > 0) return 'EBUSY';
    unlink(at.directory, at.name, this.wallMs());
    this.#changed(path);
    return undefined;
  }

  rename(from: AbsolutePath, to: AbsolutePath): Errno | undefined {
    const source = this.#entry(from);
    if (typeof source === 'string') return source;
    const target = this.#place(to);
    if (typeof target === 'string') return target;
    if (source.mount !== target.mount) return 'EXDEV';
    if (source.child.mountsOn > 0 || (target.child?.mountsOn ?? 0) > 0) return 'EBUSY';
    if (target.child === source.child) return undefined;
    if (target.child !== undefined) {
      const sourceIsDirectory = source.child.kind === 'directory';
      if (sourceIsDirectory !== (target.child.kind === 'directory'))
        return sourceIsDirectory ? 'ENOTDIR' : 'EISDIR';
      if (target.child.entries.size > 0) return 'ENOTEMPTY';
    }
    const nowMs = this.wallMs();
    unlink(source.directory, source.name, nowMs);
    link(target.directory, target.name, source.child, nowMs);
    this.#changed(from);
    this.#changed(to);
    return undefined;
  }

  /** fsync(2) of the file system that holds `path`. */
  synchronise(path: AbsolutePath): void {
    const at = this.walk(path);
    if (typeof at !== 'string') synchronise(at.mount.fileSystem);
  }

  // Mounts.

  /**
   * A new, empty file system, not mounted; `journal` says whether a power cut may take back its newest changes. On
   * `block`, when given: then its mounts are users of that device.
   */
  makeFileSystem(
    type: FileSystem['type'],
    label: string,
    journal: boolean,
    block?: DeviceNumber,
  ): FileSystem {
    return createFileSystem(type, label, journal, this.#inodeNumbers, block);
  }

  mountFileSystem(
    fileSystem: FileSystem,
    target: AbsolutePath,
    options: readonly string[],
  ): Errno | undefined {
    return this.#attach(fileSystem, fileSystem.root, fileSystem.label, target, options);
  }

  mountTmpfs(
    label: string,
    target: AbsolutePath,
    options: readonly string[],
    type: MemoryFileSystem = 'tmpfs',
  ): Errno | undefined {
    if (options.includes('noswap') && !(this.knowsNoswap && type === 'tmpfs')) return 'EINVAL';
    const fileSystem = this.makeFileSystem(type, label, false);
    const mode = options.find((option) => option.startsWith('mode='));
    if (mode !== undefined) fileSystem.root.mode = Number.parseInt(mode.slice('mode='.length), 8);
    const gid = options.find((option) => option.startsWith('gid='));
    if (gid !== undefined) fileSystem.root.gid = Number(gid.slice('gid='.length));
    return this.#attach(fileSystem, fileSystem.root, label, target, options);
  }

  bind(source: AbsolutePath, target: AbsolutePath, options: readonly string[]): Errno | undefined {
    const from = this.walk(source);
    if (typeof from === 'string') return from;
    const denied = this.#attach(from.mount.fileSystem, from.inode, from.mount.source, target, options);
    const mount = this.#mounts.at(-1);
    // Whoever made it: what one sees there is a stranger's.
    if (denied === undefined && mount !== undefined && this.strangers.has(from.mount))
      this.strangers.add(mount);
    return denied;
  }

  unmount(target: AbsolutePath): Errno | undefined {
    const at = this.walk(target);
    if (typeof at === 'string') return at;
    const { mount, inode } = at;
    if (inode !== mount.root || mount.parent === undefined) return 'EINVAL';
    if (mount.held || mount.children.size > 0 || this.devices.isHeldOn(mount)) return 'EBUSY';
    this.#detach(mount);
    return undefined;
  }

  /** umount -l: what is open or held there stays so, in a mount that nobody sees. */
  unmountLazily(target: AbsolutePath): Errno | undefined {
    const at = this.walk(target);
    if (typeof at === 'string') return at;
    const { mount, inode } = at;
    if (inode !== mount.root || mount.parent === undefined || mount.children.size > 0) return 'EINVAL';
    this.devices.loseName(mount);
    this.#detach(mount);
    return undefined;
  }

  /** Power off and on: mounts and memory are gone, files stay, of the unwritten ones as much as the journal has. */
  reboot(): void {
    const unwritten = this.#disk.undo?.length ?? 0;
    for (const mount of [...this.#mounts].reverse()) this.#forget(mount);
    this.strangers.clear();
    this.devices.losePower();
    losePower(this.#disk, this.#random.chance(0.5) ? this.#random.below(unwritten + 1) : 0);
    this.#root = this.#boot();
  }

  #boot(): Mount {
    const hex = (digits: number) =>
      Math.floor(this.#random.next() * 16 ** digits)
        .toString(16)
        .padStart(digits, '0');
    this.bootId = `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(8)}${hex(4)}`;
    this.#disk.device = '254:1';
    this.#disk.mounts = 1;
    const root: Mount = {
      id: this.#takeId(),
      parent: undefined,
      fileSystem: this.#disk,
      root: this.#disk.root,
      target: ROOT,
      source: this.#disk.label,
      options: ['rw', 'relatime'],
      children: new Map(),
      held: false,
    };
    this.#mounts.push(root);
    this.mountChanges += 1;
    return root;
  }

  #attach(
    fileSystem: FileSystem,
    from: Inode,
    source: string,
    target: AbsolutePath,
    options: readonly string[],
  ): Errno | undefined {
    const at = this.walk(target);
    if (typeof at === 'string') return at;
    if ((from.kind === 'directory') !== (at.inode.kind === 'directory')) return 'ENOTDIR';
    if (fileSystem.mounts === 0) fileSystem.device = this.#takeDevice(fileSystem);
    fileSystem.mounts += 1;
    const mount: Mount = {
      id: this.#takeId(),
      parent: at.mount,
      fileSystem,
      root: from,
      target,
      source,
      options: [
        options.includes('ro') ? 'ro' : 'rw',
        'relatime',
        ...OF_ONE_MOUNT.filter((one) => options.includes(one)),
      ],
      children: new Map(),
      held: false,
    };
    at.mount.children.set(at.inode, mount);
    at.inode.mountsOn += 1;
    this.#mounts.push(mount);
    this.mountChanges += 1;
    return undefined;
  }

  #detach(mount: Mount): void {
    for (const [inode, child] of mount.parent?.children ?? []) {
      if (child !== mount) continue;
      mount.parent?.children.delete(inode);
      inode.mountsOn -= 1;
    }
    this.#forget(mount);
  }

  #forget(mount: Mount): void {
    for (const inode of mount.children.keys()) inode.mountsOn -= 1;
    mount.children.clear();
    this.#mounts.splice(this.#mounts.indexOf(mount), 1);
    this.#mountIds.delete(mount.id);
    this.#lastIds.set(mount.target, mount.id);
    mount.fileSystem.mounts -= 1;
    if (mount.fileSystem.mounts === 0) {
      mount.fileSystem.death = undefined;
      mount.fileSystem.hang = undefined;
      if (mount.fileSystem.block === undefined)
        this.#minors.delete(Number(mount.fileSystem.device.split(':')[1]));
      mount.fileSystem.device = '';
    }
    this.mountChanges += 1;
  }

  #takeId(): number {
    return takeLowest(this.#mountIds, FIRST_MOUNT_ID);
  }

  #takeDevice(fileSystem: FileSystem): string {
    if (fileSystem.block !== undefined) return fileSystem.block;
    const major = fileSystem.type === 'ext4' ? 7 : 0;
    // Whoever has a device open keeps its number.
    const isOpen = (minor: number): boolean =>
      this.devices.usersOf(`${major}:${minor}` as DeviceNumber).length > 0;
    return `${major}:${takeLowest(this.#minors, FIRST_ANONYMOUS_MINOR, isOpen)}`;
  }

  #create(
    path: AbsolutePath,
    kind: Inode['kind'],
    mode: number,
    fill: (inode: Inode) => void,
  ): Errno | undefined {
    const at = this.#place(path);
    if (typeof at === 'string') return at;
    if (at.child !== undefined) return 'EEXIST';
    if (at.mount.options.includes('ro')) return 'EROFS';
    const inode = createInode(at.mount.fileSystem, kind, mode, this.wallMs());
    fill(inode);
    link(at.directory, at.name, inode, this.wallMs());
    this.#changed(path);
    return undefined;
  }

  #changed(path: string): void {
    if (this.#watchers.size === 0) return;
    for (const hint of this.#watchers.get(path.slice(0, path.lastIndexOf('/'))) ?? []) hint();
    for (const hint of this.#watchers.get(path) ?? []) hint();
  }

  /** Where a name is or could be: its directory must exist. */
  #place(
    path: AbsolutePath,
  ): { mount: Mount; directory: Inode; name: string; child: Inode | undefined } | Errno {
    const cut = path.lastIndexOf('/');
    const at = this.walk((cut <= 0 ? '/' : path.slice(0, cut)) as AbsolutePath);
    if (typeof at === 'string') return at;
    if (at.inode.kind === 'symlink') return 'ELOOP';
    if (at.inode.kind !== 'directory') return 'ENOTDIR';
    const name = path.slice(cut + 1);
    return { mount: at.mount, directory: at.inode, name, child: at.inode.entries.get(name) };
  }

  #entry(path: AbsolutePath): Entry | Errno {
    const at = this.#place(path);
    if (typeof at === 'string') return at;
    if (at.child === undefined) return 'ENOENT';
    if (at.mount.options.includes('ro')) return 'EROFS';
    return { ...at, child: at.child };
  }

  #componentsOf(path: string): readonly string[] {
    const known = this.#components.get(path);
    if (known !== undefined) return known;
    const components = path === '/' ? [] : path.slice(1).split('/');
    this.#components.set(path, components);
    return components;
  }
}

export function factsOf(inode: Inode): PathFacts {
  return {
    kind: inode.kind,
    mode: inode.mode,
    uid: inode.uid,
    gid: inode.gid,
    inode: inode.number,
    sizeBytes: sizeOf(inode),
    modifiedMs: inode.modifiedMs,
  };
}

function takeLowest(
  taken: Set<number>,
  first: number,
  isOpen: (candidate: number) => boolean = () => false,
): number {
  let candidate = first;
  while (taken.has(candidate) || isOpen(candidate)) candidate += 1;
  taken.add(candidate);
  return candidate;
}
