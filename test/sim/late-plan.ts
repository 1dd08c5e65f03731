/**
 * What is drawn from a third stream, so that older seeds keep their stories: attachments that are made anew under their
 * name, and calls whose effect comes long after they were given up.
 */
import type { Random } from './random.ts';
import type { Plan } from './swarm.ts';

const REPLACED_SHARE = 0.2;

export function withLateness(plan: Plan, random: Random): Plan {
  return {
    ...plan,
    events: { ...plan.events, attachmentReplaced: random.chance(REPLACED_SHARE) ? random.pick([1, 4]) : 0 },
  };
}
