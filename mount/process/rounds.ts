/** Work that is done anew whenever something changes: one round at a time, and the last one has seen all changes. */
import type { Cancel } from '../host.ts';
import type { Sliced, Slices } from './slices.ts';

export interface RoundsParts<T> {
  readonly slices: Slices;
  /** Takes what is there at this moment: a round is about one moment, however long it takes. */
  readonly begin: () => Sliced<T>;
  readonly onDone: (value: T) => void;
}

export interface Rounds {
  /** A round that begins now, or when the one under way has ended: that one is never given up, so rounds end. */
  ask(): void;
  /** Settles when no round is under way, or after `stop`. */
  settled(): Promise<void>;
  stop(): void;
}

export function createRounds<T>({ slices, begin, onDone }: RoundsParts<T>): Rounds {
  let state: 'idle' | 'busy' | 'stale' | 'stopped' = 'idle';
  let cancel: Cancel = () => {};
  const waiters: (() => void)[] = [];

  function round(): void {
    state = 'busy';
    cancel = slices.run(begin(), (value) => {
      onDone(value);
      if (isStopped()) return;
      if (isStale()) return round();
      state = 'idle';
      for (const done of waiters.splice(0)) done();
    });
  }

  // Asked after a call, when the state may be another than the one the compiler has seen last.
  const isStale = (): boolean => state === 'stale';
  const isStopped = (): boolean => state === 'stopped';

  return {
    ask() {
      if (state === 'idle') round();
      else if (state === 'busy') state = 'stale';
    },
    settled: async () => {
      if (state === 'busy' || state === 'stale') await new Promise<void>((resolve) => waiters.push(resolve));
    },
    stop() {
      state = 'stopped';
      cancel();
      for (const done of waiters.splice(0)) done();
    },
  };
}
