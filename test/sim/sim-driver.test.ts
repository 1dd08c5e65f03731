import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { below } from '../../mount/host.ts';
import { NodeService } from '../../plugins/csi/generated/csi.ts';
import { csiDriverContract, type CsiDriverWorld } from '../contract/csi-driver.ts';
import { type Bench, createBench } from './bench.ts';
import type { FateRates } from './driver-fates.ts';
import { DriverOracle } from './driver-oracle.ts';
import { SimDriver } from './sim-driver.ts';

interface DriverBench extends CsiDriverWorld {
  readonly bench: Bench;
  readonly driver: SimDriver;
  readonly violations: string[];
}

async function driverBench(t: TestContext, fates: FateRates = {}, wire = false): Promise<DriverBench> {
  const bench = createBench(t, 1, wire);
  const { kernel, time, random, neighbours, trace, root } = bench;
  const violations: string[] = [];
  const endpoint = below(root, 'csi.sock');
  const staging = below(root, 'staging');
  kernel.makeDirectory(staging, 0o750);
  kernel.makeDirectory(below(root, 'targets'), 0o750);
  const oracle = new DriverOracle({
    nowMs: () => time.nowMs(),
    violate: (invariant) => violations.push(invariant),
    wishHistory: () => undefined,
    isMounted: (path) => kernel.mountsAt(path).length > 0,
    recordsDamaged: () => false,
    mountsTaken: () => false,
    onTeardown: () => {},
  });
  const driver = new SimDriver({
    kernel,
    time,
    random,
    neighbours,
    trace,
    oracle,
    endpoint,
    name: 'sim.example.com',
    nature: { stages: true, attaches: false, stageMounts: true },
    registration: undefined,
    locks: true,
    fates: () => fates,
    latencyMsMax: 3,
    echoesSecrets: false,
  });
  driver.addVolume('vol-1');
  driver.start();
  const facts = kernel.inspect(endpoint);
  assert.ok(typeof facts !== 'string');
  return {
    bench,
    driver,
    violations,
    staging,
    host: bench.newHost(),
    socket: { path: endpoint, inode: facts.inode },
    volumeId: 'vol-1',
    volumeContext: {},
    targets: [below(root, 'targets', 'a'), below(root, 'targets', 'b')],
  };
}

csiDriverContract('SimDriver', (t) => driverBench(t));
csiDriverContract('SimDriver over the wire', (t) => driverBench(t, {}, true));

function unstage({ host, socket, volumeId, staging }: CsiDriverWorld) {
  const request = { volumeId, stagingTargetPath: staging };
  return host.call({ socket, method: NodeService.nodeUnstageVolume, request, deadlineMs: 1_000 });
}

test('a call while another of the volume runs is aborted, and the oracle notes that two were open', async (t) => {
  const world = await driverBench(t);
  const [first, second] = await Promise.all([unstage(world), unstage(world)]);
  assert.deepEqual([first, second].map((one) => (one.kind === 'status' ? one.status : 0)).sort(), [0, 10]);
  assert.deepEqual(world.violations, ['INV-6']);
});

test('a driver that lies says OK and has done nothing', async (t) => {
  const world = await driverBench(t, { lie: 1 });
  assert.equal((await unstage(world)).kind, 'ok');
  const stage = NodeService.nodeStageVolume;
  const request = {
    ...stage.requestDeserialize(Buffer.alloc(0)),
    volumeId: 'vol-1',
    stagingTargetPath: world.staging,
  };
  const staged = await world.host.call({ socket: world.socket, method: stage, request, deadlineMs: 1_000 });
  assert.equal(staged.kind, 'ok');
  assert.equal(world.bench.kernel.mountsAt(world.staging).length, 0);
});

test('a driver that died is unreachable, and comes back behind another socket', async (t) => {
  const world = await driverBench(t, { crash: 1 });
  const lost = await unstage(world);
  assert.equal(lost.kind === 'broken' && lost.because, 'unreachable');
  world.driver.start();
  const after = await unstage(world);
  assert.equal(after.kind === 'broken' && after.because, 'unreachable');
});
