/** Is this machine a node of a cluster, and what goes wrong with that cluster. From a stream of its own. */
import { NO_ABSENCE } from '../absence.ts';
import type { Random } from '../random.ts';
import type { Plan } from '../swarm.ts';
import { type ApiFaults, drawApiFaults, NO_API_FAULTS } from './api-faults.ts';

export interface ClusterPlan {
  /** The pods of this machine are in an API server; its manifests are none. */
  readonly isOn: boolean;
  readonly faults: ApiFaults;
  /** What the node may see of claims, volumes and attachments: single ones that its pods lead to, or all. */
  readonly reach: 'get' | 'watch';
  /** Probability that a pod that goes is deleted without waiting for its containers. */
  readonly forced: number;
  /** Mean time between two troubles of the server; 0: none. */
  readonly troubleEveryMs: number;
  /** Mean time between two troubles of the attachments; 0: none. */
  readonly attachmentTroubleEveryMs: number;
  /** Mean time between two changes of what an attachment says of its volume, where the node watches it; 0: none. */
  readonly contextChangesEveryMs: number;
  /** Mean time between two deletions of a claim, whether pods use it or not; 0: none. */
  readonly claimsDeletedEveryMs: number;
  /** Mean time between two deletions of the Node, and between two moments when it is taken for dead; 0: none. */
  readonly nodeDeletedEveryMs: number;
  readonly nodeDeadEveryMs: number;
  /** Mean time between two backups that are restored, each in versions of long before; 0: none. */
  readonly restoredEveryMs: number;
  /** Whoever grows volumes says in the claim how far he is. */
  readonly resizerHasStatuses: boolean;
  /** The server's tokens live no longer, in ms, while anything goes wrong. */
  readonly tokenLifeMsMax: number;
  /** Probability that the agent dies at a write to the server: before it, or after its answer. */
  readonly crashAtWrite: number;
  /** How far the attach/detach controller is behind, and how long an attacher takes. */
  readonly controllerLagMsMax: number;
  readonly attachMsMax: number;
}

export const NO_CLUSTER: ClusterPlan = {
  isOn: false,
  faults: NO_API_FAULTS,
  reach: 'get',
  forced: 0,
  troubleEveryMs: 0,
  attachmentTroubleEveryMs: 0,
  contextChangesEveryMs: 0,
  claimsDeletedEveryMs: 0,
  nodeDeletedEveryMs: 0,
  nodeDeadEveryMs: 0,
  restoredEveryMs: 0,
  resizerHasStatuses: true,
  tokenLifeMsMax: Number.POSITIVE_INFINITY,
  crashAtWrite: 0,
  controllerLagMsMax: 0,
  attachMsMax: 0,
};

const SHARE = 0.15;

export function drawCluster(random: Random): ClusterPlan {
  const isOn = random.chance(SHARE);
  const hasFaults = random.chance(0.7);
  const faults = drawApiFaults(random);
  return {
    isOn,
    faults: hasFaults ? faults : NO_API_FAULTS,
    reach: random.pick(['get', 'watch']),
    forced: random.pick([0, 0.5, 1]),
    troubleEveryMs: random.pick([0, 4_000, 15_000]),
    attachmentTroubleEveryMs: random.chance(0.3) ? random.pick([5_000, 20_000]) : 0,
    crashAtWrite: random.chance(0.4) ? random.pick([0.02, 0.1]) : 0,
    controllerLagMsMax: random.pick([20, 500, 4_000]),
    attachMsMax: random.pick([50, 2_000, 20_000]),
    claimsDeletedEveryMs: random.chance(0.3) ? random.pick([3_000, 10_000]) : 0,
    resizerHasStatuses: random.chance(0.7),
    nodeDeletedEveryMs: random.chance(0.3) ? random.pick([5_000, 20_000]) : 0,
    nodeDeadEveryMs: random.chance(0.3) ? random.pick([5_000, 20_000]) : 0,
    tokenLifeMsMax: random.pick([Number.POSITIVE_INFINITY, 60_000, 10_000]),
    contextChangesEveryMs: random.chance(0.3) ? random.pick([5_000, 20_000]) : 0,
    restoredEveryMs: 0,
  };
}

/**
 * Where the objects come from the server, no file of them is damaged or gone, none is there twice, and what a cluster
 * never changes of one stays as it is. Pods that go while no agent runs are kept as where manifests are gone.
 */
export function withCluster(plan: Plan): Plan {
  if (!plan.cluster.isOn) return plan;
  const { holdMs } = plan.absence;
  return {
    ...plan,
    absence: holdMs === 0 ? NO_ABSENCE : { ...NO_ABSENCE, holdMs },
    drivers: plan.drivers.map((one, index) => ({
      ...one,
      nature: { ...one.nature, attaches: one.nature.attaches || index === 0 },
      // What a call does that was given up long ago comes when nothing of its volume is reported any more.
      fates: { ...one.fates, straggler: 0 },
    })),
    events: {
      ...plan.events,
      fileDamaged: 0,
      storageVanishes: 0,
      attributesChange: 0,
      nodeMarked: 0,
      attachmentLost: 0,
      attachmentReplaced: 0,
      diskChanges: 0,
    },
  };
}

/** Attachable or not, as the cluster sees it: a driver that says nothing of itself is attached. */
export function isAttachable(plan: Pick<Plan, 'drivers'>, driver: string): boolean {
  const found = plan.drivers.find(({ name }) => name === driver);
  return found !== undefined && (!found.described || found.nature.attaches);
}
