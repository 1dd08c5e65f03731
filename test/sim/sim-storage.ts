/** The drivers of a seed, their disks, the secrets they need, and all that was ever wished of each volume. */
import { below } from '../../mount/host.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { csiVolumeId, inlineVolumeHandle, type PodUid, type VolumeId } from '../../plugins/volume.ts';
import { type Backing, GIB, PLAIN_BACKING } from './backing.ts';
import type { DriverNature } from './driver-nature.ts';
import type { DriverOracle } from './driver-oracle.ts';
import type { Content, Disk, InlineVolume, SimPod } from './manifests.ts';
import { LATE_EFFECT_MS } from './late-plan.ts';
import type { Neighbours } from './neighbours.ts';
import type { Random } from './random.ts';
import { SimDriver } from './sim-driver.ts';
import type { SimKernel } from './sim-kernel.ts';
import type { Plan } from './swarm.ts';
import { CANARY, type Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { SimAccessMode, WishHistory } from './wish-history.ts';

export interface SimStorageParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly neighbours: Neighbours;
  readonly layout: Layout;
  readonly oracle: DriverOracle;
  /** Was the record of the volume damaged since then? */
  readonly isForgotten: (volume: VolumeId, sinceMs: number) => boolean;
  /** A driver has taken something away, long after anybody has asked for it. */
  readonly onTaken: () => void;
  /** What a driver is that starts again, in place of what it was. */
  readonly reborn: (driver: string, nature: DriverNature) => DriverNature;
  /** False once all faults are healed. */
  readonly stormy: () => boolean;
}

interface Versions {
  readonly attributes: Set<string>;
  readonly stageSecrets: Set<string> | undefined;
  readonly publishSecrets: Set<string> | undefined;
  readonly accessModes: Set<SimAccessMode>;
  readonly blocks: Set<boolean>;
  isChanged: boolean;
  readonly ephemeral: boolean;
  readonly groups: Set<string>;
  readonly sizes: Set<bigint>;
}

export type ChangedField = 'attributes' | 'mode' | 'fsType' | 'mountOptions' | 'accessMode';

/** So much, and not more, can some disks become. */
const SMALL_LIMIT_BYTES = 2n * GIB;

export class SimStorage {
  readonly drivers: SimDriver[] = [];
  /** Every disk there ever was. */
  readonly disks: Disk[] = [];
  /** Those that no pod owns. */
  readonly sharedDisks: Disk[] = [];
  readonly contents: Content[] = [];
  readonly #parts: SimStorageParts;
  readonly #versions = new Map<string, Versions>();
  readonly #contentVersions = new Map<Content, Set<string>>();
  #values = 0;
  #ownDisks = 0;

  constructor(parts: SimStorageParts) {
    this.#parts = parts;
  }

  wishHistory(handle: string): WishHistory | undefined {
    return this.#versions.get(handle);
  }

  driverOf(name: string): SimDriver | undefined {
    return this.drivers.find((one) => one.name === name);
  }

  backingOf(volume: { readonly driver: string; readonly handle: string }): Backing | undefined {
    return this.driverOf(volume.driver)?.backing(volume.handle);
  }

  backings(): Backing[] {
    return this.drivers.flatMap((driver) => [...driver.backings()]);
  }

  installDriver(plan: Plan['drivers'][number]): void {
    const { kernel, time, random, neighbours, trace, stormy, layout, oracle } = this.#parts;
    const home = below(layout.plugins, plan.name);
    kernel.makeDirectory(home, 0o750);
    kernel.synchronise(home);
    const driver = new SimDriver({
      kernel,
      time,
      neighbours,
      trace,
      oracle,
      random: random.fork(),
      name: plan.name,
      reborn: (nature) => this.#parts.reborn(plan.name, nature),
      nature: { ...plan.nature, parallel: plan.parallel },
      endpoint: below(home, 'csi.sock'),
      registration: plan.registers ? below(layout.registry, `${plan.name}-reg.sock`) : undefined,
      locks: plan.locks,
      fates: () => (stormy() ? plan.fates : {}),
      latencyMsMax: plan.latencyMsMax,
      deadlineMs: this.#parts.plan.csiDeadlineMs,
      stragglerMsMax: this.#parts.plan.csiDeadlineMs + 0.9 * LATE_EFFECT_MS,
      isForgotten: (handle, calledMs) => this.#parts.isForgotten(csiVolumeId(plan.name, handle), calledMs),
      onTaken: this.#parts.onTaken,
      echoesSecrets: plan.echoesSecrets,
    });
    this.drivers.push(driver);
    if (!plan.late) driver.start();
    else
      time.after(random.between(1_000, 40_000), () => {
        if (!driver.isUp) driver.start();
      });
  }

  makeDisk(index: number): void {
    this.sharedDisks.push(this.#makeDisk(`vol-${index}`, `pv-${index}`, `pv-${index}`, undefined));
  }

  /** The disk of a generic ephemeral volume. */
  makeOwnDisk(owner: NonNullable<Disk['owner']>, volumeName: string): Disk {
    this.#ownDisks += 1;
    const number = this.#ownDisks;
    return this.#makeDisk(`own-${number}`, `pv-own-${number}`, `${owner.name}-${volumeName}`, owner);
  }

  #makeDisk(handle: string, specName: string, claimName: string, owner: Disk['owner']): Disk {
    const { random, plan } = this.#parts;
    const { blockShare, onePodShare, oneNodeShare, fsGroupShare, claimsHaveStatus } = plan.features;
    const driver = random.pick(this.drivers);
    const secrets = this.contents.filter(({ kind }) => kind === 'Secret');
    const secret = () => (random.chance(0.35) ? random.pick(secrets) : undefined);
    const accessMode = (): SimAccessMode => {
      if (random.chance(onePodShare)) return 'ReadWriteOncePod';
      return random.chance(oneNodeShare) ? 'ReadWriteOnce' : 'ReadWriteMany';
    };
    const isSmall = (): boolean => plan.events.volumeGrows > 0 && random.chance(0.2);
    const wished = {
      driver: driver.name,
      handle,
      specName,
      claimName,
      owner,
      attributes: { size: '1' },
      stageSecret: secret(),
      publishSecret: secret(),
      wishedBlock: random.chance(blockShare),
      accessMode: accessMode(),
      fsType: fsGroupShare > 0 && random.chance(0.7) ? 'ext4' : '',
      mountOptions: [],
      bytes: GIB,
      statusBytes: claimsHaveStatus ? GIB : undefined,
    };
    const limitBytes = isSmall() ? SMALL_LIMIT_BYTES : PLAIN_BACKING.limitBytes;
    const backing = driver.addVolume(handle, { block: wished.wishedBlock, limitBytes });
    const disk: Disk = Object.defineProperty({ ...wished, block: false }, 'block', {
      get: () => backing.block,
    });
    this.disks.push(disk);
    this.#versions.set(handle, {
      attributes: new Set(),
      // Secrets of any age will do: what a secret's file said last stays wished while it cannot be read.
      stageSecrets: disk.stageSecret === undefined ? undefined : this.#secretVersions(disk.stageSecret),
      publishSecrets: disk.publishSecret === undefined ? undefined : this.#secretVersions(disk.publishSecret),
      accessModes: new Set(),
      blocks: new Set(),
      isChanged: false,
      ephemeral: false,
      groups: new Set(),
      sizes: new Set(),
    });
    this.noteDisk(disk);
    return disk;
  }

  makeContent(kind: Content['kind']): Content {
    const content: Content = {
      kind,
      name: `content-${this.contents.length + 1}`,
      data: this.#freshData(kind),
    };
    this.contents.push(content);
    this.#secretVersions(content).add(sortedJson(content.data));
    return content;
  }

  #freshData(kind: Content['kind']): Record<string, string> {
    const value = this.nextValue();
    return kind === 'Secret'
      ? { password: `${CANARY}-${value}`, user: 'root' }
      : { 'app.conf': `version=${value}` };
  }

  nextValue(): number {
    this.#values += 1;
    return this.#values;
  }

  /** The storage has more, and the PersistentVolume says so; the claim's status is nobody's to write here. */
  grow(disk: Disk): void {
    disk.bytes += this.#parts.random.pick([GIB, 3n * GIB, 1n]);
    const backing = this.backingOf(disk);
    if (backing !== undefined) backing.storageBytes = disk.bytes;
    this.noteDisk(disk);
  }

  changeContent(content: Content): void {
    content.data = this.#freshData(content.kind);
    this.#secretVersions(content).add(sortedJson(content.data));
  }

  /** Was anything of a disk ever wished otherwise than before? */
  isChanged(): boolean {
    return [...this.#versions.values()].some(({ isChanged }) => isChanged);
  }

  noteDisk(disk: Disk): void {
    const versions = this.#versions.get(disk.handle);
    versions?.attributes.add(sortedJson(disk.attributes));
    versions?.sizes.add(disk.bytes);
    versions?.accessModes.add(disk.accessMode);
    versions?.blocks.add(disk.wishedBlock);
  }

  /** One of the fields that a driver is told when the disk is set up. */
  change(disk: Disk, field: ChangedField): void {
    const { random } = this.#parts;
    if (field === 'attributes') disk.attributes = { ...disk.attributes, tier: `t${this.nextValue()}` };
    else if (field === 'mode') disk.wishedBlock = !disk.wishedBlock;
    else if (field === 'fsType') disk.fsType = random.pick(['', 'ext4', 'xfs']);
    else if (field === 'mountOptions') disk.mountOptions = random.pick([[], ['noatime'], ['ro', 'nodev']]);
    else if (disk.accessMode !== 'ReadWriteOncePod')
      disk.accessMode = disk.accessMode === 'ReadWriteOnce' ? 'ReadWriteMany' : 'ReadWriteOnce';
    const versions = this.#versions.get(disk.handle);
    if (versions !== undefined) versions.isChanged = true;
    this.noteDisk(disk);
  }

  notePod(pod: SimPod): void {
    for (const volume of pod.volumes) {
      if (volume.kind === 'inline') this.#noteInline(pod, volume);
      if (volume.kind === 'csi')
        this.#versions.get(volume.disk.handle)?.groups.add(String(pod.fsGroup?.gid ?? ''));
    }
  }

  #noteInline(pod: SimPod, volume: InlineVolume): void {
    const handle = handleOfInline(pod, volume);
    if (this.#versions.has(handle)) return;
    this.#versions.set(handle, {
      attributes: new Set([sortedJson(volume.attributes)]),
      stageSecrets: undefined,
      publishSecrets: volume.secret === undefined ? undefined : this.#secretVersions(volume.secret),
      accessModes: new Set(['ReadWriteOnce']),
      blocks: new Set([false]),
      isChanged: false,
      ephemeral: true,
      groups: new Set(pod.fsGroup === undefined ? [] : [String(pod.fsGroup.gid)]),
      sizes: new Set(),
    });
  }

  #secretVersions(secret: Content): Set<string> {
    const known = this.#contentVersions.get(secret) ?? new Set();
    this.#contentVersions.set(secret, known);
    return known;
  }
}

export function handleOfInline(pod: Pick<SimPod, 'uid'>, volume: Pick<InlineVolume, 'name'>): string {
  return inlineVolumeHandle(pod.uid as PodUid, volume.name);
}

function sortedJson(map: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1))));
}
