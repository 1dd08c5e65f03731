/** The answers of an API server that are no objects. Pure. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
  /** The header, in seconds. */
  readonly retryAfter?: string;
}

export function refusal(status: number, message: string): ApiAnswer {
  return { status, body: statusObject(status, message) };
}

export function statusObject(status: number, message: string): object {
  const reason = REASONS[status] ?? 'InternalError';
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: status, reason, message };
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
  504: 'Timeout',
};

export function expired(): ApiAnswer {
  return refusal(410, 'The provided version is too old to be answered from.');
}

export function invalid(message: string): ApiAnswer {
  return refusal(422, message);
}

export function badVersion(version: string): ApiAnswer {
  return refusal(400, `invalid resource version ${version}`);
}
