/** Before a cluster's word that pods are gone is believed: most of them at once may be a mistake (AP-12). */
import type { PodUid } from '../../../plugins/volume.ts';
import type { MassRemoval } from '../objects-source.ts';

/** What was heard; host clock. */
export interface PodListing {
  readonly said: ReadonlySet<PodUid>;
  /** When the last consistent list was asked for. */
  readonly listedMs: number;
  /** Pods that are gone because a list had them no more, without an event that says so. */
  readonly droppedByList: ReadonlySet<PodUid>;
}

/** Whom to believe; host clock. */
export interface PodBelief {
  /** Those that are said, and those whose leaving is not believed yet. */
  readonly pods: ReadonlySet<PodUid>;
  /** Undefined unless the leaving of pods is held back because it is of most of them. */
  readonly massRemoval: MassRemoval | undefined;
  /** When to look again, though nothing was heard; undefined where a list is what is needed. */
  readonly againMs: number | undefined;
  /** Another consistent list is needed now. */
  readonly isListNeeded: boolean;
}

export interface PodShrinkGuard {
  look(listing: PodListing, nowMs: number): PodBelief;
}

/** Deletions this close together are one removal. */
const BURST_MS = 1_000;
const CONFIRM_MS = 10_000;
const MOST_PODS_MIN = 4;

interface Leaving {
  readonly sinceMs: number;
  readonly isByList: boolean;
}

/**
 * Guarantees: a removal of at least four pods and more than half of all, and one by a list that leaves no pod, are
 * believed when a consistent list that was asked for 10 s later says the same, whoever is heard of before that; any
 * other removal after a second.
 */
export function createPodShrinkGuard(): PodShrinkGuard {
  const believed = new Set<PodUid>();
  const leaving = new Map<PodUid, Leaving>();
  /** Who is heard of meanwhile says nothing of those that are held. */
  let isHeld = false;

  function note({ said, droppedByList }: PodListing, nowMs: number): void {
    for (const uid of said) {
      believed.add(uid);
      leaving.delete(uid);
    }
    for (const uid of believed) {
      if (said.has(uid) || leaving.has(uid)) continue;
      leaving.set(uid, { sinceMs: nowMs, isByList: droppedByList.has(uid) });
    }
  }

  function believeGone(uids: Iterable<PodUid>): void {
    for (const uid of [...uids]) {
      believed.delete(uid);
      leaving.delete(uid);
    }
  }

  return {
    look(listing, nowMs) {
      note(listing, nowMs);
      const isMost = leaving.size >= MOST_PODS_MIN && leaving.size * 2 > believed.size;
      const isEmptied = listing.said.size === 0 && [...leaving.values()].some(({ isByList }) => isByList);
      isHeld = leaving.size > 0 && (isHeld || isMost || isEmptied);
      if (!isHeld) {
        believeGone(
          [...leaving].filter(([, { sinceMs }]) => nowMs - sinceMs >= BURST_MS).map(([uid]) => uid),
        );
        const rest = [...leaving.values()].map(({ sinceMs }) => sinceMs + BURST_MS);
        const againMs = rest.length === 0 ? undefined : Math.min(...rest);
        return { pods: new Set(believed), massRemoval: undefined, againMs, isListNeeded: false };
      }
      believeGone(
        [...leaving]
          .filter(([, { sinceMs }]) => listing.listedMs >= sinceMs + CONFIRM_MS)
          .map(([uid]) => uid),
      );
      isHeld = leaving.size > 0;
      if (!isHeld)
        return { pods: new Set(believed), massRemoval: undefined, againMs: undefined, isListNeeded: false };
      const times = [...leaving.values()].map(({ sinceMs }) => sinceMs);
      const [sinceMs, untilMs] = [Math.min(...times), Math.max(...times) + CONFIRM_MS];
      const massRemoval = { pods: new Set(leaving.keys()), sinceMs, untilMs };
      const isListNeeded = nowMs >= sinceMs + CONFIRM_MS;
      const againMs = isListNeeded ? undefined : sinceMs + CONFIRM_MS;
      return { pods: new Set(believed), massRemoval, againMs, isListNeeded };
    },
  };
}
