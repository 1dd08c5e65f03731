/** What an agent believed after the event before: what has not changed since need not be judged once more. */
import type { AgentView } from '../../agent/node/agent-view.ts';
import type { ActualState } from '../../reconciler/model/actual-state.ts';

type Believer = Pick<AgentView['reconciler'], 'actual'>;

export interface BeliefChange {
  /** Undefined at the first look at this agent. */
  readonly before: ActualState | undefined;
  readonly isSame: boolean;
}

const known = new WeakMap<Believer, ActualState>();

/** Once after every event: the next look compares with this one. */
export function changeOfBelief(reconciler: Believer): BeliefChange {
  const actual = reconciler.actual();
  const before = known.get(reconciler);
  const isSame = before !== undefined && hasSame(before, actual);
  if (!isSame) known.set(reconciler, new Map(actual));
  return { before, isSame };
}

/** Belief is replaced, never changed. */
function hasSame(before: ActualState, actual: ActualState): boolean {
  if (before.size !== actual.size) return false;
  for (const [id, volume] of actual) if (before.get(id) !== volume) return false;
  return true;
}
