/** What can become of a request to an API server when it is not what was asked for. */
import type { Effect } from '../../mount/failure.ts';
import { printable } from '../../mount/text/printable.ts';
import { mappingIn } from '../fields/plain-value.ts';

/**
 * `denied` (403) never means that an object is absent: a node that has lost the right to read one gets it, too.
 * `unreachable` has no answer at all: no connection, one that was lost, a deadline. `malformed` is what no API
 * server answers.
 */
export type ApiFailureCode =
  | 'unreachable'
  | 'unauthenticated'
  | 'denied'
  | 'absent'
  | 'conflict'
  | 'expired'
  | 'invalid'
  | 'busy'
  | 'failed'
  | 'too-large'
  | 'malformed';

export interface ApiFailure {
  readonly code: ApiFailureCode;
  /** For people; holds no part of a request or of an answer but the server's own `message`, cut to 512 bytes. */
  readonly message: string;
  /** May the server have done what it was asked to do? Always `none` of a request that only reads. */
  readonly effect: Effect;
  /** The server's word on when to ask again, in milliseconds. */
  readonly retryAfterMs?: number;
}

export type ApiResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: ApiFailure };

/** The status line of an answer, its body as it was parsed, and whether the request was to change something. */
export interface StatusFacts {
  readonly status: number;
  /** A Status object, if it is of the server. */
  readonly body: unknown;
  /** The header Retry-After, as it was written. */
  readonly retryAfter: string | undefined;
  readonly isWrite: boolean;
}

const MESSAGE_BYTES_MAX = 512;
const RETRY_AFTER_SECONDS_MAX = 600;
const SECOND_MS = 1_000;

const CODES: Readonly<Record<number, ApiFailureCode>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'denied',
  404: 'absent',
  409: 'conflict',
  410: 'expired',
  413: 'invalid',
  422: 'invalid',
  429: 'busy',
  503: 'busy',
};

/** Refused before anything was done: so said by the status, of a request that writes, too. */
const WITHOUT_EFFECT: ReadonlySet<number> = new Set([400, 401, 403, 404, 409, 410, 413, 422, 429]);

/** The `reason` by which a server says that it has looked: what stands between us answers 404 for what it knows not. */
const LOOKED = 'NotFound';
const NOT_LOOKED = ' from somebody between us and the API server, who has not asked it';

/** Pure. The answer has a status that is not 2xx. */
export function failureOfStatus({ status, body, retryAfter, isWrite }: StatusFacts): ApiFailure {
  const { message, reason } = mappingIn(body);
  const title =
    typeof message === 'string' && message !== '' ? `${message} (${status})` : `HTTP status ${status}`;
  const code = CODES[status] ?? 'failed';
  const isSaidByOther = code === 'absent' && reason !== LOOKED;
  const seconds = /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
  return {
    code: isSaidByOther ? 'failed' : code,
    message: printable(isSaidByOther ? `${title}${NOT_LOOKED}` : title, MESSAGE_BYTES_MAX),
    effect: isWrite && (isSaidByOther || !WITHOUT_EFFECT.has(status)) ? 'unknown' : 'none',
    ...(seconds === undefined
      ? {}
      : { retryAfterMs: Math.min(seconds, RETRY_AFTER_SECONDS_MAX) * SECOND_MS }),
  };
}

export function apiFail(
  code: ApiFailureCode,
  message: string,
  effect: Effect = 'none',
): { readonly ok: false; readonly failure: ApiFailure } {
  return { ok: false, failure: { code, message: printable(message, MESSAGE_BYTES_MAX), effect } };
}
