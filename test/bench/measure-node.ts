/** A full node: 110 pods with four volumes each, set up, left alone, and drained; and ten volumes of a real driver. */
import { setTimeout as sleep } from 'node:timers/promises';
import { readStatus } from '../demo/agent-status.ts';
import { mountsBelow } from '../demo/machine.ts';
import { nowMs } from './clock.ts';
import { benchPod, bystanders } from './pods.ts';
import { cpuMs, untilQuiet, wakeUps } from './process-cost.ts';
import { LOOPFILE, NOOP, type World } from './world.ts';

/** The kubelet's default limit of pods per node. */
export const NODE_PODS = 110;

export interface FullNode {
  readonly pods: number;
  readonly volumes: number;
  readonly mounts: number;
  readonly setUpSeconds: number;
  readonly drainSeconds: number;
  /** Calls to the driver per CSI volume on its way up, and on its way down. */
  readonly callsPerMount: number;
  readonly callsPerUnmount: number;
}

export interface Idle {
  readonly seconds: number;
  readonly cpuMs: number;
  /** Wake-ups of the main thread. */
  readonly wakeUps: number;
  /** At most so many: every pass counts the status revision up, as do some other changes. */
  readonly passes: number;
}

export async function measureFullNode(
  world: World,
  idleSeconds: number,
): Promise<{ readonly node: FullNode; readonly idle: Idle }> {
  const { log } = world;
  const pods = Array.from({ length: NODE_PODS }, (_, index) =>
    benchPod({
      name: `full-${index}`,
      driver: NOOP,
      csiVolumes: 1,
      others: ['secret', 'configMap', 'emptyDir'],
    }),
  );
  const publications = pods.flatMap((pod) => pod.publications);
  world.put('bystanders', bystanders(2 * NODE_PODS))();
  await world.untilIdle();
  log.forget();
  await world.calls();
  const mountsBefore = mountsBelow(world.directory).length;
  const show = world.put(
    'node',
    pods.flatMap(({ objects }) => objects),
  );
  const shownMs = nowMs();
  show();
  const up = await log.until('volume published', publications);
  const mounts = mountsBelow(world.directory).length - mountsBefore;
  const callsUp = (await world.calls()).length;
  const idle = await measureIdle(world, idleSeconds);
  const removedMs = nowMs();
  world.remove('node');
  const unpublished = await log.until('volume unpublished', publications);
  const unstaged = await log.until(
    'volume unstaged',
    pods.flatMap((pod) => pod.csiVolumes),
  );
  const callsDown = (await world.calls()).length;
  await world.untilIdle();
  const node = {
    pods: NODE_PODS,
    volumes: publications.length,
    mounts,
    setUpSeconds: (Math.max(...up.values()) - shownMs) / 1_000,
    drainSeconds: (Math.max(...unpublished.values(), ...unstaged.values()) - removedMs) / 1_000,
    callsPerMount: callsUp / NODE_PODS,
    callsPerUnmount: callsDown / NODE_PODS,
  };
  return { node, idle };
}

async function measureIdle(world: World, seconds: number): Promise<Idle> {
  await world.untilIdle();
  const pid = world.agentPid();
  await untilQuiet(pid, world.interrupted);
  const changesBefore = await changesOf(world);
  // Reading the status costs the agent something too; it is no part of being idle.
  await untilQuiet(pid, world.interrupted);
  const before = { cpu: cpuMs(pid), wakes: wakeUps(pid) };
  await sleep(seconds * 1_000, undefined, { signal: world.interrupted });
  const after = { cpu: cpuMs(pid), wakes: wakeUps(pid) };
  const passes = (await changesOf(world)) - changesBefore;
  return { seconds, cpuMs: after.cpu - before.cpu, wakeUps: after.wakes - before.wakes, passes };
}

/** The revision is the life of the agent and a count of its changes. */
async function changesOf({ socket }: World): Promise<number> {
  const { revision } = await readStatus(socket);
  return Number(/-(\d+)$/.exec(revision)?.[1] ?? Number.NaN);
}

export interface Loopfile {
  readonly volumes: number;
  readonly setUpSeconds: number;
  readonly drainSeconds: number;
}

const LOOPFILE_VOLUMES = 10;

/** Each volume gets a loop device, a new ext4 and two mounts; on the way down they go. */
export async function measureLoopfile(world: World): Promise<Loopfile> {
  const { log } = world;
  await world.startLoopfile();
  const pods = [];
  for (let index = 0; index < LOOPFILE_VOLUMES; index += 1) {
    const handle = await world.loopfile('create', '--name', `disk-${index}`, '--size', '16Mi');
    pods.push(
      benchPod({
        name: `disk-${index}`,
        driver: LOOPFILE,
        csiVolumes: 1,
        others: [],
        handles: [handle],
        fsType: 'ext4',
      }),
    );
  }
  const publications = pods.flatMap((pod) => pod.publications);
  log.forget();
  const show = world.put(
    'disks',
    pods.flatMap(({ objects }) => objects),
  );
  const shownMs = nowMs();
  show();
  const up = await log.until('volume published', publications);
  const removedMs = nowMs();
  world.remove('disks');
  const down = await log.until(
    'volume unstaged',
    pods.flatMap((pod) => pod.csiVolumes),
  );
  await world.untilIdle();
  return {
    volumes: LOOPFILE_VOLUMES,
    setUpSeconds: (Math.max(...up.values()) - shownMs) / 1_000,
    drainSeconds: (Math.max(...down.values()) - removedMs) / 1_000,
  };
}
