/** What is on the disks of the machine that no driver has: nothing, data of nobody knows whom, or a file system. */
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, DeviceNumber } from '../../mount/host.ts';
import type { DeviceContent, FileSystemType } from '../../mount/device/file-system-tools.ts';
import type { FileSystem } from './file-tree.ts';
import type { SimKernel } from './sim-kernel.ts';

/** `half`: an mkfs was cut short. */
export type DiskContent = 'blank' | 'half' | FileSystem;

export interface LocalDisk {
  /** Where its node is. */
  readonly path: AbsolutePath;
  content: DiskContent;
}

export class LocalDisks {
  readonly #kernel: SimKernel;
  #isAttended = false;
  readonly #disks = new Map<AbsolutePath, LocalDisk>();

  constructor(kernel: SimKernel) {
    this.#kernel = kernel;
  }

  add(path: AbsolutePath): LocalDisk {
    const disk: LocalDisk = { path, content: 'blank' };
    this.#disks.set(path, disk);
    return disk;
  }

  /** It is at this path by now. */
  plug(path: AbsolutePath, disk: LocalDisk): void {
    if (this.#isAttended) wipe(disk);
    this.#disks.set(path, disk);
  }

  unplug(path: AbsolutePath): void {
    this.#disks.delete(path);
  }

  /** A person wipes what an mkfs that was cut short has left, and what one that is under way leaves (seed 4376). */
  heal(): void {
    this.#isAttended = true;
    for (const disk of this.#disks.values()) wipe(disk);
  }

  at(path: string): LocalDisk | undefined {
    return this.#disks.get(path as AbsolutePath);
  }

  read(path: AbsolutePath): Result<DeviceContent> {
    const disk = this.at(path);
    if (disk === undefined) return ok({ kind: 'other', what: 'no disk' });
    return ok(typeof disk.content === 'string' ? { kind: 'nothing' } : { kind: 'file-system', type: 'ext4' });
  }

  proveBlank(path: AbsolutePath): Result<void> {
    const disk = this.at(path);
    const isBlank = disk?.content === 'blank';
    return isBlank ? ok(undefined) : fail({ code: 'device-content', message: path, effect: 'none' });
  }

  /** `half`: the process dies meanwhile. */
  make(path: AbsolutePath, _type: FileSystemType, half = false): Result<void> {
    const blank = this.proveBlank(path);
    const disk = this.at(path);
    if (!blank.ok || disk === undefined) return blank;
    const left = this.#isAttended ? 'blank' : 'half';
    disk.content = half ? left : this.#newFileSystem(path);
    return ok(undefined);
  }

  mount(path: string, target: AbsolutePath, options: readonly string[]): string | undefined {
    const content = this.at(path)?.content;
    if (content === undefined || typeof content === 'string') return 'wrong fs type, bad superblock';
    // Another session may have given it another number.
    if (content.mounts === 0) content.block = this.#numberAt(path as AbsolutePath);
    return this.#kernel.mountFileSystem(content, target, options);
  }

  #newFileSystem(path: AbsolutePath): FileSystem {
    return this.#kernel.makeFileSystem('ext4', path, false, this.#numberAt(path));
  }

  #numberAt(path: AbsolutePath): DeviceNumber | undefined {
    const block = this.#kernel.deviceOf(path);
    return typeof block === 'string' && block.includes(':') ? (block as DeviceNumber) : undefined;
  }
}

function wipe(disk: LocalDisk): void {
  if (disk.content === 'half') disk.content = 'blank';
}
