/** What the status is made of: one moment of a running agent, taken in one turn. */
import type { Clock } from '../../mount/host.ts';
import type { DriverInstance, RefusedDriver } from '../../plugins/csi/driver/driver.ts';
import type { PodReference } from '../../plugins/volume.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { DesiredState, UnresolvedVolume } from '../../reconciler/model/desired-state.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { UnreadableRecord } from '../../reconciler/recovery/record-store.ts';
import type { AgentView } from '../node/agent-view.ts';
import type { StatisticsCollector } from '../node/statistics-collector.ts';
import type { HeldPods } from '../source/vanished-hold.ts';
import type { ClusterReport } from '../source/cluster-report.ts';
import { massRemovalIn, type DesiredObjects } from '../source/desired-objects.ts';
import type { Rejection, ReplacedDirectory, MassRemoval } from '../source/objects-source.ts';

/** Everything the agent shows of itself, taken in one turn. All `...Ms` are the host's monotonic clock but `wallMs`. */
export interface StatusFacts {
  readonly nodeName: string;
  readonly desired: DesiredState;
  /** All pods of the wish, those without volumes too. */
  readonly pods: readonly PodReference[];
  readonly rejected: readonly Rejection[];
  readonly massRemoval: MassRemoval | undefined;
  /** Undefined when this machine is no node of a cluster. */
  readonly cluster: ClusterReport | undefined;
  readonly held: HeldPods;
  readonly replaced: ReplacedDirectory | undefined;
  /** Asked for what only the PersistentVolume knows. */
  readonly persistentVolumes: DesiredObjects['volumes'];
  /** Since when a volume has been unresolved for the same reason. */
  readonly unresolvedSinceMs: (unresolved: UnresolvedVolume) => number;
  readonly statistics: Pick<StatisticsCollector, 'of' | 'ofStorage' | 'owedBy'>;
  readonly actual: ActualState;
  readonly running: readonly VolumeInFlight[];
  readonly obstacles: readonly Obstacle[];
  readonly drivers: readonly DriverInstance[];
  readonly refusedDrivers: readonly RefusedDriver[];
  /** Files below the records directory that could not be read back. */
  readonly unreadableRecords: readonly UnreadableRecord[];
  /** Calls that could not be killed and are still open; their keys stay held. */
  readonly abandonedCalls: number;
  readonly startedMs: number;
  readonly nowMs: number;
  readonly wallMs: number;
}

/** What the composition root and the process know beside the agent's own view. */
export interface Observer {
  readonly nodeName: string;
  readonly clock: Pick<Clock, 'nowMs' | 'wallMs'>;
  readonly abandonedCalls: () => number;
}

/** One moment of a running agent. */
export function observe(view: AgentView, { nodeName, clock, abandonedCalls }: Observer): StatusFacts {
  const { reconciler, drivers, desiredObjects, manifests } = view;
  return {
    nodeName,
    desired: reconciler.desired(),
    pods: [...desiredObjects.pods.values()].map(({ reference }) => reference),
    rejected: desiredObjects.rejected,
    massRemoval: massRemovalIn(desiredObjects),
    cluster: desiredObjects.reports.find(({ cluster }) => cluster !== undefined)?.cluster,
    held: manifests.held(),
    replaced: manifests.replaced(),
    persistentVolumes: desiredObjects.volumes,
    unresolvedSinceMs: view.unresolvedSinceMs,
    statistics: view.statistics,
    actual: reconciler.actual(),
    running: reconciler.running(),
    obstacles: reconciler.obstacles(),
    drivers: drivers.list(),
    refusedDrivers: drivers.refused(),
    unreadableRecords: view.unreadableRecords,
    abandonedCalls: abandonedCalls(),
    startedMs: view.startedMs,
    nowMs: clock.nowMs(),
    wallMs: clock.wallMs(),
  };
}
