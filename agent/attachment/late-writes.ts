/**
 * Writes of the Node that may yet take effect: one of ours whose answer was lost, and any of an earlier life of ours
 * that was killed while it asked. Each was made for a version, so a write of ours that makes a later one refuses it.
 */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { touchMark } from './node-mark.ts';

export class LateWrites {
  /** The Node's version that a write with a lost answer was made for. */
  #doubtedVersion: string | undefined;
  /** The Node that this life has written. */
  #ownedUid: string | undefined;
  #touches = 0;

  noteSeen({ resourceVersion }: ApiObjectEnvelope): void {
    const doubted = this.#doubtedVersion;
    if (doubted === undefined) return;
    const order = compareResourceVersions(resourceVersion, doubted);
    // The server's data was set back: the next version after this one refuses what was asked for before.
    if (order !== 0) this.#doubtedVersion = order > 0 ? undefined : resourceVersion;
  }

  noteLost({ resourceVersion }: ApiObjectEnvelope): void {
    this.#doubtedVersion = resourceVersion;
  }

  noteWritten({ uid }: ApiObjectEnvelope): void {
    this.#ownedUid = uid;
  }

  /** This life has: what was asked for before, by whichever life, comes no more. */
  hasWritten({ uid }: ApiObjectEnvelope): boolean {
    return this.#ownedUid === uid;
  }

  /** One may come yet. `isUsed`: somebody waits to be on the list, which one of an earlier life may take him off. */
  mayCome(node: ApiObjectEnvelope, isUsed: boolean): boolean {
    return this.#doubtedVersion !== undefined || (isUsed && !this.hasWritten(node));
  }

  /** What makes a version of a write that changes nothing else. */
  mark({ resourceVersion }: ApiObjectEnvelope): Readonly<Record<string, string>> {
    this.#touches += 1;
    return touchMark(`${this.#doubtedVersion ?? resourceVersion}.${this.#touches}`);
  }
}
