/** Which names belong on the list of volumes in use, by what this life knows of each of them. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { nodeVolumes } from '../../kubernetes/objects/attachment-sight.ts';
import { inUseList } from './in-use-list.ts';

/** Somebody waits for a name to be on the list, or off it. */
export interface Waiting {
  readonly name: string;
  readonly isUsed: boolean;
}

export class InUseNames {
  readonly #leaving = new Set<string>();
  /** All of them is known: a record told of them when this life began, or nothing of them is left. */
  readonly #explained = new Set<string>();
  /** What else the server listed when this life first looked; undefined before. */
  #unexplained: Set<string> | undefined;
  /** The last list that the server was seen to have as we want it, and the uid of the Node that it is of. */
  #written: ReadonlySet<string> = new Set();
  #nodeUid: string | undefined;

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
    this.#unexplained?.delete(name);
  }

  /** What the server lists when this life first looks, and nobody explains, may be here until the disk was read. */
  noteSeen(seen: ApiObjectEnvelope, isDiskRead: boolean): void {
    const { inUse } = nodeVolumes(seen.value);
    this.#unexplained ??= new Set(inUse.filter((name) => !this.#explained.has(name)));
    if (isDiskRead) this.#unexplained.clear();
  }

  /** What is wanted in this Node, sorted; `standing` is here or being set up. */
  namesFor(
    seen: ApiObjectEnvelope,
    standing: ReadonlySet<string>,
    waiting: readonly Waiting[],
  ): readonly string[] {
    const used = new Set(standing);
    for (const { name, isUsed } of waiting) if (isUsed) used.add(name);
    const waitedFor = new Set(waiting.filter(({ isUsed }) => !isUsed).map(({ name }) => name));
    // Once it stands no more, there is nothing that it would have to be kept off the list for.
    for (const name of this.#leaving) if (!used.has(name) && !waitedFor.has(name)) this.#leaving.delete(name);
    return inUseList({
      standing: used,
      leaving: this.#leaving,
      unexplained: this.#unexplained ?? new Set(),
      listed: nodeVolumes(seen.value).inUse,
      written: this.#written,
    });
  }

  /** Whether something that this life has written and wants is on the list no more. Each time is told once. */
  noteTaken(seen: ApiObjectEnvelope, names: readonly string[]): boolean {
    // From a Node that was made anew nobody has taken anything.
    if (seen.uid !== this.#nodeUid) this.#written = new Set();
    this.#nodeUid = seen.uid;
    const listed = new Set(nodeVolumes(seen.value).inUse);
    const isTaken = names.some((name) => this.#written.has(name) && !listed.has(name));
    this.#written = new Set([...this.#written].filter((name) => listed.has(name)));
    return isTaken;
  }

  /** The server has acknowledged this list. */
  noteWritten(names: readonly string[]): void {
    this.#written = new Set(names);
  }
}
