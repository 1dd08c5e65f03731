/** The API: HTTP over a unix socket that only root can open. docs/API.md describes it. */
import { chmod, lstat, mkdir, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { done, fail, type FailureCode, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, parentOf } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import { type ApiAnswer, JSON_CONTENT_TYPE, jsonText, refusal } from './api-answer.ts';
import { type ChangesParts, createChanges, WATCHERS_MAX } from './api-changes.ts';
import { explain } from '../status/explain.ts';
import { createManifestApi } from './manifest-api.ts';
import type { ManifestKeeper } from '../source/manifest-keeper.ts';
import { METRICS_CONTENT_TYPE } from '../../mount/process/metrics-server.ts';
import { printable } from '../../mount/text/printable.ts';
import { createQuarantineApi, type QuarantineKeeper } from './quarantine-api.ts';
import { SOCKET_PATH_BYTES_MAX } from '../config/setting.ts';
import type { StatusDocument } from '../status/status-document.ts';
import { BUILD } from '../config/version.ts';

export interface ApiServerParts extends ChangesParts {
  readonly socket: AbsolutePath;
  /** The document of this moment under the given revision. */
  readonly status: (revision: string) => StatusDocument;
  readonly quarantine: QuarantineKeeper;
  readonly manifests: ManifestKeeper;
  /** Prometheus text. */
  readonly metrics: () => string;
  /** Does a broker answer? */
  readonly healthy: () => Promise<boolean>;
  readonly runtime: string;
  readonly log: Log;
}

export interface ApiServer {
  /** Settles when the socket can be connected to, or with the reason why not. */
  listen(): Promise<Result<void>>;
  /** Answers who waits, closes all connections and removes the socket. */
  close(): Promise<void>;
}

const WAIT_MS_MAX = 30_000;
const URL_BYTES_MAX = 2_048;
const HEADER_BYTES_MAX = 8_192;
const BODY_BYTES_MAX = 4_096;
const CONNECTIONS_MAX = 64;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 5_000;
const PROBE_TIMEOUT_MS = 1_000;

export function createApiServer(parts: ApiServerParts): ApiServer {
  const changes = createChanges(parts);
  const quarantine = createQuarantineApi(parts.quarantine, () => parts.status(changes.revision()));
  const manifests = createManifestApi(parts.manifests, () => parts.status(changes.revision()));
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
    // Only a POST has a body that somebody reads.
    if (request.method !== 'POST') request.resume();
    let answer: ApiAnswer;
    try {
      answer = await route(request, response);
    } catch (error) {
      // A request cannot have spoilt the state: it fails, the volumes go on.
      parts.log.error('request failed', { url: request.url, error: String(error) });
      answer = refusal(500, 'internal', 'the agent could not make this answer; its log says why');
    }
    request.resume();
    send(response, answer, request.method === 'HEAD');
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<ApiAnswer> {
    const text = request.url ?? '/';
    if (Buffer.byteLength(text) > URL_BYTES_MAX)
      return refusal(414, 'bad-request', `URL above ${URL_BYTES_MAX} bytes`);
    if (!URL.canParse(text, 'http://mooring')) return refusal(400, 'bad-request', 'not a URL');
    const url = new URL(text, 'http://mooring');
    const methods = METHODS.get(url.pathname);
    if (methods === undefined)
      return refusal(404, 'not-found', `no such path; there are ${PATHS.join(', ')}`);
    const method = request.method ?? '';
    if (!methods.includes(method)) {
      const message = `${method}: ${url.pathname} has only ${methods.join(', ')}`;
      return { ...refusal(405, 'method-not-allowed', message), allow: methods.join(', ') };
    }
    if (method === 'GET' || method === 'HEAD') return look(url, response);
    if (method === 'DELETE') return quarantine.clear(url.searchParams.get('volume') ?? '');
    return answerJson(request, url.pathname === '/v1/manifests' ? manifests.change : quarantine.add);
  }

  async function look(url: URL, response: ServerResponse): Promise<ApiAnswer> {
    switch (url.pathname) {
      case '/v1/status':
        return answerStatus(url, response);
      case '/v1/explain':
        return answerExplain(url);
      case '/v1/quarantine':
        return quarantine.list();
      case '/v1/manifests':
        return manifests.list();
      case '/v1/version':
        return {
          status: 200,
          body: { apiVersion: 'mooring/v1', kind: 'Version', ...BUILD, runtime: parts.runtime },
        };
      case '/metrics':
        return { status: 200, text: parts.metrics(), contentType: METRICS_CONTENT_TYPE };
      default: {
        const healthy = await parts.healthy();
        return { status: healthy ? 200 : 503, body: { apiVersion: 'mooring/v1', kind: 'Health', healthy } };
      }
    }
  }

  async function answerStatus(url: URL, response: ServerResponse): Promise<ApiAnswer> {
    const after = url.searchParams.get('after');
    const waitMs = wholeNumber(url.searchParams.get('waitMs') ?? '0', WAIT_MS_MAX);
    if (typeof waitMs === 'string') return refusal(400, 'bad-request', `waitMs ${waitMs}`);
    if (after === null || waitMs === 0) return { status: 200, body: parts.status(changes.revision()) };
    const wait = changes.wait(after, waitMs);
    if (wait === undefined) return refusal(429, 'too-many-watchers', `${WATCHERS_MAX} clients wait already`);
    response.once('close', wait.cancel);
    await wait.ended;
    // Written out within what is counted: that costs as much as making it.
    const text = changes.tell(() => jsonText(parts.status(changes.revision())));
    return { status: 200, text, contentType: JSON_CONTENT_TYPE };
  }

  function answerExplain(url: URL): ApiAnswer {
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

/** What is wrong with it, when it is not one from 0 to `max`. */
function wholeNumber(text: string, max: number): number | string {
  if (/^\d{1,6}$/.test(text) && Number(text) <= max) return Number(text);
  return `"${text.slice(0, 32)}": expected a whole number from 0 to ${max}`;
}

const LOOK = ['GET', 'HEAD'];
const METHODS: ReadonlyMap<string, readonly string[]> = new Map([
  ['/v1/status', LOOK],
  ['/v1/explain', LOOK],
  ['/v1/quarantine', [...LOOK, 'POST', 'DELETE']],
  ['/v1/manifests', [...LOOK, 'POST']],
  ['/v1/version', LOOK],
  ['/v1/health', LOOK],
  ['/metrics', LOOK],
]);
const PATHS = [...METHODS.keys()];

async function answerJson(
  request: IncomingMessage,
  answer: (body: unknown) => Promise<ApiAnswer>,
): Promise<ApiAnswer> {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json')
    return refusal(
      415,
      'unsupported-media-type',
      'the body must be JSON, with content-type application/json',
    );
  const text = await readBody(request);
  if (text === 'too-large') return refusal(413, 'too-large', `body above ${BODY_BYTES_MAX} bytes`);
  const body = text === 'broken' ? undefined : parseJson(text.toString('utf8'));
  return body === undefined ? refusal(400, 'bad-request', 'the body is not JSON') : answer(body.value);
}

/** Settles at the latest when the server's own limit for a whole request ends it. */
function readBody(request: IncomingMessage): Promise<Buffer | 'too-large' | 'broken'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) resolve('too-large');
      else chunks.push(chunk);
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', () => resolve('broken'));
    request.once('close', () => resolve('broken'));
  });
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** `headOnly`: without its body, as HEAD wants it. */
function send(response: ServerResponse, answer: ApiAnswer, headOnly: boolean): void {
  const isText = 'text' in answer;
  const bytes = Buffer.from(isText ? answer.text : jsonText(answer.body));
  response.writeHead(answer.status, {
    'content-type': isText ? answer.contentType : JSON_CONTENT_TYPE,
    'content-length': bytes.length,
    'cache-control': 'no-store',
    ...(!isText && answer.allow !== undefined ? { allow: answer.allow } : {}),
    // The rest of a body that nobody reads is not the next request.
    ...(answer.status === 413 || answer.status === 415 ? { connection: 'close' } : {}),
  });
  response.end(headOnly ? undefined : bytes);
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
