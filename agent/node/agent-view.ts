/** What the agent shows of itself. */
import type { Layout } from '../../plugins/layout/layout.ts';
import type { RunningDriverRegistry } from '../../plugins/csi/driver/driver-registry.ts';
import type { UnreadableRecord } from '../../reconciler/recovery/record-store.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import type { UnresolvedBook } from '../resolve/unresolved-book.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';
import type { ManifestKeeper } from '../source/manifest-keeper.ts';
import type { OperationTimes } from '../timing/operation-times.ts';
import type { StatisticsCollector } from './statistics-collector.ts';

/** All there is to see, as it is at this moment; status and explain are made from it. */
export interface AgentView {
  readonly layout: Layout;
  /** What is desired is made of it. */
  readonly desiredObjects: DesiredObjects;
  readonly reconciler: Pick<
    Reconciler,
    | 'actual'
    | 'desired'
    | 'obstacles'
    | 'running'
    | 'planOf'
    | 'idle'
    | 'passes'
    | 'quarantine'
    | 'endQuarantine'
    | 'released'
    | 'forceRelease'
  >;
  readonly manifests: ManifestKeeper;
  readonly drivers: Pick<RunningDriverRegistry, 'list' | 'refused' | 'sockets'>;
  /** That were found to stand at the start. */
  readonly recoveredVolumes: number;
  readonly unreadableRecords: readonly UnreadableRecord[];
  readonly statistics: Pick<StatisticsCollector, 'of' | 'ofStorage' | 'owedBy'>;
  readonly operationTimes: Pick<OperationTimes, 'text'>;
  readonly unresolvedSinceMs: UnresolvedBook['sinceMs'];
  /** One moment by both clocks. */
  readonly startedMs: number;
  readonly startedWallMs: number;
}
