/** Volumes whose attachments were not there when nobody could begin to take them away any more. */
import type { ApiObjectEnvelope } from '../../kubernetes/api/api-object.ts';
import { compareResourceVersions } from '../../kubernetes/api/resource-version.ts';
import { nodeVolumes } from '../../kubernetes/objects/attachment-sight.ts';

interface Proof {
  readonly nodeUid: string;
  /** The version of the Node that had the volume in use. */
  readonly resourceVersion: string;
  /** Host clock: when the attachment was asked for that was not there; undefined while that is not known. */
  absentMs: number | undefined;
}

/**
 * An attachment that is there now, and was not after the use of its volume was acknowledged, was made since. Whoever
 * takes it away looks first at what the Node has in use, as the attach/detach controller does (D-131), and finds it.
 * A proof holds as long as the volume is known to have been in use all the while, until the Node lists it.
 */
export class AbsenceProofs {
  readonly #proofs = new Map<string, Proof>();

  /** The use was acknowledged by this Node; the attachment is asked for next. */
  begin(name: string, node: ApiObjectEnvelope | undefined): void {
    if (this.#proofs.has(name) || node === undefined || !nodeVolumes(node.value).inUse.includes(name)) return;
    const { uid, resourceVersion } = node;
    this.#proofs.set(name, { nodeUid: uid, resourceVersion, absentMs: undefined });
  }

  /** Asked for at `askedMs`, after `begin`, it was not there. */
  noteAbsent(name: string, askedMs: number): void {
    const proof = this.#proofs.get(name);
    if (proof !== undefined) proof.absentMs ??= askedMs;
  }

  /** `answeredMs`: when the attachment was asked for that is there. */
  holds(name: string, answeredMs: number): boolean {
    const absentMs = this.#proofs.get(name)?.absentMs;
    return absentMs !== undefined && answeredMs > absentMs;
  }

  /** Another state of the Node; with `isAfterGap` there were others before it, of which nothing is known. */
  look(node: ApiObjectEnvelope | undefined, isAfterGap: boolean): void {
    if (this.#proofs.size === 0) return;
    if (node === undefined || isAfterGap) return this.#proofs.clear();
    const { inUse, attached } = nodeVolumes(node.value);
    const used = new Set(inUse);
    for (const [name, { nodeUid, resourceVersion }] of this.#proofs) {
      const isSince = compareResourceVersions(node.resourceVersion, resourceVersion) >= 0;
      const isOver = node.uid !== nodeUid || (isSince && (!used.has(name) || attached.has(name)));
      if (isOver) this.#proofs.delete(name);
    }
  }
}
