/** A transition as the hosts of tests do it: each step is a call of its own. */
import type { Result } from '../mount/failure.ts';
import type { Host } from '../mount/host.ts';
import type { PathStepKind } from '../mount/path-steps.ts';
import type { Transition, TransitionArgs } from '../mount/transition.ts';

/** Copies what goes in and what comes out as a channel between processes does. */
export async function performStepwise<Args extends TransitionArgs, T>(
  host: Pick<Host, PathStepKind>,
  { program }: Transition<Args, T>,
  args: Args,
): Promise<Result<T>> {
  const running = program(structuredClone(args));
  let next = running.next();
  while (next.done !== true) {
    const { kind, args: asked } = next.value;
    const call = host[kind as PathStepKind] as (...asked: readonly unknown[]) => unknown;
    next = running.next(await call.call(host, ...asked));
  }
  return structuredClone(next.value);
}
