/** Whose group the files of a shared volume have, so that who comes later does not take them. */
import { done, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import { createTurns } from '../../mount/process/turns.ts';
import type { PublicationCall } from '../plugin.ts';
import { giveToGroup, type MountedPlace } from '../pod/group-ownership.ts';
import type { PublicationKey, PublicationSpec, VolumeId, VolumeSpec } from '../volume.ts';

/**
 * What is believed is told by the call. Only between the end of a walk and that belief is more known here: who was
 * walked for.
 */
export class GroupHolders {
  readonly #host: Host;
  readonly #walked = new Map<VolumeId, Set<PublicationKey>>();
  readonly #inTurn = createTurns();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Who comes waits until the walk for those before him has ended: only then all files are one group's. */
  give(place: MountedPlace, call: PublicationCall): Promise<Result<void>> {
    const { spec, publication, progress, stillWanted, refresh } = call;
    const { fsGroup, key } = publication;
    return this.#inTurn(spec.id, async () => {
      if (fsGroup === undefined || !isGrouped(publication) || isMountedReadOnly(spec)) return done;
      if (refresh || this.#isHeldByAnother(call)) return done;
      const request = { ...place, volume: spec.id, fsGroup, readOnly: false, progress, stillWanted };
      const given = await giveToGroup(this.#host, request);
      if (given.ok) this.#noteWalk(spec.id, key);
      return given;
    });
  }

  /** A pod that wanted its group surely has the volume: its walk was whole. */
  #isHeldByAnother({ spec, publication, companions }: PublicationCall): boolean {
    const isOther = (key: PublicationKey): boolean => key !== publication.key;
    const present = companions?.() ?? [];
    return (
      present.some((one) => isOther(one.key) && isGrouped(one)) ||
      [...(this.#walked.get(spec.id) ?? [])].some(isOther)
    );
  }

  #noteWalk(volume: VolumeId, key: PublicationKey): void {
    this.#walked.set(volume, new Set(this.#walked.get(volume)).add(key));
  }

  forget(volume: VolumeId, key: PublicationKey): void {
    const walked = this.#walked.get(volume);
    walked?.delete(key);
    if (walked?.size === 0) this.#walked.delete(volume);
  }
}

/** No walk can change anything then; in the kubelet it is tried, and what refuses it is only logged. */
function isMountedReadOnly(spec: VolumeSpec): boolean {
  if (spec.kind !== 'local' && spec.kind !== 'iscsi') return false;
  return spec.mountOptions.includes('ro') || (spec.kind === 'iscsi' && spec.readOnly);
}

/** The files are given to its group, as the kubelet does for who may write. */
function isGrouped({ fsGroup, readOnly }: PublicationSpec): boolean {
  return fsGroup !== undefined && !readOnly;
}
