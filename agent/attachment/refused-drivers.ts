/** Drivers of which the server does not take what is to be said: each waits for its own next try. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { Clock } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import type { AnnouncedDriver } from './driver-announcement.ts';

const RETRY = { firstMs: 1_000, maxMs: 60_000 } as const;

interface Refusal {
  /** What was refused. */
  readonly said: string;
  readonly retries: Retries;
  /** Host clock. */
  dueMs: number;
}

export class RefusedDrivers {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #refusals = new Map<string, Refusal>();
  #nodeUid: string | undefined;

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock;
  }

  /** Those that do not wait. One that says something else by now was not refused, and to another Node none was. */
  due(nodeUid: string, here: readonly AnnouncedDriver[]): readonly AnnouncedDriver[] {
    if (nodeUid !== this.#nodeUid) this.#refusals.clear();
    this.#nodeUid = nodeUid;
    const said = new Map(here.map((driver) => [driver.name, textOf(driver)]));
    for (const [name, refusal] of this.#refusals)
      if (said.get(name) !== refusal.said) this.#refusals.delete(name);
    return here.filter((driver) => !this.isWaiting(driver));
  }

  /** It was refused, and nothing was taken since. */
  isSuspect({ name }: AnnouncedDriver): boolean {
    return this.#refusals.has(name);
  }

  isWaiting({ name }: AnnouncedDriver): boolean {
    return (this.#refusals.get(name)?.dueMs ?? Number.NEGATIVE_INFINITY) > this.#clock.nowMs();
  }

  refused(driver: AnnouncedDriver, { retryAfterMs }: ApiFailure): void {
    const { retries } = this.#refusals.get(driver.name) ?? { retries: new Retries(RETRY) };
    const dueMs = this.#clock.nowMs() + retries.nextMs({ leastMs: retryAfterMs });
    this.#refusals.set(driver.name, { said: textOf(driver), retries, dueMs });
  }

  taken({ name }: AnnouncedDriver): void {
    this.#refusals.delete(name);
  }

  /** Until the next of them may be tried, at least a second: one may be due since just now. Undefined: none waits. */
  untilDueMs(here: readonly Pick<AnnouncedDriver, 'name'>[]): number | undefined {
    const dueMs = here.flatMap(({ name }) => this.#refusals.get(name)?.dueMs ?? []);
    return dueMs.length === 0 ? undefined : Math.max(RETRY.firstMs, Math.min(...dueMs) - this.#clock.nowMs());
  }
}

function textOf({ nodeId, topology, volumesMax }: AnnouncedDriver): string {
  return JSON.stringify([nodeId, topology, volumesMax]);
}
