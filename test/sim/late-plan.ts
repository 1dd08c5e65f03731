/**
 * What is drawn from a third stream, so that older seeds keep their stories: attachments that are made anew under their
 * name, and calls whose effect comes long after they were given up.
 */
import type { Random } from './random.ts';
import type { Plan } from './swarm.ts';

/** How long after a call was given up its effect may come, as the agent is told (`late_effect_ms`). */
export const LATE_EFFECT_MS = 60_000;
/** For so long a call that was sent before something changed may be on its way, when it is not one of those. */
export const ON_ITS_WAY_MS = 1_000;

const REPLACED_SHARE = 0.2;
const STRAGGLERS_SHARE = 0.2;

export function withLateness(plan: Plan, random: Random): Plan {
  const attachmentReplaced = random.chance(REPLACED_SHARE) ? random.pick([1, 4]) : 0;
  const straggler = random.chance(STRAGGLERS_SHARE) ? random.pick([0.05, 0.2]) : 0;
  const drivers = plan.drivers.map((one) => ({ ...one, fates: { ...one.fates, straggler } }));
  return {
    ...plan,
    events: { ...plan.events, attachmentReplaced },
    drivers: straggler === 0 ? plan.drivers : drivers,
  };
}
