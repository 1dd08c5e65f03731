/** A simulated driver on a machine without an agent. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { below } from '../../mount/host.ts';
import type { CsiDriverWorld } from '../contract/csi-driver.ts';
import { type Bench, createBench } from './bench.ts';
import type { FateRates } from './driver-fates.ts';
import { type DriverNature, PLAIN_NATURE } from './driver-nature.ts';
import { DriverOracle } from './driver-oracle.ts';
import { SimDriver } from './sim-driver.ts';

/** A driver with one volume, `vol-1`, and nobody who calls it yet. */
export interface DriverBench extends CsiDriverWorld {
  readonly bench: Bench;
  readonly driver: SimDriver;
  readonly violations: string[];
}

export async function driverBench(
  t: TestContext,
  fates: FateRates = {},
  wire = false,
  nature: Partial<DriverNature> = {},
  seed = 1,
): Promise<DriverBench> {
  const bench = createBench(t, seed, wire);
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
    isMountPoint: (path) => kernel.mountsAt(path).length > 0,
    isMounted: (path) => kernel.mountsAt(path).length > 0,
    recordsDamaged: () => false,
    mountsTaken: () => false,
    onTeardown: () => {},
    onClimb: () => {},
    isRepublished: () => false,
    isUnderStranger: () => false,
    isJustTaken: () => false,
    isDirty: () => false,
    isThoughtHad: () => false,
    agentLife: () => 1,
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
    nature: { ...PLAIN_NATURE, ...nature },
    registration: undefined,
    locks: true,
    fates: () => fates,
    deadlineMs: 1_000,
    stragglerMsMax: 60_000,
    isForgotten: () => false,
    onTaken: () => {},
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
