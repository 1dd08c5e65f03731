/** What the metrics are made of: one moment of a running agent, taken in one turn. */
import type { Clock } from '../../mount/host.ts';
import type { Failure } from '../../mount/failure.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';
import type { DesiredState, DesiredVolume, UnresolvedVolume } from '../../reconciler/model/desired-state.ts';
import type { Obstacle } from '../../reconciler/model/obstacle.ts';
import type { VolumeInFlight } from '../../reconciler/run/volume-operation.ts';
import type { AgentView } from '../node/agent-view.ts';
import type { StatisticsCollector } from '../node/statistics-collector.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';

/** What the numbers are made of; all of it can be had from AgentView. Secrets are no part of it. */
export interface MetricsFacts {
  readonly desired: {
    readonly volumes: ReadonlyMap<VolumeId, Pick<DesiredVolume, 'spec' | 'publications'>>;
    readonly unresolved: readonly (Pick<UnresolvedVolume, 'spec'> & {
      readonly failure: Pick<Failure, 'code'>;
    })[];
  } & Pick<DesiredState, 'complete'>;
  readonly actual: ActualState;
  readonly running: readonly Pick<VolumeInFlight, 'phase'>[];
  readonly obstacles: readonly Pick<Obstacle, 'volume' | 'publication' | 'kind' | 'code' | 'overdue'>[];
  /** How many were found to stand at the start. */
  readonly recoveredVolumes: number;
  /** How many records could not be read then. */
  readonly unreadableRecords: number;
  /** Names of the drivers that are registered. */
  readonly drivers: readonly string[];
  /** By which drivers register, or which are theirs; there are no more than the registry looks at. */
  readonly sockets: readonly { readonly path: string; readonly serves: boolean }[];
  readonly desiredObjects: Pick<DesiredObjects, 'claims' | 'volumes'>;
  readonly statistics: Pick<StatisticsCollector, 'of' | 'ofStorage' | 'owedBy'>;
  /** They are in the text of the metrics already. */
  readonly operationTimes: string;
  /** The host's clock. */
  readonly nowMs: number;
  /** For how long the Node of this machine has not been Ready; undefined while it is, and where there is none. */
  readonly notReadyForMs: number | undefined;
  /** Passes of the reconciler since the start. */
  readonly passes: number;
  /** Milliseconds since the epoch; the same as long as nobody sets the clock. */
  readonly startedWallMs: number;
}

const SECOND_MS = 1_000;

/** One moment of a running agent. */
export function observeForMetrics(view: AgentView, clock: Pick<Clock, 'nowMs' | 'wallMs'>): MetricsFacts {
  const { reconciler, drivers, desiredObjects, statistics } = view;
  return {
    desired: reconciler.desired(),
    actual: reconciler.actual(),
    running: reconciler.running(),
    obstacles: reconciler.obstacles(),
    recoveredVolumes: view.recoveredVolumes,
    unreadableRecords: view.unreadableRecords.length,
    drivers: drivers.list().map(({ name }) => name),
    sockets: drivers.sockets(),
    desiredObjects,
    statistics,
    operationTimes: view.operationTimes.text(),
    nowMs: clock.nowMs(),
    notReadyForMs: notReadyForMs(desiredObjects, clock),
    passes: reconciler.passes(),
    startedWallMs: startedWallMs(view, clock),
  };
}

/**
 * What the clock of the wall showed then, and whole seconds more or less where it was set since. Two clocks never tell
 * one moment, and a start that moves is a restart to whoever counts its changes.
 */
function startedWallMs(
  { startedMs, startedWallMs: shownMs }: Pick<AgentView, 'startedMs' | 'startedWallMs'>,
  clock: Pick<Clock, 'nowMs' | 'wallMs'>,
): number {
  const byNowMs = clock.wallMs() - (clock.nowMs() - startedMs);
  return shownMs + Math.round((byNowMs - shownMs) / SECOND_MS) * SECOND_MS;
}

/** By the cluster's word, as far as it says since when: clocks that differ make it too long or too short. */
function notReadyForMs(
  { reports }: Pick<DesiredObjects, 'reports'>,
  clock: Pick<Clock, 'nowMs' | 'wallMs'>,
): number | undefined {
  const detachClock = reports.find(({ cluster }) => cluster !== undefined)?.cluster?.detachClock;
  if (detachClock === undefined) return undefined;
  const { sinceWallMs, seenMs } = detachClock;
  return Math.max(0, sinceWallMs === undefined ? clock.nowMs() - seenMs : clock.wallMs() - sinceWallMs);
}
