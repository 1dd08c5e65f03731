/**
 * Volumes of kinds that came later than the stories of the old seeds. Drawn from a stream of their own, and off in most
 * seeds, so that those of before keep theirs.
 */
import type { PodVolume } from './manifests.ts';
import type { Random } from './random.ts';
import type { Plan } from './swarm.ts';

export interface MoreKindsPlan {
  /** Probability that a pod has such a volume. */
  readonly share: number;
}

export const NO_MORE_KINDS: MoreKindsPlan = { share: 0 };

/** The share of the seeds that have such volumes. */
const SEEDS_SHARE = 0.3;

export function withMoreKinds(plan: Plan, random: Random): Plan {
  if (!random.chance(SEEDS_SHARE)) return plan;
  return { ...plan, moreKinds: { share: random.pick([0.3, 0.7]) } };
}

type LaterVolume = Extract<PodVolume, { kind: 'image' | 'empty-dir' }>;

export function drawLaterVolume(random: Random, name: string): LaterVolume {
  if (random.chance(0.5)) return { kind: 'empty-dir', name, medium: 'huge-pages' };
  return { kind: 'image', name };
}
