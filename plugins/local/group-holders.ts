/** Whose group the files of a local volume have, so that who comes later does not take them. */
import type { PublicationCall } from '../plugin.ts';
import type { PublicationKey, PublicationSpec, VolumeId } from '../volume.ts';

/**
 * What is believed is told by the call. Only between the end of a walk and that belief is more known here: who was
 * walked for.
 */
export class GroupHolders {
  readonly #walked = new Map<VolumeId, Set<PublicationKey>>();

  /** A pod that wanted its group surely has the volume: its walk was whole. */
  isHeldByAnother({ spec, publication, companions }: PublicationCall): boolean {
    const isOther = (key: PublicationKey): boolean => key !== publication.key;
    const present = companions?.() ?? [];
    return (
      present.some((one) => isOther(one.key) && isGrouped(one)) ||
      [...(this.#walked.get(spec.id) ?? [])].some(isOther)
    );
  }

  noteWalk(volume: VolumeId, key: PublicationKey): void {
    this.#walked.set(volume, new Set(this.#walked.get(volume)).add(key));
  }

  forget(volume: VolumeId, key: PublicationKey): void {
    const walked = this.#walked.get(volume);
    walked?.delete(key);
    if (walked?.size === 0) this.#walked.delete(volume);
  }
}

/** The files are given to its group, as the kubelet does for who may write. */
export function isGrouped({ fsGroup, readOnly }: PublicationSpec): boolean {
  return fsGroup !== undefined && !readOnly;
}
