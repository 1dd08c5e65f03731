/** The node in a few numbers, counted from the rest of the document. Pure. */
import type { PodStatus, StatusDocument } from './status-document.ts';
import type { VolumeState, VolumeStatus } from './volume-status.ts';
import type { StatusFacts } from './status-facts.ts';
import { countOverdue } from './status-step.ts';

export function summaryOf(
  view: StatusFacts,
  pods: readonly PodStatus[],
  volumes: readonly VolumeStatus[],
): StatusDocument['summary'] {
  const counts = new Map<VolumeState, number>();
  for (const pod of pods)
    for (const { state } of pod.volumes) counts.set(state, (counts.get(state) ?? 0) + 1);
  const count = (state: VolumeState): number => counts.get(state) ?? 0;
  return {
    pods: pods.length,
    podsWanted: pods.filter(({ wanted }) => wanted).length,
    podsReady: pods.filter(({ ready }) => ready).length,
    volumes: volumes.length,
    mounted: count('mounted'),
    mounting: count('mounting'),
    waiting: count('waiting'),
    blocked: count('blocked'),
    unmounting: count('unmounting'),
    kept: count('kept'),
    operationsRunning: view.running.filter(({ phase }) => phase === 'running').length,
    operationsQueued: view.running.filter(({ phase }) => phase === 'queued').length,
    operationsOverdue: countOverdue(view.obstacles),
    driversRegistered: view.drivers.length,
    driversRefused: view.refusedDrivers.length,
    objectsRejected: view.rejected.length,
    sourcesUnknown: view.desired.unknownOrigins.size,
    unreadableRecords: view.unreadableRecords.length,
    abandonedCalls: view.abandonedCalls,
    quarantined: volumes.filter(({ quarantine }) => quarantine !== null).length,
    unanswered: volumes.filter(({ question }) => (question?.unansweredSince ?? null) !== null).length,
    unhealthy: volumes.filter(({ health }) => health !== null && health.length > 0).length,
    strangers: volumes.filter(({ stranger }) => stranger).length,
  };
}
