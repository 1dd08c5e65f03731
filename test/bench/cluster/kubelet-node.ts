/** The kubelet's volume manager as the node: its book is asked. That its containers ended it is told by the pod. */
import { mkdirSync } from 'node:fs';
import { csiVolumeId } from '../../../plugins/volume.ts';
import { type KubeletPrograms, startKubeletProgram } from '../kubelet-program.ts';
import { NOOP } from '../world.ts';
import type { ClusterNode, ClusterPod, Moments, NodeIdentity } from './cluster-node.ts';

export interface KubeletNodeOptions extends NodeIdentity {
  readonly directory: string;
  readonly programs: KubeletPrograms;
}

export async function startKubeletNode(options: KubeletNodeOptions): Promise<ClusterNode> {
  const { directory, nodeName, kubeconfig, programs } = options;
  mkdirSync(directory, { mode: 0o700 });
  const { root, pid, ask, close } = await startKubeletProgram(directory, programs, [
    ...['--node', nodeName],
    ...['--kubeconfig', kubeconfig],
  ]);

  async function moments(
    what: 'mounted' | 'unmounted',
    pods: readonly ClusterPod[],
    uids?: ReadonlyMap<string, string>,
  ): Promise<Moments> {
    const expected = pods.map(({ name, volumes }) => ({
      ...{ name, uid: uids?.get(name) },
      volumes: volumes.map((one) => csiVolumeId(NOOP, one)),
    }));
    const { at = {} } = await ask({ do: what, expected });
    return new Map(Object.entries(at));
  }

  return {
    ...{ nodeName, root, pid, close },
    mounted: (pods) => moments('mounted', pods),
    unmounted: (pods, uids) => moments('unmounted', pods, uids),
  };
}
