/**
 * EmptyDirs on disk with a limit, which their pods fill to less and to more than that. They are drawn from a stream of
 * their own, and off in most seeds, so that those of before keep theirs.
 */
import type { PodVolume, SimPod } from './manifests.ts';
import { plant } from './file-tree.ts';
import { specOf } from './pod-volume.ts';
import type { Random } from './random.ts';
import type { SimKernel } from './sim-kernel.ts';
import { usageOf } from './sim-usage.ts';
import type { Simulation } from './simulate.ts';
import type { Plan } from './swarm.ts';

export interface FillsPlan {
  /** Probability that an emptyDir on disk has a limit. */
  readonly share: number;
}

export const NO_FILLS: FillsPlan = { share: 0 };

/** The share of the seeds that have such volumes. */
const SEEDS_SHARE = 0.1;
const LIMIT_BYTES = 64 * 1_024;
const STATISTICS_MS = 20_000;
const FILLING = 'filling';

export function withFills(plan: Plan, random: Random): Plan {
  return random.chance(SEEDS_SHARE) ? filling(plan, random.pick([0.4, 0.8])) : plan;
}

/** Who asks nobody is told of nothing. */
export function filling(plan: Plan, share: number): Plan {
  const statisticsMs = plan.features.statisticsMs === 0 ? STATISTICS_MS : plan.features.statisticsMs;
  return { ...plan, fills: { share }, features: { ...plan.features, statisticsMs } };
}

/** Some of them, with a limit. */
export function withLimits(random: Random, { share }: FillsPlan, volumes: readonly PodVolume[]): PodVolume[] {
  return volumes.map((volume) => {
    const isOnDisk = volume.kind === 'empty-dir' && volume.medium === 'disk';
    return share > 0 && isOnDisk && random.chance(share) ? { ...volume, limitBytes: LIMIT_BYTES } : volume;
  });
}

type Target = ReturnType<SimKernel['walk']>;

/** Half of what a pod writes is more than it may. */
export function fill(random: Random, volume: PodVolume, directory: Target): void {
  if (typeof directory === 'string' || limitOf(volume) === undefined) return;
  const bytes = random.between(0, 2 * LIMIT_BYTES);
  directory.inode.entries.delete(FILLING);
  plant(directory.inode, FILLING, 'x'.repeat(bytes));
}

/** Who takes more than his limit is told of, and nobody else is. */
export function usageDiffers(sim: Simulation, pod: SimPod, volume: PodVolume): string | undefined {
  const limit = limitOf(volume);
  const path = sim.world.targetOf(pod, volume);
  const used = usageOf(sim.kernel, { path, scope: 'tree' });
  if (limit === undefined || !used.ok) return undefined;
  const isOver = used.value.bytes.used > BigInt(limit);
  const said = sim.view()?.statistics.of(specOf(pod, volume).id)?.statistics;
  if (said?.health === undefined) return 'nobody has told how full it is';
  const isTold = said.health.some(({ status }) => status === 'over-limit');
  return isTold === isOver
    ? undefined
    : `it takes ${used.value.bytes.used} of ${limit} bytes; told: ${isTold}`;
}

function limitOf(volume: PodVolume): number | undefined {
  return volume.kind === 'empty-dir' ? volume.limitBytes : undefined;
}
