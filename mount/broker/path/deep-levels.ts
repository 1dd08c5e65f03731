/**
 * What a walk remembers far down in a tree: which directories it is in, and the names of those that it has still to
 * visit. Some bytes each, outside of the heap of the process: whoever fills a volume decides how many there are. Pure.
 */

/** By it a directory is known while it is there. */
export interface DirectoryNumbers {
  readonly device: bigint;
  readonly inode: bigint;
}

/** All names together take so much at most. */
const NAME_BYTES_MAX = 64 * 1_024 * 1_024;
/** So many of each level are remembered all the same: what is removed meanwhile is not in the way the next time. */
const NAMES_MIN = 16;
const LENGTH_BYTES = 2;
/** What is kept of a level beside its names: device, inode, and how many names it has. */
const NUMBERS = 3;

export class DeepLevels {
  /** The names of one level after those of the level above, each before its length. */
  #names = Buffer.allocUnsafe(4_096);
  #end = 0;
  #numbers = new BigUint64Array(64 * NUMBERS);
  #depth = 0;
  #firstName = Buffer.alloc(0);

  /** How many levels there are. */
  get depth(): number {
    return this.#depth;
  }

  /** One level down, into the directory of this name: the next one, where there is a level. */
  enter(name: Buffer, { device, inode }: DirectoryNumbers): void {
    if (this.#depth === 0) this.#firstName = Buffer.from(name);
    const at = this.#depth * NUMBERS;
    if (at === this.#numbers.length) {
      const wide = new BigUint64Array(2 * at);
      wide.set(this.#numbers);
      this.#numbers = wide;
    }
    this.#numbers.set([device, inode, 0n], at);
    this.#depth += 1;
  }

  /** One level up; answers the name of the directory that was left, which is still the next one there. */
  leave(): Buffer {
    while (this.next() !== undefined) this.drop();
    this.#depth -= 1;
    return this.next() ?? this.#firstName;
  }

  /** Undefined where there is no level. */
  numbers(): DirectoryNumbers | undefined {
    const at = (this.#depth - 1) * NUMBERS;
    const [device, inode] = this.#numbers.subarray(Math.max(at, 0), at + NUMBERS);
    return device === undefined || inode === undefined ? undefined : { device, inode };
  }

  /** A directory to visit in this level. False: there are too many to be remembered. */
  add(name: Buffer): boolean {
    const end = this.#end + name.length + LENGTH_BYTES;
    if (end > NAME_BYTES_MAX && this.#count() >= NAMES_MIN) return false;
    if (end > this.#names.length) this.#names = Buffer.concat([this.#names], Math.max(end, 2 * this.#end));
    name.copy(this.#names, this.#end);
    this.#names.writeUInt16LE(name.length, end - LENGTH_BYTES);
    this.#end = end;
    this.#addToCount(1n);
    return true;
  }

  /** The directory to visit next in this level; undefined when none is left. */
  next(): Buffer | undefined {
    if (this.#count() === 0) return undefined;
    const end = this.#end - LENGTH_BYTES;
    return Buffer.from(this.#names.subarray(end - this.#names.readUInt16LE(end), end));
  }

  /** The next one was visited, or is not to be. */
  drop(): void {
    const end = this.#end - LENGTH_BYTES;
    this.#end = end - this.#names.readUInt16LE(end);
    this.#addToCount(-1n);
  }

  #count(): number {
    return this.#depth === 0 ? 0 : Number(this.#numbers[this.#depth * NUMBERS - 1]);
  }

  #addToCount(by: bigint): void {
    const at = this.#depth * NUMBERS - 1;
    this.#numbers[at] = (this.#numbers[at] ?? 0n) + by;
  }
}
