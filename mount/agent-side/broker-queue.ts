/** Calls that wait for a broker, in their order. None of them has begun. */
export class BrokerQueue<Call extends object> {
  readonly #timers = new Map<Call, NodeJS.Timeout | undefined>();

  get size(): number {
    return this.#timers.size;
  }

  /** `onLate`: it has waited so long, and waits no more. Without `waitMs` it waits for ever. */
  add(call: Call, waitMs: number | undefined, onLate: () => void): void {
    const late = (): void => {
      this.#timers.delete(call);
      onLate();
    };
    this.#timers.set(call, waitMs === undefined ? undefined : setTimeout(late, waitMs));
  }

  /** The first one, which waits no more. */
  next(): Call | undefined {
    for (const call of this.#timers.keys()) {
      this.remove(call);
      return call;
    }
    return undefined;
  }

  /** False: it does not wait. */
  remove(call: Call): boolean {
    clearTimeout(this.#timers.get(call));
    return this.#timers.delete(call);
  }

  /** All of them, none of which waits any more. */
  takeAll(): readonly Call[] {
    const all = [...this.#timers.keys()];
    for (const call of all) this.remove(call);
    return all;
  }
}
