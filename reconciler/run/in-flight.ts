/** What is queued or runs. */
import type { ToldStep } from '../model/told-step.ts';
import type { Setback } from './setbacks.ts';

export interface InFlight<Operation> {
  readonly operation: Operation;
  readonly lane: string;
  readonly phase: 'queued' | 'running';
  /** When it was planned. */
  readonly sinceMs: number;
  /** When its turn came; undefined: not yet. */
  readonly begunMs: number | undefined;
  readonly step: ToldStep;
  /** What a long operation is doing now, for people; undefined when it has not said. */
  readonly progress: string | undefined;
  /** What the tries before this one ran into; undefined on the first. */
  readonly setback: Setback | undefined;
}

/** As its executor knows it: changed in place. */
export interface Entry<Operation> {
  readonly operation: Operation;
  readonly lane: string;
  readonly sinceMs: number;
  phase: InFlight<Operation>['phase'];
  begunMs: number | undefined;
  step: ToldStep;
  /** Its back-off was reset while it ran: what a failure proves may be about another wish or driver already. */
  wasReset: boolean;
  progress: string | undefined;
  setback: Setback | undefined;
}

/** What is queued or runs, in the order of the subjects' first operations. */
export class Entries<Operation, Subject extends string> {
  readonly #bySubject = new Map<Subject, Set<Entry<Operation>>>();
  /** As they were listed last; undefined since there are others. */
  #all: readonly Entry<Operation>[] | undefined;

  /** The same list until one is added or deleted. */
  all(): readonly Entry<Operation>[] {
    this.#all ??= [...this.#bySubject.values()].flatMap((entries) => [...entries]);
    return this.#all;
  }

  of(subject: Subject): Iterable<Entry<Operation>> {
    return this.#bySubject.get(subject) ?? [];
  }

  add(subject: Subject, entry: Entry<Operation>): void {
    this.#all = undefined;
    this.#bySubject.set(subject, (this.#bySubject.get(subject) ?? new Set()).add(entry));
  }

  /** False when it was not there. */
  delete(subject: Subject, entry: Entry<Operation>): boolean {
    this.#all = undefined;
    const entries = this.#bySubject.get(subject);
    const isDeleted = entries?.delete(entry) === true;
    if (entries?.size === 0) this.#bySubject.delete(subject);
    return isDeleted;
  }
}
