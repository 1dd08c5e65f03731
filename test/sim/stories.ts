/** Seeds made to be about one thing: the faults of a story that seldom meet by chance. */
import type { Plan } from './swarm.ts';

/**
 * Inline volumes of a driver that lies, in pods whose files come and go and whose mounts are in use. That a volume was
 * ended is in its record, so no records are damaged.
 */
export function aboutInlineVolumes(plan: Plan): Plan {
  return {
    ...plan,
    features: { ...plan.features, inlineShare: 1, blockShare: 0 },
    drivers: plan.drivers.map((driver) => ({
      ...driver,
      described: true,
      inline: true,
      fates: { lie: 0.3 },
    })),
    events: { ...plan.events, podComes: 4, podGoes: 0, fileDamaged: 8, mountHeld: 4, recordDamaged: 0 },
  };
}
