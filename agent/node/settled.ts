/** Is there anything left to do? For those who wait for an agent. */
import { type ActualVolume, isOnTheGround } from '../../reconciler/model/actual-state.ts';
import type { AgentView } from './agent-view.ts';

/**
 * Everything wanted is there, nothing else is, and nothing is on its way. Says nothing of sizes, nor of what may still
 * come of calls that were given up.
 */
export function isSettled({
  reconciler,
  desiredObjects,
}: Pick<AgentView, 'reconciler' | 'desiredObjects'>): boolean {
  const desired = reconciler.desired();
  const actual = reconciler.actual();
  return (
    desiredObjects.complete &&
    reconciler.idle() &&
    reconciler.obstacles().length === 0 &&
    [...actual.values()].filter(isHere).length === desired.volumes.size &&
    [...desired.volumes.values()].every(({ spec, publications }) => {
      const there = actual.get(spec.id)?.publications;
      return [...publications.keys()].every((key) => there?.get(key)?.presence.kind === 'present');
    })
  );
}

function isHere(volume: ActualVolume): boolean {
  return !isOnTheGround(volume) || volume.quarantine !== undefined;
}
