/** How far this node follows its cluster, and what the cluster holds of it: for the status and for people. */
import type { PodUid } from '../../plugins/volume.ts';

export interface ClusterReport {
  /** `https://10.0.0.1:6443`. */
  readonly server: string;
  /**
   * `connecting`: not everything was read yet. `following`: changes are heard as they happen. `broken`: they are not,
   * and what was heard last counts.
   */
  readonly state: 'connecting' | 'following' | 'broken';
  /** Host clock. */
  readonly sinceMs: number;
  /** Why it is not followed; empty when it is. */
  readonly message: string;
  /** That are bound to this node, by the server's word. */
  readonly pods: number;
  /** Undefined while the Node is Ready, and while nothing is known of it. */
  readonly detachClock: DetachReport | undefined;
}

/** What the attach/detach controller waits for before it takes volumes from a node that is not Ready. */
export interface DetachReport {
  /** What the Node's condition Ready says; `missing`: the Node has none. */
  readonly ready: 'False' | 'Unknown' | 'missing';
  /** Since when, by the cluster's clock, in ms since the epoch; undefined when it does not say. */
  readonly sinceWallMs: number | undefined;
  /** Host clock: since when this agent has seen it. */
  readonly seenMs: number;
  /** The Node has the taint `node.kubernetes.io/out-of-service` (KEP-2268): nothing waits for six minutes. */
  readonly outOfService: boolean;
  /** One that is not in it has had no object for longer than the controller waits, or had none before this life. */
  readonly pods: ReadonlyMap<PodUid, PodDemand>;
}

/**
 * Why a pod still counts for its volumes. `there`: it is marked for deletion from `markedFromMs` on, by the cluster's
 * clock; undefined: nothing on the Node says so yet. `staying`: it tolerates all that the Node is tainted with.
 * `leaving`: it is marked, and its object is there. `ended`: it counts no more, since then by the host's clock.
 */
export type PodDemand =
  | { readonly kind: 'there'; readonly markedFromMs: number | undefined }
  | { readonly kind: 'staying' | 'leaving' }
  | { readonly kind: 'ended'; readonly sinceMs: number };

/** For so long the attach/detach controller waits, once no pod counts any more, before it detaches by force. */
export const FORCE_AFTER_MS = 360_000;
