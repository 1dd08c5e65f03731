/** For how long nothing was heard of what is watched, over all streams that were opened for it since. */
import type { Cancel, Clock } from '../../mount/host.ts';

/**
 * A bookmark comes once a minute. Streams without any for this long may be held back by somebody, or were opened at a
 * version that a server whose backup was restored has yet to come to, which is told nothing: it is listed anew. They
 * count together: where somebody cuts what is idle for half a minute, none of them is ever silent for long. The time
 * without a stream does not count: whoever was away tells from there what has been since.
 */
const SILENCE_MS_MAX = 150_000;

export class Silence {
  readonly #clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly #onTooLong: () => void;
  /** What streams that have ended were silent for. */
  #pastMs = 0;
  /** Since when the one of now is; undefined while there is none. */
  #sinceMs: number | undefined;
  #cancel: Cancel = () => {};

  constructor(clock: Pick<Clock, 'nowMs' | 'timer'>, onTooLong: () => void) {
    this.#clock = clock;
    this.#onTooLong = onTooLong;
  }

  /** A stream is asked for, and may never be answered. */
  begin(): void {
    this.#cancel();
    this.#cancel = this.#clock.timer(Math.max(0, SILENCE_MS_MAX - this.#pastMs), this.#onTooLong);
  }

  noteOpened(): void {
    this.#sinceMs = this.#clock.nowMs();
  }

  noteHeard(): void {
    this.forget();
    this.noteOpened();
    this.begin();
  }

  /** The stream has ended, or is given up. */
  end(): void {
    this.#cancel();
    if (this.#sinceMs !== undefined) this.#pastMs += this.#clock.nowMs() - this.#sinceMs;
    this.#sinceMs = undefined;
  }

  /** It was listed. */
  forget(): void {
    this.#pastMs = 0;
  }
}
