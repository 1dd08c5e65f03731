/** The status API: read-only HTTP over a unix socket that only root can open. docs/API.md describes it. */
import { chmod, lstat, mkdir, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { done, fail, type FailureCode, type Result } from '../mount/failure.ts';
import { type AbsolutePath, type Cancel, type Clock, parentOf } from '../mount/host.ts';
import type { Log } from '../reconciler/log.ts';
import { explain } from './explain.ts';
import { printable } from './printable.ts';
import { SOCKET_PATH_BYTES_MAX } from './setting.ts';
import type { StatusDocument } from './status-document.ts';
import { BUILD } from './version.ts';

export interface ApiServerParts {
  readonly socket: AbsolutePath;
  /** The document of this moment under the given revision. */
  readonly status: (revision: string) => StatusDocument;
  /** Does a broker answer? */
  readonly healthy: () => Promise<boolean>;
  readonly onChange: (listener: () => void) => Cancel;
  readonly clock: Clock;
  /** Differs from start to start, so that a revision of another life is never taken for one of this. */
  readonly instance: string;
  readonly runtime: string;
  readonly log: Log;
}

export interface ApiServer {
  /** Settles when the socket can be connected to, or with the reason why not. */
  listen(): Promise<Result<void>>;
  /** Answers who waits, closes all connections and removes the socket. */
  close(): Promise<void>;
}

export const WAIT_MS_MAX = 30_000;
const URL_BYTES_MAX = 2_048;
const HEADER_BYTES_MAX = 8_192;
const CONNECTIONS_MAX = 64;
const WATCHERS_MAX = 32;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 5_000;
const PROBE_TIMEOUT_MS = 1_000;
/** Many changes in one go are one answer. */
const SETTLE_MS = 50;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export function createApiServer(parts: ApiServerParts): ApiServer {
  const changes = createChanges(parts);
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => {
      void respond(request, response);
    },
  );
  server.maxConnections = CONNECTIONS_MAX;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    let answer: Answer;
    try {
      answer = await route(request, response);
    } catch (error) {
      // A look at the state cannot have spoilt it: the request fails, the volumes go on.
      parts.log.error('request failed', { url: request.url, error: String(error) });
      answer = refusal(500, 'internal', 'the agent could not make this answer; its log says why');
    }
    send(response, answer, request.method === 'HEAD');
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<Answer> {
    const text = request.url ?? '/';
    if (Buffer.byteLength(text) > URL_BYTES_MAX)
      return refusal(414, 'bad-request', `URL above ${URL_BYTES_MAX} bytes`);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refusal(
        405,
        'method-not-allowed',
        `${request.method ?? 'this method'}: the API is read-only, use GET`,
      );
    }
    if (!URL.canParse(text, 'http://mooring')) return refusal(400, 'bad-request', 'not a URL');
    const url = new URL(text, 'http://mooring');
    switch (url.pathname) {
      case '/v1/status':
        return answerStatus(url, response);
      case '/v1/explain':
        return answerExplain(url);
      case '/v1/version':
        return {
          status: 200,
          body: { apiVersion: 'mooring/v1', kind: 'Version', ...BUILD, runtime: parts.runtime },
        };
      case '/v1/health': {
        const healthy = await parts.healthy();
        return { status: healthy ? 200 : 503, body: { apiVersion: 'mooring/v1', kind: 'Health', healthy } };
      }
      default:
        return refusal(404, 'not-found', `no such path; there are ${PATHS.join(', ')}`);
    }
  }

  async function answerStatus(url: URL, response: ServerResponse): Promise<Answer> {
    const after = url.searchParams.get('after');
    const waitMs = url.searchParams.get('waitMs') ?? '0';
    if (!/^\d{1,6}$/.test(waitMs) || Number(waitMs) > WAIT_MS_MAX) {
      return refusal(400, 'bad-request', `waitMs: a whole number from 0 to ${WAIT_MS_MAX}`);
    }
    if (after === changes.revision() && Number(waitMs) > 0) {
      const wait = changes.wait(Number(waitMs));
      if (wait === undefined)
        return refusal(429, 'too-many-watchers', `${WATCHERS_MAX} clients wait already`);
      response.once('close', wait.cancel);
      await wait.ended;
    }
    return { status: 200, body: parts.status(changes.revision()) };
  }

  function answerExplain(url: URL): Answer {
    const subject = url.searchParams.get('subject') ?? '';
    if (subject === '') return refusal(400, 'bad-request', 'subject: name a pod or a volume');
    const explanation = explain(subject, parts.status(changes.revision()));
    if (explanation.kind === 'found') return { status: 200, body: explanation.document };
    return explanation.kind === 'unknown'
      ? refusal(404, 'subject-unknown', explanation.message)
      : refusal(409, 'subject-ambiguous', explanation.message);
  }

  return {
    async listen() {
      const ready = await prepare(parts.socket);
      if (!ready.ok) return ready;
      const bound = await bind(server, parts.socket);
      if (bound.ok) server.on('error', (error) => parts.log.error('status API', { error: String(error) }));
      return bound;
    },
    async close() {
      changes.close();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

const PATHS = ['/v1/status', '/v1/explain?subject=', '/v1/version', '/v1/health'];

function refusal(status: number, code: string, message: string): Answer {
  return { status, body: { error: { code, message } } };
}

function send(response: ServerResponse, { status, body }: Answer, headOnly: boolean): void {
  const bytes = Buffer.from(`${JSON.stringify(body)}\n`);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
  });
  response.end(headOnly ? undefined : bytes);
}

interface Changes {
  revision(): string;
  /** Until the next change, `waitMs` or `cancel`; undefined when too many wait. */
  wait(waitMs: number): { readonly ended: Promise<void>; readonly cancel: () => void } | undefined;
  close(): void;
}

/** Counts changes and wakes who waits for the next one. */
function createChanges({ clock, instance, onChange }: ApiServerParts): Changes {
  const waiting = new Set<() => void>();
  let count = 0;
  let cancelWake: Cancel | undefined;
  const wakeAll = (): void => {
    cancelWake?.();
    cancelWake = undefined;
    for (const wake of waiting) wake();
  };
  const unsubscribe = onChange(() => {
    count += 1;
    if (waiting.size > 0) cancelWake ??= clock.timer(SETTLE_MS, wakeAll);
  });
  return {
    revision: () => `${instance}-${count}`,
    wait(waitMs) {
      if (waiting.size >= WATCHERS_MAX) return undefined;
      let cancel = (): void => {};
      const ended = new Promise<void>((resolve) => {
        const wake = (): void => {
          cancelTimer();
          waiting.delete(wake);
          resolve();
        };
        const cancelTimer = clock.timer(waitMs, wake);
        waiting.add(wake);
        cancel = wake;
      });
      return { ended, cancel };
    },
    close() {
      unsubscribe();
      wakeAll();
    },
  };
}

/** The path is free, or taken by a socket that nobody answers on, which is removed. */
async function prepare(socket: AbsolutePath): Promise<Result<void>> {
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES_MAX) {
    // Node 20 would silently bind the path cut off.
    return refuse('too-large', `socket path "${socket}" is longer than ${SOCKET_PATH_BYTES_MAX} bytes`);
  }
  const directory = await prepareDirectory(parentOf(socket));
  if (!directory.ok) return directory;
  try {
    const facts = await lstat(socket);
    if (!facts.isSocket())
      return refuse('path-wrong-kind', `${socket} is there and is not a socket; it is left alone`);
    if (await isAnswered(socket)) return refuse('path-wrong-kind', `another process answers on ${socket}`);
    await unlink(socket);
    return done;
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? done : refuseError(`socket ${socket}`, error);
  }
}

const DIRECTORY_MODE = 0o755;
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

async function prepareDirectory(directory: AbsolutePath): Promise<Result<void>> {
  try {
    // The directory's own mode, whatever the umask; one that is there keeps its mode.
    if ((await mkdir(directory, { recursive: true })) !== undefined) await chmod(directory, DIRECTORY_MODE);
    const { mode } = await lstat(directory);
    if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) {
      return refuse(
        'path-unsafe',
        `${directory}: others may write there and could put their own socket in its place`,
      );
    }
    return done;
  } catch (error) {
    return refuseError(`directory ${directory}`, error);
  }
}

function isAnswered(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path: socket, timeout: PROBE_TIMEOUT_MS });
    const settle = (answered: boolean) => (): void => {
      probe.destroy();
      resolve(answered);
    };
    probe.once('connect', settle(true));
    // A full backlog or a stopped server is somebody too; only a refusal says that nobody is there.
    probe.once('timeout', settle(true));
    probe.once('error', (error) => settle(codeOf(error) !== 'ECONNREFUSED' && codeOf(error) !== 'ENOENT')());
  });
}

const SOCKET_MODE = 0o600;

/** Assumes a umask of 077 (main sets it), so that the socket is closed to others from its first moment. */
async function bind(server: Server, socket: AbsolutePath): Promise<Result<void>> {
  const error = await new Promise<Error | undefined>((resolve) => {
    server.once('error', resolve);
    server.listen({ path: socket }, () => {
      server.off('error', resolve);
      resolve(undefined);
    });
  });
  if (error !== undefined) return refuseError(`socket ${socket}`, error);
  try {
    await chmod(socket, SOCKET_MODE);
    return done;
  } catch (failure) {
    server.close();
    return refuseError(`socket ${socket}`, failure);
  }
}

function refuse(code: FailureCode, message: string): Result<void> {
  return fail({ code, message, effect: 'none' });
}

const ERROR_CODES: Readonly<Record<string, FailureCode>> = {
  EACCES: 'permission-denied',
  EPERM: 'permission-denied',
  EROFS: 'permission-denied',
  ENOSPC: 'disk-full',
  ENOENT: 'path-missing',
  ENOTDIR: 'path-wrong-kind',
  EADDRINUSE: 'path-wrong-kind',
  ELOOP: 'path-unsafe',
};

function refuseError(what: string, error: unknown): Result<void> {
  const code = codeOf(error);
  return refuse(
    ERROR_CODES[code] ?? 'input-output',
    `${what}: ${printable(code === '' ? String(error) : code, 256)}`,
  );
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
