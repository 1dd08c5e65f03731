/** Long work in slices: between two of them the loop is given back, so that whoever waits has a turn. */
import type { Cancel, Clock } from '../host.ts';

/** Work that can be left after each of its pieces, and that answers at its end. A piece is far below a millisecond. */
export type Sliced<T> = Generator<void, T, void>;

export interface SlicesParts {
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** How long one slice may take. */
  readonly msMax?: number;
  /** How many pieces one slice may have, for a clock that stands still while work is done. */
  readonly piecesMax?: number;
}

export interface Slices {
  /**
   * Begins at once, and goes on in later turns when a slice is not enough; `onDone` is called in the turn in which the
   * work ends. What is small is done when this returns.
   */
  run<T>(work: Sliced<T>, onDone: (value: T) => void): Cancel;
}

/** Three passes follow each other in one turn of the loop, and together they stay well below 50 ms. */
const SLICE_MS = 8;

export function createSlices({
  clock,
  msMax = SLICE_MS,
  piecesMax = Number.POSITIVE_INFINITY,
}: SlicesParts): Slices {
  return {
    run(work, onDone) {
      let cancelled = false;
      let cancelTimer: Cancel = () => {};
      const turn = (): void => {
        const endMs = clock.nowMs() + msMax;
        for (let pieces = 0; pieces < piecesMax; pieces += 1) {
          const step = work.next();
          if (cancelled) return;
          if (step.done === true) return onDone(step.value);
          if (clock.nowMs() >= endMs) break;
        }
        cancelTimer = clock.timer(0, turn);
      };
      turn();
      return () => {
        cancelled = true;
        cancelTimer();
      };
    },
  };
}

/** All of it at once. */
export function wholly<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

const RUN_LENGTH = 128;

/** A sorted copy; what is equal keeps its order. */
export function* sorted<T>(items: Iterable<T>, compare: (a: T, b: T) => number): Sliced<readonly T[]> {
  const all = [...items];
  let runs: (readonly T[])[] = [];
  for (let from = 0; from < all.length; from += RUN_LENGTH) {
    runs.push(all.slice(from, from + RUN_LENGTH).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const longer: (readonly T[])[] = [];
    for (let at = 0; at < runs.length; at += 2)
      longer.push(yield* merged(runs[at] ?? [], runs[at + 1] ?? [], compare));
    runs = longer;
  }
  return runs[0] ?? [];
}

function* merged<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): Sliced<readonly T[]> {
  const all: T[] = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
    const isFromA = j >= b.length || (i < a.length && compare(a[i] as T, b[j] as T) <= 0);
    all.push((isFromA ? a[i++] : b[j++]) as T);
    if (all.length % RUN_LENGTH === 0) yield;
  }
  return all;
}
