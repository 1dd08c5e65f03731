/**
 * What waits for the journal: all that comes while a write is running goes together into the next one, and shares its
 * result. Of several that are wanted for one key the last one is written.
 *
 * Nothing waits for an erase but its own operation, whose volume is down: it goes with the next record that is written,
 * or with the erases of the next moment.
 */
import type { Cancel, Clock } from '../../mount/host.ts';
import { done, fail, type Failure, type Result } from '../../mount/failure.ts';

/** What is to be recorded of one key; undefined: the record is to be erased. */
type Body = string | undefined;

export interface WantedRecord {
  readonly key: string;
  /** It is written only with room for the records that taking the volume down needs. */
  readonly climb: { readonly body: Body } | undefined;
  /** It is written in any case: by itself, or where the climb that came later has no room. */
  readonly undo: { readonly body: Body } | undefined;
}

/** Each has its key; a key that is missing here was done. */
export interface Refusals {
  readonly climbs: ReadonlyMap<string, Failure>;
  readonly undos: ReadonlyMap<string, Failure>;
}

/** Those who came since the last write, and of each kind the last wish. */
interface Waiting {
  readonly key: string;
  latest: 'climb' | 'undo';
  climb: Waiter | undefined;
  undo: Waiter | undefined;
}

interface Waiter {
  body: Body;
  readonly settled: Promise<Result<void>>;
  readonly settle: (result: Result<void>) => void;
}

/** All records of one write have at most so many together. */
const BATCH_BYTES_MAX = 4_194_304;
const WAITING_MAX = 100_000;
/** Longer than the volumes of a pod that comes down are apart, shorter than anybody notices. */
const ERASE_GATHER_MS = 50;

export class JournalQueue {
  readonly #write: (wanted: readonly WantedRecord[]) => Promise<Refusals>;
  #waiting = new Map<string, Waiting>();
  readonly #clock: Pick<Clock, 'timer'>;
  #isBusy = false;
  /** Something is to be written at once. */
  #isDue = false;
  #cancel: Cancel | undefined;

  constructor(clock: Pick<Clock, 'timer'>, write: (wanted: readonly WantedRecord[]) => Promise<Refusals>) {
    this.#clock = clock;
    this.#write = write;
  }

  /** Settles when this wish, or one of the same key that came after it, was written or refused. */
  take(key: string, kind: 'climb' | 'undo', body: Body): Promise<Result<void>> {
    const before = this.#waiting.get(key);
    if (before === undefined && this.#waiting.size >= WAITING_MAX) {
      const message = `${WAITING_MAX} records wait to be written`;
      return Promise.resolve(fail({ code: 'record-write', message, effect: 'none' }));
    }
    const waiting: Waiting = before ?? { key, latest: kind, climb: undefined, undo: undefined };
    const waiter = waiting[kind] ?? newWaiter();
    waiter.body = body;
    waiting[kind] = waiter;
    waiting.latest = kind;
    this.#waiting.set(key, waiting);
    if (body !== undefined) this.#isDue = true;
    this.#advance();
    return waiter.settled;
  }

  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  #advance(): void {
    if (this.#isBusy || this.#waiting.size === 0) return;
    if (this.#isDue) return void this.#run();
    this.#cancel ??= this.#clock.timer(ERASE_GATHER_MS, () => {
      this.#isDue = true;
      this.#advance();
    });
  }

  async #run(): Promise<void> {
    this.#isBusy = true;
    while (this.#isDue) {
      this.#cancel?.();
      this.#cancel = undefined;
      // What is decided at one moment is written together.
      await undefined;
      const batch = this.#takeBatch();
      // What is too much for one write is written behind it.
      this.#isDue = this.#waiting.size > 0;
      const refusals = await this.#write(batch.map(wantedRecord));
      for (const { key, climb, undo } of batch) {
        climb?.settle(resultOf(refusals.climbs.get(key)));
        undo?.settle(resultOf(refusals.undos.get(key)));
      }
    }
    this.#isBusy = false;
    this.#advance();
  }

  #takeBatch(): readonly Waiting[] {
    const batch: Waiting[] = [];
    let bytes = 0;
    for (const [key, waiting] of this.#waiting) {
      bytes += waiting[waiting.latest]?.body?.length ?? 0;
      if (batch.length > 0 && bytes > BATCH_BYTES_MAX) break;
      batch.push(waiting);
      this.#waiting.delete(key);
    }
    return batch;
  }
}

/** What came last says what is meant, of either kind. A climb before it shares its result. */
function wantedRecord({ key, latest, climb, undo }: Waiting): WantedRecord {
  const meant = latest === 'climb' ? climb : undo;
  return { key, climb: climb && meant, undo };
}

function resultOf(refusal: Failure | undefined): Result<void> {
  return refusal === undefined ? done : fail(refusal);
}

function newWaiter(): Waiter {
  let settle: Waiter['settle'] = () => {};
  const settled = new Promise<Result<void>>((resolve) => {
    settle = resolve;
  });
  return { body: undefined, settled, settle };
}
