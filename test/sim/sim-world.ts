/** The user's side of a seed: manifests that come, change, break and go, drivers, and what pods write. */
import { type AbsolutePath, below } from '../../mount/host.ts';
import { createLayout, type Layout } from '../../plugins/layout.ts';
import {
  podVolumeId,
  type PodUid,
  type PublicationSpec,
  publicationKey,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import { DriverOracle, type WishHistory } from './driver-oracle.ts';
import { plant } from './file-tree.ts';
import {
  type Content,
  contentObject,
  type Disk,
  diskObjects,
  driverObject,
  manifestText,
  podObject,
  type PodVolume,
  type SimPod,
} from './manifests.ts';
import type { Neighbours } from './neighbours.ts';
import type { Random } from './random.ts';
import { SimDriver } from './sim-driver.ts';
import type { SimKernel } from './sim-kernel.ts';
import type { Plan } from './swarm.ts';
import { CANARY, type Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export const ROOT = '/var/lib/mooring' as AbsolutePath;
export const MANIFESTS = '/etc/mooring/manifests' as AbsolutePath;
export const HOST_DATA = '/srv' as AbsolutePath;

export interface SimWorldParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly neighbours: Neighbours;
  readonly violate: (invariant: string, text: string) => void;
  readonly onTeardown: (what: string, path: string) => void;
  /** False once all faults are healed. */
  readonly stormy: () => boolean;
}

/** `empty` is a file of no bytes: says nothing, not "nothing". */
export type FileState = 'whole' | 'half' | 'unreadable' | 'gone';

interface ManifestFile {
  readonly name: string;
  readonly objects: () => readonly object[];
  state: FileState;
}

interface WishVersions {
  readonly attributes: Set<string>;
  readonly stage: Set<string> | undefined;
  readonly publish: Set<string> | undefined;
}

export class SimWorld {
  readonly drivers: SimDriver[] = [];
  readonly disks: Disk[] = [];
  readonly contents: Content[] = [];
  readonly layout: Layout = createLayout(ROOT);
  readonly oracle: DriverOracle;
  /** By name; at most one pod of a name at a time. */
  readonly pods = new Map<string, SimPod>();
  /** What the pods wrote, by volume handle; read back at the end. */
  readonly counters = new Map<string, number>();
  /** Files that pods wrote into disk emptyDirs. */
  readonly keepsakes = new Map<string, AbsolutePath>();
  /** Pods that were once not wanted: what they wrote may go, whenever the agent gets round to it. */
  readonly #fickle = new Set<string>();
  recordsDamaged = false;
  /** Somebody else unmounted something of ours, or may yet. */
  mountsTaken = false;
  readonly #parts: SimWorldParts;
  readonly #files = new Map<string, ManifestFile>();
  readonly #versions = new Map<string, WishVersions>();
  #uids = 0;
  #values = 0;

  constructor(parts: SimWorldParts) {
    this.#parts = parts;
    const { kernel, violate, onTeardown } = parts;
    kernel.knowsNoswap = parts.plan.knowsNoswap;
    this.oracle = new DriverOracle({
      nowMs: () => parts.time.nowMs(),
      violate,
      wishHistory: (handle) => this.#historyOf(handle),
      isMounted: (path) => kernel.mountsAt(path).length > 0,
      recordsDamaged: () => this.recordsDamaged,
      mountsTaken: () => this.mountsTaken,
      onTeardown,
    });
    this.#installMachine();
    for (const kind of ['Secret', 'ConfigMap', 'Secret'] as const) this.#makeContent(kind);
    for (const driver of parts.plan.drivers) this.#installDriver(driver);
    for (let index = 1; index <= parts.plan.disksMax; index += 1) this.#makeDisk(index);
    this.#file('storage.json', () => [
      ...parts.plan.drivers
        .filter(({ described }) => described)
        .map(({ name, nature }) => {
          return driverObject(name, nature.attaches);
        }),
      ...this.disks.flatMap(diskObjects),
    ]);
    for (const file of this.#files.values()) this.#write(file);
  }

  /** Kept: the pod is wanted, or what is said of it cannot be read. */
  keeps(uid: string): boolean {
    return [...this.pods.values()].some(
      (pod) => pod.uid === uid && this.#files.get(podFile(pod.name))?.state !== 'gone',
    );
  }

  keptUids(): ReadonlySet<string> {
    return new Set([...this.pods.values()].map(({ uid }) => uid).filter((uid) => this.keeps(uid)));
  }

  // What the user does.

  addPod(): void {
    const { plan, random, trace } = this.#parts;
    if (this.pods.size >= plan.podsMax) return;
    const name = `pod-${random.between(1, 6)}`;
    if (this.pods.has(name)) return;
    this.#putPod({ name, uid: this.#newUid(), volumes: this.#drawVolumes() });
    trace.add(`user adds ${name}`);
  }

  removePod(): void {
    const pod = this.#anyPod();
    if (pod === undefined) return;
    this.#parts.trace.add(`user removes ${pod.name} ${pod.uid}`);
    this.pods.delete(pod.name);
    this.#setState(podFile(pod.name), 'gone');
    this.#files.delete(podFile(pod.name));
  }

  replacePod(): void {
    const pod = this.#anyPod();
    if (pod === undefined) return;
    const { random, trace } = this.#parts;
    const uid = this.#newUid();
    trace.add(`user replaces ${pod.name} ${pod.uid} by ${uid}`);
    this.#putPod({ ...pod, uid, volumes: random.chance(0.6) ? pod.volumes : this.#drawVolumes() });
    this.#forgetKeepsakes();
  }

  /** A file is cut short, or cannot be read, or is not there, until somebody puts it right. */
  damageFile(states: readonly FileState[], matching: (name: string) => boolean): void {
    const { random, time, trace } = this.#parts;
    const files = [...this.#files.values()].filter(({ name, state }) => state === 'whole' && matching(name));
    if (files.length === 0) return;
    const file = random.pick(files);
    const state = random.pick(states);
    trace.add(`user leaves ${file.name} ${state}`);
    this.#setState(file.name, state);
    time.after(random.between(100, 30_000), () => {
      if (this.#files.get(file.name) === file && file.state === state) this.#setState(file.name, 'whole');
    });
  }

  changeContent(): void {
    const { random, trace } = this.#parts;
    const content = random.pick(this.contents);
    content.data = this.#freshData(content.kind);
    trace.add(`user changes ${content.name}`);
    for (const disk of this.disks) this.#noteVersion(disk);
    this.#setState(contentFile(content), 'whole');
  }

  changeAttributes(): void {
    const { random, trace } = this.#parts;
    const disk = random.pick(this.disks);
    disk.attributes = { ...disk.attributes, tier: `t${this.#nextValue()}` };
    trace.add(`user changes ${disk.specName}`);
    this.#noteVersion(disk);
    this.#setState('storage.json', 'whole');
  }

  // What the machine and the neighbours do.

  stopDriver(): void {
    const { random, time } = this.#parts;
    const driver = random.pick(this.drivers);
    driver.stop(random.chance(0.5));
    time.after(random.between(1_000, 60_000), () => {
      if (!driver.isUp) driver.start();
    });
  }

  restartDriver(): void {
    const { random, plan } = this.#parts;
    const index = random.below(this.drivers.length);
    const driver = this.drivers[index];
    const flips = plan.drivers[index]?.flips === true;
    driver?.start(flips ? { ...driver.nature, stages: false } : driver.nature);
  }

  holdMount(): void {
    const { random, time, trace } = this.#parts;
    const mount = this.#anyOwnMount();
    if (mount === undefined || mount.held) return;
    trace.add(`a process holds ${mount.target}`);
    mount.held = true;
    time.after(random.between(500, 60_000), () => {
      mount.held = false;
    });
  }

  takeMount(): void {
    const mount = this.#anyOwnMount();
    if (mount === undefined) return;
    this.mountsTaken = true;
    this.keepsakes.clear();
    this.#parts.trace.add(`somebody unmounts ${mount.target}`);
    this.#parts.kernel.unmount(mount.target);
  }

  /** A record, or the kubelet's own file, is cut short, scribbled over or gone; told by whether there was one. */
  damageRecord(): boolean {
    const { random, kernel, trace } = this.#parts;
    const directory = kernel.walk(this.layout.records);
    if (typeof directory === 'string') return false;
    const names = [...directory.inode.entries.keys()].filter((name) => name.endsWith('.json'));
    if (names.length === 0) return false;
    const name = random.pick(names);
    const inode = directory.inode.entries.get(name);
    if (inode === undefined) return false;
    this.recordsDamaged = true;
    const how = random.pick(['cut', 'scribbled', 'gone'] as const);
    trace.add(`record ${name} ${how}`);
    if (how === 'gone') kernel.removeFile(below(this.layout.records, name));
    else if (how === 'cut') inode.content = inode.content.slice(0, random.below(inode.content.length + 1));
    else {
      inode.content = Uint8Array.from(inode.content);
      const at = random.below(Math.max(1, inode.content.length));
      inode.content[at] = (inode.content[at] ?? 0) ^ (1 << random.below(7));
    }
    return true;
  }

  /** Pods add to the counter on their disks and keep something in their emptyDirs. */
  writeFromPods(isPublished: (key: string) => boolean): void {
    const { kernel } = this.#parts;
    for (const pod of this.pods.values()) {
      for (const volume of pod.volumes) {
        const target = this.targetOf(pod, volume);
        if (volume.kind === 'csi' && !volume.readOnly) {
          const backing = this.#driverOf(volume.disk)?.backing(volume.disk.handle);
          const mounted = kernel.mountsAt(target).at(-1)?.fileSystem;
          if (backing === undefined || mounted !== backing.fileSystem) continue;
          const count = (this.counters.get(volume.disk.handle) ?? 0) + 1;
          this.counters.set(volume.disk.handle, count);
          plant(backing.fileSystem.root, 'counter', String(count));
        }
        if (
          volume.kind === 'empty-dir' &&
          !this.#fickle.has(pod.uid) &&
          isPublished(publicationKey(pod.uid as PodUid, volume.name))
        ) {
          const directory = kernel.walk(target);
          if (typeof directory === 'string') continue;
          if (volume.medium === 'memory' && directory.inode !== directory.mount.root) continue;
          plant(directory.inode, 'keepsake', pod.uid);
          this.keepsakes.set(`${pod.uid}/${volume.name}`, below(target, 'keepsake'));
        }
      }
    }
  }

  losePower(): void {
    this.keepsakes.clear();
    this.oracle.forgetNode();
    const { random, time } = this.#parts;
    for (const driver of this.drivers) {
      driver.losePower();
      time.after(random.between(100, 20_000), () => {
        if (!driver.isUp) driver.start();
      });
    }
  }

  /** Everything is put right; what is wished stays as it is now. */
  heal(): void {
    for (const file of this.#files.values()) if (file.state !== 'whole') this.#setState(file.name, 'whole');
    for (const mount of this.#parts.kernel.mounts()) mount.held = false;
    for (const driver of this.drivers) {
      driver.heal();
      if (!driver.isUp || driver.saidUnimplemented) driver.start();
    }
  }

  // What is true.

  targetOf(pod: SimPod, volume: PodVolume): AbsolutePath {
    const publication = {
      pod: { uid: pod.uid as PodUid } as PublicationSpec['pod'],
      specName: specNameOf(volume),
    };
    return this.layout.target(this.specOf(pod, volume), publication);
  }

  /** Only what the layout needs. */
  specOf(pod: SimPod, volume: PodVolume): VolumeSpec {
    if (volume.kind === 'csi') {
      return { kind: 'csi', driver: volume.disk.driver, volumeHandle: volume.disk.handle } as VolumeSpec;
    }
    const id = podVolumeId(volume.kind, pod.uid as PodUid, volume.name);
    const path = volume.kind === 'host-path' ? volume.path : undefined;
    return { kind: volume.kind, id, pod: pod.uid, name: volume.name, path } as unknown as VolumeSpec;
  }

  backingOf(disk: Disk) {
    return this.#driverOf(disk)?.backing(disk.handle);
  }

  driverOf(disk: Disk): SimDriver | undefined {
    return this.#driverOf(disk);
  }

  #installMachine(): void {
    const { kernel } = this.#parts;
    for (const path of [
      '/etc',
      '/etc/mooring',
      '/var',
      '/var/lib',
      ROOT,
      HOST_DATA,
      this.layout.registry,
      this.layout.plugins,
    ]) {
      kernel.makeDirectory(path as AbsolutePath, 0o750);
    }
    this.mountManifests();
    kernel.synchronise(ROOT);
  }

  /** The user's own files are on a disk of their own, which loses nothing. Done at every boot. */
  mountManifests(): void {
    const { kernel } = this.#parts;
    this.#manifestDisk ??= kernel.makeFileSystem('ext4', '/dev/vda2', false);
    kernel.mountFileSystem(this.#manifestDisk, '/etc/mooring' as AbsolutePath, []);
    kernel.makeDirectory(MANIFESTS, 0o750);
  }

  #manifestDisk: ReturnType<SimKernel['makeFileSystem']> | undefined;

  #installDriver(plan: Plan['drivers'][number]): void {
    const { kernel, time, random, neighbours, trace, stormy } = this.#parts;
    const home = below(this.layout.plugins, plan.name);
    kernel.makeDirectory(home, 0o750);
    kernel.synchronise(home);
    const driver = new SimDriver({
      kernel,
      time,
      neighbours,
      trace,
      oracle: this.oracle,
      random: random.fork(),
      name: plan.name,
      nature: { ...plan.nature, parallel: plan.parallel },
      endpoint: below(home, 'csi.sock'),
      registration: plan.registers ? below(this.layout.registry, `${plan.name}-reg.sock`) : undefined,
      locks: plan.locks,
      fates: () => (stormy() ? plan.fates : {}),
      latencyMsMax: plan.latencyMsMax,
      echoesSecrets: plan.echoesSecrets,
    });
    this.drivers.push(driver);
    if (!plan.late) driver.start();
    else
      time.after(random.between(1_000, 40_000), () => {
        if (!driver.isUp) driver.start();
      });
  }

  #makeDisk(index: number): void {
    const { random } = this.#parts;
    const driver = random.pick(this.drivers);
    const secrets = this.contents.filter(({ kind }) => kind === 'Secret');
    const secret = () => (random.chance(0.35) ? random.pick(secrets) : undefined);
    const disk: Disk = {
      driver: driver.name,
      handle: `vol-${index}`,
      specName: `pv-${index}`,
      attributes: { size: '1' },
      stageSecret: secret(),
      publishSecret: secret(),
    };
    driver.addVolume(disk.handle);
    this.disks.push(disk);
    this.#versions.set(disk.handle, {
      attributes: new Set(),
      stage: disk.stageSecret === undefined ? undefined : new Set(),
      publish: disk.publishSecret === undefined ? undefined : new Set(),
    });
    this.#noteVersion(disk);
  }

  #makeContent(kind: Content['kind']): void {
    const content: Content = {
      kind,
      name: `content-${this.contents.length + 1}`,
      data: this.#freshData(kind),
    };
    this.contents.push(content);
    this.#file(contentFile(content), () => [contentObject(content)]);
  }

  #freshData(kind: Content['kind']): Record<string, string> {
    const value = this.#nextValue();
    return kind === 'Secret'
      ? { password: `${CANARY}-${value}`, user: 'root' }
      : { 'app.conf': `version=${value}` };
  }

  #drawVolumes(): PodVolume[] {
    const { random } = this.#parts;
    const volumes: PodVolume[] = [];
    for (const disk of random.shuffled(this.disks)) {
      if (volumes.length >= 2 || !random.chance(0.6)) continue;
      volumes.push({ kind: 'csi', name: `v${volumes.length}`, disk, readOnly: random.chance(0.2) });
    }
    for (const kind of ['empty-dir', 'empty-dir', 'host-path', 'secret', 'config-map'] as const) {
      if (!random.chance(volumes.length === 0 ? 0.5 : 0.2)) continue;
      const name = `v${volumes.length}`;
      if (kind === 'empty-dir') volumes.push({ kind, name, medium: random.pick(['disk', 'memory']) });
      else if (kind === 'host-path')
        volumes.push({ kind, name, path: below(HOST_DATA, `data-${random.between(1, 3)}`) });
      else {
        const wanted = kind === 'secret' ? 'Secret' : 'ConfigMap';
        volumes.push({ kind, name, source: random.pick(this.contents.filter((one) => one.kind === wanted)) });
      }
    }
    return volumes;
  }

  #putPod(pod: SimPod): void {
    this.pods.set(pod.name, pod);
    this.#write(this.#file(podFile(pod.name), () => [podObject(pod)]));
  }

  #anyPod(): SimPod | undefined {
    return this.pods.size === 0 ? undefined : this.#parts.random.pick([...this.pods.values()]);
  }

  #anyOwnMount() {
    const own = this.#parts.kernel.mounts().filter(({ target }) => target.startsWith(`${ROOT}/`));
    return own.length === 0 ? undefined : this.#parts.random.pick(own);
  }

  #file(name: string, objects: () => readonly object[]): ManifestFile {
    const file: ManifestFile = { name, objects, state: 'whole' };
    this.#files.set(name, file);
    return file;
  }

  #setState(name: string, state: FileState): void {
    const file = this.#files.get(name);
    if (file === undefined) return;
    file.state = state;
    this.#write(file);
    if (state === 'gone') this.#forgetKeepsakes();
  }

  /** A pod that is not wanted, however shortly, may lose its emptyDirs. */
  #forgetKeepsakes(): void {
    const kept = this.keptUids();
    for (const { uid } of this.pods.values()) if (!kept.has(uid)) this.#fickle.add(uid);
    for (const key of this.keepsakes.keys()) {
      if (!kept.has(key.slice(0, key.indexOf('/')))) this.keepsakes.delete(key);
    }
  }

  #write({ name, objects, state }: ManifestFile): void {
    const { kernel, random } = this.#parts;
    const path = below(MANIFESTS, name);
    kernel.removeFile(path);
    if (state === 'gone') return;
    const text = manifestText(objects());
    const bytes = Buffer.from(state === 'half' ? text.slice(0, random.between(1, text.length - 1)) : text);
    kernel.makeFile(path, bytes, state === 'unreadable' ? 0 : 0o600);
  }

  #driverOf(disk: Disk): SimDriver | undefined {
    return this.drivers.find(({ name }) => name === disk.driver);
  }

  #noteVersion(disk: Disk): void {
    const versions = this.#versions.get(disk.handle);
    versions?.attributes.add(sortedJson(disk.attributes));
    if (disk.stageSecret !== undefined) versions?.stage?.add(sortedJson(disk.stageSecret.data));
    if (disk.publishSecret !== undefined) versions?.publish?.add(sortedJson(disk.publishSecret.data));
  }

  #historyOf(handle: string): WishHistory | undefined {
    const versions = this.#versions.get(handle);
    if (versions === undefined) return undefined;
    return {
      attributes: versions.attributes,
      stageSecrets: versions.stage,
      publishSecrets: versions.publish,
    };
  }

  #newUid(): string {
    this.#uids += 1;
    return `uid-${this.#uids}`;
  }

  #nextValue(): number {
    this.#values += 1;
    return this.#values;
  }
}

export function specNameOf(volume: PodVolume): string {
  return volume.kind === 'csi' ? volume.disk.specName : volume.name;
}

function podFile(name: string): string {
  return `${name}.json`;
}

function contentFile(content: Content): string {
  return `${content.name}.json`;
}

function sortedJson(map: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1))));
}
