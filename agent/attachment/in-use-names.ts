/** Which names belong on the list of volumes in use, by what this life knows of each of them. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { nodeVolumes } from '../../kubernetes/objects/attachment-sight.ts';

/** Somebody waits for a name to be on the list, or off it. */
export interface Waiting {
  readonly name: string;
  readonly isUsed: boolean;
}

/** The list as it is to be. */
export interface WantedNames {
  /** Sorted, each once. */
  readonly all: readonly string[];
  /** Those of this node; the others are kept for whoever wrote them. */
  readonly own: ReadonlySet<string>;
}

/** A name goes only when it is known that nothing of it is here, or by whoever wrote it. */
export class InUseNames {
  /** Nothing of them is left, and they are being taken off the list. */
  readonly #leaving = new Set<string>();
  /** All of them is known: a record told of them when this life began, or nothing of them is left. */
  readonly #explained = new Set<string>();
  /** What else was listed before this life wrote, and may be here as long as the disk was not read. */
  readonly #unexplained = new Set<string>();
  #seen: Pick<ApiObjectEnvelope, 'uid' | 'resourceVersion'> | undefined;
  /** What any life of ours has put there, or asked for; what is listed beside that is somebody else's. */
  #ours: ReadonlySet<string> = new Set();
  /** What the server was seen to have as we want it. */
  #acknowledged: ReadonlySet<string> = new Set();

  /** `recorded`: what stands by the records of earlier lives. */
  begin(recorded: ReadonlySet<string>): void {
    for (const name of recorded) this.#explained.add(name);
  }

  use(name: string): void {
    this.#leaving.delete(name);
  }

  leave(name: string): void {
    this.#leaving.add(name);
  }

  /**
   * It is off the list, acknowledged. Nothing is detached while something of it may be here that nobody knows of
   * (INV-1), so it is not held back for what else could not be read.
   */
  left(name: string): void {
    this.#explained.add(name);
    this.#unexplained.delete(name);
  }

  /**
   * `isOfBefore`: what it lists is of earlier lives still, as it is of a Node that is seen for the first time, and of
   * one that is as it was before: a backup was restored.
   */
  noteSeen(seen: ApiObjectEnvelope, isOfBefore: boolean, isDiskRead: boolean): void {
    const { inUse } = nodeVolumes(seen.value);
    const before = this.#seen;
    const isNew =
      seen.uid !== before?.uid || compareResourceVersions(seen.resourceVersion, before.resourceVersion) < 0;
    // From such a Node nobody has taken anything.
    if (isNew) this.#acknowledged = new Set();
    this.#seen = seen;
    if (isNew || isOfBefore) {
      this.#ours = new Set([...(isNew ? [] : this.#ours), ...inUse]);
      for (const name of inUse) if (!this.#explained.has(name)) this.#unexplained.add(name);
    }
    // What stands is all that is here, and whoever went is not kept for ever.
    if (isDiskRead) for (const names of [this.#explained, this.#unexplained]) names.clear();
  }

  /** What is wanted in this Node; `standing` is here or being set up. */
  wanted(seen: ApiObjectEnvelope, standing: ReadonlySet<string>, waiting: readonly Waiting[]): WantedNames {
    const used = new Set(standing);
    for (const { name, isUsed } of waiting) if (isUsed) used.add(name);
    const waitedFor = new Set(waiting.filter(({ isUsed }) => !isUsed).map(({ name }) => name));
    // Once it stands no more, there is nothing that it would have to be kept off the list for.
    for (const name of this.#leaving) if (!used.has(name) && !waitedFor.has(name)) this.#leaving.delete(name);
    const own = new Set([...used, ...this.#unexplained]);
    const others = nodeVolumes(seen.value).inUse.filter((name) => !this.#ours.has(name));
    const all = new Set([...own, ...others]);
    for (const name of this.#leaving) for (const names of [own, all]) names.delete(name);
    return { all: [...all].sort(), own };
  }

  /** Whether something that the server had acknowledged, and that is wanted, is on the list no more: once each time. */
  noteTaken(seen: ApiObjectEnvelope, { own }: WantedNames): boolean {
    const listed = new Set(nodeVolumes(seen.value).inUse);
    const isTaken = [...own].some((name) => this.#acknowledged.has(name) && !listed.has(name));
    this.#acknowledged = new Set([...this.#acknowledged].filter((name) => listed.has(name)));
    return isTaken;
  }

  /** They are asked for: whatever is heard of the answer, they are ours. */
  noteAsked({ own }: WantedNames): void {
    this.#ours = new Set([...this.#ours, ...own]);
  }

  /** The server has the list, and what was asked for before comes no more. */
  noteAcknowledged({ own }: WantedNames): void {
    this.#ours = own;
    this.#acknowledged = own;
  }
}

/** The same names, in whatever order, each once or more often. */
export function isSameList(a: readonly string[], b: readonly string[]): boolean {
  const names = new Set(a);
  return names.size === new Set(b).size && b.every((name) => names.has(name));
}
