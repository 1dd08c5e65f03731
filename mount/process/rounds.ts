/** Work that is done anew whenever something changes: one round at a time, and the last one has seen all changes. */
import type { Cancel, Clock } from '../host.ts';
import type { Sliced, Slices } from './slices.ts';

/** How soon one round may follow another. */
export interface RoundPace {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  noteLook(beganMs: number): void;
  /** Until the next round; not above 0: now. */
  waitMs(): number;
}

export interface RoundsParts<T> {
  readonly slices: Slices;
  /** Takes what is there at this moment: a round is about one moment, however long it takes. */
  readonly begin: () => Sliced<T>;
  readonly onDone: (value: T) => void;
  /** Without one a round begins as soon as it is asked for. */
  readonly pace?: RoundPace;
}

export interface Rounds {
  /**
   * A round that begins when its pace lets it, or when the one under way has ended: that one is never given up, so
   * rounds end. `atOnce`: whatever the pace.
   */
  ask(atOnce?: boolean): void;
  /** Settles when no round is under way, or after `stop`. */
  settled(): Promise<void>;
  stop(): void;
}

export function createRounds<T>({ slices, begin, onDone, pace }: RoundsParts<T>): Rounds {
  let state: 'idle' | 'resting' | 'busy' | 'stale' | 'stopped' = 'idle';
  let isUrgent = false;
  let cancel: Cancel = () => {};
  const waiters: (() => void)[] = [];

  function round(): void {
    state = 'busy';
    isUrgent = false;
    const beganMs = pace?.clock.nowMs() ?? 0;
    cancel = slices.run(begin(), (value) => {
      onDone(value);
      pace?.noteLook(beganMs);
      if (isStopped()) return;
      if (isStale()) return next();
      state = 'idle';
      for (const done of waiters.splice(0)) done();
    });
  }

  function next(): void {
    const waitMs = isUrgent ? 0 : (pace?.waitMs() ?? 0);
    if (pace === undefined || waitMs <= 0) return round();
    state = 'resting';
    cancel = pace.clock.timer(waitMs, round);
  }

  // Asked after a call, when the state may be another than the one the compiler has seen last.
  const isStale = (): boolean => state === 'stale';
  const isStopped = (): boolean => state === 'stopped';

  return {
    ask(atOnce = false) {
      if (state === 'stopped') return;
      isUrgent ||= atOnce;
      if (state === 'busy') state = 'stale';
      else if (state === 'idle') next();
      else if (state === 'resting' && isUrgent) {
        cancel();
        round();
      }
    },
    settled: async () => {
      if (state !== 'idle' && state !== 'stopped')
        await new Promise<void>((resolve) => waiters.push(resolve));
    },
    stop() {
      state = 'stopped';
      cancel();
      for (const done of waiters.splice(0)) done();
    },
  };
}
