/** Long work of the agent in virtual time: in some seeds it is left after a few pieces, and things happen meanwhile. */
import type { Host } from '../../mount/host.ts';
import { createSlices, type Slices } from '../../mount/process/slices.ts';
import type { Random } from './random.ts';

/** What it is like in one seed. */
export interface SlicePlan {
  /** How many pieces one slice has. */
  readonly piecesMax: number;
  /** Between two slices. */
  readonly pauseMsMax: number;
}

/** A clock that stands still while work is done: all of it is one slice. */
export const ONE_SLICE: SlicePlan = { piecesMax: Number.POSITIVE_INFINITY, pauseMsMax: 1 };

const SHARE = 0.15;

/** `random` is a stream of its own, so that the other seeds keep their stories. */
export function drawSlices(random: Random): SlicePlan {
  if (!random.chance(SHARE)) return ONE_SLICE;
  return { piecesMax: random.pick([1, 3, 10]), pauseMsMax: random.pick([1, 20]) };
}

export function createSimSlices(
  host: Pick<Host, 'nowMs' | 'timer'>,
  { piecesMax, pauseMsMax }: SlicePlan,
  random: Random,
): Slices {
  const clock = {
    nowMs: () => host.nowMs(),
    timer: (_delayMs: number, fire: () => void) => host.timer(random.below(pauseMsMax), fire),
  };
  return createSlices({ clock, piecesMax });
}
