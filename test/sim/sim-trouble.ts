/** What the machine and the neighbours do to the agent: drivers that go, mounts that are held or taken, damage. */
import { type AbsolutePath, below } from '../../mount/host.ts';
import type { DeviceNumber } from '../../mount/host.ts';
import { type Layout, sha256Hex } from '../../plugins/layout/layout.ts';
import { volumeDataIn } from '../../plugins/layout/volume-data.ts';
import { csiVolumeId, type VolumeId } from '../../plugins/volume.ts';
import { FILE_NAMES } from '../../reconciler/journal/journal-reading.ts';
import type { Backing } from './backing.ts';
import { ON_ITS_WAY_MS } from './late-plan.ts';
import { isOfJournal } from './record-in.ts';
import type { Random } from './random.ts';
import type { Mount, SimKernel } from './sim-kernel.ts';
import { ROOT } from './sim-paths.ts';
import type { SimStorage } from './sim-storage.ts';
import type { Plan } from './swarm.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface SimTroubleParts {
  readonly plan: Plan;
  readonly random: Random;
  readonly kernel: SimKernel;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly layout: Layout;
  readonly storage: SimStorage;
}

const LAST_ANSWER_MS = 1_000;
const WHO = 'pid 7 (dd)';

export class SimTrouble {
  recordsDamaged = false;
  /** Somebody else unmounted something of ours, or may yet. */
  mountsTaken = false;
  readonly #parts: SimTroubleParts;
  readonly #takenMs = new Map<string, number>();
  readonly #opened = new Set<DeviceNumber>();
  /** When a record was damaged last, by the name of its file. */
  readonly #damagedMs = new Map<string, number>();
  readonly #unplugged = new Set<Backing>();

  constructor(parts: SimTroubleParts) {
    this.#parts = parts;
  }

  stopDriver(): void {
    const { random, time, storage } = this.#parts;
    const driver = random.pick(storage.drivers);
    driver.stop(random.chance(0.5));
    time.after(random.between(1_000, 60_000), () => {
      if (!driver.isUp) driver.start();
    });
  }

  restartDriver(): void {
    const { random, plan, storage } = this.#parts;
    const index = random.below(storage.drivers.length);
    const driver = storage.drivers[index];
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
    const { random, kernel, layout } = this.#parts;
    const { blockDevices } = layout;
    // What drivers bound for pods: our own binds are held, and nobody can unmount them.
    const devices = kernel.mounts().filter(({ target }) => target.startsWith(`${blockDevices}/publish/`));
    const mount = devices.length > 0 && random.chance(0.5) ? random.pick(devices) : this.#anyOwnMount();
    if (mount === undefined) return;
    this.mountsTaken = true;
    this.#parts.trace.add(`somebody unmounts ${mount.target}`);
    this.#parts.kernel.unmount(mount.target);
    this.#takenMs.set(mount.target, this.#parts.time.nowMs());
  }

  /** A call that was sent before somebody unmounted that may still be on its way. */
  hasJustTaken(path: string): boolean {
    return this.#parts.time.nowMs() <= (this.#takenMs.get(path) ?? Number.NEGATIVE_INFINITY) + ON_ITS_WAY_MS;
  }

  /** Was the record of the volume damaged since then? What only it told nobody knows any more. */
  isForgotten(volume: VolumeId, sinceMs: number): boolean {
    const names = [`${sha256Hex(volume)}.json`, ...FILE_NAMES];
    return names.some((name) => (this.#damagedMs.get(name) ?? Number.NEGATIVE_INFINITY) >= sinceMs);
  }

  /** A record, or the kubelet's own file, is cut short, scribbled over or gone; told by whether there was one. */
  damageRecord(): boolean {
    const { plan, random, kernel, trace, layout, time } = this.#parts;
    const directory = kernel.walk(layout.records);
    if (typeof directory === 'string') return false;
    const names = [...directory.inode.entries.keys()].filter(isRecord);
    if (names.length === 0) return false;
    const name = random.pick(names);
    const inode = directory.inode.entries.get(name);
    if (inode === undefined || this.#isAloneWithLateStage(name)) return false;
    this.recordsDamaged = true;
    this.#damagedMs.set(name, time.nowMs());
    const how = random.pick(['cut', 'scribbled', 'gone'] as const);
    trace.add(`record ${name} ${how}`);
    const isAll = plan.absence.everyMs > 0;
    if (how === 'gone') this.#loseRecords(isAll ? names : [name]);
    else if (how === 'cut' && isAll && isOfJournal(name)) this.#emptyJournal(names.filter(isOfJournal));
    else if (how === 'cut') inode.content = inode.content.slice(0, random.below(inode.content.length + 1));
    else {
      inode.content = Uint8Array.from(inode.content);
      const at = random.below(Math.max(1, inode.content.length));
      inode.content[at] = (inode.content[at] ?? 0) ^ (1 << random.below(7));
    }
    return true;
  }

  /** Where manifests vanish, all records go at once: then the disk alone tells what is at stake. */
  #loseRecords(names: readonly string[]): void {
    const { kernel, layout, time } = this.#parts;
    for (const name of names) {
      if (this.#isAloneWithLateStage(name)) continue;
      this.#damagedMs.set(name, time.nowMs());
      kernel.removeFile(below(layout.records, name));
    }
  }

  /** As a file system leaves files whose blocks it never wrote; each has a record of every volume. */
  #emptyJournal(names: readonly string[]): void {
    const { kernel, layout, time } = this.#parts;
    const directory = kernel.walk(layout.records);
    if (typeof directory === 'string') return;
    for (const name of names) {
      const inode = directory.inode.entries.get(name);
      if (inode === undefined) continue;
      this.#damagedMs.set(name, time.nowMs());
      inode.content = new Uint8Array(0);
    }
  }

  /** A stage that was given up has come by now, and the papers beside it went with the unstage: nothing else tells. */
  #isAloneWithLateStage(name: string): boolean {
    const { storage, kernel, layout } = this.#parts;
    const volumes = storage.drivers.flatMap((driver) =>
      [...driver.backings()].map(({ handle, stagedAt }) => ({ driver: driver.name, handle, stagedAt })),
    );
    return volumes.some(({ driver, handle, stagedAt }) => {
      if (!isOfJournal(name) && `${sha256Hex(csiVolumeId(driver, handle))}.json` !== name) return false;
      const directory = layout.deviceDirectory(driver, handle);
      const isMounted = kernel.mountsAt(below(directory, 'globalmount')).length > 0;
      if (isMounted && this.#isAbsent(volumeDataIn(directory))) return true;
      return [...stagedAt].some((path) => this.#isNodeAlone(path as AbsolutePath));
    });
  }

  /** The driver's node lies where a block volume is staged. */
  #isNodeAlone(stage: AbsolutePath): boolean {
    const { kernel, layout } = this.#parts;
    const owner = layout.ownerOf(stage);
    const staged = kernel.walk(stage);
    if (owner?.kind !== 'block-stage' || typeof staged === 'string') return false;
    return (
      staged.inode.entries.size > 0 && this.#isAbsent(volumeDataIn(layout.blockVolume(owner.specName).data))
    );
  }

  #isAbsent(path: AbsolutePath): boolean {
    const facts = this.#parts.kernel.inspect(path);
    return typeof facts !== 'string' && facts.kind === 'absent';
  }

  /** A process that nobody knows has the device of a volume open. */
  openDevice(): void {
    const { random, time, trace, storage, kernel } = this.#parts;
    const devices = storage.backings().map(({ device, fileSystem }) => device ?? fileSystem.device);
    const used = [...new Set(devices)].filter((one) => one !== '') as DeviceNumber[];
    if (used.length === 0) return;
    const device = random.pick(used);
    trace.add(`a process opens ${device}`);
    kernel.devices.open(device, WHO);
    this.#opened.add(device);
    time.after(random.between(500, 60_000), () => kernel.devices.close(device, WHO));
  }

  /** A disk that a pod has goes, and comes back under its number, which nobody else may have been given meanwhile. */
  unplugDisk(isInUse: (backing: Backing) => boolean): void {
    const { random, time, trace, storage, kernel } = this.#parts;
    const inUse = storage.backings().filter((one) => one.device !== undefined && isInUse(one));
    if (inUse.length === 0) return;
    const backing = random.pick(inUse);
    const { device } = backing;
    if (device === undefined || this.#unplugged.has(backing)) return;
    trace.add(`disk ${backing.handle} ${device} is unplugged`);
    kernel.devices.remove(device);
    this.#unplugged.add(backing);
    time.after(random.between(500, 30_000), () => this.#plugAgain(backing));
  }

  /** As losetup(8) does that chose the same loop device and fails with it. One of two at a path is told by nothing. */
  loseHold(): void {
    const { random, trace, kernel } = this.#parts;
    const holds = kernel.devices.holds();
    const alone = holds.filter(
      ({ path, device }) =>
        kernel.devices.has(device) && holds.filter((other) => other.path === path).length === 1,
    );
    if (alone.length === 0) return;
    const hold = random.pick(alone);
    trace.add(`somebody ends ${hold.loop}, which holds ${hold.path}`);
    kernel.devices.lose(hold);
  }

  losePower(): void {
    const { random, time, storage } = this.#parts;
    this.#unplugged.clear();
    this.#opened.clear();
    for (const driver of storage.drivers) {
      driver.losePower();
      time.after(random.between(100, 20_000), () => {
        if (!driver.isUp) driver.start();
      });
    }
  }

  heal(): void {
    const { kernel, storage } = this.#parts;
    for (const mount of kernel.mounts()) mount.held = false;
    for (const device of this.#opened) kernel.devices.close(device, WHO);
    for (const backing of [...this.#unplugged]) this.#plugAgain(backing);
    for (const driver of storage.drivers) {
      driver.heal();
      if (!driver.isUp) driver.start();
    }
    // The last faults are answered by then.
    this.#parts.time.after(LAST_ANSWER_MS, () => {
      for (const driver of storage.drivers) if (driver.saidUnimplemented) driver.start();
    });
  }

  /** One that has lost its number gets another when it is published again. */
  #plugAgain(backing: Backing): void {
    this.#unplugged.delete(backing);
    const { device, handle } = backing;
    if (device !== undefined && !this.#parts.kernel.devices.addAgain(device, handle))
      backing.device = undefined;
  }

  #anyOwnMount(): Mount | undefined {
    const { kernel } = this.#parts;
    const own = kernel
      .mounts()
      .filter(({ target }) => target.startsWith(`${ROOT}/`) && !kernel.isUnderStranger(target));
    return own.length === 0 ? undefined : this.#parts.random.pick(own);
  }
}

/** A journal is the record of every volume. */
function isRecord(name: string): boolean {
  return name.endsWith('.json') || (isOfJournal(name) && !name.startsWith('.'));
}
