/** The directory of manifests: files that are whole, cut short, unreadable or gone, until somebody puts them right. */
import { below } from '../../mount/host.ts';
import { contentObject, manifestText } from './manifests.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { MANIFESTS } from './sim-paths.ts';

/** `half` may be a file of no bytes: says nothing, not "nothing". */
export type FileState = 'whole' | 'half' | 'unreadable' | 'gone';

export interface ManifestFile {
  readonly name: string;
  readonly objects: () => readonly object[];
  state: FileState;
  /** The name of the file that the objects are in now: its own, but when they were moved. */
  place: string;
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
    const place = this.files.get(name)?.place ?? name;
    const file: ManifestFile = { name, objects, state: 'whole', place };
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

  /** The objects are taken out of the file that they are in; `write` puts them into the other one. False: not now. */
  abstract take(file: ManifestFile, place: string): boolean;
}

export class ManifestFiles extends WishFiles {
  readonly #kernel: SimKernel;
  readonly #random: Random;
  /** What was written or removed while the directory was out of reach, by where it is. */
  readonly #deferred = new Map<string, FileState>();
  /** Files that something was taken out of: they stay. An empty one is unknown, so each has an object of its own. */
  readonly #left = new Set<string>();
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
    if (which === 'all') for (const { place, state } of this.files.values()) this.#deferred.set(place, state);
    for (const [place, state] of this.#deferred) this.#writePlace(place, state);
    this.#deferred.clear();
  }

  write({ place, state }: ManifestFile): void {
    if (this.#isOutOfReach) this.#deferred.set(place, state);
    else this.#writePlace(place, state);
  }

  take(file: ManifestFile, place: string): boolean {
    const { place: from } = file;
    if (this.#isOutOfReach || file.state !== 'whole' || from === place) return false;
    file.place = place;
    this.#left.add(from);
    this.#writePlace(from, 'whole');
    return true;
  }

  #writePlace(place: string, state: FileState): void {
    const path = below(MANIFESTS, place);
    this.#kernel.removeFile(path);
    const there = [...this.files.values()].filter((one) => one.place === place && one.state !== 'gone');
    const own = this.#left.has(place) ? [contentObject({ kind: 'ConfigMap', name: place, data: {} })] : [];
    if (there.length === 0 && own.length === 0) return;
    const text = manifestText([...own, ...there.flatMap(({ objects }) => objects())]);
    const cut = state === 'half' ? text.slice(0, this.#random.between(1, text.length - 1)) : text;
    this.#kernel.makeFile(path, Buffer.from(cut), state === 'unreadable' ? 0 : 0o600);
  }
}
