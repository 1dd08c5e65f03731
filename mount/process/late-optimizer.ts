/** When V8 makes optimised code of a function that runs often. */
import { setFlagsFromString } from 'node:v8';

/** Bytes of bytecode that a function runs before it is looked at; Node.js 20 has 67,584. */
const BUDGET_BYTES = 600_000;

/**
 * Has a function run nine times as long as usual, as baseline code, before it is optimised. A burst of work on a node
 * is over after a second or two: to optimise what ran in it took more processor time, on other threads, than that gave
 * back (D-119). What runs on and on is optimised all the same. Call it before there is much work. On the command line
 * the flag would do the same, but Node.js does not start with one that it does not know.
 */
export function optimiseLate(): void {
  setFlagsFromString(`--interrupt-budget=${BUDGET_BYTES}`);
}
