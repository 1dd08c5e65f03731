/** Counts how it ended for pods that were kept although their manifests were gone, until all of them are decided. */
import type { PodUid } from '../../plugins/volume.ts';

/** How one event ended, which lasts from the first pod that was kept until none is. */
export interface VanishedEnd {
  readonly back: number;
  readonly takenDown: number;
}

export interface VanishedTally {
  /** Who is kept now, and who is wanted; the answer, once for each event, when nobody is kept any more. */
  note(kept: ReadonlySet<PodUid>, wanted: ReadonlyMap<PodUid, unknown>): VanishedEnd | undefined;
}

export function createVanishedTally(): VanishedTally {
  let keptBefore: ReadonlySet<PodUid> = new Set();
  const isBack = new Map<PodUid, boolean>();
  return {
    note(kept, wanted) {
      for (const pod of keptBefore) if (!kept.has(pod)) isBack.set(pod, wanted.has(pod));
      for (const pod of kept) isBack.delete(pod);
      keptBefore = new Set(kept);
      if (kept.size > 0 || isBack.size === 0) return undefined;
      const back = [...isBack.values()].filter((one) => one).length;
      const takenDown = isBack.size - back;
      isBack.clear();
      return { back, takenDown };
    },
  };
}
