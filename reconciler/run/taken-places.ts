/** Before a place is given to a volume: is it another one's still? Who waits for it is told when it is not. */
import type { Failure } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import { isOrphan, nameOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { podOf, type PublicationKey, type VolumeId } from '../../plugins/volume.ts';
import type { BeliefView } from '../model/belief.ts';
import type { Operation } from '../model/operation.ts';

export interface TakenPlacesParts {
  readonly layout: Layout;
  readonly belief: BeliefView;
  /** Its place may be free now. */
  readonly onChanged: (volume: VolumeId) => void;
}

export interface TakenPlaces {
  /**
   * Why the volume may not be published at `path`; undefined: no other one is there. A place is called after the
   * PersistentVolume, and one that was made anew under its name is another volume. What nobody explains is not asked
   * here: it has to go for the place's sake.
   */
  why(volume: VolumeId, place: PublicationKey, path: AbsolutePath): Failure | undefined;
  ended(operation: Operation): void;
}

export function createTakenPlaces({ layout, belief, onChanged }: TakenPlacesParts): TakenPlaces {
  /** Who was told to wait. */
  const waiting = new Map<PublicationKey, VolumeId>();
  return {
    why(id, key, path) {
      waiting.delete(key);
      const other = belief.ofPod(podOf(key)).find(({ spec, publications }) => {
        const known = publications.get(key)?.spec;
        return spec.id !== id && known !== undefined && layout.mountPoint(spec, known) === path;
      });
      if (other === undefined || isOrphan(other.spec)) return undefined;
      waiting.set(key, id);
      const { spec } = other;
      const message = `the place is that of volume ${nameOf(spec)} (${spec.id}) still, until nobody has that any more`;
      return { code: 'volume-held', message, effect: 'none', blocker: spec.id };
    },
    ended(operation) {
      if (operation.kind !== 'unpublish') return;
      const { volume, publication: key } = operation;
      const who = waiting.get(key);
      if (who === undefined || belief.volumes.get(volume)?.publications.has(key) === true) return;
      waiting.delete(key);
      onChanged(who);
    },
  };
}
