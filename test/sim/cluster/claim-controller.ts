/**
 * Who deletes claims and makes them anew, and the controller that holds them back while pods use them. As the real one:
 * it reads the claim, looks for pods, and takes the protection away in the version that it has read.
 */
import { CLAIM_PROTECTION, isHeldBack } from '../../../kubernetes/fields/protection.ts';
import type { Random } from '../random.ts';
import type { Trace } from '../trace.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { ClusterFiles } from './cluster-files.ts';
import { CLAIMS, type ClusterObjectsView, PODS } from './cluster-objects.ts';
import { type Json, metadataOf, nameOf, textsOf } from './json-object.ts';
import type { ObjectStore } from './object-store.ts';

export interface ClaimControllerParts {
  readonly store: ObjectStore;
  readonly time: Pick<VirtualTime, 'after'>;
  readonly random: Random;
  readonly trace: Trace;
  readonly view: ClusterObjectsView;
  readonly files: ClusterFiles;
  readonly lagMsMax: () => number;
  readonly stormy: () => boolean;
  /** Mean time between two deletions of a claim; 0: none. */
  readonly deletedEveryMs: number;
}

/** Somebody else holds a claim back, too, for a while: until then it is there, and is as good as gone. */
const SLOW = 'example.com/slow';
const SLOW_MS_MAX = 10_000;
const AGAIN_MS_MAX = 15_000;

export class ClaimController {
  readonly #parts: ClaimControllerParts;
  readonly #busy = new Set<string>();

  constructor(parts: ClaimControllerParts) {
    this.#parts = parts;
    parts.store.onChange(({ collection, before, after }) => {
      if (collection === PODS) this.#lookAtAll();
      if (collection !== CLAIMS) return;
      if (after === undefined) this.#makeAgain(nameOf(before ?? {}));
      else this.#look(nameOf(after));
    });
    if (parts.deletedEveryMs > 0) this.#planDeletion();
  }

  /** Who has deleted one puts it back at once. */
  heal(): void {
    for (const name of this.#parts.files.claims()) this.#parts.files.applyAgain(CLAIMS, name);
    this.#lookAtAll();
  }

  #planDeletion(): void {
    const { time, random, stormy, deletedEveryMs } = this.#parts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * deletedEveryMs), () => {
      if (!stormy()) return;
      this.#deleteOne();
      this.#planDeletion();
    });
  }

  #deleteOne(): void {
    const { store, random, trace, files } = this.#parts;
    const names = files.claims().filter((name) => {
      const claim = store.get(CLAIMS, name);
      return claim !== undefined && metadataOf(claim)['deletionTimestamp'] === undefined;
    });
    if (names.length === 0) return;
    const name = random.pick(names);
    const claim = store.get(CLAIMS, name);
    trace.add(`somebody deletes claim ${name}`);
    if (claim !== undefined && random.chance(0.5)) {
      const finalizers = [...textsOf(metadataOf(claim)['finalizers']), SLOW];
      store.replace(CLAIMS, { ...claim, metadata: { ...metadataOf(claim), finalizers } });
    }
    store.remove(CLAIMS, name);
  }

  #makeAgain(name: string): void {
    const { time, random, files, stormy } = this.#parts;
    time.after(stormy() ? random.between(1, AGAIN_MS_MAX) : 1, () => files.applyAgain(CLAIMS, name));
  }

  #lookAtAll(): void {
    for (const [, claim] of this.#parts.store.list(CLAIMS)) this.#look(nameOf(claim));
  }

  #look(name: string): void {
    const { store, time, random, lagMsMax, stormy } = this.#parts;
    const read = store.get(CLAIMS, name);
    if (read === undefined || this.#busy.has(name)) return;
    const { deletionTimestamp, finalizers } = metadataOf(read);
    if (deletionTimestamp === undefined) return;
    this.#busy.add(name);
    if (!isHeldBack(read, CLAIM_PROTECTION)) {
      const isSlow = textsOf(finalizers).includes(SLOW);
      time.after(stormy() ? random.between(1, SLOW_MS_MAX) : 1, () => {
        this.#busy.delete(name);
        if (isSlow) this.#take(name, SLOW, undefined);
      });
      return;
    }
    time.after(random.between(1, lagMsMax()), () => this.#lookForPods(name, read));
  }

  #lookForPods(name: string, read: Json): void {
    const { time, random, lagMsMax, view } = this.#parts;
    if (view.leadsTo('persistentvolumeclaims', name)) {
      // The end of a pod is a reason to look again.
      this.#busy.delete(name);
      return;
    }
    time.after(random.between(1, lagMsMax()), () => {
      this.#busy.delete(name);
      if (!this.#take(name, CLAIM_PROTECTION, read)) this.#look(name);
    });
  }

  /** The answer: whether it was still the version that was read. */
  #take(name: string, finalizer: string, read: Json | undefined): boolean {
    const { store, trace } = this.#parts;
    const now = store.get(CLAIMS, name);
    if (now === undefined) return true;
    if (read !== undefined && versionOf(read) !== versionOf(now)) return false;
    const finalizers = textsOf(metadataOf(now)['finalizers']).filter((one) => one !== finalizer);
    trace.add(`claim ${name} loses ${finalizer}`);
    store.replace(CLAIMS, { ...now, metadata: { ...metadataOf(now), finalizers } });
    return true;
  }
}

function versionOf(claim: Json): unknown {
  return metadataOf(claim)['resourceVersion'];
}
