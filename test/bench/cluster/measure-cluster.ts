/**
 * `--cluster`: Mooring and the kubelet's volume manager as nodes of one real control plane, in turn, with csi-attacher
 * and a driver that has nothing to attach: an attachment costs what the cluster itself takes for it.
 */
import { join } from 'node:path';
import { type ControlPlane, removeControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { allowWatchOfAttachments } from '../../cluster/watch-right.ts';
import { programFile } from '../../interop/go-program.ts';
import { startProgram } from '../../interop/program.ts';
import { sidecarCommand } from '../../k8s/sidecars.ts';
import { until } from '../../until.ts';
import { machineFacts } from '../figures.ts';
import { driverSockets, NOOP } from '../world.ts';
import { measureBurst } from './measure-burst.ts';
import type { ClusterNode } from './cluster-node.ts';
import { startKubeletNode } from './kubelet-node.ts';
import { startMooringNode } from './mooring-node.ts';
import { type Measured, phaseTable } from './phase-rows.ts';
import type { PhaseTimes } from './phases.ts';

export const CLUSTER_PROGRAMS = [
  'certificates',
  'control-plane',
  'csi-attacher',
  'bench-driver',
  'bench-kubelet',
] as const;

export interface ClusterBenchOptions {
  readonly scratch: string;
  readonly pods: number;
  /** `watch`: the nodes have the right of systemd/node-watch.yaml beside their own. */
  readonly reach: 'get' | 'watch';
  readonly interrupted: AbortSignal;
  readonly progress: (what: string) => void;
}

const VOLUMES = 4;
const SINGLES = 10;
/** What runs for the first time is slower than what was compiled. */
const WARM_UPS = 3;

const IDLE_MS = 60_000;

const MOORING = 'bench-mooring';
const KUBELET = 'bench-kubelet';

export async function measureCluster(options: ClusterBenchOptions): Promise<{ readonly table: string }> {
  const { scratch, progress } = options;
  const directory = join(scratch, 'cluster');
  try {
    progress('start a control plane');
    const plane = await startControlPlane({
      ...{ directory, nodeName: MOORING, otherNodes: [KUBELET], isBound: true, isUnthrottled: true },
    });
    await prepare(plane);
    if (options.reach === 'watch') await allowWatchOfAttachments(plane.admin);
    const measured = await measureBoth(options, plane);
    const document = { measured, machine: machineFacts(), at: new Date().toISOString() };
    return { ...document, table: phaseTable(measured) };
  } finally {
    await removeControlPlane(directory);
  }
}

/** A driver whose volumes are to be attached. */
async function prepare({ admin }: ControlPlane): Promise<void> {
  await admin.request('POST', '/apis/storage.k8s.io/v1/csidrivers', {
    metadata: { name: NOOP },
    spec: { attachRequired: true },
  });
  // The controllers make it, and a pod that names it is refused before.
  const account = '/api/v1/namespaces/default/serviceaccounts/default';
  await until('the service account', async () => (await admin.tryRequest('GET', account)).status === 200);
}

async function measureBoth(options: ClusterBenchOptions, plane: ControlPlane): Promise<readonly Measured[]> {
  const { scratch, interrupted } = options;
  const ends: (() => Promise<unknown>)[] = [];
  const driver = programFile('bench-driver');
  try {
    const mooring = await startMooringNode({
      ...{ directory: join(scratch, 'mooring'), driver, interrupted },
      ...{ nodeName: MOORING, kubeconfig: plane.nodeKubeconfig },
    });
    ends.push(() => mooring.close());
    const kubelet = await startKubeletNode({
      ...{ directory: join(scratch, 'kubelet'), nodeName: KUBELET, kubeconfig: plane.kubeconfigOf(KUBELET) },
      programs: { 'bench-kubelet': programFile('bench-kubelet'), 'bench-driver': driver },
    });
    ends.push(() => kubelet.close());
    // One is enough for both: it asks the driver for nothing but its name.
    const { endpoint } = driverSockets(mooring.root);
    const argv = sidecarCommand('csi-attacher', plane.adminKubeconfig, endpoint);
    const attacher = startProgram('csi-attacher', argv, join(scratch, 'csi-attacher.log'));
    ends.push(() => attacher.end('SIGTERM'));
    return await measureInTurn(options, plane, [mooring, kubelet]);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

async function measureInTurn(
  { pods, progress }: ClusterBenchOptions,
  { admin, auditLog }: ControlPlane,
  nodes: readonly ClusterNode[],
): Promise<readonly Measured[]> {
  const cluster = { admin, auditLog };
  const singles = new Map<ClusterNode, PhaseTimes[]>(nodes.map((node) => [node, []]));
  for (let index = 0; index < WARM_UPS + SINGLES; index += 1) {
    progress(`one pod, one volume (${index + 1} of ${WARM_UPS + SINGLES})`);
    for (const node of nodes) {
      const name = `${node.nodeName}-one-${index}`;
      const { times } = await measureBurst(cluster, node, { name, pods: 1, volumes: 1 });
      if (index >= WARM_UPS) singles.get(node)?.push(times);
    }
  }
  const measured: Measured[] = [];
  for (const node of nodes) {
    progress(`${node.nodeName}: ${pods} pods x ${VOLUMES} volumes, and a minute without anything`);
    const name = `${node.nodeName}-all`;
    const burst = await measureBurst(cluster, node, { name, pods, volumes: VOLUMES, idleMs: IDLE_MS });
    measured.push({ node: node.nodeName, singles: singles.get(node) ?? [], burst });
  }
  return measured;
}
