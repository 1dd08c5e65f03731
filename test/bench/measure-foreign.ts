/**
 * Teardown of emptyDirs in memory and the agent's memory beside thousands of mounts of others, against the same without
 * them: what is not ours costs next to nothing.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow, runToEnd } from '../demo/machine.ts';
import { nowMs } from './clock.ts';
import { benchPod, bystanders } from './pods.ts';
import { residentMb, untilQuiet } from './process-cost.ts';
import type { World } from './world.ts';

const PODS = 100;
const BYSTANDERS = 220;
/** Mounts of one tree, bound with all that is mounted in it as often as needed: one mount(8) for a thousand mounts. */
const TREE_MOUNTS = 1_000;

export interface Beside {
  readonly pods: number;
  readonly foreign: number;
  readonly aloneSeconds: number;
  readonly besideSeconds: number;
  readonly aloneAgentMb: number;
  /** The most of all that was seen: after the mounts came, with the pods up, and after they went. */
  readonly besideAgentMb: number;
}

export async function measureBeside(world: World, foreign: number): Promise<Beside> {
  world.put('bystanders', bystanders(BYSTANDERS))();
  await world.untilIdle();
  // What runs for the first time is slower than what was compiled.
  await upAndDown(world, 'warm');
  const alone = await upAndDown(world, 'alone');
  const directory = join(world.directory, 'foreign');
  mkdirSync(directory);
  await mountForeign(directory, foreign);
  const mounted = mountsBelow(directory).length;
  const beside = await upAndDown(world, 'beside');
  await runToEnd('umount', ['--lazy', '--', directory]);
  return {
    pods: PODS,
    foreign: mounted,
    aloneSeconds: alone.seconds,
    besideSeconds: beside.seconds,
    aloneAgentMb: alone.agentMb,
    besideAgentMb: beside.agentMb,
  };
}

/** From the removal of the manifest to the last volume unpublished. */
async function upAndDown(
  world: World,
  name: string,
): Promise<{ readonly seconds: number; readonly agentMb: number }> {
  const pods = Array.from({ length: PODS }, (_, index) =>
    benchPod({ name: `${name}-${index}`, driver: 'none', csiVolumes: 0, others: ['emptyDir'] }),
  );
  const objects = pods.flatMap((pod) => pod.objects);
  const publications = pods.flatMap((pod) => pod.publications);
  world.log.forget();
  world.put('memory', objects)();
  await world.log.until('volume published', publications);
  await world.untilIdle();
  const upMb = await quietMb(world);
  const removedMs = nowMs();
  world.remove('memory');
  const unpublished = await world.log.until('volume unpublished', publications);
  await world.untilIdle();
  const seconds = (Math.max(...unpublished.values()) - removedMs) / 1_000;
  return { seconds, agentMb: Math.max(upMb, await quietMb(world)) };
}

async function quietMb(world: World): Promise<number> {
  await untilQuiet(world.agentPid(), world.interrupted);
  return residentMb(world.agentPid());
}

/** All of it goes with one umount of `directory`. */
async function mountForeign(directory: string, count: number): Promise<void> {
  await runToEnd('mount', ['-t', 'tmpfs', 'foreign', directory]);
  await runToEnd('mount', ['--make-private', '--', directory]);
  const tree = join(directory, 'tree');
  mkdirSync(tree);
  await runToEnd('mount', ['-t', 'tmpfs', 'foreign-tree', tree]);
  // Doubling: what is mounted below is bound beside itself.
  let mounted = 1;
  for (let index = 0; mounted < TREE_MOUNTS; index += 1) {
    const half = join(tree, `half-${index}`);
    mkdirSync(half);
    await runToEnd('mount', ['--rbind', '--', tree, half]);
    mounted *= 2;
  }
  for (let copy = 0; (copy + 1) * mounted < count; copy += 1) {
    const place = join(directory, `copy-${copy}`);
    mkdirSync(place);
    await runToEnd('mount', ['--rbind', '--', tree, place]);
  }
}
