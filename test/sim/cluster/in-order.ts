/** What comes later, in the order in which it was sent: within one millisecond, too, which time itself shuffles. */
import type { Cancel } from '../../../mount/host.ts';
import type { VirtualTime } from '../virtual-time.ts';

export class InOrder {
  readonly #time: Pick<VirtualTime, 'nowMs' | 'after'>;
  readonly #queue: (() => void)[] = [];
  readonly #timers = new Set<Cancel>();
  #lastDueMs = Number.NEGATIVE_INFINITY;

  constructor(time: Pick<VirtualTime, 'nowMs' | 'after'>) {
    this.#time = time;
  }

  get size(): number {
    return this.#queue.length;
  }

  /** After all that was sent before, and after so long at least. */
  send(act: () => void, delayMs: number): void {
    const nowMs = this.#time.nowMs();
    this.#lastDueMs = Math.max(this.#lastDueMs, nowMs + delayMs);
    this.#queue.push(act);
    // Each timer is for whatever is first when it goes off.
    const cancel = this.#time.after(this.#lastDueMs - nowMs, () => {
      this.#timers.delete(cancel);
      this.#queue.shift()?.();
    });
    this.#timers.add(cancel);
  }

  /** All comes now. */
  flush(): void {
    const all = this.#queue.splice(0);
    this.clear();
    for (const act of all) act();
  }

  /** What is on its way is lost. */
  clear(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#queue.splice(0);
    this.#lastDueMs = Number.NEGATIVE_INFINITY;
  }
}
