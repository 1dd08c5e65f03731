/** The agent as the node: its log is its book. */
import { mkdirSync } from 'node:fs';
import { csiVolumeId } from '../../../plugins/volume.ts';
import { createWorld, NOOP } from '../world.ts';
import type { ClusterNode, ClusterPod, Moments, NodeIdentity } from './cluster-node.ts';

export interface MooringNodeOptions extends NodeIdentity {
  readonly directory: string;
  readonly driver: string;
  readonly interrupted: AbortSignal;
  readonly agentArgv?: readonly string[];
}

export async function startMooringNode({
  directory,
  nodeName,
  kubeconfig,
  driver,
  interrupted,
  agentArgv,
}: MooringNodeOptions): Promise<ClusterNode> {
  mkdirSync(directory, { mode: 0o700 });
  const world = await createWorld({
    ...{ directory, interrupted, driver },
    config: { kubeconfig, node_name: nodeName },
    ...(agentArgv === undefined ? {} : { agentArgv }),
  });
  const { log } = world;

  const last = (pods: readonly ClusterPod[], momentsOf: (pod: ClusterPod) => readonly number[]): Moments =>
    new Map(pods.map((pod) => [pod.name, Math.max(...momentsOf(pod))]));
  const publicationsOf = ({ name, volumes }: ClusterPod, uids: ReadonlyMap<string, string>) =>
    volumes.map((volume) => `${uids.get(name)}/${volume}`);
  const at = (moments: ReadonlyMap<string, number>, keys: readonly string[]): readonly number[] =>
    keys.map((key) => moments.get(key) ?? Number.NaN);

  return {
    nodeName,
    root: world.root,
    pid: world.agentPid,
    async mounted(pods, made) {
      log.forget();
      const uids = await made;
      const wanted = pods.flatMap((pod) => publicationsOf(pod, uids));
      const published = await log.until('volume published', wanted);
      return last(pods, (pod) => at(published, publicationsOf(pod, uids)));
    },
    async unmounted(pods, uids) {
      const wanted = pods.flatMap((pod) => publicationsOf(pod, uids));
      const handles = pods.flatMap(({ volumes }) => volumes.map((one) => csiVolumeId(NOOP, one)));
      const unpublished = await log.until('volume unpublished', wanted);
      const unstaged = await log.until('volume unstaged', handles);
      return last(pods, (pod) => [
        ...at(unpublished, publicationsOf(pod, uids)),
        ...at(
          unstaged,
          pod.volumes.map((one) => csiVolumeId(NOOP, one)),
        ),
      ]);
    },
    close: () => world.close(),
  };
}
