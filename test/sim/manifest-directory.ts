/** The directory that the manifests are in, and what may be seen in its place. */
import type { AbsolutePath } from '../../mount/host.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { MANIFESTS } from './sim-paths.ts';

const ASIDE = `${MANIFESTS}.old` as AbsolutePath;

/** As manifests.ts writes it. */
const POD_UID = /"uid":"(uid-\d+)"/g;

/** `own`: it is there. `covered`: something is mounted on it. `replaced`: it was moved aside for a new one. */
export type DirectoryState = 'own' | 'covered' | 'replaced';

export class ManifestDirectory {
  readonly #kernel: SimKernel;
  readonly #random: Random;
  #state: DirectoryState = 'own';

  constructor(kernel: SimKernel, random: Random) {
    this.#kernel = kernel;
    this.#random = random;
  }

  get state(): DirectoryState {
    return this.#state;
  }

  /** Another file system is mounted on it: an empty one, or one with some of the same files. */
  cover(): void {
    const files = this.#contents();
    this.#kernel.mountTmpfs('tmpfs', MANIFESTS, ['mode=0750']);
    this.#state = 'covered';
    this.#copySome(files);
  }

  /** It is moved aside, and a new one made. */
  replace(): void {
    const files = this.#contents();
    this.#kernel.rename(MANIFESTS, ASIDE);
    this.#kernel.makeDirectory(MANIFESTS, 0o750);
    this.#state = 'replaced';
    this.#copySome(files);
  }

  /** The old one is back. */
  restore(): void {
    if (this.#state === 'covered') this.#kernel.unmount(MANIFESTS);
    if (this.#state === 'replaced') {
      this.#remove(MANIFESTS);
      this.#kernel.rename(ASIDE, MANIFESTS);
    }
    this.#state = 'own';
  }

  /** Which pods are in what is seen in its place, be it out of date. */
  podUids(): ReadonlySet<string> {
    if (this.#state === 'own') return new Set();
    const texts = this.#contents().map(([, content]) => Buffer.from(content).toString());
    return new Set(texts.flatMap((text) => [...text.matchAll(POD_UID)].map(([, uid]) => uid as string)));
  }

  /** The one that is there is the right one from now on. */
  keep(): void {
    if (this.#state === 'replaced') this.#remove(ASIDE);
    this.#state = 'own';
  }

  /** Mounts are gone; what was moved is on a disk that loses nothing. */
  losePower(): void {
    if (this.#state === 'covered') this.#state = 'own';
  }

  #contents(): readonly (readonly [string, Uint8Array])[] {
    const at = this.#kernel.walk(MANIFESTS);
    return typeof at === 'string' ? [] : [...at.inode.entries].map(([name, { content }]) => [name, content]);
  }

  #copySome(files: readonly (readonly [string, Uint8Array])[]): void {
    const share = this.#random.pick([0, 0, 0.5]);
    for (const [name, content] of files) {
      if (this.#random.chance(share))
        this.#kernel.makeFile(`${MANIFESTS}/${name}` as AbsolutePath, content, 0o600);
    }
  }

  #remove(directory: AbsolutePath): void {
    const at = this.#kernel.walk(directory);
    if (typeof at === 'string') return;
    for (const name of [...at.inode.entries.keys()])
      this.#kernel.removeFile(`${directory}/${name}` as AbsolutePath);
    this.#kernel.removeDirectory(directory);
  }
}
