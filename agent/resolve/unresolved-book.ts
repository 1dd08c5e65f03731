/** Remembers since when each volume that cannot be resolved has been so for the same reason: the wish does not say. */
import type { FailureCode } from '../../mount/failure.ts';
import type { Clock } from '../../mount/host.ts';
import type { UnresolvedVolume } from '../../reconciler/model/desired-state.ts';

export interface UnresolvedBook {
  /** All there are now; whoever is not among them is forgotten. */
  note(unresolved: readonly UnresolvedVolume[]): void;
  /** Host clock; for one that was never noted, now. */
  sinceMs(unresolved: UnresolvedVolume): number;
}

export function createUnresolvedBook(clock: Pick<Clock, 'nowMs'>): UnresolvedBook {
  let entries: ReadonlyMap<string, { readonly code: FailureCode; readonly sinceMs: number }> = new Map();
  return {
    note(unresolved) {
      const nowMs = clock.nowMs();
      const next = new Map<string, { readonly code: FailureCode; readonly sinceMs: number }>();
      for (const one of unresolved) {
        const { code } = one.failure;
        const before = entries.get(keyOf(one));
        next.set(keyOf(one), before?.code === code ? before : { code, sinceMs: nowMs });
      }
      entries = next;
    },
    sinceMs: (one) => entries.get(keyOf(one))?.sinceMs ?? clock.nowMs(),
  };
}

function keyOf({ pod, volumeName }: UnresolvedVolume): string {
  return `${pod.uid}/${volumeName}`;
}
