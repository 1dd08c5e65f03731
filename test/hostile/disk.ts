/** What is behind a volume: a file system on a loop device, or one in user space. It can die; a new mount cures it. */
import { existsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must, run } from './command.ts';
import { type FuseMount, mountFuse } from './fuse-server.ts';
import { kernelMounts, mountShownAt, numberOfDevice } from './kernel.ts';

export type DiskKind = 'ext4' | 'xfs' | 'fuse';

const BYTES: Readonly<Record<DiskKind, number>> = { ext4: 32 * 2 ** 20, xfs: 320 * 2 ** 20, fuse: 0 };

export class Disk {
  readonly kind: DiskKind;
  readonly handle: string;
  /** `/dev/loop3` while it is attached. */
  loop: string | undefined;
  /** Those that were mounted and not given back; the last one serves. */
  readonly fuses: FuseMount[] = [];
  /** `performance.now()` since which no new pod may be given what is mounted of it now. */
  deadSinceMs: number | undefined;
  isHung = false;
  readonly #file: string;

  constructor(kind: DiskKind, handle: string, pool: string) {
    this.kind = kind;
    this.handle = handle;
    this.#file = join(pool, handle);
  }

  /** In the mount table: its device, or the name of its server. */
  get identity(): string | undefined {
    if (this.kind === 'fuse') return `fuse-${this.handle}`;
    return this.loop === undefined ? undefined : numberOfDevice(this.loop);
  }

  isShownBy(mount: { readonly device: string; readonly source: string } | undefined): boolean {
    const { identity } = this;
    return (
      mount !== undefined &&
      identity !== undefined &&
      (mount.device === identity || mount.source === identity)
    );
  }

  /** Mounts it at an existing directory; on failure nothing of it is left. */
  async mount(target: string): Promise<void> {
    if (this.kind === 'fuse') {
      this.fuses.push(await mountFuse(target, `fuse-${this.handle}`));
    } else {
      await this.#attach();
      try {
        const options = this.kind === 'ext4' ? 'errors=remount-ro' : 'nouuid';
        await must(['mount', '-t', this.kind, '-o', options, '--', this.loop ?? '', target]);
      } catch (error) {
        await this.release();
        throw error;
      }
    }
    this.deadSinceMs = undefined;
    this.isHung = false;
  }

  /** Nothing of it is mounted any more: the device goes back. */
  async release(): Promise<void> {
    for (const fuse of this.fuses.splice(0)) await fuse.kill();
    this.deadSinceMs = undefined;
    this.isHung = false;
    const { loop } = this;
    this.loop = undefined;
    if (loop !== undefined) await must(['losetup', '--detach', loop]);
  }

  /** As a disk does that fails: what is mounted is good for nothing, until it is mounted anew. */
  async die(): Promise<string | undefined> {
    const mounts = kernelMounts().filter((one) => this.isShownBy(one));
    // Only xfs is told by a path, which must not lead to what somebody mounted over it.
    const mount = mounts.find(({ id, target }) => this.kind !== 'xfs' || mountShownAt(target)?.id === id);
    if (mount === undefined || this.deadSinceMs !== undefined) return undefined;
    if (this.kind === 'fuse') for (const fuse of this.fuses) await fuse.kill();
    else if (this.kind === 'xfs') await must(['xfs_io', '-x', '-c', 'shutdown -f', mount.target]);
    else writeFileSync(`/sys/fs/ext4/${this.loop?.replace('/dev/', '')}/trigger_fs_error`, '1');
    this.deadSinceMs = performance.now();
    return `${this.handle} (${this.kind}) dies`;
  }

  async hang(hung: boolean): Promise<void> {
    if (this.fuses.length === 0 || this.deadSinceMs !== undefined) return;
    this.isHung = hung;
    for (const fuse of this.fuses) await fuse.set({ kind: hung ? 'hang' : 'serve' });
  }

  async #attach(): Promise<void> {
    if (this.loop !== undefined) return;
    if (!existsSync(this.#file)) {
      writeFileSync(this.#file, '');
      truncateSync(this.#file, BYTES[this.kind]);
      const argv = this.kind === 'ext4' ? ['mkfs.ext4', '-q', '-F'] : ['mkfs.xfs', '-q', '-f'];
      await must([...argv, this.#file]);
    } else if (this.kind === 'ext4') {
      // What an error left is repaired before it is mounted again, as drivers do; 1: errors were corrected.
      const checked = await run(['e2fsck', '-p', '-f', this.#file]);
      if ((checked.code ?? 8) > 2) throw new Error(`e2fsck: ${checked.output}`);
    }
    this.loop = await must(['losetup', '--find', '--show', this.#file]);
  }
}
