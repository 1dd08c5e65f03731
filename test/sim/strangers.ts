/**
 * Somebody mounts file systems of his own over our places, and takes them away again: over a target, a staging path, or
 * both (peers), over a directory above them, over a place that is only wanted yet; while the agent runs and while it is
 * down. He comes where nothing is under way at that moment: who mounts between our look and the driver's answer is not
 * told from the driver (docs/ARCHITECTURE.md).
 */
import { type AbsolutePath, isBelow, parentOf } from '../../mount/host.ts';
import { kinds } from '../../plugins/kinds/kinds.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import type { Random } from './random.ts';
import type { Mount, SimKernel } from './sim-kernel.ts';
import type { VirtualTime } from './virtual-time.ts';
import type { Trace } from './trace.ts';

/**
 * Anything; directories that volumes are staged in, of all kinds; what pods have, and the directories above; just what
 * pods have, with parts; or all that is ours, what we noted down with it.
 */
export type StrangersOver = 'anything' | 'stages' | 'places' | 'mounts' | 'root';

export interface StrangersParts {
  readonly kernel: SimKernel;
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly layout: Layout;
  readonly over: StrangersOver;
  /** Targets of pods that are wanted. */
  readonly wantedTargets: () => readonly AbsolutePath[];
  /** Where a call of a driver that everybody has given up may still mount something. */
  readonly lateTargets: () => readonly AbsolutePath[];
  /** Is an operation or a driver's call under way? */
  readonly isBusy: () => boolean;
  readonly stormy: () => boolean;
  readonly violate: (invariant: string, text: string) => void;
}

/** Takes it away, if it is empty, whatever lies over the way to it: he has the directory above it open. */
type MadeDirectory = () => void;

const EVERY_MS = 6_000;
const STAY_MS_MAX = 150_000;

export class Strangers {
  readonly #parts: StrangersParts;
  /** With the directories made for it, the deepest first. */
  readonly #standing = new Map<Mount, readonly MadeDirectory[]>();
  #count = 0;

  constructor(parts: StrangersParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { random, time, stormy } = this.#parts;
    time.after(random.between(100, 2 * EVERY_MS), () => {
      if (!stormy()) return;
      if (!this.#parts.isBusy()) this.#come();
      this.begin();
    });
  }

  /** After every event: nothing of theirs was taken away by anybody but them. */
  look(): void {
    const { kernel, violate } = this.#parts;
    for (const mount of this.#standing.keys())
      if (!kernel.mounts().includes(mount))
        violate('foreign', `somebody else's mount at ${mount.target} was unmounted`);
  }

  /** All of them go, the last one first. */
  leave(): void {
    for (const mount of [...this.#standing.keys()].reverse()) this.#go(mount);
    for (const mount of this.#parts.kernel.strangers)
      this.#parts.violate(
        'foreign',
        `something was mounted in somebody else's file system at ${mount.target}`,
      );
  }

  losePower(): void {
    this.#standing.clear();
  }

  #come(): void {
    const { random, time } = this.#parts;
    const stayMs = random.between(500, STAY_MS_MAX);
    const mounts = this.#places().flatMap((path) => this.#mount(path));
    time.after(stayMs, () => {
      for (const mount of mounts.reverse()) this.#go(mount);
    });
  }

  /** One that is there. */
  #stages(): readonly AbsolutePath[] {
    const { kernel, layout, random } = this.#parts;
    const ofKinds = kinds().flatMap(({ stages }) => stages?.directory(layout) ?? []);
    const mounted = kernel.mounts().filter(({ target }) => target.endsWith('/globalmount'));
    const ofDrivers = mounted.flatMap(({ target }) => [parentOf(target), parentOf(parentOf(target))]);
    const all = [layout.stages, layout.blockStages, ...ofKinds, ...ofDrivers];
    const there = all.filter((path) => {
      const facts = kernel.inspect(path);
      return typeof facts !== 'string' && facts.kind === 'directory';
    });
    return there.length === 0 ? [] : [random.pick(there)];
  }

  #places(): readonly AbsolutePath[] {
    const { random, kernel, layout, wantedTargets, over } = this.#parts;
    if (over === 'stages') return this.#stages();
    if (over === 'root') return [layout.root];
    const own = kernel
      .mounts()
      .filter((one) => isBelow(one.target, layout.root) && !kernel.strangers.has(one));
    const targets = own.filter(({ target }) => isBelow(target, layout.pods)).map(({ target }) => target);
    const stages = own.filter(({ target }) => target.endsWith('/globalmount')).map(({ target }) => target);
    const anyOf = (paths: readonly AbsolutePath[]) => (paths.length === 0 ? [] : [random.pick(paths)]);
    const above = (path: AbsolutePath, levels: number): AbsolutePath =>
      levels === 0 ? path : above(parentOf(path), levels - 1);
    if (over === 'mounts') return anyOf(targets);
    if (over === 'places') return anyOf(targets).map((path) => above(path, random.between(0, 3)));
    switch (
      random.pick(['target', 'target', 'stage', 'stage', 'peers', 'above', 'all', 'root', 'unborn'] as const)
    ) {
      case 'target':
        return anyOf(targets);
      case 'stage':
        return anyOf(stages);
      case 'peers':
        return [...anyOf(stages), ...anyOf(targets)];
      case 'above':
        return anyOf([...targets, ...stages]).map((path) => above(path, random.between(1, 3)));
      case 'all':
        return [random.pick([layout.pods, layout.plugins])];
      case 'root':
        return [layout.root];
      case 'unborn':
        return anyOf(wantedTargets().filter((target) => kernel.mountsAt(target).length === 0));
    }
  }

  #mount(path: AbsolutePath): readonly Mount[] {
    const { kernel, trace, layout, lateTargets } = this.#parts;
    // What a driver mounts late in a stranger's file system keeps him there, and nobody could have kept it from that.
    if (kernel.isUnderStranger(path) || lateTargets().some((late) => isBelow(late, path))) return [];
    // Where nothing is mounted below, a stranger who came while nobody looked is not told from an administrator's disk.
    const bases: readonly AbsolutePath[] = [layout.root, layout.pods, layout.plugins];
    if (bases.includes(path) && !this.#ownBelow(path)) return [];
    // Under the number of the mount that he took away, nothing tells him from it (docs/ARCHITECTURE.md).
    if (kernel.isLastAgain(path)) return [];
    const made = this.#makeDirectories(path);
    this.#count += 1;
    const mount = kernel.putStranger(`stranger-${this.#count}`, path);
    if (mount === undefined) return [];
    trace.add(`somebody mounts ${mount.source} (mount ${mount.id}) over ${path.slice(layout.root.length)}`);
    this.#standing.set(mount, made);
    return [mount];
  }

  /** Is anything of ours mounted there? It stays as long as it is hidden; another stranger goes when he likes. */
  #ownBelow(path: AbsolutePath): boolean {
    const { kernel } = this.#parts;
    return kernel.mounts().some((one) => isBelow(one.target, path) && !kernel.strangers.has(one));
  }

  #makeDirectories(path: AbsolutePath): readonly MadeDirectory[] {
    const { kernel } = this.#parts;
    const facts = kernel.inspect(path);
    if (typeof facts === 'string' || facts.kind !== 'absent') return [];
    const above = this.#makeDirectories(parentOf(path));
    if (kernel.makeDirectory(path, 0o755) !== undefined) return above;
    const remove = kernel.keepHold(path);
    return remove === undefined ? above : [remove, ...above];
  }

  #go(mount: Mount): void {
    const { kernel, trace } = this.#parts;
    const made = this.#standing.get(mount);
    if (made === undefined) return;
    // What a driver bound, late, from a path that he covered is his to take away: nobody else can tell it from his own.
    const bound = [...kernel.strangers].filter((one) => !this.#standing.has(one));
    for (const one of bound.filter(({ fileSystem }) => fileSystem === mount.fileSystem))
      if (kernel.removeStranger(one)) trace.add(`${one.source} at ${one.target} goes, too`);
    if (!kernel.removeStranger(mount)) return;
    trace.add(`${mount.source} at ${mount.target} goes`);
    this.#standing.delete(mount);
    for (const remove of made) remove();
  }
}
