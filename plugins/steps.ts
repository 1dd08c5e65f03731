/** Several effects that are one step to the caller. */
import { done, fail, type Result } from '../mount/failure.ts';
import type { Program } from '../mount/transition.ts';

export type Step = () => Promise<Result<void>>;

/**
 * Runs the steps in order until one fails.
 * Guarantees: a failure after a finished step has effect `unknown`, because what was there before is no longer all
 * there; a failure of the first step keeps its own word.
 */
export async function inOrder(...steps: readonly Step[]): Promise<Result<void>> {
  for (const [index, step] of steps.entries()) {
    const result = await step();
    if (!result.ok) return index === 0 ? result : doubtful(result);
  }
  return done;
}

/** As `inOrder`, within a transition. */
export function* oneByOne(...programs: readonly (() => Program<Result<void>>)[]): Program<Result<void>> {
  for (const [index, program] of programs.entries()) {
    const result = yield* program();
    if (!result.ok) return index === 0 ? result : doubtful(result);
  }
  return done;
}

/** The same answer, with any promise that nothing changed taken back. */
export function doubtful<T>(result: Result<T>): Result<T> {
  return result.ok ? result : fail({ ...result.failure, effect: 'unknown' });
}

/** Nothing was done: the wish is another one than when it was asked for. */
export function noLongerWanted(): Result<never> {
  const message = 'the wish changed while this waited its turn';
  return fail({ code: 'no-longer-wanted', message, effect: 'none' });
}
