/** The port to an API server over HTTP/2: requests on one kind of session, streams of changes on another. */
import { type ClientHttp2Stream, constants } from 'node:http2';
import type { Effect } from '../../../mount/failure.ts';
import type { Cancel, Clock } from '../../../mount/host.ts';
import { apiFail, type ApiFailure, type ApiResult } from '../api-failure.ts';
import type { ApiRequest, ApiTransport, WatchListener, WatchRequest } from '../api-transport.ts';
import type { ApiAccess } from '../kubeconfig.ts';
import { createCredentialReader, type CredentialReader } from './credentials.ts';
import { type LineTaker, readAnswer, readLines } from './http2-answer.ts';
import { type ApiSession, openSession } from './http2-session.ts';

export interface Http2TransportParts {
  readonly access: ApiAccess;
  readonly clock: Pick<Clock, 'nowMs' | 'timer'>;
  /** Product and version, as in `curl/8.5`. */
  readonly userAgent: string;
  /** Told once of each file with a key or a token that others can read. */
  readonly onWarning?: (message: string) => void;
}

const CONNECT_MS_MAX = 10_000;
/**
 * Requests are answered soon: what finds no room there is taken all the same, and waits in line for it. A watch would
 * wait for as long as others are open, and a node of 500 pods has more than a thousand of them.
 */
const SESSIONS_MAX: Readonly<Record<Purpose, number>> = { requests: 2, streams: 64 };
const MERGE_PATCH = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
/** What Go's encoder escapes in a text, and JSON.stringify leaves as it is. In JSON they are nowhere but in texts. */
const UNLIKE_GO = /[<>&\u2028\u2029]/g;
const { NGHTTP2_CANCEL } = constants;

/** The body of a request, as it goes over the wire. */
interface Content {
  readonly type: string;
  readonly text: string;
}

/** What a stream is opened for. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly content: Content | undefined;
  /** The credentials may be others than a moment ago. */
  readonly again: boolean;
  /** Nobody waits for it any more: then it is not opened. */
  readonly isGivenUp: () => boolean;
}

/**
 * Guarantees: a request is repeated only when the server has not begun it; a stream of changes delays no request,
 * because they use different sessions. Nothing of a body is in any failure but the server's own message.
 */
export function createHttp2Transport(parts: Http2TransportParts): ApiTransport {
  return new Http2Transport(parts);
}

type Purpose = 'requests' | 'streams';

class Http2Transport implements ApiTransport {
  readonly server: string;
  readonly #parts: Http2TransportParts;
  readonly #credentials: CredentialReader;
  readonly #sessions: Readonly<Record<Purpose, ApiSession[]>> = { requests: [], streams: [] };
  readonly #opening: Record<Purpose, Promise<ApiResult<ApiSession>> | undefined> = {
    requests: undefined,
    streams: undefined,
  };
  #isClosed = false;

  constructor(parts: Http2TransportParts) {
    this.server = parts.access.server;
    this.#parts = parts;
    this.#credentials = createCredentialReader(parts.access, parts.clock, parts.onWarning ?? (() => {}));
  }

  async request(request: ApiRequest): Promise<ApiResult<unknown>> {
    const answered = await this.#ask(request, false);
    if (answered.ok || answered.failure.code !== 'unauthenticated' || this.#isClosed) return answered;
    // The credentials may have been exchanged a moment ago.
    return this.#ask(request, true);
  }

  watch(request: WatchRequest, listener: WatchListener): Cancel {
    let isOver = false;
    let stream: ClientHttp2Stream | undefined;
    const end = (failure: ApiFailure | undefined): void => {
      if (isOver) return;
      isOver = true;
      cancelDeadline();
      stream?.close(NGHTTP2_CANCEL);
      listener.ended(failure);
    };
    const cancelDeadline = this.#parts.clock.timer(request.deadlineMs, () =>
      end({
        code: 'unreachable',
        message: `no end of the stream in ${request.deadlineMs} ms`,
        effect: 'none',
      }),
    );
    const { path } = request;
    const asked = { method: 'GET', path, content: undefined, again: false, isGivenUp: () => isOver };
    void this.#openStream('streams', asked).then(async (opened) => {
      if (!opened.ok) return end(opened.failure);
      stream = opened.value;
      if (isOver) return stream.close(NGHTTP2_CANCEL);
      const taker: LineTaker = {
        lineBytesMax: request.lineBytesMax,
        opened: () => {
          if (!isOver) listener.opened();
        },
        take: (line) => {
          if (!isOver) listener.line(line);
          return !isOver;
        },
      };
      end(await readLines(stream, taker));
    });
    return () => {
      isOver = true;
      cancelDeadline();
      stream?.close(NGHTTP2_CANCEL);
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const sessions of Object.values(this.#sessions)) for (const one of sessions.splice(0)) one.destroy();
  }

  async #ask(request: ApiRequest, readCredentials: boolean): Promise<ApiResult<unknown>> {
    const { method, path, body, deadlineMs } = request;
    const isWrite = method !== 'GET';
    const late = (effect: Effect) => apiFail('unreachable', `no answer in ${deadlineMs} ms`, effect);
    let stream: ClientHttp2Stream | undefined;
    let isLate = false;
    let endOpening = (): void => {};
    const lateToOpen = new Promise<ApiResult<never>>((resolve) => {
      endOpening = () => resolve(late('none'));
    });
    const cancelDeadline = this.#parts.clock.timer(deadlineMs, () => {
      isLate = true;
      endOpening();
      stream?.close(NGHTTP2_CANCEL);
    });
    try {
      const content = body === undefined ? undefined : contentOf(method, body);
      const asked = { method, path, content, again: readCredentials, isGivenUp: () => isLate };
      const opened = await Promise.race([this.#openStream('requests', asked), lateToOpen]);
      if (!opened.ok) return opened;
      stream = opened.value;
      const answered = await readAnswer(stream, request.answerBytesMax, isWrite);
      return isLate && !answered.ok ? late(isWrite ? 'unknown' : 'none') : answered;
    } finally {
      cancelDeadline();
    }
  }

  async #openStream(
    purpose: Purpose,
    { method, path, content, again, isGivenUp }: Asked,
  ): Promise<ApiResult<ClientHttp2Stream>> {
    const credentials = await this.#credentials.read(again);
    if (!credentials.ok) return credentials;
    const { token } = credentials.value;
    const headers = {
      ':method': method,
      ':path': path,
      accept: 'application/json',
      'user-agent': this.#parts.userAgent,
      ...(token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }),
      ...(content === undefined ? {} : { 'content-type': content.type }),
    };
    let { connection } = credentials.value;
    while (!isGivenUp()) {
      // Found and taken in one turn: of many that begin at once, each would find the same room.
      const stream = this.#free(purpose, connection)?.open(headers, content?.text);
      if (stream !== undefined) return { ok: true, value: stream };
      const added = await this.#add(purpose);
      if (!added.ok) return added;
      if (added.value.isOver()) return apiFail('unreachable', 'the connection was closed');
      connection = added.value.connection;
    }
    return apiFail('unreachable', 'it was given up before there was a connection');
  }

  #free(purpose: Purpose, connection: string): ApiSession | undefined {
    const sessions = this.#sessions[purpose];
    for (const one of sessions) if (one.connection !== connection) one.drain();
    const live = sessions.filter((one) => !one.isOver());
    sessions.splice(0, sessions.length, ...live);
    const isInLine = purpose === 'requests' && live.length >= SESSIONS_MAX.requests;
    return live.find((one) => one.hasRoom()) ?? (isInLine ? live.at(-1) : undefined);
  }

  /** One at a time, for all who wait. */
  async #add(purpose: Purpose): Promise<ApiResult<ApiSession>> {
    if (this.#isClosed) return apiFail('unreachable', 'the connection was closed');
    if (this.#sessions[purpose].length >= SESSIONS_MAX[purpose])
      return apiFail('busy', `all ${SESSIONS_MAX[purpose]} sessions with the server are full`);
    return this.#opening[purpose] ?? this.#openSession(purpose);
  }

  #openSession(purpose: Purpose): Promise<ApiResult<ApiSession>> {
    const opening = this.#connect().then((opened) => {
      this.#opening[purpose] = undefined;
      if (opened.ok && this.#isClosed) opened.value.destroy();
      else if (opened.ok) this.#sessions[purpose].push(opened.value);
      return opened;
    });
    this.#opening[purpose] = opening;
    return opening;
  }

  async #connect(): Promise<ApiResult<ApiSession>> {
    const credentials = await this.#credentials.read();
    if (!credentials.ok) return credentials;
    const { access, clock } = this.#parts;
    return openSession({
      server: access.server,
      serverName: access.serverName,
      credentials: credentials.value,
      clock,
      connectMsMax: CONNECT_MS_MAX,
    });
  }
}

/** The server reads a patch by its type, and refuses an array as a merge patch. */
function contentOf(method: string, body: unknown): Content {
  const patch = Array.isArray(body) ? JSON_PATCH : MERGE_PATCH;
  return { type: method === 'PATCH' ? patch : 'application/json', text: jsonText(body) };
}

/** As the API server would write it: what a JSON patch compares is compared there byte by byte with what it wrote. */
function jsonText(value: unknown): string {
  const escaped = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(UNLIKE_GO, escaped);
}
