/** How long the parts of an ownership walk take: drawn apart, so that no other part of a story changes. */
import type { Random } from './random.ts';
import type { Plan } from './swarm.ts';

export function withWalkTimes(plan: Plan, random: Random): Plan {
  if (plan.features.fsGroupShare === 0 || !random.chance(0.6)) return plan;
  const walkMsMax = random.pick([300, 2_000, 8_000]);
  const walkedPodGoes = random.chance(0.4) ? 2 : 0;
  return {
    ...plan,
    weather: { ...plan.weather, walkMsMax },
    events: { ...plan.events, walkedPodGoes },
  };
}
