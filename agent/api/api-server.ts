/** The API: HTTP over a unix socket that only root can open. docs/API.md describes it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { done, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import { type ApiAnswer, JSON_CONTENT_TYPE, jsonText, refusal } from './api-answer.ts';
import { type ChangesParts, createChanges, WATCHERS_MAX } from './api-changes.ts';
import { ApiRoutes, type ApiRoutesParts } from './api-routes.ts';
import { identifySocket, listenOnSocket, removeSocket } from './api-socket.ts';
import { createSocketKeeper } from './socket-keeper.ts';

export interface ApiServerParts extends ChangesParts, ApiRoutesParts {
  readonly socket: AbsolutePath;
  readonly watch: Host['watch'];
  readonly log: Log;
}

export interface ApiServer {
  /** Settles when the socket can be connected to, or with the reason why not. */
  listen(): Promise<Result<void>>;
  /** Answers who waits, closes all connections and removes the socket, if it is ours. */
  close(): Promise<void>;
}

const HEADER_BYTES_MAX = 8_192;
/** For all who wait, and for who looks beside them. */
const CONNECTIONS_MAX = WATCHERS_MAX + 64;
/** Root alone gets here, and on a machine whose disks are all at work he may be slow to speak. */
const HEADERS_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_MS = 5_000;

export function createApiServer(parts: ApiServerParts): ApiServer {
  const changes = createChanges<Buffer>(parts);
  const routes = new ApiRoutes(parts, changes);
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
      answer = await routes.answer(request, response);
    } catch (error) {
      // A request cannot have spoilt the state: it fails, the volumes go on.
      parts.log.error('request failed', { url: request.url, error: String(error) });
      answer = refusal(500, 'internal', 'the agent could not make this answer; its log says why');
    }
    request.resume();
    send(response, answer, request.method === 'HEAD');
  }

  const tellError = (error: Error): void => parts.log.error('status API', { error: String(error) });
  async function listen(): Promise<Result<string>> {
    // What is wrong with the socket is the answer.
    server.off('error', tellError);
    const bound = await listenOnSocket(server, parts.socket);
    server.on('error', tellError);
    return bound;
  }
  const keeper = createSocketKeeper({ ...parts, identify: () => identifySocket(parts.socket), listen });

  return {
    async listen() {
      const bound = await listen();
      if (!bound.ok) return bound;
      keeper.begin(bound.value);
      return done;
    },
    async close() {
      changes.close();
      // Before it is closed: as long as it is open no other socket gets its inode.
      const ours = await keeper.end();
      if (ours !== undefined) await removeSocket(parts.socket, ours);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** `headOnly`: without its body, as HEAD wants it. */
function send(response: ServerResponse, answer: ApiAnswer, headOnly: boolean): void {
  const isText = 'text' in answer;
  const text = isText ? answer.text : jsonText(answer.body);
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
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
