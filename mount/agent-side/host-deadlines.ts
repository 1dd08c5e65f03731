/** How long each kind of effect of the real host may take. */
import { REMOVE_TREE_DEADLINE_MS } from '../host.ts';

/** From the start of the effect until it is killed. */
export interface HostDeadlines {
  readonly path: number;
  readonly removeTree: number;
  readonly mount: number;
  readonly unmount: number;
  readonly notify: number;
  /** One look at a file system, once a broker takes it. */
  readonly probe: number;
  /** One look at how much room files take: more than the look itself may. */
  readonly measure: number;
  /** One run of losetup(8). */
  readonly loop: number;
  /** For findHolders, which only finds a reason: nothing is done later for it. */
  readonly holders: number;
}

export const DEADLINES_MS: HostDeadlines = {
  path: 30_000,
  removeTree: REMOVE_TREE_DEADLINE_MS,
  mount: 60_000,
  unmount: 60_000,
  // A ping every 10 s that takes this long still feeds the shipped unit's watchdog, which waits for 30 s.
  notify: 15_000,
  loop: 30_000,
  holders: 5_000,
  probe: 10_000,
  measure: 30_000,
};
