/** Chance as data: one seed in, the same choices out, on every machine. */

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, `bound`). */
  below(bound: number): number;
  /** Uniform integer in [`low`, `high`]. */
  between(low: number, high: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
  /** In random order; the input is left alone. */
  shuffled<T>(items: readonly T[]): T[];
  /** A stream of its own, so that one part's appetite for chance does not move another's. */
  fork(): Random;
}

const TWO_TO_32 = 4_294_967_296;
const WARM_UP_ROUNDS = 12;

/** sfc32 (PractRand): 128 bits of state, period at least 2^32, a few machine instructions a draw. */
export function createRandom(seed: number): Random {
  let a = 0x9e3779b9 ^ seed;
  let b = 0x243f6a88 ^ Math.floor(seed / TWO_TO_32);
  let c = 0xb7e15162;
  let counter = 1;

  function draw(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) draw();

  const random: Random = {
    next: () => draw() / TWO_TO_32,
    below: (bound) => Math.floor((draw() / TWO_TO_32) * bound),
    between: (low, high) => low + Math.floor((draw() / TWO_TO_32) * (high - low + 1)),
    chance: (probability) => probability > 0 && draw() / TWO_TO_32 < probability,
    pick: (choices) => {
      const choice = choices[Math.floor((draw() / TWO_TO_32) * choices.length)];
      if (choice === undefined) throw new Error('broken invariant: a choice among nothing');
      return choice;
    },
    shuffled: (items) => {
      const copy = [...items];
      for (let at = copy.length - 1; at > 0; at -= 1) {
        const other = Math.floor((draw() / TWO_TO_32) * (at + 1));
        [copy[at], copy[other]] = [copy[other] as never, copy[at] as never];
      }
      return copy;
    },
    fork: () => createRandom(draw()),
  };
  return random;
}
