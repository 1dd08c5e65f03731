/** When a plan says all that it can: the moment to print it. */
import type { Cancel, Clock } from '../../mount/host.ts';
import type { Agent } from '../node/agent.ts';

export type PlanningAgent = Pick<Agent, 'view' | 'onChange' | 'hasScanned'>;

/** All sources have been listed, and the disk was read. */
export function isWhole(agent: PlanningAgent): boolean {
  return agent.hasScanned() && agent.view().reconciler.desired().complete;
}

/** And nothing is waited for that may still be answered: a driver, an object, an attachment. */
function isReady(agent: PlanningAgent): boolean {
  const { reconciler } = agent.view();
  const { frozenPods, unresolved, unknownOrigins } = reconciler.desired();
  if (
    !reconciler.idle() ||
    !isWhole(agent) ||
    frozenPods.size > 0 ||
    unresolved.length > 0 ||
    unknownOrigins.size > 0
  )
    return false;
  return reconciler
    .obstacles()
    .every(({ kind, code }) => kind !== 'waiting-driver' && code !== 'not-attached');
}

/** Settles when nothing more is expected, or after `patienceMs`: then what is known by then has to do. */
export function planReady(
  agent: PlanningAgent,
  clock: Pick<Clock, 'timer'>,
  patienceMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    let cancels: readonly Cancel[] = [];
    const end = (): void => {
      for (const cancel of cancels) cancel();
      resolve();
    };
    const look = (): void => {
      if (isReady(agent)) end();
    };
    cancels = [agent.onChange(look), clock.timer(patienceMs, end)];
    look();
  });
}
