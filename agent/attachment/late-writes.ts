/**
 * Writes of the Node that may yet take effect: one of ours whose answer was lost, and any of an earlier life of ours
 * that was killed while it asked. Each was made for the mark that the Node had, and gives it another one: a write of
 * ours that takes effect refuses all that were made for the same mark.
 */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { markOf } from './node-mark.ts';

/** The Node that a write with a lost answer was made for. */
interface Doubted {
  readonly mark: string | undefined;
  readonly resourceVersion: string;
}

export class LateWrites {
  #doubted: Doubted | undefined;
  /** The Node that this life has written. */
  #ownedUid: string | undefined;
  #marks = 0;

  noteSeen(node: ApiObjectEnvelope): void {
    const doubted = this.#doubted;
    if (doubted === undefined || markOf(node) === doubted.mark) return;
    // The server's data was set back: the next mark after this one refuses what was asked for before.
    const isSetBack = compareResourceVersions(node.resourceVersion, doubted.resourceVersion) < 0;
    this.#doubted = isSetBack ? doubtedOf(node) : undefined;
  }

  noteLost(node: ApiObjectEnvelope): void {
    this.#doubted = doubtedOf(node);
  }

  /** `answer`: to a write with that mark. Without it there, what was asked for before may come yet. */
  noteWritten(answer: ApiObjectEnvelope, mark: string): void {
    if (markOf(answer) === mark) this.#ownedUid = answer.uid;
  }

  /** This life has: what was asked for before, by whichever life, comes no more. */
  hasWritten({ uid }: ApiObjectEnvelope): boolean {
    return this.#ownedUid === uid;
  }

  /** One may come yet. `isUsed`: somebody waits to be on the list, which one of an earlier life may take him off. */
  mayCome(node: ApiObjectEnvelope, isUsed: boolean): boolean {
    return this.#doubted !== undefined || (isUsed && !this.hasWritten(node));
  }

  /**
   * Another one than the Node has or has ever had: its version is in it, and an earlier life that has made the same one
   * has made it for the same Node.
   */
  nextMark({ resourceVersion }: ApiObjectEnvelope): string {
    this.#marks += 1;
    return `${resourceVersion}.${this.#marks}`;
  }
}

function doubtedOf(node: ApiObjectEnvelope): Doubted {
  return { mark: markOf(node), resourceVersion: node.resourceVersion };
}
