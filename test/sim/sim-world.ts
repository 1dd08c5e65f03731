/** The user's side of a seed: manifests that come, change, break and go, and what pods write. */
import { iscsiObjects } from './iscsi-volumes.ts';
import { nfsObjects } from './nfs-volumes.ts';
import { fill } from './filled-directories.ts';
import { isBelow } from '../../mount/absolute-path.ts';
import { type AbsolutePath, below, type DeviceNumber, wayTo } from '../../mount/host.ts';
import { createLayout, type Layout } from '../../plugins/layout/layout.ts';
import { type PodUid, publicationKey } from '../../plugins/volume.ts';
import { AttachmentWatch } from './attachment-watch.ts';
import type { Backing } from './backing.ts';
import { DriverOracle } from './driver-oracle.ts';
import { FileSystemDeaths } from './file-system-deaths.ts';
import { plant } from './file-tree.ts';
import { HungFileSystems } from './hung-file-systems.ts';
import { type DirectoryState, ManifestDirectory } from './manifest-directory.ts';
import { type FileState, ManifestFiles, type WishFiles } from './manifest-files.ts';
import type { SimCluster } from './cluster/sim-cluster.ts';
import {
  attachmentObject,
  ELSEWHERE,
  type AttachmentWord,
  type Content,
  contentObject,
  type Disk,
  diskObjects,
  driverObject,
  nodeObject,
  podObjects,
  type PodVolume,
  type SimPod,
} from './manifests.ts';
import { installLocals, localObjects } from './local-volumes.ts';
import type { Neighbours } from './neighbours.ts';
import { NodeIds } from './node-ids.ts';
import { PodMaker } from './pod-maker.ts';
import { csiOf, keyOf, placeIn, specOf } from './pod-volume.ts';
import { PodsThatRan } from './pods-that-ran.ts';
import { QuarantineWatch } from './quarantine-watch.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { HOST_DATA, MANIFESTS, ROOT } from './sim-paths.ts';
import { SimAttachments } from './sim-attachments.ts';
import { SimStorage } from './sim-storage.ts';
import { SimTrouble } from './sim-trouble.ts';
import type { Plan } from './swarm.ts';
import { ToldPlaces } from './told-places.ts';
import { Runtimes } from './runtimes.ts';
import { Strangers } from './strangers.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface SimWorldParts {
  readonly plan: Plan;
  readonly random: Random;
  /** For what becomes of the directory of manifests. */
  readonly absence: Random;
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly neighbours: Neighbours;
  readonly violate: (invariant: string, text: string) => void;
  readonly onTeardown: (what: string, path: string, handle: string) => void;
  readonly agentLife: () => number;
  /** Nothing of the pod can be on the disk that the living agent has not seen. */
  readonly hasReadDiskOf: (pod: PodUid) => boolean;
  /** The agent believes that a pod was told of a place of the volume. */
  readonly isThoughtHad: (handle: string) => boolean;
  /** What the driver calls this node, as far as the agent has heard. */
  readonly nodeIdHeard: (driver: string) => string | undefined;
  /** Whose objects these are; undefined: they are in manifests. */
  readonly cluster: SimCluster | undefined;
  /** A living agent stages or publishes the volume. */
  readonly onClimb: (call: string, handle: string) => void;
  readonly strangersRandom: Random;
  /** Has the agent an operation in flight, or is it neither up nor surely down? */
  readonly isAgentBusy: () => boolean;
  /** False once all faults are healed. */
  readonly stormy: () => boolean;
  readonly deathsRandom: Random;
  readonly runtimesRandom: Random;
  /** Published, and wanted by the agent as well as by the user. */
  readonly isWantedThere: (key: string) => boolean;
  /** A runtime says that the containers of the pod have ended. */
  readonly released: (uid: string) => void;
  readonly hangsRandom: Random;
  /** For volumes that show fields of their pod. */
  readonly fieldsRandom: Random;
  readonly kindsRandom: Random;
  readonly localsRandom: Random;
  readonly localDevicesRandom: Random;
  readonly fillsRandom: Random;
  readonly nfsRandom: Random;
  readonly iscsiRandom: Random;
  readonly subpathsRandom: Random;
  readonly nodeIdsRandom: Random;
}

const STORAGE_FILE = 'storage.json';
const NODE_FILE = 'node.json';
const ATTACHMENT_FILE = 'attachments.json';
/** Pods are moved to and fro between these and their own. */
const MOVED_FILES = ['a.json', 'z.json'] as const;
/** Less than what an edit needs to count. */
const APART_MS_MAX = 290;
/** What they say is healed, too. */
const REWRITTEN: ReadonlySet<string> = new Set([NODE_FILE, ATTACHMENT_FILE]);

export class SimWorld {
  readonly layout: Layout = createLayout(ROOT);
  readonly oracle: DriverOracle;
  readonly storage: SimStorage;
  readonly trouble: SimTrouble;
  readonly nodeIds: NodeIds;
  readonly strangers: Strangers;
  readonly runtimes: Runtimes;
  readonly quarantine: QuarantineWatch;
  readonly ran: PodsThatRan = new PodsThatRan({
    nowMs: () => this.#parts.time.nowMs(),
    hasMounts: (pod) => {
      const directory = this.layout.podDirectory(pod);
      return this.#parts.kernel.mounts().some(({ target }) => isBelow(target, directory));
    },
    isKnown: (pod) => this.#parts.hasReadDiskOf(pod),
  });
  readonly deaths: FileSystemDeaths;
  readonly hung: HungFileSystems;
  readonly attached: SimAttachments;
  readonly attachmentWatch: AttachmentWatch;
  readonly told: ToldPlaces = new ToldPlaces(
    this.layout,
    (path) => this.#parts.kernel.mountsAt(path).at(-1),
    () => this.#parts.time.nowMs(),
    (driver) => this.#parts.nodeIdHeard(driver),
  );
  /** By name; at most one pod of a name at a time. */
  readonly pods = new Map<string, SimPod>();
  /** What the pods wrote, by volume handle; read back at the end. */
  readonly counters = new Map<string, number>();
  /** Files that pods wrote into disk emptyDirs. */
  readonly keepsakes = new Map<string, AbsolutePath>();
  /** Pods that were once not wanted: what they wrote may go, whenever the agent gets round to it. */
  readonly #fickle = new Set<string>();
  /** The name of every pod that ever was, by uid. */
  readonly #names = new Map<string, string>();
  readonly #parts: SimWorldParts;
  readonly #files: WishFiles;
  readonly #directory: ManifestDirectory;
  readonly #maker: PodMaker;
  #manifestDisk: ReturnType<SimKernel['makeFileSystem']> | undefined;
  #nodeIsMarked = false;
  /** A power cut took it away, and the files are there when their disk is mounted again. */
  #coverIsGone = false;
  /** The later words on a disk stand beside the earlier ones. */
  #attachments: readonly AttachmentWord[] = [];
  #uids = 0;

  constructor(parts: SimWorldParts) {
    this.#parts = parts;
    const { kernel, plan, random, violate, onTeardown } = parts;
    kernel.knowsNoswap = plan.knowsNoswap;
    this.#files = parts.cluster?.files ?? new ManifestFiles(kernel, random);
    this.#directory = new ManifestDirectory(kernel, parts.absence);
    this.quarantine = new QuarantineWatch(kernel);
    this.attachmentWatch = new AttachmentWatch(violate);
    this.attached = new SimAttachments({
      ...parts,
      onChange: () => this.#setState(ATTACHMENT_FILE, 'whole'),
    });
    this.oracle = new DriverOracle({
      nowMs: () => parts.time.nowMs(),
      violate,
      wishHistory: (handle) => this.storage.wishHistory(handle),
      isMountPoint: (path) => kernel.mountsAt(path).length > 0,
      isJustTaken: (path) => this.trouble.hasJustTaken(path),
      isMounted: (path) => this.#isUsed(path as AbsolutePath),
      isUnderStranger: (path) => kernel.isUnderStranger(path),
      recordsDamaged: () => this.trouble.recordsDamaged,
      mountsTaken: () => this.trouble.mountsTaken,
      onTeardown,
      onClimb: (call, handle, wasDown) => {
        this.#judgeAttachment(call, handle, wasDown);
        parts.onClimb(call, handle);
      },
      isThoughtHad: parts.isThoughtHad,
      isInCluster: parts.cluster !== undefined,
      isRepublished: (handle) => this.isRepublished(handle),
      agentLife: parts.agentLife,
      isDirty: (handle) => this.quarantine.isDirty(this.backingOfHandle(handle), parts.time.nowMs()),
    });
    this.nodeIds = new NodeIds({
      ...parts,
      random: parts.nodeIdsRandom,
      drivers: () => this.storage.drivers,
    });
    this.storage = new SimStorage({
      ...parts,
      reborn: (name, nature) => this.nodeIds.reborn(name, nature),
      layout: this.layout,
      oracle: this.oracle,
      isForgotten: (volume, sinceMs) => this.trouble.isForgotten(volume, sinceMs),
      onTaken: () => {
        this.trouble.mountsTaken = true;
      },
    });
    this.trouble = new SimTrouble({ ...parts, layout: this.layout, storage: this.storage });
    this.deaths = new FileSystemDeaths({
      ...parts,
      random: parts.deathsRandom,
      storage: this.storage,
      ran: this.ran,
      everyMs: plan.deathEveryMs,
    });
    this.hung = new HungFileSystems({ ...parts, random: parts.hangsRandom, storage: this.storage });
    parts.kernel.nfs.run({ ...parts, random: parts.nfsRandom });
    parts.kernel.targets.run({ ...parts, random: parts.iscsiRandom, layout: this.layout });
    this.strangers = new Strangers({
      over: plan.strangers === false ? 'anything' : plan.strangers,
      ...parts,
      random: parts.strangersRandom,
      layout: this.layout,
      wantedTargets: () => this.#wantedTargets(),
      lateTargets: () => this.storage.drivers.flatMap((driver) => driver.lateTargets),
      isBusy: () => this.#isBusy(),
    });
    if (plan.strangers !== false) this.strangers.begin();
    this.runtimes = new Runtimes({
      ...parts,
      random: parts.runtimesRandom,
      everyMs: plan.runtimesEveryMs,
      places: () => (this.#isBusy() ? [] : this.#placesHad()),
      say: parts.released,
    });
    this.#maker = new PodMaker({ ...parts, storage: this.storage });
    this.#installMachine();
    for (const kind of ['Secret', 'ConfigMap', 'Secret'] as const) {
      const content = this.storage.makeContent(kind);
      this.#files.add(contentFile(content), () => [contentObject(content)]);
    }
    for (const driver of plan.drivers) this.storage.installDriver(driver);
    this.nodeIds.begin();
    for (let index = 1; index <= plan.disksMax; index += 1) this.storage.makeDisk(index);
    this.#files.add(STORAGE_FILE, () => [
      ...plan.drivers
        .filter(({ described }) => described)
        .map((driver) => driverObject({ ...driver, attaches: driver.nature.attaches })),
      ...this.storage.sharedDisks.flatMap(diskObjects),
      ...(plan.locals.share > 0 ? localObjects(plan.locals) : []),
      ...(plan.nfs.share > 0 ? nfsObjects() : []),
      ...(plan.iscsi.share > 0 ? iscsiObjects() : []),
    ]);
    if (plan.events.nodeMarked > 0) this.#files.add(NODE_FILE, () => [nodeObject(this.#nodeIsMarked)]);
    if (plan.events.attachmentLost + plan.events.attachmentReplaced > 0)
      this.#files.add(ATTACHMENT_FILE, () => [
        ELSEWHERE,
        ...this.#lostAttachments(),
        ...this.attached.objects(),
      ]);
    for (const file of this.#files.all()) this.#files.write(file);
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

  /** Was there a pod of the same name and another uid after it? Then that one is surely gone. */
  isSucceeded(uid: string): boolean {
    const uids = [...this.#names].filter(([, name]) => name === this.#names.get(uid)).map(([one]) => one);
    return uids.at(-1) !== uid;
  }

  // What the user does.

  addPod(): void {
    const { plan, random, trace } = this.#parts;
    if (this.pods.size >= plan.podsMax) return;
    const name = `pod-${random.between(1, 6)}`;
    if (this.pods.has(name)) return;
    this.#putPod(this.#maker.draw(name, this.#newUid()));
    trace.add(`user adds ${name}`);
  }

  removePod(isMeant: (pod: SimPod) => boolean = () => true): void {
    const pod = this.#anyPod(isMeant);
    if (pod !== undefined) this.#remove(pod);
  }

  #remove(pod: SimPod): void {
    this.#parts.trace.add(`user removes ${pod.name} ${pod.uid}`);
    this.pods.delete(pod.name);
    this.#setState(podFile(pod.name), 'gone');
    this.#files.remove(podFile(pod.name));
  }

  replacePod(): void {
    const pod = this.#anyPod();
    if (pod === undefined) return;
    const { random, trace } = this.#parts;
    const uid = this.#newUid();
    trace.add(`user replaces ${pod.name} ${pod.uid} by ${uid}`);
    this.#putPod(random.chance(0.6) ? this.#maker.reborn(pod, uid) : this.#maker.draw(pod.name, uid));
    this.#forgetKeepsakes();
  }

  /** A file is cut short, or cannot be read, or is not there, until somebody puts it right. */
  damageFile(states: readonly FileState[], which: 'storage' | 'others'): void {
    const { random, time, trace } = this.#parts;
    const isMeant = (name: string) => (name === STORAGE_FILE) === (which === 'storage');
    const files = this.#files.all().filter(({ name, state }) => state === 'whole' && isMeant(name));
    if (files.length === 0) return;
    const file = random.pick(files);
    const state = random.pick(states);
    trace.add(`user leaves ${file.name} ${state}`);
    this.#setState(file.name, state);
    time.after(random.between(100, 30_000), () => {
      if (this.#files.get(file.name) === file && file.state === state) this.#setState(file.name, 'whole');
    });
  }

  /** Manifests of pods are not there; answers which. */
  loseManifests(which: 'one' | 'most' | 'all'): readonly string[] {
    const { absence, trace } = this.#parts;
    const names = [...this.pods.values()].map(({ name }) => podFile(name));
    const whole = absence.shuffled(names.filter((name) => this.#files.get(name)?.state === 'whole'));
    const counts = { one: 1, most: Math.floor(whole.length / 2) + 1, all: whole.length } as const;
    const lost = whole.slice(0, counts[which]);
    trace.add(`manifests are gone: ${lost.join()}`);
    for (const name of lost) this.#setState(name, 'gone');
    return lost;
  }

  /**
   * A pod goes from one manifest to another, which both stay, in two writes; only one that the agent knows to be in the
   * first one: whom it has missed since he was moved last it may miss twice.
   */
  movePod(random: Random, isKnownIn: (uid: string, file: string) => boolean): void {
    if (this.pods.size === 0) return;
    const pod = random.pick([...this.pods.values()]);
    const place = random.pick([podFile(pod.name), ...MOVED_FILES]);
    const apartMs = random.between(1, APART_MS_MAX);
    const file = this.#files.get(podFile(pod.name));
    if (file === undefined || !isKnownIn(pod.uid, file.place) || !this.#files.take(file, place)) return;
    this.#parts.trace.add(`user moves ${pod.name} ${pod.uid} to ${place} in ${apartMs} ms`);
    this.#parts.time.after(apartMs, () => {
      if (this.#files.get(file.name) === file) this.#files.write(file);
    });
  }

  returnManifests(names: readonly string[]): void {
    for (const name of names) if (this.#files.get(name)?.state === 'gone') this.#setState(name, 'whole');
  }

  /** Pods that are in the manifests that the agent sees and, as the copy is out of date, need not be wished. */
  shownUids(): ReadonlySet<string> {
    return this.#directory.podUids();
  }

  get directoryState(): DirectoryState {
    return this.#directory.state;
  }

  loseDirectory(how: 'covered' | 'replaced'): void {
    if (this.#directory.state !== 'own') return;
    this.#parts.trace.add(`the directory of manifests is ${how}`);
    this.#files.putOutOfReach();
    if (how === 'covered') this.#directory.cover();
    else this.#directory.replace();
  }

  returnDirectory(): void {
    if (this.#directory.state !== 'own')
      this.#parts.trace.add('the directory of manifests is the old one again');
    this.#directory.restore();
    this.#files.comeInReach('changed');
  }

  /** All manifests are put into the new directory, which is to be the right one. */
  fillNewDirectory(): void {
    if (this.#directory.state !== 'replaced') return;
    this.#parts.trace.add('all manifests are in the new directory');
    this.#files.comeInReach('all');
    this.#directory.keep();
  }

  /** A Secret, a ConfigMap, or what a pod says of itself and shows in a volume. */
  changeContent(): void {
    const { random, fieldsRandom, plan, trace } = this.#parts;
    if (fieldsRandom.chance(plan.podFields.share)) return this.#changeAnnotation();
    const content = random.pick(this.storage.contents);
    this.storage.changeContent(content);
    trace.add(`user changes ${content.name}`);
    this.#setState(contentFile(content), 'whole');
  }

  #changeAnnotation(): void {
    const { fieldsRandom, trace } = this.#parts;
    const pods = [...this.pods.values()].filter(({ annotations }) => annotations['version'] !== undefined);
    if (pods.length === 0) return;
    const pod = fieldsRandom.pick(pods);
    this.#putPod({ ...pod, annotations: { version: String(this.storage.nextValue()) } });
    trace.add(`user annotates ${pod.name}`);
  }

  changeAttributes(): void {
    const { random, trace } = this.#parts;
    const disk = random.pick(this.storage.sharedDisks);
    this.storage.change(disk, 'attributes');
    trace.add(`user changes ${disk.specName}`);
    this.#setState(STORAGE_FILE, 'whole');
  }

  /** What a driver was told of the disk, wished otherwise while pods may have it; pods are written to go with it. */
  changeDisk(): void {
    const { random, trace } = this.#parts;
    const disk = random.pick(this.storage.sharedDisks);
    const field = random.pick([
      'attributes',
      'mode',
      'mode',
      'fsType',
      'mountOptions',
      'accessMode',
    ] as const);
    this.storage.change(disk, field);
    trace.add(`user changes ${field} of ${disk.specName}`);
    this.#setState(STORAGE_FILE, 'whole');
    if (field !== 'mode') return;
    for (const { name, volumes } of this.pods.values())
      if (volumes.some((one) => one.kind === 'csi' && one.disk === disk))
        this.#setState(podFile(name), 'whole');
  }

  growVolume(): void {
    const { random, trace } = this.#parts;
    const own = [...this.pods.values()].flatMap(({ volumes }) => volumes.flatMap(diskOf));
    const disk = random.pick([...this.storage.sharedDisks, ...own]);
    this.storage.grow(disk);
    trace.add(`user grows ${disk.specName} to ${disk.bytes}`);
    this.#setState(disk.owner === undefined ? STORAGE_FILE : podFile(disk.owner.name), 'whole');
  }

  /** Somebody believes that this machine is off, for a while. */
  markNode(): void {
    const { random, time, trace } = this.#parts;
    if (this.#nodeIsMarked) return;
    trace.add('the node is marked out of service');
    this.#setMark(true);
    time.after(random.between(500, 40_000), () => this.#setMark(false));
  }

  #setMark(marked: boolean): void {
    this.#nodeIsMarked = marked;
    this.#setState(NODE_FILE, 'whole');
  }

  /** A controller detaches a disk from this machine, and after a while says something else, or nothing. */
  loseAttachment(): void {
    const { random, time, trace } = this.#parts;
    const wanted = [...this.pods.values()].flatMap(({ volumes }) => volumes.flatMap(wantedDiskOf));
    // One that no pod wants may be on its way down here, or may not come down (B-2).
    const disks = [...wanted, ...this.storage.sharedDisks];
    if (disks.length === 0) return;
    const disk = random.pick(disks);
    const word: AttachmentWord = { disk, attached: false, going: random.chance(0.3) };
    const after = random.pick<readonly AttachmentWord[]>([
      [],
      [{ ...word, attached: true, going: random.chance(0.3) }],
      [{ ...word, attached: undefined, going: false }],
    ]);
    trace.add(`a controller says that ${disk.specName} is not attached`);
    this.#setAttachments([...this.#attachments, word]);
    time.after(random.between(500, 40_000), () => {
      if (!this.#attachments.includes(word)) return;
      trace.add(`a controller takes back that ${disk.specName} is not attached`);
      this.#setAttachments(this.#attachments.flatMap((one) => (one === word ? after : one)));
    });
  }

  /** A disk is attached, or becomes another attachment. */
  replaceAttachment(): void {
    const wanted = [...this.pods.values()].flatMap(({ volumes }) => volumes.flatMap(wantedDiskOf));
    const disks = [...wanted, ...this.storage.sharedDisks];
    if (disks.length > 0) this.attached.replace(this.#parts.random.pick(disks));
  }

  /** Two of them for one disk differ by their number. */
  #lostAttachments(): object[] {
    return this.#attachments.map((word, index) => attachmentObject(word, `${word.disk.specName}-${index}`));
  }

  #setAttachments(words: readonly AttachmentWord[]): void {
    this.#attachments = words;
    this.#setState(ATTACHMENT_FILE, 'whole');
  }

  /** Pods add to the counter on their disks and keep something in their emptyDirs. */
  writeFromPods(isPublished: (key: string) => boolean): void {
    const { kernel } = this.#parts;
    for (const pod of this.pods.values()) {
      for (const volume of pod.volumes) {
        const target = this.targetOf(pod, volume);
        if (volume.kind === 'csi' && !volume.readOnly)
          this.#count(volume.disk, target, isPublished(keyOf(pod, volume)));
        if (
          volume.kind === 'empty-dir' &&
          !this.#fickle.has(pod.uid) &&
          isPublished(publicationKey(pod.uid as PodUid, volume.name))
        ) {
          const directory = kernel.walk(target);
          if (kernel.isUnderStranger(target)) continue;
          if (typeof directory === 'string') continue;
          if (volume.medium !== 'disk' && directory.inode !== directory.mount.root) continue;
          plant(directory.inode, 'keepsake', pod.uid);
          fill(this.#parts.fillsRandom, volume, directory);
          this.keepsakes.set(`${pod.uid}/${volume.name}`, below(target, 'keepsake'));
        }
      }
    }
  }

  #count(disk: Disk, target: AbsolutePath, isPublished: boolean): void {
    const backing = this.storage.backingOf(disk);
    if (backing === undefined) return;
    const isThere = disk.block
      ? isPublished && this.backingShown(target) === backing
      : this.#parts.kernel.mountsAt(target).at(-1)?.fileSystem === backing.fileSystem;
    const { death, hang } = backing.fileSystem;
    if (!isThere || death !== undefined || hang !== undefined) return;
    const count = (this.counters.get(disk.handle) ?? 0) + 1;
    this.counters.set(disk.handle, count);
    const { root } = backing.fileSystem;
    // A directory with setgid gives its group to what is made in it; in another the file is written where it is.
    const gid = (root.mode & 0o2000) === 0 ? (root.entries.get('counter')?.gid ?? 0) : root.gid;
    Object.assign(plant(root, 'counter', String(count)), { gid, mode: 0o664 });
  }

  /** Whose device a pod has that follows this link; undefined: nobody's. */
  backingShown(link: AbsolutePath): Backing | undefined {
    const { kernel } = this.#parts;
    const at = kernel.walk(link);
    if (typeof at === 'string' || at.inode.kind !== 'symlink') return undefined;
    const device = kernel.deviceOf(at.inode.linkText as AbsolutePath);
    if (device === undefined || !device.includes(':')) return undefined;
    // One that is unplugged is still the pod's, unless its number was given to another, because nobody held it.
    const owner = kernel.devices.lastLabelOf(device as DeviceNumber);
    return this.storage.backings().find(({ handle }) => handle === owner);
  }

  losePower(): void {
    this.keepsakes.clear();
    this.oracle.forgetNode();
    this.quarantine.forgetAll();
    this.attachmentWatch.forgetAll();
    this.told.forgetAll();
    this.ran.forgetAll();
    this.trouble.losePower();
    this.#parts.kernel.targets.losePower();
    const wasCovered = this.#directory.state === 'covered';
    this.#directory.losePower();
    this.#coverIsGone = wasCovered;
    this.strangers.losePower();
    this.runtimes.leave();
  }

  #isBusy(): boolean {
    return this.#parts.isAgentBusy() || this.storage.drivers.some((driver) => driver.isBusy);
  }

  /** What pods have on this machine that is no device and no directory of the machine's own. */
  #placesHad(): readonly { readonly path: AbsolutePath; readonly uid: string }[] {
    return [...this.pods.values()].flatMap((pod) =>
      pod.volumes.flatMap((volume) => {
        const path = this.targetOf(pod, volume);
        const isFiles = csiOf(pod, volume)?.block !== true && path?.startsWith(this.layout.pods) === true;
        const isThere = isFiles && this.#parts.isWantedThere(keyOf(pod, volume));
        return isThere ? [{ path: path as AbsolutePath, uid: pod.uid }] : [];
      }),
    );
  }

  /** Everything is put right; what is wished stays as it is now. */
  heal(): void {
    this.strangers.leave();
    this.runtimes.leave();
    this.#nodeIsMarked = false;
    this.#attachments = [];
    this.attached.heal();
    this.returnDirectory();
    for (const file of this.#files.all()) {
      if (file.state !== 'whole' || REWRITTEN.has(file.name)) this.#setState(file.name, 'whole');
    }
    this.trouble.heal();
    this.nodeIds.heal();
    this.#removeUnattachable();
    this.#parts.kernel.localDisks.heal();
    this.hung.heal();
    this.#parts.kernel.nfs.heal();
    this.#parts.kernel.targets.heal();
    this.removeDead();
  }

  /** Whose driver will never attach again gets nothing new, and what it has attached stays. */
  #removeUnattachable(): void {
    const isMeant = (volume: PodVolume): boolean =>
      volume.kind === 'csi' && this.storage.driverOf(volume.disk.driver)?.nature.controller === 'left-out';
    for (const pod of [...this.pods.values()]) if (pod.volumes.some(isMeant)) this.#remove(pod);
  }

  /**
   * Who sees that its files cannot be read any more is deleted; who waits for the volume is not. Some are told of their
   * files only when all is healed: a bind was under way since before the file system died (seed 524705070).
   */
  removeDead(): void {
    for (const pod of [...this.pods.values()]) if (this.#hasDead(pod)) this.#remove(pod);
  }

  #hasDead(pod: SimPod): boolean {
    return pod.volumes.some((volume) => {
      const target = this.targetOf(pod, volume);
      const top = this.#parts.kernel.mountsAt(target).at(-1);
      return top?.fileSystem.death !== undefined && this.told.has(target);
    });
  }

  // What is true.

  targetOf(pod: SimPod, volume: PodVolume): AbsolutePath {
    return this.layout.target(specOf(pod, volume), placeIn(pod, volume));
  }

  mountPointOf(pod: SimPod, volume: PodVolume): AbsolutePath {
    return this.layout.mountPoint(specOf(pod, volume), placeIn(pod, volume));
  }

  backingOfHandle(handle: string): Backing | undefined {
    return this.storage.backings().find((one) => one.handle === handle);
  }

  isRepublished(handle: string): boolean {
    const driver = this.storage.drivers.find((one) => one.backing(handle) !== undefined)?.name;
    return this.#parts.plan.drivers.some(({ name, republishes }) => name === driver && republishes);
  }

  /** What damaged records knew nobody knows; a driver that changes its ways is taken down by the old ones. */
  #judgeAttachment(call: string, handle: string, wasDown: boolean): void {
    const { plan, time } = this.#parts;
    const disk = this.storage.disks.find((one) => one.handle === handle);
    const driver = plan.drivers.find(({ name }) => name === disk?.driver);
    const isAttached = driver?.nature.attaches === true || driver?.described === false;
    if (disk === undefined || !isAttached || driver.flips || this.trouble.recordsDamaged) return;
    this.attachmentWatch.judge(call, handle, disk.specName, wasDown, time.nowMs());
  }

  #isUsed(path: AbsolutePath): boolean {
    const { kernel } = this.#parts;
    if (kernel.mountsAt(path).length > 0) return true;
    const device = kernel.deviceOf(path);
    return device?.includes(':') === true;
  }

  /** Where a file system will be published, or is. */
  #wantedTargets(): readonly AbsolutePath[] {
    return [...this.pods.values()].flatMap((pod) =>
      pod.volumes
        .filter((volume) => volume.kind === 'csi' && !volume.disk.block)
        .map((volume) => this.targetOf(pod, volume)),
    );
  }

  #installMachine(): void {
    const { kernel } = this.#parts;
    const pages = '/sys/kernel/mm/hugepages/hugepages-2048kB' as AbsolutePath;
    const own = [...wayTo(pages), ROOT, HOST_DATA, this.layout.registry, this.layout.plugins];
    for (const path of ['/etc', '/etc/mooring', '/var', '/var/lib', ...own])
      kernel.makeDirectory(path as AbsolutePath, 0o750);
    if (this.#parts.plan.locals.share > 0) installLocals(kernel, this.#parts.plan.locals);
    kernel.directoriesFill = this.#parts.plan.fills.share > 0 || this.#parts.plan.nfs.share > 0;
    this.mountManifests();
    kernel.synchronise(ROOT);
  }

  /** The user's own files are on a disk of their own, which loses nothing. Done at every boot. */
  mountManifests(): void {
    const { kernel } = this.#parts;
    this.#manifestDisk ??= kernel.makeFileSystem('ext4', '/dev/vda2', false);
    kernel.mountFileSystem(this.#manifestDisk, '/etc/mooring' as AbsolutePath, []);
    kernel.makeDirectory(MANIFESTS, 0o750);
    if (this.#coverIsGone) this.#files.comeInReach('changed');
    this.#coverIsGone = false;
  }

  #putPod(pod: SimPod): void {
    this.pods.set(pod.name, pod);
    this.#names.set(pod.uid, pod.name);
    this.storage.notePod(pod);
    this.#files.write(this.#files.add(podFile(pod.name), () => podObjects(pod)));
  }

  #anyPod(isMeant: (pod: SimPod) => boolean = () => true): SimPod | undefined {
    const pods = [...this.pods.values()].filter(isMeant);
    return pods.length === 0 ? undefined : this.#parts.random.pick(pods);
  }

  #setState(name: string, state: FileState): void {
    this.#files.setState(name, state);
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

  #newUid(): string {
    this.#uids += 1;
    return `uid-${this.#uids}`;
  }
}

function diskOf(volume: PodVolume): readonly Disk[] {
  return volume.kind === 'csi' && volume.disk.owner !== undefined ? [volume.disk] : [];
}

function wantedDiskOf(volume: PodVolume): readonly Disk[] {
  return volume.kind === 'csi' ? [volume.disk] : [];
}

function podFile(name: string): string {
  return `${name}.json`;
}

function contentFile(content: Content): string {
  return `${content.name}.json`;
}
