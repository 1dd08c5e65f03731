/**
 * What waits for the journal: all that comes while a write is running goes together into the next one, and shares its
 * result. Of several wishes for one key the last one is written.
 */
import { done, fail, type Failure, type Result } from '../../mount/failure.ts';

/** `body` undefined: the record is to be erased. */
export interface RecordWish {
  readonly key: string;
  readonly body: string | undefined;
  /** It is written only with room for the records that taking the volume down needs. */
  readonly needsRoom: boolean;
}

/** By key; a key that is missing here was done. */
export type Refusals = ReadonlyMap<string, Failure>;

interface Waiting {
  wish: RecordWish;
  readonly settled: Promise<Result<void>>;
  readonly settle: (result: Result<void>) => void;
}

/** The wishes of one write, and what they may have of bytes together. */
const BATCH_BYTES_MAX = 4_194_304;
const WAITING_MAX = 100_000;

export class JournalQueue {
  /** Before each write, while others may still come. */
  readonly #prepare: () => Promise<Result<void>>;
  readonly #write: (wishes: readonly RecordWish[], prepared: Result<void>) => Promise<Refusals>;
  #waiting = new Map<string, Waiting>();
  #isBusy = false;

  constructor(
    prepare: () => Promise<Result<void>>,
    write: (wishes: readonly RecordWish[], prepared: Result<void>) => Promise<Refusals>,
  ) {
    this.#prepare = prepare;
    this.#write = write;
  }

  /** Settles when this wish, or one of the same key that came after it, was written or refused. */
  take(wish: RecordWish): Promise<Result<void>> {
    const before = this.#waiting.get(wish.key);
    if (before === undefined && this.#waiting.size >= WAITING_MAX) {
      const message = `${WAITING_MAX} records wait to be written`;
      return Promise.resolve(fail({ code: 'record-write', message, effect: 'none' }));
    }
    const waiting = before ?? waitingFor(wish);
    waiting.wish = { ...wish, needsRoom: wish.needsRoom || (before?.wish.needsRoom ?? false) };
    this.#waiting.set(wish.key, waiting);
    if (!this.#isBusy) void this.#run();
    return waiting.settled;
  }

  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  async #run(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.size > 0) {
      const prepared = await this.#prepare();
      const batch = this.#takeBatch();
      const refusals = await this.#write(
        batch.map(({ wish }) => wish),
        prepared,
      );
      for (const { wish, settle } of batch) {
        const refusal = refusals.get(wish.key);
        settle(refusal === undefined ? done : fail(refusal));
      }
    }
    this.#isBusy = false;
  }

  #takeBatch(): readonly Waiting[] {
    const batch: Waiting[] = [];
    let bytes = 0;
    for (const [key, waiting] of this.#waiting) {
      bytes += waiting.wish.body?.length ?? 0;
      if (batch.length > 0 && bytes > BATCH_BYTES_MAX) break;
      batch.push(waiting);
      this.#waiting.delete(key);
    }
    return batch;
  }
}

function waitingFor(wish: RecordWish): Waiting {
  let settle: (result: Result<void>) => void = () => {};
  const settled = new Promise<Result<void>>((resolve) => {
    settle = resolve;
  });
  return { wish, settled, settle };
}
