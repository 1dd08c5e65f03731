/** Revisions: counts what changes, and wakes who waits for the next change. */
import type { Cancel, Clock } from '../../mount/host.ts';

export const WATCHERS_MAX = 32;
/** Many changes in one go are one answer. */
const SETTLE_MS = 50;

export interface ChangesParts {
  readonly clock: Clock;
  /** Differs from start to start, so that a revision of another life is never taken for one of this. */
  readonly instance: string;
  readonly onChange: (listener: () => void) => Cancel;
}

export interface Changes {
  revision(): string;
  /** Until the next change, `waitMs` or `cancel`; undefined when too many wait. */
  wait(waitMs: number): { readonly ended: Promise<void>; readonly cancel: () => void } | undefined;
  close(): void;
}

/** Counts changes and wakes who waits for the next one. */
export function createChanges({ clock, instance, onChange }: ChangesParts): Changes {
  const waiting = new Set<() => void>();
  let count = 0;
  let cancelWake: Cancel | undefined;
  const wakeAll = (): void => {
    cancelWake?.();
    cancelWake = undefined;
    for (const wake of waiting) wake();
  };
  const unsubscribe = onChange(() => {
    count += 1;
    if (waiting.size > 0) cancelWake ??= clock.timer(SETTLE_MS, wakeAll);
  });
  return {
    revision: () => `${instance}-${count}`,
    wait(waitMs) {
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
      return { ended, cancel };
    },
    close() {
      unsubscribe();
      wakeAll();
    },
  };
}
