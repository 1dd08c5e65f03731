/**
 * What happens to the manifests while no agent looks, or behind the back of one that does: files that are gone, another
 * file system on their directory, another directory in its place. Drawn from a stream of its own, so that the seeds of
 * before keep their stories, and off in most of them.
 */
import type { Random } from './random.ts';

/** What of the manifests is not there. */
export const ABSENCES = ['one', 'most', 'all', 'covered', 'replaced'] as const;
export type AbsenceKind = (typeof ABSENCES)[number];

export interface AbsencePlan {
  /** How long the agent is told to keep what vanished while nobody looked. */
  readonly holdMs: number;
  /** Mean time between two; 0: none. */
  readonly everyMs: number;
  /** Probability that the agent is killed first, and finds it so when it comes back. */
  readonly whileDown: number;
  /** Probability that an operator says that a directory put in the place of the old one is the right one. */
  readonly accepted: number;
}

export const NO_ABSENCE: AbsencePlan = { holdMs: 0, everyMs: 0, whileDown: 0, accepted: 0 };

const SHARE = 0.3;
/** Longer than the hold, sometimes: then what is gone is believed to be gone. */
export const LASTS_MS_MAX = 90_000;

export function drawAbsence(random: Random): AbsencePlan {
  if (!random.chance(SHARE)) return NO_ABSENCE;
  return {
    holdMs: random.pick([5_000, 30_000, 60_000]),
    everyMs: random.pick([3_000, 15_000, 40_000]),
    whileDown: random.pick([0.3, 0.7, 1]),
    accepted: random.pick([0, 0.5]),
  };
}
