/** One object of an API server that may only be asked for by its name: it is read again and again. */
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import { readEnvelope } from '../../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { WENT_BACK_MS } from '../../../kubernetes/api/list-age.ts';
import { compareResourceVersions } from '../../../kubernetes/api/resource-version.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';

/** What is known of one object. `unknown`: it was never read; that a server denies it never means that it is absent. */
export type NamedAnswer =
  | { readonly kind: 'present'; readonly object: ApiObjectEnvelope }
  | { readonly kind: 'absent' }
  | Untold;

export interface Untold {
  readonly kind: 'unknown';
  readonly message: string;
  readonly isDenied?: boolean;
  /** It was asked for just now, and nothing is the matter. */
  readonly isBeingRead?: true;
}

export interface NamedObject {
  answer(): NamedAnswer;
  /** Why the last read told nothing, though the answer is of one before; undefined when it has. */
  trouble(): Untold | undefined;
  /** Host clock: when the last read that was answered had been asked for; -Infinity before. */
  askedMs(): number;
  /** Host clock: when the server last said whether and what it is; -Infinity before. */
  heardMs(): number;
  /** Reads it now, or once more after the read that is under way. */
  read(): void;
  /** As `read`; but what was asked for and could not be read is read again at its pace, whoever asks how often. */
  readInTurn(): void;
  /**
   * What the server says now, whatever it said before; what it says is known afterwards. When it says nothing, it is
   * asked again soon, and `onChange` tells of the answer.
   */
  readNow(): Promise<NamedAnswer>;
  /** The server has answered somebody with it. An older one than is known is a reason to read. */
  learn(object: ApiObjectEnvelope): void;
  stop(): void;
}

export interface ReadPace {
  /** The pace of one that is waited for: it grows from the first to the largest. */
  readonly waitingFirstMs: number;
  readonly waitingMaxMs: number;
  readonly standingMs: number;
}

export interface NamedObjectParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly path: string;
  /** Somebody waits for it to become another one. */
  readonly isWaitedFor: (answer: NamedAnswer) => boolean;
  /** Between two reads. By default as the kubelet looks at a claim. */
  readonly pace?: ReadPace;
  /** Whoever follows it reads it himself the first time. */
  readonly isReadFirst?: boolean;
  readonly onChange: () => void;
}

const OBJECT_BYTES_MAX = 4 * 1_024 * 1_024;
const READ_MS_MAX = 10_000;
const WAITING_GROWTH = 1.6;
/** As the kubelet looks at a claim that may have grown. */
const CLAIM_PACE: ReadPace = { waitingFirstMs: 500, waitingMaxMs: 30_000, standingMs: 90_000 };
const JITTER = 0.2;
/** The next answer is to be at that distance, whatever the jitter. */
const OLDER_PACE_MS = WENT_BACK_MS / (1 - JITTER);
const SOMETHING_ELSE: NamedAnswer = { kind: 'unknown', message: 'the API server answered something else' };
const WENT_BACK: NamedAnswer = {
  kind: 'unknown',
  message: 'the API server answered with an older state than it has shown before',
};
export const BEING_READ: Untold = {
  kind: 'unknown',
  message: 'it is being read from the API server',
  isBeingRead: true,
};

export function createNamedObject(parts: NamedObjectParts): NamedObject {
  return new PolledObject(parts);
}

class PolledObject implements NamedObject {
  readonly #parts: NamedObjectParts;
  #answer: NamedAnswer = BEING_READ;
  #trouble: Untold | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;
  #heardMs = Number.NEGATIVE_INFINITY;
  /** Host clock: when the first of the answers was asked for that are of an earlier state than is known. */
  #olderMs: number | undefined;
  #isReading = false;
  #isAgain = false;
  #isStopped = false;
  /** Somebody asked for this read: he is told of its end, whatever it says. */
  #isAsked = true;
  readonly #pace: ReadPace;
  #waitingMs: number;
  #cancel: Cancel = () => {};

  constructor(parts: NamedObjectParts) {
    this.#parts = parts;
    this.#pace = parts.pace ?? CLAIM_PACE;
    this.#waitingMs = this.#pace.waitingFirstMs;
    if (parts.isReadFirst !== true) void this.#read();
  }

  answer(): NamedAnswer {
    return this.#answer;
  }

  trouble(): Untold | undefined {
    return this.#trouble;
  }

  askedMs(): number {
    return this.#askedMs;
  }

  heardMs(): number {
    return this.#heardMs;
  }

  read(): void {
    this.#isAsked = true;
    void this.#read();
  }

  readInTurn(): void {
    if (this.#trouble === undefined || !this.#isAsked) this.read();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  async #read(): Promise<void> {
    if (this.#isStopped) return;
    if (this.#isReading) {
      this.#isAgain = true;
      return;
    }
    const { clock } = this.#parts;
    this.#isReading = true;
    this.#cancel();
    const startMs = clock.nowMs();
    const { answer, retryAfterMs } = await this.#ask();
    this.#isReading = false;
    if (this.#isStopped) return;
    this.#hear(answer, startMs);
    this.#plan(retryAfterMs);
  }

  async readNow(): Promise<NamedAnswer> {
    const startMs = this.#parts.clock.nowMs();
    const { answer, retryAfterMs } = await this.#ask();
    const isRefused = isOlder(answer, this.#answer) && !this.#isInsisted(startMs);
    if (answer.kind === 'unknown' || isRefused) this.#askLater(retryAfterMs);
    if (isRefused) return WENT_BACK;
    if (this.#isStopped) return answer;
    const isNews = answer.kind !== 'unknown' && !isSame(answer, this.#answer);
    this.#hear(answer, startMs);
    // The next look was planned for what was known before, which may have been nothing to wait for.
    if (isNews && !this.#isReading) {
      this.#cancel();
      this.#plan(retryAfterMs);
    }
    return answer;
  }

  learn(object: ApiObjectEnvelope): void {
    const answer: NamedAnswer = { kind: 'present', object };
    if (this.#isStopped) return;
    // It may only have come late.
    if (isOlder(answer, this.#answer)) this.read();
    else this.#learn(answer, this.#parts.clock.nowMs());
  }

  /** Whoever asked gives up for now: the next answer, though it be as known before, is his reason to come again. */
  #askLater(leastMs: number): void {
    this.#isAsked = true;
    if (this.#isStopped || this.#isReading) return;
    this.#cancel();
    this.#plan(leastMs);
  }

  async #ask(): Promise<{ readonly answer: NamedAnswer; readonly retryAfterMs: number }> {
    const { transport, path } = this.#parts;
    const answered = await transport.request({
      method: 'GET',
      path,
      answerBytesMax: OBJECT_BYTES_MAX,
      deadlineMs: READ_MS_MAX,
    });
    if (answered.ok) {
      const object = readEnvelope(answered.value);
      return { answer: object === undefined ? SOMETHING_ELSE : { kind: 'present', object }, retryAfterMs: 0 };
    }
    const { code, message, retryAfterMs = 0 } = answered.failure;
    if (code === 'absent') return { answer: { kind: 'absent' }, retryAfterMs };
    return { answer: { kind: 'unknown', message, isDenied: code === 'denied' }, retryAfterMs };
  }

  #hear(answer: NamedAnswer, startMs: number): void {
    if (answer.kind === 'unknown') this.#doubt(answer);
    else this.#learn(answer, startMs);
  }

  #learn(next: NamedAnswer, startMs: number): void {
    // Two reads may overlap: the one that was asked for later counts.
    if (startMs < this.#askedMs || (isOlder(next, this.#answer) && !this.#isInsisted(startMs))) return;
    this.#olderMs = undefined;
    this.#askedMs = startMs;
    this.#heardMs = this.#parts.clock.nowMs();
    const isNews = !isSame(next, this.#answer);
    this.#answer = next;
    if (isNews || this.#trouble !== undefined) this.#waitingMs = this.#pace.waitingFirstMs;
    this.#trouble = undefined;
    if (isNews || this.#isAsked) this.#parts.onChange();
    this.#isAsked = this.#isAgain;
  }

  /** Asked of an older answer than is known: nothing else was heard for so long that the server means it. */
  #isInsisted(startMs: number): boolean {
    this.#olderMs ??= startMs;
    return startMs - this.#olderMs >= WENT_BACK_MS;
  }

  /** What it said last counts. */
  #doubt(answer: Untold): void {
    const known = this.#answer;
    const isFirst = this.#trouble === undefined;
    this.#trouble = answer;
    // Once: whoever is told may ask again at once, and the words may differ each time.
    if (known.kind !== 'unknown' && isFirst) this.#parts.onChange();
    if (known.kind !== 'unknown' || known.message === answer.message) return;
    this.#answer = answer;
    // Whoever reads it first has this as his own answer.
    if (known !== BEING_READ || this.#parts.isReadFirst !== true) this.#parts.onChange();
  }

  #plan(leastMs: number): void {
    const { clock, random, isWaitedFor } = this.#parts;
    const isNow = this.#isAgain;
    this.#isAgain = false;
    if (isNow) return void this.#read();
    const isWaited = this.#isAsked || isWaitedFor(this.#answer);
    const { standingMs, waitingMaxMs } = this.#pace;
    const restMs = this.#olderMs === undefined ? standingMs : Math.min(standingMs, OLDER_PACE_MS);
    const paceMs = isWaited ? this.#waitingMs : restMs;
    if (isWaited) this.#waitingMs = Math.min(this.#waitingMs * WAITING_GROWTH, waitingMaxMs);
    const jitteredMs = paceMs * (1 + JITTER * (2 * random() - 1));
    this.#cancel = clock.timer(Math.max(jitteredMs, leastMs), () => void this.#read());
  }
}

/** A server that lags behind another one: the same object as it was before, or another one that had its name then. */
function isOlder(next: NamedAnswer, known: NamedAnswer): boolean {
  if (next.kind !== 'present' || known.kind !== 'present') return false;
  return compareResourceVersions(next.object.resourceVersion, known.object.resourceVersion) < 0;
}

function isSame(a: NamedAnswer, b: NamedAnswer): boolean {
  if (a.kind !== 'present' || b.kind !== 'present') return a.kind === b.kind;
  return a.object.uid === b.object.uid && a.object.resourceVersion === b.object.resourceVersion;
}
