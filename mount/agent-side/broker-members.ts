/** The brokers of one owner that have not ended: how often in a row they fail to start, and how all of them end. */
import type { BrokerProcess } from './broker-process.ts';

/** Brokers in a row that die before they listen, until waiting calls are told so. */
const FAILED_STARTS_MAX = 3;

export class BrokerMembers<Member extends { readonly broker: BrokerProcess }> {
  readonly #members = new Set<Member>();
  #failedStarts = 0;
  #isClosing = false;
  #onNone: () => void = () => {};

  [Symbol.iterator](): Iterator<Member> {
    return this.#members.values();
  }

  /** Their end has been asked for: no other is to be started. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Who looks for holders passes over them, so none of them may be the number of somebody else by now. */
  pids(): readonly number[] {
    return [...this.#members].flatMap(({ broker }) => broker.pid ?? []);
  }

  add(member: Member): void {
    this.#members.add(member);
  }

  /** One listens. */
  started(): void {
    this.#failedStarts = 0;
  }

  /** One has died before it listened. True: so have those before it, and whoever waits is to be told. */
  failedToStart(): boolean {
    this.#failedStarts = (this.#failedStarts + 1) % FAILED_STARTS_MAX;
    return this.#failedStarts === 0;
  }

  ended(member: Member): void {
    this.#members.delete(member);
    if (this.#members.size === 0) this.#onNone();
  }

  /** Has each of them leave; settles when none is left, after `waitMs` in any case. */
  async close(leave: (member: Member) => void, waitMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#isClosing = true;
    await new Promise<void>((resolve) => {
      const timer = Number.isFinite(waitMs) ? setTimeout(resolve, waitMs) : undefined;
      this.#onNone = () => {
        clearTimeout(timer);
        resolve();
      };
      for (const member of this.#members) leave(member);
      if (this.#members.size === 0) this.#onNone();
    });
  }
}
