/** Pods of a node, all at once: bound, attached, mounted, ended, unmounted, detached, with a clock on each phase. */
import { setTimeout as pause } from 'node:timers/promises';
import type { AdminClient } from '../../cluster/admin-client.ts';
import { mountsBelow } from '../../demo/machine.ts';
import { treeCpuMs } from '../process-cost.ts';
import type { ClusterNode, ClusterPod } from './cluster-node.ts';
import { endContainers, makePods, makeVolumes, markDeleted, podsOf, removePods } from './cluster-storage.ts';
import { type PhaseTimes, watchPhases } from './phases.ts';
import { auditBytes, countRequests, type RequestCount } from './request-count.ts';

export interface BurstWish {
  readonly name: string;
  readonly pods: number;
  /** Each pod has so many. */
  readonly volumes: number;
  /** So long nothing happens to them once they are mounted, and it is counted what is asked meanwhile. */
  readonly idleMs?: number;
}

interface Way {
  readonly requests: RequestCount;
  /** The process' and its helpers'. */
  readonly cpuMs: number;
}

export interface Burst {
  readonly times: PhaseTimes;
  readonly up: Way;
  readonly idle: Way | undefined;
  readonly down: Way;
}

export interface BurstCluster {
  readonly admin: AdminClient;
  readonly auditLog: string;
}

/** The kubelet writes its Node every ten seconds. */
const SETTLE_MS = 15_000;

/** Rejects when the node says that it has mounted what is not there, or has unmounted what is. */
export async function measureBurst(
  { admin, auditLog }: BurstCluster,
  node: ClusterNode,
  wish: BurstWish,
): Promise<Burst> {
  const pods = podsOf(wish.name, wish.pods, wish.volumes);
  await makeVolumes(admin, pods);
  const phases = await watchPhases(admin, node.nodeName);
  const begin = (): (() => Way) => {
    const [bytes, cpuMs] = [auditBytes(auditLog), treeCpuMs(node.pid())];
    return () => ({
      requests: countRequests(auditLog, node.nodeName, bytes),
      cpuMs: treeCpuMs(node.pid()) - cpuMs,
    });
  };
  try {
    const endOfUp = begin();
    const known = phases.uids(pods);
    const [mounted, uids] = await Promise.all([
      node.mounted(pods, known),
      known,
      makePods(admin, node.nodeName, pods),
    ]);
    checkMounted(node, pods, uids);
    const up = endOfUp();
    const idle = wish.idleMs === undefined ? undefined : await untilIdle(begin, wish.idleMs);

    await markDeleted(admin, pods);
    const endOfDown = begin();
    const [unmounted] = await Promise.all([node.unmounted(pods, uids), endContainers(admin, pods)]);
    checkUnmounted(node);
    await phases.untilDetached(pods);
    const down = endOfDown();
    await removePods(admin, pods);
    return { times: phases.timesOf(pods, mounted, unmounted), up, idle, down };
  } finally {
    phases.end();
  }
}

/** What the last phase has left to do is done before. */
async function untilIdle(begin: () => () => Way, idleMs: number): Promise<Way> {
  await pause(SETTLE_MS);
  const end = begin();
  await pause(idleMs);
  return end();
}

function checkMounted(
  { root }: ClusterNode,
  pods: readonly ClusterPod[],
  uids: ReadonlyMap<string, string>,
): void {
  const mounted = new Set<string>(mountsBelow(root).map(({ target }) => target));
  for (const { name: pod, volumes } of pods)
    for (const volume of volumes) {
      const place = `${root}/pods/${uids.get(pod)}/volumes/kubernetes.io~csi/${volume}/mount`;
      if (!mounted.has(place)) throw new Error(`the node says that ${place} is there, and it is not`);
    }
}

function checkUnmounted({ root }: ClusterNode): void {
  const left = mountsBelow(root).find(({ target }) => target !== root);
  if (left !== undefined) throw new Error(`the node says that nothing is mounted, and ${left.target} is`);
}
