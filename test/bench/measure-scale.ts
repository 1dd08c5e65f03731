/** Memory and restart with thousands of volumes; the driver does not stage, so each volume is one mount. */
import { isSettled, waitForStatus } from '../demo/agent-status.ts';
import { descendantsOf, mountsBelow } from '../demo/machine.ts';
import { nowMs } from './clock.ts';
import { ownMs } from './noop-driver-process.ts';
import { benchPod } from './pods.ts';
import { helpersMb, residentMb, untilQuiet } from './process-cost.ts';
import { NOOP, type World } from './world.ts';

const DEADLINE_MS = 180_000;
const VOLUMES_PER_POD = 20;
const PODS_PER_FILE = 10;

export interface Scale {
  readonly volumes: number;
  /** Since the step before: how long it took to mount those that were added, and the driver's own time of it. */
  readonly mountSeconds: number;
  readonly perVolumeMs: number;
  readonly driverPerVolumeMs: number;
  readonly agentMb: number;
  readonly brokers: number;
  readonly brokersMb: number;
}

export interface Restart {
  readonly volumes: number;
  /** From the start of the process to a good answer of /v1/health. */
  readonly healthySeconds: number;
  /** To the first status that says that everything wanted is mounted, and nothing is under way. */
  readonly provenSeconds: number;
  /** Calls to the driver about volumes. */
  readonly calls: number;
  /** Mounts that are not the ones of before. */
  readonly mountsChanged: number;
  readonly agentMb: number;
}

/** Adds volumes up to each of the numbers in turn. */
export async function measureScale(world: World, steps: readonly number[]): Promise<readonly Scale[]> {
  const scales: Scale[] = [];
  let mounted = 0;
  for (const volumes of steps) {
    await world.calls();
    const startMs = nowMs();
    await addVolumes(world, mounted, volumes);
    const mountSeconds = (nowMs() - startMs) / 1_000;
    const added = Math.max(1, volumes - mounted);
    const calls = await world.calls();
    await untilQuiet(world.agentPid(), world.interrupted);
    mounted = volumes;
    scales.push({
      volumes,
      mountSeconds,
      perVolumeMs: (mountSeconds * 1_000) / added,
      driverPerVolumeMs: ownMs(calls) / added,
      agentMb: residentMb(world.agentPid()),
      brokers: descendantsOf(world.agentPid()).length,
      brokersMb: helpersMb(world.agentPid()),
    });
  }
  return scales;
}

async function addVolumes(world: World, from: number, to: number): Promise<void> {
  const pods = Array.from({ length: (to - from) / VOLUMES_PER_POD }, (_, index) => {
    const name = `big-${from / VOLUMES_PER_POD + index}`;
    return benchPod({ name, driver: NOOP, csiVolumes: VOLUMES_PER_POD, others: [] });
  });
  for (let first = 0; first < pods.length; first += PODS_PER_FILE) {
    const objects = pods.slice(first, first + PODS_PER_FILE).flatMap((pod) => pod.objects);
    world.put(`big-${from}-${first}`, objects)();
  }
  await world.log.until(
    'volume published',
    pods.flatMap((pod) => pod.publications),
  );
}

export async function measureRestart(world: World, volumes: number): Promise<Restart> {
  await world.killAgent();
  await world.calls();
  const before = mountIds(world);
  const startMs = nowMs();
  await world.startAgent();
  const healthyMs = nowMs();
  await waitForStatus(world.socket, isSettled, {
    what: 'a restarted agent that knows everything again',
    deadlineMs: DEADLINE_MS,
    signal: world.interrupted,
  });
  const provenMs = nowMs();
  await untilQuiet(world.agentPid(), world.interrupted);
  const now = mountIds(world);
  return {
    volumes,
    healthySeconds: (healthyMs - startMs) / 1_000,
    provenSeconds: (provenMs - startMs) / 1_000,
    calls: (await world.calls()).length,
    mountsChanged: [...before].filter((one) => !now.has(one)).length,
    agentMb: residentMb(world.agentPid()),
  };
}

function mountIds(world: World): ReadonlySet<string> {
  return new Set(mountsBelow(world.directory).map(({ mountId, target }) => `${mountId} ${target}`));
}
