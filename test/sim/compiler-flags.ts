/**
 * How V8 is told to compile the simulation. Two fifths of the processor time were its optimizing compiler's by default:
 * now all is compiled simply and at once, and optimized four times as late, with little inlined. What is not called for
 * a few collections of garbage is kept all the same: some story needs it again, and would have it compiled once more.
 */
import { setFlagsFromString } from 'node:v8';

export const COMPILER_FLAGS = [
  '--always-sparkplug',
  '--no-flush-bytecode',
  '--interrupt-budget=270336',
  '--max-inlined-bytecode-size-cumulative=230',
] as const;

/** For a test file: node's runner starts its process without them. What was compiled before stays as it is. */
export function compileSimply(): void {
  for (const flag of COMPILER_FLAGS) setFlagsFromString(flag);
}
