/**
 * The time of day of the simulated machine: somebody sets it, forward and back, and a boot may begin with a wrong one.
 * The monotonic clock goes on meanwhile, and the clocks of others are right. It is drawn from a stream of its own, and
 * off in most seeds, so that those of before keep theirs.
 */
import type { Cancel } from '../../mount/host.ts';
import type { Random } from './random.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface ClockPlan {
  /** Mean time between two moments when somebody sets it; 0: nobody ever does. */
  readonly everyMs: number;
  /** Probability that it is set while the agent is down, each time. */
  readonly whileDown: number;
  /** Probability that a boot begins with a wrong one. */
  readonly wrongBoots: number;
}

export const NO_CLOCK: ClockPlan = { everyMs: 0, whileDown: 0, wrongBoots: 0 };
/** Again and again, mostly while no agent runs, and at most boots. */
export const RESTLESS_CLOCK: ClockPlan = { everyMs: 20_000, whileDown: 0.5, wrongBoots: 0.7 };

/** The share of the seeds in which it is ever set. */
const SEEDS_SHARE = 0.15;
/** As the API server of the simulation has it. */
const FIRST_WALL_MS = Date.UTC(2026, 0, 1);
const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** By how much at most, by kind: NTP, machines that were suspended, a time zone, the slip of an operator. */
const STEPS_MS_MAX = [
  3 * SECOND_MS,
  90 * SECOND_MS,
  900 * SECOND_MS,
  HOUR_MS,
  3 * DAY_MS,
  400 * DAY_MS,
] as const;
const CORRECTED_SHARE = 0.5;
const CORRECTED_MS_MAX = 60_000;
const DEAD_BATTERY_SHARE = 0.5;
const STAYS_WRONG_SHARE = 0.5;

export function drawClock(random: Random): ClockPlan {
  if (!random.chance(SEEDS_SHARE)) return NO_CLOCK;
  return {
    everyMs: random.pick([5_000, 20_000, 60_000]),
    whileDown: random.pick([0, 0.3, 0.8]),
    wrongBoots: random.pick([0, 0.5, 1]),
  };
}

export interface WallClockParts {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly plan: ClockPlan;
  readonly stormy: () => boolean;
  readonly onSet: () => void;
}

export class WallClock {
  readonly #parts: WallClockParts;
  /** By how much it is ahead of the true time. */
  #aheadMs = 0;
  #correction: Cancel = () => {};

  constructor(parts: WallClockParts) {
    this.#parts = parts;
    if (parts.plan.everyMs > 0) this.#schedule();
  }

  wallMs(): number {
    return FIRST_WALL_MS + this.#parts.time.nowMs() + this.#aheadMs;
  }

  /** The machine begins to boot: without a battery its clock has the beginning of all time until somebody tells it. */
  boot(): void {
    const { random, plan } = this.#parts;
    if (!random.chance(plan.wrongBoots)) return;
    this.#set(random.chance(DEAD_BATTERY_SHARE) ? this.#aheadMs - this.wallMs() : this.#drawAheadMs());
    this.#correctLater();
  }

  agentEnded(): void {
    const { random, plan } = this.#parts;
    if (random.chance(plan.whileDown)) this.#step();
  }

  /** Somebody sets it right at last, or wrong for good. */
  heal(): void {
    const { random, plan } = this.#parts;
    if (plan === NO_CLOCK) return;
    if (random.chance(STAYS_WRONG_SHARE)) this.#set(this.#drawAheadMs());
    else this.#correctLater();
  }

  #schedule(): void {
    const { random, time, plan, stormy } = this.#parts;
    time.after(Math.ceil(-Math.log(1 - random.next()) * plan.everyMs), () => {
      if (!stormy()) return;
      this.#step();
      this.#schedule();
    });
  }

  #step(): void {
    this.#set(this.#parts.random.chance(CORRECTED_SHARE) ? 0 : this.#drawAheadMs());
    if (this.#parts.random.chance(CORRECTED_SHARE)) this.#correctLater();
  }

  #drawAheadMs(): number {
    const { random } = this.#parts;
    const stepMs = random.between(1, random.pick(STEPS_MS_MAX));
    return random.chance(0.5) ? stepMs : -stepMs;
  }

  #correctLater(): void {
    this.#correction();
    const { random, time } = this.#parts;
    this.#correction = time.after(random.between(SECOND_MS, CORRECTED_MS_MAX), () => this.#set(0));
  }

  #set(aheadMs: number): void {
    this.#correction();
    if (aheadMs === this.#aheadMs) return;
    const byMs = aheadMs - this.#aheadMs;
    this.#aheadMs = aheadMs;
    this.#parts.trace.add(
      `the clock on the wall is set by ${byMs} ms, to ${new Date(this.wallMs()).toISOString()}`,
    );
    this.#parts.onSet();
  }
}
