/**
 * The port to an API server over a simulated network: requests and answers take their time, and either may be lost. A
 * request that was sent does what it asks for even if its sender is dead by then.
 */
import type { Cancel } from '../../../mount/host.ts';
import type { ApiFailure, ApiResult } from '../../../kubernetes/api/api-failure.ts';
import { failureOfStatus } from '../../../kubernetes/api/api-failure.ts';
import type {
  ApiRequest,
  ApiTransport,
  WatchListener,
  WatchRequest,
} from '../../../kubernetes/api/api-transport.ts';
import type { Random } from '../random.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { type ApiAnswer, refusal } from './api-answer.ts';
import { type ApiFaults, drawRequestFate, type RequestFate } from './api-faults.ts';
import type { ApiServer } from './api-server.ts';
import type { Json } from './json-object.ts';
import { CONNECTION_LOST } from './watch-stream.ts';

export interface SimTransportParts {
  readonly server: ApiServer;
  readonly time: Pick<VirtualTime, 'nowMs' | 'after'>;
  readonly random: Random;
  readonly faults: () => ApiFaults;
  /** Nothing comes through, in either direction. */
  readonly isAway: () => boolean;
  /** False when whoever asks is dead: nobody hears an answer. */
  readonly isAlive: () => boolean;
  /** Each request, and each answer that was heard. */
  readonly onRequest?: (request: ApiRequest, answer: ApiResult<unknown> | undefined) => void;
}

/** The effect of a write that nobody has heard of comes so long after its deadline at most. */
const LATE_MS_MAX = 5_000;

export function createSimTransport(parts: SimTransportParts): ApiTransport {
  return new SimTransport(parts);
}

class SimTransport implements ApiTransport {
  readonly server = 'https://sim.test:6443';
  readonly #parts: SimTransportParts;
  readonly #open = new Set<() => void>();
  #isClosed = false;

  constructor(parts: SimTransportParts) {
    this.#parts = parts;
  }

  request(request: ApiRequest): Promise<ApiResult<unknown>> {
    const { time, onRequest, isAlive } = this.#parts;
    onRequest?.(request, undefined);
    return new Promise((resolve) => {
      const settle = (answer: ApiResult<unknown>): void => {
        cancelDeadline();
        if (!this.#open.delete(lose) || !isAlive()) return;
        onRequest?.(request, answer);
        resolve(answer);
      };
      const lose = (): void => settle({ ok: false, failure: lost(request) });
      const cancelDeadline = time.after(request.deadlineMs, lose);
      this.#open.add(lose);
      if (this.#isClosed) time.after(0, lose);
      else this.#send(request, settle);
    });
  }

  #send(request: ApiRequest, settle: (answer: ApiResult<unknown>) => void): void {
    const { time, random, faults, isAway, server } = this.#parts;
    const { method, path, deadlineMs } = request;
    const fate = drawRequestFate(faults(), random);
    const isLate = fate === 'late' || fate === 'hung';
    const wayMs = isLate ? deadlineMs + random.between(1, LATE_MS_MAX) : this.#latencyMs();
    time.after(wayMs, () => {
      if (isAway()) return random.chance(0.5) ? settle({ ok: false, failure: lost(request) }) : undefined;
      const instead = fate === 'hung' ? refusal(500, 'nobody hears it') : INSTEAD[fate];
      const answer = instead ?? server.answer(method, path, copied(request.body ?? {}) as Json);
      if (fate === 'lost') return settle({ ok: false, failure: lost(request) });
      const told = fate === 'failed-done' && answer.status < 300 ? FAILED : answer;
      time.after(this.#latencyMs(), () => {
        if (!isAway()) settle(this.#isTooLarge(told) ? TOO_LARGE : resultOf(request, told));
      });
    });
  }

  watch(request: WatchRequest, listener: WatchListener): Cancel {
    const { time, isAway } = this.#parts;
    let stop = (): void => {};
    const end = (failure: ApiFailure | undefined): void => {
      if (!leave()) return;
      if (this.#parts.isAlive()) listener.ended(failure);
    };
    const lose = (): void => end(CONNECTION_LOST);
    const leave = (): boolean => {
      cancelDeadline();
      if (!this.#open.delete(lose)) return false;
      stop();
      return true;
    };
    const cancelDeadline = time.after(request.deadlineMs, lose);
    this.#open.add(lose);
    time.after(this.#latencyMs(), () => {
      if (!this.#open.has(lose)) return;
      if (this.#isClosed || isAway()) return lose();
      stop = this.#openWatch(request, listener, end);
    });
    return () => void leave();
  }

  /** The answer: what ends the stream at the server's. */
  #openWatch(
    { path, lineBytesMax }: WatchRequest,
    listener: WatchListener,
    end: (failure: ApiFailure | undefined) => void,
  ): () => void {
    const { server, isAlive, isAway, random, faults } = this.#parts;
    const fate = drawRequestFate(faults(), random);
    const refused = fate === 'busy' || fate === 'failed' || fate === 'denied' ? INSTEAD[fate] : undefined;
    let isBroken = false;
    const opened =
      refused ??
      server.watch(path, {
        line: (event) => {
          // A stream that has lost a line tells nothing more until it is known to be lost.
          isBroken ||= isAway();
          if (!isAlive() || isBroken) return;
          const text = JSON.stringify(event);
          const { largeEvent = 0 } = faults();
          const isTooLarge = text.length > lineBytesMax || (largeEvent > 0 && random.chance(largeEvent));
          if (isTooLarge) return end(tooLarge('a line', lineBytesMax));
          listener.line(JSON.parse(text));
        },
        ended: end,
      });
    if (typeof opened !== 'function') {
      end(failureOf(opened, false));
      return () => {};
    }
    if (isAlive()) listener.opened();
    return opened;
  }

  close(): void {
    this.#isClosed = true;
    for (const lose of [...this.#open]) this.#parts.time.after(0, lose);
  }

  #isTooLarge({ body }: ApiAnswer): boolean {
    const { items } = body as { readonly items?: unknown };
    const { pageObjectsMax = Number.POSITIVE_INFINITY } = this.#parts.faults();
    return Array.isArray(items) && items.length > pageObjectsMax;
  }

  #latencyMs(): number {
    return this.#parts.random.between(1, Math.max(1, this.#parts.faults().latencyMsMax));
  }
}

const FAILED = refusal(500, 'etcdserver: request timed out');
const INSTEAD: Readonly<Partial<Record<RequestFate, ApiAnswer>>> = {
  busy: { ...refusal(429, 'too many requests'), retryAfter: '1' },
  failed: FAILED,
  denied: refusal(403, 'no relationship found between node and this object'),
};

function resultOf({ method, answerBytesMax }: ApiRequest, answer: ApiAnswer): ApiResult<unknown> {
  const isWrite = method !== 'GET';
  if (answer.status >= 300) return { ok: false, failure: failureOf(answer, isWrite) };
  const text = JSON.stringify(answer.body);
  if (text.length <= answerBytesMax) return { ok: true, value: JSON.parse(text) };
  const effect = isWrite ? 'unknown' : 'none';
  return { ok: false, failure: { ...tooLarge('the answer', answerBytesMax), effect } };
}

function failureOf({ status, body, retryAfter }: ApiAnswer, isWrite: boolean): ApiFailure {
  return failureOfStatus({ status, body, retryAfter, isWrite });
}

function lost({ method }: ApiRequest): ApiFailure {
  return { ...CONNECTION_LOST, effect: method === 'GET' ? 'none' : 'unknown' };
}

function tooLarge(what: string, bytesMax: number): ApiFailure {
  return { code: 'too-large', message: `${what} has more than ${bytesMax} bytes`, effect: 'none' };
}

const TOO_LARGE: ApiResult<unknown> = { ok: false, failure: tooLarge('the answer', 0) };

/** Nobody shares an object with the server. */
function copied(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
