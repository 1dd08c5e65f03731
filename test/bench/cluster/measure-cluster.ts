/**
 * `--cluster`: Mooring as a node of a real control plane, with csi-attacher and a driver that has nothing to attach: an
 * attachment costs what the cluster itself takes for it.
 */
import { join } from 'node:path';
import { type ControlPlane, removeControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { programFile } from '../../interop/go-program.ts';
import { startProgram } from '../../interop/program.ts';
import { sidecarCommand } from '../../k8s/sidecars.ts';
import { until } from '../../until.ts';
import { machineFacts } from '../figures.ts';
import { driverSockets, NOOP } from '../world.ts';
import { measureBurst } from './measure-burst.ts';
import { startMooringNode } from './mooring-node.ts';
import { type Measured, phaseTable } from './phase-rows.ts';

export const CLUSTER_PROGRAMS = ['certificates', 'control-plane', 'csi-attacher', 'bench-driver'] as const;

export interface ClusterBenchOptions {
  readonly scratch: string;
  readonly pods: number;
  readonly interrupted: AbortSignal;
  readonly progress: (what: string) => void;
}

const VOLUMES = 4;
const SINGLES = 10;
/** What runs for the first time is slower than what was compiled. */
const WARM_UPS = 3;

const NODE = 'bench-mooring';

export async function measureCluster(options: ClusterBenchOptions): Promise<{ readonly table: string }> {
  const { scratch, progress } = options;
  const directory = join(scratch, 'cluster');
  try {
    progress('start a control plane');
    const plane = await startControlPlane({
      ...{ directory, nodeName: NODE, isBound: true, isUnthrottled: true },
    });
    await prepare(plane);
    const measured = await measureNode(options, plane);
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

async function measureNode(
  { scratch, pods, interrupted, progress }: ClusterBenchOptions,
  plane: ControlPlane,
): Promise<Measured> {
  const node = await startMooringNode({
    ...{ directory: join(scratch, 'node'), driver: programFile('bench-driver'), interrupted },
    ...{ nodeName: NODE, kubeconfig: plane.nodeKubeconfig },
  });
  const { endpoint } = driverSockets(node.root);
  const argv = sidecarCommand('csi-attacher', plane.adminKubeconfig, endpoint);
  const attacher = startProgram('csi-attacher', argv, join(scratch, 'csi-attacher.log'));
  try {
    const cluster = { admin: plane.admin, auditLog: plane.auditLog };
    const singles = [];
    for (let index = 0; index < WARM_UPS + SINGLES; index += 1) {
      progress(`one pod, one volume (${index + 1} of ${WARM_UPS + SINGLES})`);
      const { times } = await measureBurst(cluster, node, { name: `one-${index}`, pods: 1, volumes: 1 });
      if (index >= WARM_UPS) singles.push(times);
    }
    progress(`${pods} pods x ${VOLUMES} volumes`);
    return { singles, burst: await measureBurst(cluster, node, { name: 'all', pods, volumes: VOLUMES }) };
  } finally {
    await attacher.end('SIGTERM');
    await node.close();
  }
}
