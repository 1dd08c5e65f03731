/** A transition as the hosts of tests do it: each step is a call of its own. */
import { createTurns, type Turns } from '../mount/process/turns.ts';
import type { Result } from '../mount/failure.ts';
import type { Host } from '../mount/host.ts';
import type { PathStepKind } from '../mount/path-steps.ts';
import type { Transition, TransitionArgs } from '../mount/transition.ts';
import { plainCopy } from './plain-copy.ts';

type StepHost = Pick<Host, PathStepKind>;

const turnsOf = new WeakMap<StepHost, Turns>();

/** Copies what goes in and what comes out as a channel between processes does, and keeps others from its path. */
export function performStepwise<Args extends TransitionArgs, T>(
  host: StepHost,
  transition: Transition<Args, T>,
  args: Args,
): Promise<Result<T>> {
  if (!transition.changesTheWorld) return stepThrough(host, transition, args);
  const inTurn = turnsOf.get(host) ?? createTurns();
  turnsOf.set(host, inTurn);
  return inTurn(args.path, () => stepThrough(host, transition, args));
}

async function stepThrough<Args extends TransitionArgs, T>(
  host: StepHost,
  { program }: Transition<Args, T>,
  args: Args,
): Promise<Result<T>> {
  const running = program(plainCopy(args));
  let next = running.next();
  while (next.done !== true) {
    const { kind, args: asked } = next.value;
    const call = host[kind as PathStepKind] as (...asked: readonly unknown[]) => unknown;
    next = running.next(await call.call(host, ...asked));
  }
  return plainCopy(next.value);
}
