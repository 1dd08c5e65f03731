/** Revisions: counts what changes, and wakes who waits for the next change. */
import type { Cancel, Clock } from '../../mount/host.ts';

/** The units of a node may all begin with `mooring wait`, and a large node has 250 pods. */
export const WATCHERS_MAX = 256;
/** However costly an answer is, the next change is told after that long. */
const GATHER_MS_MAX = 50;
/** Changes are gathered for so many times what telling took, which so never takes more than a tenth of the loop. */
const GATHER_PER_COST = 9;

export interface ChangesParts {
  readonly clock: Clock;
  /** Differs from start to start, so that a revision of another life is never taken for one of this. */
  readonly instance: string;
  readonly onChange: (listener: () => void) => Cancel;
}

export interface Wait {
  readonly ended: Promise<void>;
  readonly cancel: () => void;
}

/**
 * Guarantees: the first change after a pause is told in the next turn of the loop, however many follow it; those that
 * follow are one answer, at most 50 ms later. Nobody who asks again at once gets more of the loop than that leaves, and
 * all who wait are told by the same answer: one for each would take the loop from what they wait for.
 */
export interface Changes<Answer> {
  revision(): string;
  /** Until a revision other than `after` may be told, `waitMs` or `cancel`; undefined when too many wait. */
  wait(after: string, waitMs: number): Wait | undefined;
  /**
   * The answer for one who waited: a new one, or that of the one before where nothing has changed since and changes
   * are still gathered. What it costs decides how long the next changes are gathered.
   */
  tell(make: () => Answer): Answer;
  close(): void;
}

export function createChanges<Answer>({ clock, instance, onChange }: ChangesParts): Changes<Answer> {
  const waiting = new Set<() => void>();
  let count = 0;
  let toldCostMs = 0;
  let gatheredUntilMs = Number.NEGATIVE_INFINITY;
  let cancelWake: Cancel | undefined;
  /** Kept no longer than changes are gathered: on a node of hundreds of pods it is a megabyte. */
  let told: { readonly revision: string; readonly answer: Answer } | undefined;
  let cancelForget: Cancel = () => {};
  const revision = (): string => `${instance}-${count}`;
  const wakeAll = (): void => {
    cancelWake?.();
    cancelWake = undefined;
    toldCostMs = 0;
    for (const wake of waiting) wake();
  };
  const wakeWhenDue = (): void => {
    // What changes in one turn of the loop is one change.
    cancelWake ??= clock.timer(Math.max(0, gatheredUntilMs - clock.nowMs()), wakeAll);
  };
  const unsubscribe = onChange(() => {
    count += 1;
    if (waiting.size > 0) wakeWhenDue();
  });
  return {
    revision,
    wait(after, waitMs) {
      const isNews = after !== revision();
      if (isNews && clock.nowMs() >= gatheredUntilMs) return { ended: Promise.resolve(), cancel: () => {} };
      if (waiting.size >= WATCHERS_MAX) return undefined;
      let cancel = (): void => {};
      const ended = new Promise<void>((resolve) => {
        const wake = (): void => {
          cancelTimer();
          waiting.delete(wake);
          resolve();
        };
        const cancelTimer = clock.timer(waitMs, wake);
        waiting.add(wake);
        cancel = wake;
      });
      if (isNews) wakeWhenDue();
      return { ended, cancel };
    },
    tell(make) {
      if (told?.revision === revision()) return told.answer;
      const begunMs = clock.nowMs();
      const answer = make();
      const nowMs = clock.nowMs();
      toldCostMs += nowMs - begunMs;
      const gatherMs = Math.min(GATHER_MS_MAX, toldCostMs * GATHER_PER_COST);
      gatheredUntilMs = nowMs + gatherMs;
      told = { revision: revision(), answer };
      cancelForget();
      cancelForget = clock.timer(gatherMs, () => {
        told = undefined;
      });
      return answer;
    },
    close() {
      unsubscribe();
      cancelForget();
      wakeAll();
    },
  };
}
