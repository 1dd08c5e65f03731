/** Calls that wait for a broker, in their order. None of them has begun. */
export class BrokerQueue<Call extends object> {
  readonly #timers = new Map<Call, NodeJS.Timeout | undefined>();
  readonly #first = new Set<Call>();

  get size(): number {
    return this.#timers.size;
  }

  /** Does one wait that goes before the others, and needs no turn? */
  get hasFirst(): boolean {
    return this.#first.size > 0;
  }

  /** As `add`: it goes before those that were added, and needs no turn. */
  addFirst(call: Call, waitMs: number | undefined, onLate: () => void): void {
    this.#first.add(call);
    this.add(call, waitMs, onLate);
  }

  /** `onLate`: it has waited so long, and waits no more. Without `waitMs` it waits for ever. */
  add(call: Call, waitMs: number | undefined, onLate: () => void): void {
    const late = (): void => {
      this.remove(call);
      onLate();
    };
    this.#timers.set(call, waitMs === undefined ? undefined : setTimeout(late, waitMs));
  }

  /** The first one, which waits no more; without a turn only one that needs none. */
  next(isTurn: boolean): Call | undefined {
    const [first] = this.#first;
    const [oldest] = this.#timers.keys();
    const next = first ?? (isTurn ? oldest : undefined);
    if (next !== undefined) this.remove(next);
    return next;
  }

  /** False: it does not wait. */
  remove(call: Call): boolean {
    clearTimeout(this.#timers.get(call));
    this.#first.delete(call);
    return this.#timers.delete(call);
  }

  /** All of them, none of which waits any more. */
  takeAll(): readonly Call[] {
    const all = [...this.#timers.keys()];
    for (const call of all) this.remove(call);
    return all;
  }
}
