/** The directory of manifests: files that are whole, cut short, unreadable or gone, until somebody puts them right. */
import { below } from '../../mount/host.ts';
import { manifestText } from './manifests.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { MANIFESTS } from './sim-paths.ts';

/** `half` may be a file of no bytes: says nothing, not "nothing". */
export type FileState = 'whole' | 'half' | 'unreadable' | 'gone';

export interface ManifestFile {
  readonly name: string;
  readonly objects: () => readonly object[];
  state: FileState;
}

/** What the user has written, by the names of the files; where it goes is for those who keep it. */
export abstract class WishFiles {
  protected readonly files = new Map<string, ManifestFile>();

  get(name: string): ManifestFile | undefined {
    return this.files.get(name);
  }

  all(): readonly ManifestFile[] {
    return [...this.files.values()];
  }

  /** Not written yet. */
  add(name: string, objects: () => readonly object[]): ManifestFile {
    const file: ManifestFile = { name, objects, state: 'whole' };
    this.files.set(name, file);
    return file;
  }

  setState(name: string, state: FileState): void {
    const file = this.files.get(name);
    if (file === undefined) return;
    file.state = state;
    this.write(file);
  }

  remove(name: string): void {
    this.setState(name, 'gone');
    this.files.delete(name);
  }

  /** Another directory is in the place of the user's: what the user does to the files comes when it is back. */
  abstract putOutOfReach(): void;

  /** `all`: in a directory that has none of them. */
  abstract comeInReach(which: 'changed' | 'all'): void;

  abstract write(file: ManifestFile): void;
}

export class ManifestFiles extends WishFiles {
  readonly #kernel: SimKernel;
  readonly #random: Random;
  /** Names of what was written or removed while the directory was out of reach. */
  readonly #deferred = new Set<string>();
  #isOutOfReach = false;

  constructor(kernel: SimKernel, random: Random) {
    super();
    this.#kernel = kernel;
    this.#random = random;
  }

  putOutOfReach(): void {
    this.#isOutOfReach = true;
  }

  comeInReach(which: 'changed' | 'all'): void {
    this.#isOutOfReach = false;
    if (which === 'all') for (const name of this.files.keys()) this.#deferred.add(name);
    for (const name of this.#deferred) {
      const file = this.files.get(name);
      if (file === undefined) this.#kernel.removeFile(below(MANIFESTS, name));
      else this.write(file);
    }
    this.#deferred.clear();
  }

  write({ name, objects, state }: ManifestFile): void {
    if (this.#isOutOfReach) {
      this.#deferred.add(name);
      return;
    }
    const path = below(MANIFESTS, name);
    this.#kernel.removeFile(path);
    if (state === 'gone') return;
    const text = manifestText(objects());
    const cut = state === 'half' ? text.slice(0, this.#random.between(1, text.length - 1)) : text;
    this.#kernel.makeFile(path, Buffer.from(cut), state === 'unreadable' ? 0 : 0o600);
  }
}
