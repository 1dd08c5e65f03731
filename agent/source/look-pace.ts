/** When all that is wanted is looked at again: a burst is a thousand changes, and a look goes over all of it. */
import type { Clock } from '../../mount/host.ts';
import type { RoundPace } from '../../mount/process/rounds.ts';

/** So many times as long as a look took is the pause after it. */
const REST_PER_LOOK = 3;
/** What looks may take of the time in the long run, and what follows from each of them takes as much again. */
const SHARE = 0.05;
/** So much of them may come at their own pace first: a pod on a quiet node waits for nobody. */
const BURST_MS = 50;
const REST_MS_MAX = 1_000;

/** Guarantees: who was quiet is looked at at once, and nobody waits longer than a second. */
export class LookPace implements RoundPace {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly #share: number;
  /** What looks have taken and the time since has not made up for. */
  #spentMs = 0;
  #endedMs = Number.NEGATIVE_INFINITY;
  #restMs = 0;

  /** `share`: what looks may take of the time in the long run; at most a quarter. */
  constructor(clock: Pick<Clock, 'nowMs' | 'timer'>, share = SHARE) {
    this.clock = clock;
    this.#share = share;
  }

  noteLook(beganMs: number): void {
    const nowMs = this.clock.nowMs();
    const tookMs = nowMs - beganMs;
    const madeUpMs = (beganMs - this.#endedMs) * this.#share;
    this.#spentMs = Math.max(0, this.#spentMs - madeUpMs) + tookMs;
    this.#endedMs = nowMs;
    const owedMs = (this.#spentMs - BURST_MS) / this.#share;
    this.#restMs = Math.min(Math.max(REST_PER_LOOK * tookMs, owedMs), REST_MS_MAX);
  }

  /** Until the next look; not above 0: now. */
  waitMs(): number {
    return this.#endedMs + this.#restMs - this.clock.nowMs();
  }
}
