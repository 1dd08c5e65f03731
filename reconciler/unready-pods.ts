/** The pods that came in this life of the agent and never had all of their volumes: nobody has started them. */
import type { Failure } from '../mount/failure.ts';
import type { PodUid, PublicationKey, VolumeId } from '../plugins/volume.ts';
import type { Belief } from './model/belief.ts';
import { type DesiredState, isPodWanted, isUnresolved, placesOf, wantedAt } from './model/desired-state.ts';
import { withoutUnready } from './model/sickness.ts';

export interface UnreadyPodsParts {
  readonly belief: Belief;
  readonly desired: () => DesiredState;
  readonly isBusy: (volume: VolumeId) => boolean;
  /** Why the pod may have something on the disk of which nobody knows. */
  readonly whyUnknown: (pod: PodUid) => Failure | undefined;
}

export interface UnreadyPods {
  /** Before the volume is planned: if it is dead, these pods keep nothing of it. */
  visit(volume: VolumeId): void;
  /** Before another wish counts: who has all that was wanted until now may run, and who is gone may come anew. */
  wishEnds(): void;
}

/**
 * Unready is only who had nothing when this life saw it first, and until it has been told of all at once. What a life
 * before did is not known: what is in no record a running pod may have had, and the wish may have grown since. Whatever
 * takes a place away, or wishes for more, comes after a look here, so no moment is missed in which a pod had all.
 */
export function createUnreadyPods({ belief, desired, isBusy, whyUnknown }: UnreadyPodsParts): UnreadyPods {
  /** An unready pod has the places that were in doubt at the last look: with them it has not been ready since. */
  const seen = new Map<PodUid, 'may-run' | ReadonlySet<PublicationKey>>();

  function judge(pod: PodUid): void {
    const before = seen.get(pod);
    if (before === 'may-run') return;
    const isUnready = before === undefined ? isNew(pod) : !hasAll(pod, before);
    seen.set(pod, isUnready ? doubtedOf(pod) : 'may-run');
  }

  function doubtedOf(pod: PodUid): ReadonlySet<PublicationKey> {
    const places = belief.ofPod(pod).flatMap(({ publications }) => [...publications.values()]);
    const ofPod = places.filter(({ spec, presence }) => spec.pod.uid === pod && presence.kind === 'unsure');
    return new Set(ofPod.map(({ spec }) => spec.key));
  }

  function isNew(pod: PodUid): boolean {
    return belief.ofPod(pod).length === 0 && whyUnknown(pod) === undefined;
  }

  function hasAll(pod: PodUid, doubted: ReadonlySet<PublicationKey>): boolean {
    const { volumes, unresolved } = desired();
    const places = placesOf(volumes, pod);
    // Whom nobody wants nobody starts.
    return places.length > 0 && !isUnresolved(unresolved, pod) && places.every((key) => isTold(key, doubted));
  }

  /**
   * In doubt it counts as told, since the pod may have been ready a moment ago, but not while that doubt is as old as
   * the last look, when the pod lacked something. What goes anyway no pod is told of.
   */
  function isTold(key: PublicationKey, doubted: ReadonlySet<PublicationKey>): boolean {
    return wantedAt(desired().volumes, key).some(({ spec }) => {
      const place = belief.volumes.get(spec.id)?.publications.get(key);
      if (place === undefined || place.untold === true || place.ended === true) return false;
      return place.presence.kind === 'present' || !doubted.has(key);
    });
  }

  function forgetGone(): void {
    const { volumes, frozenPods, heldPods, unknownOrigins } = desired();
    if (unknownOrigins.size > 0) return;
    for (const pod of seen.keys()) {
      const isKept = isPodWanted(volumes, pod) || frozenPods.has(pod) || heldPods?.has(pod) === true;
      if (!isKept && belief.ofPod(pod).length === 0) seen.delete(pod);
    }
  }

  return {
    visit(id) {
      const { volumes, frozenPods } = desired();
      const wanted = volumes.get(id)?.publications;
      if (wanted === undefined) return;
      for (const { spec } of wanted.values()) judge(spec.pod.uid);
      const known = belief.volumes.get(id);
      if (known === undefined || isBusy(id)) return;
      const left = withoutUnready(known, ({ key, pod }) => {
        return wanted.has(key) && !frozenPods.has(pod.uid) && typeof seen.get(pod.uid) === 'object';
      });
      if (left !== known) belief.observe(left);
    },
    wishEnds() {
      forgetGone();
      for (const [pod, now] of seen) if (now !== 'may-run') judge(pod);
    },
  };
}
