/**
 * The port to an API server: single requests, and streams of what changes. The real one speaks HTTP/2
 * (`wire/http2-transport.ts`); a fake passes the same contract (test/contract/api-transport.ts).
 */
import type { Cancel } from '../../mount/host.ts';
import type { ApiFailure, ApiResult } from './api-failure.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path and query, as they go over the wire. */
  readonly path: string;
  /** Sent as JSON; a PATCH is a merge patch (RFC 7386), and an array a JSON patch (RFC 6902). Never with GET. */
  readonly body?: unknown;
  /** An answer with more bytes is `too-large`. */
  readonly answerBytesMax: number;
  /** The whole request takes no longer; then it is `unreachable`. */
  readonly deadlineMs: number;
}

export interface WatchRequest {
  readonly path: string;
  /** A longer line ends the watch with `too-large`. */
  readonly lineBytesMax: number;
  /** The whole stream takes no longer: whoever asks the server for a shorter one gets a clean end before. */
  readonly deadlineMs: number;
}

export interface WatchListener {
  /** The server has begun to answer; before the first line. */
  opened(): void;
  /** One line of the stream, parsed. */
  line(value: unknown): void;
  /** Called once, and nothing after it. Undefined: the server has ended the stream in order. */
  ended(failure: ApiFailure | undefined): void;
}

export interface ApiTransport {
  /** People are told of it so: `https://10.0.0.1:6443`. */
  readonly server: string;
  /** The parsed body of an answer with a status 2xx. Never rejects. */
  request(request: ApiRequest): Promise<ApiResult<unknown>>;
  /** The listener is called in later turns only, and not after the stream was cancelled. */
  watch(request: WatchRequest, listener: WatchListener): Cancel;
  /** Ends all requests and streams; they are told so. */
  close(): void;
}
