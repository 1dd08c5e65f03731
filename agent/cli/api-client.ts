/** The command line's end of the API. */
import { request } from 'node:http';
import { printable } from '../../mount/text/printable.ts';
import { SOCKET_PATH_BYTES_MAX } from '../config/setting.ts';

/** `refused` is the agent's own answer; `unreachable` means that no agent answered, with a sentence for people. */
export type ApiAnswer<T> =
  | { readonly kind: 'ok'; readonly body: T }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'unreachable'; readonly message: string };

export interface ApiRequest {
  readonly socket: string;
  /** It has its query: `/v1/status?after=…`. */
  readonly path: string;
  readonly timeoutMs: number;
  /** The `kind` of the document that is asked for. */
  readonly kind: string;
}

export interface ApiChange extends ApiRequest {
  readonly method: 'POST' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: object;
}

const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** One GET. Trusts the agent to send what docs/API.md says of a document of this kind; never rejects. */
export function getFromAgent<T>(asked: ApiRequest): Promise<ApiAnswer<T>> {
  return ask(asked, 'GET', undefined);
}

/** One request that changes something. Never repeated: whoever gets no answer looks what is before asking again. */
export function changeAtAgent<T>(asked: ApiChange): Promise<ApiAnswer<T>> {
  return ask(asked, asked.method, asked.body);
}

function ask<T>(
  { socket, path, timeoutMs, kind }: ApiRequest,
  method: string,
  body: object | undefined,
): Promise<ApiAnswer<T>> {
  const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES_MAX) {
    return Promise.resolve(
      unreachable(`socket path "${socket}" is longer than ${SOCKET_PATH_BYTES_MAX} bytes`),
    );
  }
  const unanswered = (error: Error) =>
    unreachable(sentenceFor(error, socket, timeoutMs) + doubtOf(method, error));
  return new Promise((resolve) => {
    const asked = request(
      {
        socketPath: socket,
        path,
        method,
        headers: {
          host: 'mooring',
          ...(sent === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': sent.length }),
        },
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > ANSWER_BYTES_MAX) asked.destroy(new Error(`answer above ${ANSWER_BYTES_MAX} bytes`));
          else chunks.push(chunk);
        });
        response.once('error', (error) => resolve(unanswered(error)));
        response.once('end', () => {
          resolve(answerOf(response.statusCode ?? 0, Buffer.concat(chunks).toString('utf8'), socket, kind));
        });
      },
    );
    asked.once('error', (error) => resolve(unanswered(error)));
    asked.end(sent);
  });
}

function unreachable(message: string): { readonly kind: 'unreachable'; readonly message: string } {
  return { kind: 'unreachable', message };
}

function answerOf<T>(status: number, text: string, socket: string, kind: string): ApiAnswer<T> {
  const body = parse(text);
  if (body === undefined) return unreachable(`what answers on ${socket} is not a Mooring agent`);
  if (status === 200 && isRecord(body) && body['apiVersion'] === 'mooring/v1' && body['kind'] === kind) {
    return { kind: 'ok', body: body as T };
  }
  if (status === 200) return unreachable(`what answers on ${socket} is not an agent of this version`);
  const error = isRecord(body) && isRecord(body['error']) ? body['error'] : {};
  const message = typeof error['message'] === 'string' ? error['message'] : `HTTP status ${status}`;
  const code = typeof error['code'] === 'string' ? error['code'] : 'unknown';
  return { kind: 'refused', code, message: printable(message, 2_048) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Errors of a connection that never came about; after any other the agent may be at it. */
const NEVER_ASKED: readonly string[] = ['ENOENT', 'ECONNREFUSED', 'EACCES', 'EPERM', 'ENOTSOCK'];

function doubtOf(method: string, error: Error): string {
  const isCertain = method === 'GET' || ('code' in error && NEVER_ASKED.includes(String(error.code)));
  return isCertain ? '' : '; it may have done it all the same';
}

function sentenceFor(error: Error, socket: string, timeoutMs: number): string {
  const code = 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ENOENT':
      return `the agent is not running, or still starting: there is no socket ${socket} (another place? give --socket)`;
    case 'ECONNREFUSED':
      return `the agent is not running, or still starting: nobody answers on ${socket}`;
    case 'EACCES':
    case 'EPERM':
      return `permission denied: ${socket} is open to root only; try with sudo`;
    case 'ENOTSOCK':
      return `${socket} is not a socket`;
    case 'ABORT_ERR':
      return `the agent did not answer on ${socket} within ${timeoutMs} ms`;
    default:
      return `no answer on ${socket}: ${printable(code === '' ? error.message : code, 256)}`;
  }
}
