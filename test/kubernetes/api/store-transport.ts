/** The port to an API server without a wire: the store answers in a later turn. */
import type { ApiFailure } from '../../../kubernetes/api/api-failure.ts';
import { apiFail, failureOfStatus } from '../../../kubernetes/api/api-failure.ts';
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import type { Clock } from '../../../mount/host.ts';
import type { ApiStore, Json, StoredAnswer } from './api-store.ts';

export interface StoreTransport extends ApiTransport {
  /** While true nothing comes through, and open streams are lost. */
  cut(isCut: boolean): void;
  /** While true what is written is done, and its answer is lost. */
  loseAnswers(isDeaf: boolean): void;
}

export function storeTransport(store: ApiStore, clock: Pick<Clock, 'timer'>): StoreTransport {
  const streams = new Set<(failure: ApiFailure) => void>();
  let isCut = false;
  let isDeaf = false;
  const LOST: ApiFailure = { code: 'unreachable', message: 'the connection was lost', effect: 'none' };
  const later = (act: () => void): void => void setImmediate(act);

  return {
    server: 'https://store.test:6443',
    async request({ method, path, body, answerBytesMax }) {
      await new Promise((resolve) => setImmediate(resolve));
      if (isCut) return { ok: false, failure: { ...LOST, effect: method === 'GET' ? 'none' : 'unknown' } };
      const answer = store.answer(method, path, body as Json | undefined);
      if (isDeaf && method !== 'GET') return { ok: false, failure: { ...LOST, effect: 'unknown' } };
      if (answer.status >= 300) return { ok: false, failure: failureOf(answer, method !== 'GET') };
      const text = JSON.stringify(answer.body);
      if (text.length > answerBytesMax)
        return apiFail('too-large', `the answer has more than ${answerBytesMax} bytes`);
      return { ok: true, value: JSON.parse(text) };
    },
    watch({ path, lineBytesMax, deadlineMs }, listener) {
      let isOver = false;
      let stop = (): void => {};
      const end = (failure: ApiFailure | undefined): void => {
        if (isOver) return;
        isOver = true;
        stop();
        streams.delete(end);
        cancelDeadline();
        listener.ended(failure);
      };
      const cancelDeadline = clock.timer(deadlineMs, () => end(LOST));
      streams.add(end);
      const hear = (text: string): void => {
        if (isOver) return;
        if (text.length <= lineBytesMax) return listener.line(JSON.parse(text));
        end({ code: 'too-large', message: `a line has more than ${lineBytesMax} bytes`, effect: 'none' });
      };
      // What is told in one turn is one piece of the stream, whose lines are heard in one turn, too.
      let piece: string[] = [];
      const hearPiece = (): void => {
        const lines = piece;
        piece = [];
        for (const line of lines) hear(line);
      };
      later(() => {
        if (isOver) return;
        if (isCut) return end(LOST);
        const opened = store.watch(path, {
          line: (event) => {
            if (piece.push(JSON.stringify(event)) === 1) later(hearPiece);
          },
          ended: () => later(() => later(() => end(undefined))),
        });
        if (typeof opened !== 'function') return end(failureOf(opened, false));
        stop = opened;
        listener.opened();
      });
      return () => {
        isOver = true;
        stop();
        streams.delete(end);
        cancelDeadline();
      };
    },
    close() {
      for (const end of [...streams]) end(LOST);
    },
    loseAnswers(next) {
      isDeaf = next;
    },
    cut(next) {
      isCut = next;
      if (next) for (const end of [...streams]) end(LOST);
    },
  };
}

function failureOf({ status, body, retryAfter }: StoredAnswer, isWrite: boolean): ApiFailure {
  return failureOfStatus({ status, body, retryAfter, isWrite });
}
