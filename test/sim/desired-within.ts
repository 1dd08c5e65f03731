/** What was desired in the course of one event: a pass may have begun something before the next change of it came. */
import type { DesiredState } from '../../reconciler/model/desired-state.ts';
import type { Operation } from '../../reconciler/model/operation.ts';

export class DesiredWithin {
  #states: DesiredState[] = [];

  /** At each change of the agent. */
  note(desired: DesiredState | undefined): void {
    if (desired !== undefined && this.#states.at(-1) !== desired) this.#states.push(desired);
  }

  /** Since the event began, the state that the event before has left not counted. */
  wanted(operation: Operation): boolean {
    return this.some((desired) => isWanted(desired, operation));
  }

  /** As `wanted`: it was not, before another pod came in the same event (seed 733995022). */
  unwanted(operation: Operation): boolean {
    return this.some((desired) => !isWanted(desired, operation));
  }

  /** As `wanted`. */
  some(holds: (desired: DesiredState) => boolean): boolean {
    return this.#states.some(holds);
  }

  endEvent(): void {
    this.#states = [];
  }
}

export function isWanted({ volumes }: DesiredState, operation: Operation): boolean {
  const wanted = volumes.get(operation.volume);
  return 'publication' in operation
    ? wanted?.publications.has(operation.publication) === true
    : wanted !== undefined;
}
