/** When the list of volumes in use may be written next: each write is the whole list, and all who watch get it. */
import type { Clock } from '../../mount/host.ts';
import type { Contest } from './in-use-contest.ts';

/** Between two writes: what changes meanwhile is written as one. */
const PAUSE_MS = 50;
/** Between two by which volumes only leave the list: nobody waits for that but a controller and another node. */
const LEAVING_PAUSE_MS_MAX = 1_000;
const GROWTH = 4;
/** When nothing has left for so long the next one is the first one again. */
const QUIET_MS = 2 * LEAVING_PAUSE_MS_MAX;

/**
 * What has to be listed before it can be set up is written soon. What only leaves is written at once, too, and less and
 * less often while more of it comes: of a node that is drained hundreds leave one after the other.
 */
export class InUsePace {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #contest: Pick<Contest, 'isContested' | 'paceMs'>;
  #endedMs = Number.NEGATIVE_INFINITY;
  #leftMs = Number.NEGATIVE_INFINITY;
  /** Writes that were refused one after the other. Nobody was told anything by them: they have their own pace. */
  #refusals = 0;
  /** Writes of what leaves that came one soon after the other. */
  #leavings = 0;

  constructor(clock: Pick<Clock, 'nowMs'>, contest: Pick<Contest, 'isContested' | 'paceMs'>) {
    this.#clock = clock;
    this.#contest = contest;
  }

  /** `isAwaited`: something has to be listed. `isWritten`: the server did as it was asked. */
  noteEnded(isAwaited: boolean, isWritten: boolean): void {
    const nowMs = this.#clock.nowMs();
    this.#endedMs = nowMs;
    this.#refusals = isWritten ? 0 : this.#refusals + 1;
    if (isAwaited || !isWritten) return;
    this.#leavings = nowMs - this.#leftMs < QUIET_MS ? this.#leavings + 1 : 1;
    this.#leftMs = nowMs;
  }

  untilMs(isAwaited: boolean): number {
    const nowMs = this.#clock.nowMs();
    const isSoon = isAwaited || nowMs - this.#leftMs >= QUIET_MS;
    const writes = this.#refusals > 0 ? this.#refusals : this.#leavings;
    const pauseMs = isSoon ? PAUSE_MS : PAUSE_MS * GROWTH ** (writes - 1);
    const leastMs = this.#contest.isContested() ? this.#contest.paceMs : 0;
    return Math.max(0, this.#endedMs + Math.max(Math.min(pauseMs, LEAVING_PAUSE_MS_MAX), leastMs) - nowMs);
  }
}
