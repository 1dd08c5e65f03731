/** The API: HTTP over a unix socket that only root can open. docs/API.md describes it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Result } from '../../mount/failure.ts';
import type { AbsolutePath } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import { type ApiAnswer, JSON_CONTENT_TYPE, jsonText, refusal } from './api-answer.ts';
import { type ChangesParts, createChanges, WATCHERS_MAX } from './api-changes.ts';
import { listenOnSocket } from './api-socket.ts';
import { explain } from '../status/explain.ts';
import { createManifestApi } from './manifest-api.ts';
import { answerMounts, type PodMounts } from './mounts-api.ts';
import type { ManifestKeeper } from '../source/manifest-keeper.ts';
import { METRICS_CONTENT_TYPE } from '../../mount/process/metrics-server.ts';
import { createQuarantineApi, type QuarantineKeeper } from './quarantine-api.ts';
import type { StatusDocument } from '../status/status-document.ts';
import { BUILD } from '../config/version.ts';

export interface ApiServerParts extends ChangesParts {
  readonly socket: AbsolutePath;
  /** The document of this moment under the given revision. */
  readonly status: (revision: string) => StatusDocument;
  readonly quarantine: QuarantineKeeper;
  readonly manifests: ManifestKeeper;
  readonly mounts: PodMounts;
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
    const subject = POD_MOUNTS.exec(url.pathname)?.[1];
    const methods = subject === undefined ? METHODS.get(url.pathname) : LOOK;
    if (methods === undefined)
      return refusal(404, 'not-found', `no such path; there are ${PATHS.join(', ')}`);
    const method = request.method ?? '';
    if (!methods.includes(method)) {
      const message = `${method}: ${url.pathname} has only ${methods.join(', ')}`;
      return { ...refusal(405, 'method-not-allowed', message), allow: methods.join(', ') };
    }
    if (subject !== undefined) return answerMounts(subject, parts.status(changes.revision()), parts.mounts);
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
      const bound = await listenOnSocket(server, parts.socket);
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
const POD_MOUNTS = /^\/v1\/pods\/([^/]+)\/mounts$/;
const PATHS = [...METHODS.keys(), '/v1/pods/<pod>/mounts'];

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
