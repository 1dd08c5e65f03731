/** What a source may ask about this node, told by what the agent knows of it at that moment. */
import { type Ground, refuseStrangerOver } from '../../mount/ground.ts';
import type { Host } from '../../mount/host.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import type { NodeSight } from '../source/objects-source.ts';
import type { DesiredFeed } from './desired-feed.ts';

export interface NodeSightParts {
  readonly host: Pick<Host, 'mountPlaceOf'>;
  readonly ground: Pick<Ground, 'refuseStranger'>;
  readonly feed: Pick<DesiredFeed, 'source' | 'heldPods'>;
  readonly reconciler: Pick<Reconciler, 'actual'>;
  readonly unreadableRecords: number;
  /** The layout on disk was read, or there is none. */
  readonly isDiskRead: () => boolean;
}

export function createNodeSight(parts: NodeSightParts): NodeSight {
  const { feed, reconciler, unreadableRecords, isDiskRead } = parts;
  return {
    stake() {
      const known = feed.source.current().pods.size + reconciler.actual().size + unreadableRecords;
      if (known > 0) return 'something';
      return isDiskRead() ? 'nothing' : 'unknown';
    },
    missing: feed.heldPods,
    refuseStranger: (path) => refuseStrangerOver(parts, path),
  };
}
