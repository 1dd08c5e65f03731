/**
 * The shape of the status document, version mooring/v1, as docs/API.md describes it: every key is always there, what
 * is not known is null. Keys may be added within v1; none changes its meaning or goes.
 */
import type { HealthStatus, Reason, RungState, VolumeState, VolumeStatus } from './volume-status.ts';

export interface PodVolumeStatus {
  /** PersistentVolume name, or the pod's own volume name. */
  readonly name: string;
  readonly id: string | null;
  readonly plugin: string | null;
  readonly driver: string | null;
  readonly wanted: boolean;
  readonly state: VolumeState;
  readonly rungs: { readonly attached: RungState; readonly staged: RungState; readonly published: RungState };
  readonly readOnly: boolean;
  /** Where the pod's containers find it; of a block volume the link to the device. */
  readonly path: string | null;
  /** The image that what starts the containers has to mount: it has no path. Null: another kind of volume. */
  readonly image: string | null;
  /** The supplemental group that the pod must run with to use it (annotation of the PersistentVolume). */
  readonly supplementalGid: number | null;
  /** The manifest file that asked for it; null: it was found on disk. */
  readonly origin: string | null;
  /** Null when nothing is in the way. */
  readonly reason: Reason | null;
}

export interface PodStatus {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** False: gone from the wish, its volumes are on their way down. */
  readonly wanted: boolean;
  /** All its volumes are mounted. */
  readonly ready: boolean;
  readonly volumes: readonly PodVolumeStatus[];
}

export interface DriverStatus {
  /** Null: refused before it said its name. */
  readonly name: string | null;
  readonly state: 'registered' | 'refused';
  readonly version: string | null;
  readonly nodeId: string | null;
  readonly socket: string;
  readonly registeredAt: string | null;
  /** Null: no limit, or not known. */
  readonly volumesMax: number | null;
  /** CSI's names; `unknown(99)` for a number this build does not know. `controller` null: it has no such service. */
  readonly capabilities: {
    readonly node: readonly string[];
    readonly controller: readonly string[] | null;
  } | null;
  /** Volumes of this driver the node has something of. */
  readonly volumes: number;
  /** Volumes, and the storage behind it, about which it was asked and has not answered. */
  readonly unanswered: number;
  /** How the storage behind it is, as it says. Null: not asked yet, or it cannot say. Empty: all is well. */
  readonly health: readonly HealthStatus[] | null;
  readonly reason: string | null;
  /** Failure code of the reason; null where nothing failed. */
  readonly code: string | null;
}

/** How far this node follows the cluster that it belongs to. */
export interface ClusterStatus {
  /** `https://10.0.0.1:6443`. */
  readonly server: string;
  /** It is what `ClusterReport.state` says. */
  readonly state: 'connecting' | 'following' | 'broken';
  /** Since when it is so. */
  readonly since: string;
  /** Why it is not followed; null when it is. */
  readonly message: string | null;
  /** That are bound to this node, by the server's word. */
  readonly pods: number;
  /** Null while the Node is Ready, and while nothing is known of it. */
  readonly detachClock: DetachClockStatus | null;
}

/** What the attach/detach controller waits for before it takes volumes by force from a node that is not Ready. */
export interface DetachClockStatus {
  /** What the Node's condition Ready says; `missing`: it has none. */
  readonly ready: 'False' | 'Unknown' | 'missing';
  /** Since when, by the cluster's clock. Null: it does not say. */
  readonly since: string | null;
  /** The Node has the taint `node.kubernetes.io/out-of-service`: nothing waits for six minutes. */
  readonly outOfService: boolean;
  /** One that is not among them has ended long ago, or before this agent started. */
  readonly pods: readonly {
    readonly uid: string;
    /** As `PodDemand`. */
    readonly state: 'there' | 'staying' | 'leaving' | 'ended';
    /** When it is marked for deletion; null: not told, or no matter any more. */
    readonly markedFrom: string | null;
    /** Since when it counts no more; null: it does. */
    readonly endedSince: string | null;
  }[];
}

/** Pods that are kept for some seconds although their manifests are gone, because it may be a mistake. */
export interface MassRemovalStatus {
  /** Uids. */
  readonly pods: readonly string[];
  readonly since: string;
  /** When it is believed, unless they come back; 0: with the next listing. */
  readonly believedInMs: number;
}

/** Pods whose manifests vanished while nobody looked: kept for some minutes, because it may be a mistake. */
export interface VanishedStatus {
  /** Uids. */
  readonly pods: readonly string[];
  /** When the first of them vanished. */
  readonly since: string;
  /** When the last of them is believed to be gone, unless it comes back. */
  readonly believedInMs: number;
}

/** Another directory in the place of that of the manifests: nothing of it is read, and nothing is taken down. */
export interface ReplacedStatus {
  readonly directory: string;
  /** Told to people. */
  readonly was: string;
  readonly is: string;
  /** What `POST /v1/manifests` takes as `accept`. */
  readonly sight: string;
  readonly since: string;
}

export interface StatusDocument {
  readonly apiVersion: 'mooring/v1';
  readonly kind: 'Status';
  readonly revision: string;
  readonly agent: {
    readonly node: string;
    readonly version: string;
    readonly commit: string;
    readonly root: string;
    readonly startedAt: string;
    readonly now: string;
    readonly uptimeMs: number;
    /** False until every source has been listed once: until then nothing is torn down. */
    readonly complete: boolean;
  };
  readonly summary: {
    readonly pods: number;
    readonly podsWanted: number;
    readonly podsReady: number;
    /** Volumes; the six states below count (pod, volume) pairs. */
    readonly volumes: number;
    readonly mounted: number;
    readonly mounting: number;
    readonly waiting: number;
    readonly blocked: number;
    readonly unmounting: number;
    readonly kept: number;
    readonly operationsRunning: number;
    readonly operationsQueued: number;
    /** Running ones whose step takes longer than twice its deadline. */
    readonly operationsOverdue: number;
    readonly driversRegistered: number;
    readonly driversRefused: number;
    readonly objectsRejected: number;
    readonly sourcesUnknown: number;
    readonly unreadableRecords: number;
    readonly abandonedCalls: number;
    /** Volumes in quarantine, volumes of which a driver says that something is wrong, volumes found on disk. */
    readonly quarantined: number;
    readonly unhealthy: number;
    /** Volumes whose driver has not answered how they are. */
    readonly unanswered: number;
    readonly strangers: number;
  };
  readonly pods: readonly PodStatus[];
  readonly volumes: readonly VolumeStatus[];
  /** Ids of the volumes that were found on disk and that nobody wants: they are taken down. */
  readonly strangers: readonly string[];
  readonly drivers: readonly DriverStatus[];
  readonly sources: {
    readonly rejected: readonly {
      /** The file, and after `#` the document in it counted from 1. */
      readonly origin: string;
      /** `Pod default/web`, as far as it could be read. */
      readonly subject: string | null;
      readonly field: string | null;
      readonly message: string;
    }[];
    /** Sources that cannot be read now; what came from them is kept as it is. */
    readonly unknown: readonly string[];
    /** Too many pods vanished from the manifests at once to be believed; null when that is not so. */
    readonly vanishing: MassRemovalStatus | null;
    /** The pods whose manifests went while no agent ran, or when the directory was another one; null without any. */
    readonly vanished: VanishedStatus | null;
    /** Null: this machine is no node of a cluster. */
    readonly cluster: ClusterStatus | null;
    /** Null: the manifests are read from the directory that they were always read from. */
    readonly replaced: ReplacedStatus | null;
  };
  /** Records of volumes that could not be read back; their volumes are found by the mounts they left. */
  readonly unreadableRecords: readonly {
    readonly file: string;
    readonly code: string;
    readonly message: string;
  }[];
}
