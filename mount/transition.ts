/**
 * What a broker does in one call: a program over the path calls of `Host`, which sees each answer before it says what
 * comes next. A call costs a message there and back, and a place in the queue; a step costs a system call.
 */
import type { AbsolutePath } from './absolute-path.ts';
import type { Result } from './failure.ts';

/** One path call as data; path-steps.ts makes them. The answer is what the call of that name answers. */
export interface PathStep {
  readonly kind: string;
  readonly args: readonly unknown[];
}

/** Yields its steps and gets their answers. */
export type Program<T> = Generator<PathStep, T, unknown>;

/** What a transition is about is told when it is lost, and one that changes the world has that path alone. */
export interface TransitionArgs {
  readonly path: AbsolutePath;
}

export interface Transition<Args extends TransitionArgs, T> {
  readonly name: string;
  /** One that was lost may have done any part of its steps. */
  readonly changesTheWorld: boolean;
  /** One of its steps may take as long as `Host.removeTree`. */
  readonly removesTrees: boolean;
  /**
   * What is there decides what comes next, and a failure of a step is an answer like any other. Pure but for its steps:
   * it runs in a broker, and in tests step by step. `Args` and `T` can be sent between processes (structured clone).
   */
  readonly program: (args: Args) => Program<Result<T>>;
}

/** Any of them, by whoever does not call it. */
export type AnyTransition = Transition<never, unknown>;

/** Changes the world, and removes no tree, unless said otherwise. */
export function transition<Args extends TransitionArgs, T>(
  name: string,
  program: Transition<Args, T>['program'],
  nature: Partial<Pick<Transition<Args, T>, 'changesTheWorld' | 'removesTrees'>> = {},
): Transition<Args, T> {
  return { name, changesTheWorld: true, removesTrees: false, ...nature, program };
}
