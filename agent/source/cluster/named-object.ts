/** One object of an API server that may only be asked for by its name: it is read again and again. */
import type { ApiObjectEnvelope } from '../../../kubernetes/api/api-object.ts';
import { readEnvelope } from '../../../kubernetes/api/api-object.ts';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { compareResourceVersions } from '../../../kubernetes/api/resource-version.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';

/** What is known of one object. `unknown`: it was never read; that a server denies it never means that it is absent. */
export type NamedAnswer =
  | { readonly kind: 'present'; readonly object: ApiObjectEnvelope }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly message: string };

export interface NamedObject {
  answer(): NamedAnswer;
  /** Host clock: when the last read that was answered had been asked for; -Infinity before. */
  askedMs(): number;
  /** Reads it now, or once more after the read that is under way. */
  read(): void;
  stop(): void;
}

export interface NamedObjectParts {
  readonly transport: ApiTransport;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly path: string;
  /** Somebody waits for it to become another one. */
  readonly isWaitedFor: (answer: NamedAnswer) => boolean;
  readonly onChange: () => void;
}

const OBJECT_BYTES_MAX = 4 * 1_024 * 1_024;
const READ_MS_MAX = 10_000;
const WAITING_FIRST_MS = 500;
const WAITING_GROWTH = 1.6;
const WAITING_MS_MAX = 30_000;
/** As the kubelet looks at a claim that may have grown. */
const STANDING_MS = 90_000;
const JITTER = 0.2;
const BEING_READ = { kind: 'unknown', message: 'it is being read from the API server' } as NamedAnswer;

export function createNamedObject(parts: NamedObjectParts): NamedObject {
  return new PolledObject(parts);
}

class PolledObject implements NamedObject {
  readonly #parts: NamedObjectParts;
  #answer = BEING_READ;
  #askedMs = Number.NEGATIVE_INFINITY;
  #isReading = false;
  #isAgain = false;
  #isStopped = false;
  /** Somebody asked for this read: he is told of its end, whatever it says. */
  #isAsked = true;
  #waitingMs = WAITING_FIRST_MS;
  #cancel: Cancel = () => {};

  constructor(parts: NamedObjectParts) {
    this.#parts = parts;
    void this.#read();
  }

  answer(): NamedAnswer {
    return this.#answer;
  }

  askedMs(): number {
    return this.#askedMs;
  }

  read(): void {
    this.#isAsked = true;
    void this.#read();
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
    const { transport, clock, path } = this.#parts;
    this.#isReading = true;
    this.#cancel();
    const startMs = clock.nowMs();
    const answered = await transport.request({
      method: 'GET',
      path,
      answerBytesMax: OBJECT_BYTES_MAX,
      deadlineMs: READ_MS_MAX,
    });
    this.#isReading = false;
    if (this.#isStopped) return;
    const envelope = answered.ok ? readEnvelope(answered.value) : undefined;
    if (envelope !== undefined) this.#learn({ kind: 'present', object: envelope }, startMs);
    else if (!answered.ok && answered.failure.code === 'absent') this.#learn({ kind: 'absent' }, startMs);
    else this.#doubt(answered.ok ? 'the API server answered something else' : answered.failure.message);
    this.#plan(answered.ok ? 0 : (answered.failure.retryAfterMs ?? 0));
  }

  #learn(next: NamedAnswer, startMs: number): void {
    if (isOlder(next, this.#answer)) return;
    this.#askedMs = startMs;
    const isNews = !isSame(next, this.#answer);
    this.#answer = next;
    if (isNews) this.#waitingMs = WAITING_FIRST_MS;
    if (isNews || this.#isAsked) this.#parts.onChange();
    this.#isAsked = this.#isAgain;
  }

  /** What it said last counts; only who has never heard of it is told why. */
  #doubt(message: string): void {
    if (this.#answer.kind !== 'unknown' || this.#answer.message === message) return;
    this.#answer = { kind: 'unknown', message };
    this.#parts.onChange();
  }

  #plan(leastMs: number): void {
    const { clock, random, isWaitedFor } = this.#parts;
    const isNow = this.#isAgain;
    this.#isAgain = false;
    if (isNow) return void this.#read();
    const isWaited = this.#isAsked || isWaitedFor(this.#answer);
    const paceMs = isWaited ? this.#waitingMs : STANDING_MS;
    if (isWaited) this.#waitingMs = Math.min(this.#waitingMs * WAITING_GROWTH, WAITING_MS_MAX);
    const jitteredMs = paceMs * (1 + JITTER * (2 * random() - 1));
    this.#cancel = clock.timer(Math.max(jitteredMs, leastMs), () => void this.#read());
  }
}

/** A server that lags behind another one: the same object as it was before. */
function isOlder(next: NamedAnswer, known: NamedAnswer): boolean {
  if (next.kind !== 'present' || known.kind !== 'present') return false;
  const [a, b] = [next.object, known.object];
  return a.uid === b.uid && compareResourceVersions(a.resourceVersion, b.resourceVersion) < 0;
}

function isSame(a: NamedAnswer, b: NamedAnswer): boolean {
  if (a.kind !== 'present' || b.kind !== 'present') return a.kind === b.kind;
  return a.object.uid === b.object.uid && a.object.resourceVersion === b.object.resourceVersion;
}
