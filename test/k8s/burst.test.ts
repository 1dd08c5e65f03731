/**
 * Many pods of a node at once, created and ended under the real controllers and csi-attacher: all of them come, all of
 * them go, and the API server is asked no more than was promised. `BURST_PODS=100` for a whole node;
 * `npm run bench -- --cluster` measures it with the bundle.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { measureBurst } from '../bench/cluster/measure-burst.ts';
import { startMooringNode } from '../bench/cluster/mooring-node.ts';
import { phaseLines, wayLines } from '../bench/cluster/phase-rows.ts';
import { driverSockets, NOOP } from '../bench/world.ts';
import { buildPrograms, programFile } from '../interop/go-program.ts';
import { NODE } from '../interop/world.ts';
import { startProgram } from '../interop/program.ts';
import { programArguments } from '../machine/program.ts';
import { clusterObstacle, makeCsiDriver, sharedCluster } from './cluster-world.ts';
import { sidecarCommand, sidecarObstacle } from './sidecars.ts';

const skip =
  clusterObstacle() || sidecarObstacle(['csi-attacher']) || (buildPrograms(['bench-driver']) ?? false);
const cluster = sharedCluster({ isUnthrottled: true });
const PODS = Number(process.env['BURST_PODS'] ?? 10);
const VOLUMES = 4;
/** The claim and the PersistentVolume of each are read once, and again where the authorizer was behind (D-2). */
const READS_MAX = 3;

test(`${PODS} pods x ${VOLUMES} volumes at once come and go, and the server is asked no more than was promised`, {
  skip,
}, async (t) => {
  const { admin, plane, refusals } = await cluster();
  await makeCsiDriver(admin, NOOP, true);
  const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-burst-'));
  const interrupted = new AbortController().signal;
  const node = await startMooringNode({
    ...{ directory: join(scratch, 'node'), driver: programFile('bench-driver'), interrupted },
    ...{ nodeName: NODE, kubeconfig: plane.nodeKubeconfig },
    agentArgv: programArguments('agent/main.ts'),
  });
  const { endpoint } = driverSockets(node.root);
  const argv = sidecarCommand('csi-attacher', plane.adminKubeconfig, endpoint);
  const attacher = startProgram('csi-attacher', argv, join(scratch, 'csi-attacher.log'));
  try {
    const wish = { name: 'burst', pods: PODS, volumes: VOLUMES };
    const burst = await measureBurst({ admin, auditLog: plane.auditLog }, node, wish);
    const told = [
      ...phaseLines('all pods at once', [{ node: NODE, times: burst.times }]),
      ...wayLines(burst),
    ];
    for (const line of told) t.diagnostic(line);
    const { up, down } = burst;
    const reads = Object.entries(up.requests)
      .filter(([what]) => /^get (?:persistentvolumeclaims|persistentvolumes)$/.test(what))
      .reduce((sum, [, count]) => sum + count, 0);
    assert.ok(reads >= 2 * PODS * VOLUMES && reads <= READS_MAX * PODS * VOLUMES, `${reads} reads`);
    // Never one for each volume: a pod's come and go together, and so do pods when nothing holds the node up.
    for (const { requests } of [up, down]) {
      const reports = requests['patch nodes/status'] ?? 0;
      assert.ok(reports >= 1 && reports <= PODS + 1, `${reports} reports`);
    }
    assert.deepEqual(refusals(), []);
  } finally {
    await attacher.end('SIGTERM');
    await node.close();
    rmSync(scratch, { recursive: true });
  }
});
