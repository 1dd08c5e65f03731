/** One HTTP/2 connection to an API server: opened, proven to be alive, and left when it is not. */
import { connect, type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import type { Cancel, Clock } from '../../../mount/host.ts';
import { apiFail, type ApiResult } from '../api-failure.ts';
import type { Credentials } from './credentials.ts';

export interface ApiSession {
  /** The credentials it was opened with. */
  readonly connection: string;
  /** No stream can be opened on it any more. */
  isOver(): boolean;
  /** Another stream fits, by the peer's word and ours. */
  hasRoom(): boolean;
  /** Undefined when it is over after all. */
  open(headers: Readonly<Record<string, string>>, body: string | undefined): ClientHttp2Stream | undefined;
  /** Takes no stream any more, and ends with its last one. */
  drain(): void;
  destroy(): void;
}

export interface SessionParts {
  readonly server: string;
  readonly serverName: string | undefined;
  readonly credentials: Credentials;
  readonly clock: Pick<Clock, 'timer'>;
  readonly connectMsMax: number;
}

/** An API server allows 100 by default. */
const STREAMS_MAX = 90;
/** As client-go: a connection that carries nothing is asked after this, and given up when it does not answer. */
const PING_AFTER_MS = 30_000;
const PING_ANSWER_MS = 15_000;
const WINDOW_BYTES = 1_024 * 1_024;

/**
 * Settles when it is connected and speaks HTTP/2, and the peer has said how many streams it allows: what is opened
 * above that is kept back without a word, a watch for as long as others are open.
 */
export function openSession(parts: SessionParts): Promise<ApiResult<ApiSession>> {
  const { server, serverName, credentials, clock, connectMsMax } = parts;
  const { certificate, key } = credentials.certificate?.reveal() ?? {};
  return new Promise((resolve) => {
    let session: ClientHttp2Session;
    try {
      session = connect(server, {
        ...(credentials.authority === undefined ? {} : { ca: credentials.authority }),
        ...(certificate === undefined ? {} : { cert: certificate, key }),
        ...(serverName === undefined ? {} : { servername: serverName }),
        minVersion: 'TLSv1.2',
        settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
      });
    } catch (error) {
      return resolve(apiFail('unauthenticated', `the client certificate cannot be used: ${codeOf(error)}`));
    }
    const cancelTimer = clock.timer(connectMsMax, () =>
      settle(apiFail('unreachable', `no connection in ${connectMsMax} ms`)),
    );
    const settle = (result: ApiResult<ApiSession>): void => {
      cancelTimer();
      if (!result.ok) session.destroy();
      resolve(result);
    };
    session.on('error', (error) => settle(apiFail('unreachable', `no connection: ${codeOf(error)}`)));
    session.on('close', () => settle(apiFail('unreachable', 'the connection was closed')));
    session.on('connect', () => {
      if (session.alpnProtocol !== 'h2')
        settle(apiFail('unreachable', 'the server does not speak HTTP/2, which is needed'));
    });
    session.once('remoteSettings', () => settle({ ok: true, value: new LiveSession(session, parts) }));
  });
}

class LiveSession implements ApiSession {
  readonly connection: string;
  readonly #session: ClientHttp2Session;
  readonly #clock: Pick<Clock, 'timer'>;
  #streams = 0;
  #isDraining = false;
  #cancelPing: Cancel = () => {};

  constructor(session: ClientHttp2Session, { credentials, clock }: SessionParts) {
    this.connection = credentials.connection;
    this.#session = session;
    this.#clock = clock;
    session.setLocalWindowSize(4 * WINDOW_BYTES);
    // What was begun goes on; a new stream would be refused.
    session.on('goaway', () => this.drain());
    session.on('close', () => this.#cancelPing());
    this.#planPing();
  }

  isOver(): boolean {
    return this.#isDraining || this.#session.closed || this.#session.destroyed;
  }

  hasRoom(): boolean {
    const { maxConcurrentStreams = STREAMS_MAX } = this.#session.remoteSettings ?? {};
    return !this.isOver() && this.#streams < Math.min(STREAMS_MAX, maxConcurrentStreams);
  }

  open(headers: Readonly<Record<string, string>>, body: string | undefined): ClientHttp2Stream | undefined {
    if (this.isOver()) return undefined;
    const stream = this.#session.request(headers, { endStream: body === undefined });
    this.#streams += 1;
    // Whoever reads the stream is told by what it reads; one that nobody reads any more must not end the process.
    stream.on('error', () => {});
    stream.on('close', () => {
      this.#streams -= 1;
      if (this.#isDraining && this.#streams === 0) this.destroy();
    });
    if (body !== undefined) stream.end(body);
    return stream;
  }

  drain(): void {
    this.#isDraining = true;
    if (this.#streams === 0) this.destroy();
  }

  destroy(): void {
    this.#cancelPing();
    // With an error, so that what is open on it is told that it is not whole.
    if (!this.#session.destroyed) this.#session.destroy(new Error('closed here'), constants.NGHTTP2_CANCEL);
  }

  #planPing(): void {
    this.#cancelPing = this.#clock.timer(PING_AFTER_MS, () => {
      if (this.#session.destroyed) return;
      const cancelAnswer = this.#clock.timer(PING_ANSWER_MS, () => this.destroy());
      this.#cancelPing = cancelAnswer;
      this.#session.ping((error) => {
        cancelAnswer();
        if (error === null && !this.#session.destroyed) this.#planPing();
      });
    });
  }
}

/** Errors of TLS and of the system have a code; their texts may show what a peer has sent. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error
    ? String(error.code)
    : 'unknown error';
}
