/** Block devices of a machine in memory: their numbers, who has them open, and the loop devices that hold them. */
import { type AbsolutePath, type DeviceNumber, type Disk, isBelow } from '../../mount/host.ts';

export interface Hold {
  readonly loop: string;
  /** Where it was made, which a host can tell of its own. */
  readonly path: string;
  /** What the kernel shows: `/` when the mount is in no namespace any more. */
  shown: string;
  readonly device: DeviceNumber;
  /** What the path was on: it stays busy while the hold lasts. */
  readonly mount: unknown;
}

const MAJOR = 8;
const LISTED = '/sys/dev/block/';

/**
 * Follows Linux where the product could notice: the number of a device that went is given to the next one at once,
 * unless somebody has it open (k/k#34437).
 */
export class SimDevices {
  /** What each is, in its owner's words. */
  readonly #present = new Map<DeviceNumber, string>();
  /** What each number was the last time. */
  readonly #last = new Map<DeviceNumber, string>();
  readonly #sequences = new Map<DeviceNumber, number>();
  #added = 0;
  readonly #openers = new Map<DeviceNumber, string[]>();
  readonly #holds: Hold[] = [];
  /** Their holds were lost; as long as the pods have them open the kernel gives them to nobody else. */
  readonly #kept = new Set<DeviceNumber>();
  /** Built in: they are there at each start. */
  readonly #fixed = new Map<DeviceNumber, string>();
  /** Counts disks that come and go; a cheap "did anything change?". */
  changes = 0;

  /** A disk appears, with the lowest number that nobody has or uses. Its nodes are somebody else's to make. */
  add(label = ''): DeviceNumber {
    for (let minor = 0; ; minor += 1) {
      const device = `${MAJOR}:${minor}` as DeviceNumber;
      if (this.#present.has(device) || this.#kept.has(device) || this.usersOf(device).length > 0) continue;
      this.#appear(device, label);
      return device;
    }
  }

  /** A disk that is never unplugged. */
  addFixed(device: DeviceNumber, label: string): void {
    this.#fixed.set(device, label);
    this.#appear(device, label);
  }

  /** The disk that had this number is there again; false when another disk has it now, or is still held under it. */
  addAgain(device: DeviceNumber, label: string): boolean {
    if (this.#present.has(device)) return this.#present.get(device) === label;
    if (this.#last.get(device) !== label && this.usersOf(device).length > 0) return false;
    this.#appear(device, label);
    return true;
  }

  #appear(device: DeviceNumber, label: string): void {
    this.#present.set(device, label);
    this.#added += 1;
    this.#sequences.set(device, this.#added);
    this.changes += 1;
  }

  /** The disk is gone, whoever uses it; its nodes stay, and lead nowhere or to the next disk of that number. */
  remove(device: DeviceNumber): void {
    this.changes += 1;
    const label = this.#present.get(device);
    if (label !== undefined) this.#last.set(device, label);
    this.#present.delete(device);
  }

  /** Undefined: no such disk is here. */
  labelOf(device: DeviceNumber): string | undefined {
    return this.#present.get(device);
  }

  /** The label of a device; of one that is not here, what it was while it was. */
  lastLabelOf(device: DeviceNumber): string | undefined {
    return this.#present.get(device) ?? this.#last.get(device);
  }

  /** Is there an entry of sysfs at this path? Undefined: it is not where sysfs has devices by number. */
  listedAt(path: string): boolean | undefined {
    const number = path.startsWith(LISTED) ? path.slice(LISTED.length) : undefined;
    return number === undefined ? undefined : this.#present.has(number as DeviceNumber);
  }

  /** Which disk has the number now; nothing while none has. */
  diskOf(device: DeviceNumber): Disk {
    const sequence = this.#present.has(device) ? this.#sequences.get(device) : undefined;
    return { device, ...(sequence === undefined ? {} : { sequence: String(sequence) }) };
  }

  has(device: DeviceNumber): boolean {
    return this.#present.has(device);
  }

  /** A process opens it; `who` is what `findDeviceUsers` will say, `pid 7 (dd)`. */
  open(device: DeviceNumber, who: string): void {
    this.#openers.set(device, [...(this.#openers.get(device) ?? []), who]);
  }

  close(device: DeviceNumber, who: string): void {
    const openers = this.#openers.get(device) ?? [];
    const index = openers.indexOf(who);
    if (index >= 0) this.#openers.set(device, openers.toSpliced(index, 1));
  }

  /** All holds, in the order in which they were made. */
  holds(): readonly Hold[] {
    return this.#holds;
  }

  /** Held already is nothing new; false when there is no such disk to be opened. */
  hold(path: string, device: DeviceNumber, mount: unknown): boolean {
    if (this.#holds.some((one) => one.shown === path && one.device === device && one.mount === mount))
      return true;
    if (!this.#present.has(device)) return false;
    const taken = new Set(this.#holds.map(({ loop }) => loop));
    let number = 0;
    while (taken.has(`loop${number}`)) number += 1;
    this.#holds.push({ loop: `loop${number}`, path, shown: path, device, mount });
    return true;
  }

  /** losetup -d of every loop device that holds, or was made to hold, what is at exactly this path. */
  release(path: string): void {
    for (const one of this.#holds.filter((hold) => hold.path === path))
      this.#holds.splice(this.#holds.indexOf(one), 1);
  }

  /**
   * Somebody ends the hold behind everybody's back. Its number is given to no other device: with that the pod would
   * have another disk, whatever an agent does.
   */
  lose(hold: Hold): void {
    this.#holds.splice(this.#holds.indexOf(hold), 1);
    this.#kept.add(hold.device);
  }

  /** The mount is taken away from under them: they keep what they hold. */
  loseName(mount: unknown): void {
    for (const one of this.#holds) if (one.mount === mount) one.shown = '/';
  }

  /** By the file of each loop device, whatever became of the node there. */
  heldPaths(within: AbsolutePath): readonly AbsolutePath[] {
    const paths = new Set(this.#holds.map(({ shown }) => shown as AbsolutePath));
    return [...paths].filter((path) => isBelow(path, within));
  }

  isHeldOn(mount: unknown): boolean {
    return this.#holds.some((one) => one.mount === mount);
  }

  /** Processes, then loop devices; those `isSeen` alone, where somebody looks. */
  usersOf(device: DeviceNumber, isSeen: (hold: Hold) => boolean = () => true): string[] {
    const loops = this.#holds.filter((one) => one.device === device && isSeen(one));
    return [
      ...(this.#openers.get(device) ?? []),
      ...loops.map(({ loop, shown }) => `${loop} (holds ${shown})`),
    ];
  }

  /** Nobody runs any more, and every device will be found anew. */
  losePower(): void {
    this.changes += 1;
    this.#present.clear();
    for (const [device, label] of this.#fixed) this.#present.set(device, label);
    this.#last.clear();
    this.#openers.clear();
    this.#holds.length = 0;
    this.#kept.clear();
  }
}
