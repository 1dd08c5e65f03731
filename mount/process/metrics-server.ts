/** The metrics over TCP, for a Prometheus that does not read unix sockets: GET /metrics, and nothing else. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { done, fail, type Result } from '../failure.ts';
import type { Log } from './log.ts';
import type { ListenAddress } from './listen-address.ts';

export interface MetricsServerParts {
  readonly listen: ListenAddress;
  /** The text of this moment. */
  readonly metrics: () => string;
  readonly log: Log;
}

export interface MetricsServer {
  /** Settles when the port can be connected to, or with the reason why not. */
  listen(): Promise<Result<void>>;
  /** Closes all connections. */
  close(): Promise<void>;
}

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Others may connect here: what one of them can take is small. */
const HEADER_BYTES_MAX = 4_096;
const CONNECTIONS_MAX = 64;
const KEEP_ALIVE_MS = 5_000;
/** From the connection, or the answer before, until the answer was taken: whoever is slower has lost it. */
const REQUEST_MS_MAX = 10_000;

/** Listens on nothing before `listen`. */
export function createMetricsServer({ listen, metrics, log }: MetricsServerParts): MetricsServer {
  const limits = {
    maxHeaderSize: HEADER_BYTES_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const connections = new Map<Socket, NodeJS.Timeout>();
  const server = createServer(limits, (request, response) => {
    request.resume();
    response.once('finish', () => begin(request.socket));
    respond(request, response);
  });
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => {
      clearTimeout(connections.get(socket));
      connections.delete(socket);
    });
    begin(socket);
    // The one that has waited longest goes, so that slow ones, however many, keep nobody out.
    const [oldest] = connections.keys();
    if (connections.size > CONNECTIONS_MAX) oldest?.destroy();
  });

  /** Its time begins now, and it is the youngest. */
  function begin(socket: Socket): void {
    clearTimeout(connections.get(socket));
    connections.delete(socket);
    if (socket.destroyed) return;
    connections.set(
      socket,
      setTimeout(() => socket.destroy(), REQUEST_MS_MAX),
    );
  }

  function respond({ method, url = '' }: IncomingMessage, response: ServerResponse): void {
    const isHead = method === 'HEAD';
    if (method !== 'GET' && !isHead) return send(response, 405, 'only GET\n', false);
    if (url.split('?', 1)[0] !== '/metrics') return send(response, 404, 'only /metrics\n', isHead);
    try {
      send(response, 200, metrics(), isHead);
    } catch (error) {
      // A look at the state cannot have spoilt it: the request fails, the volumes go on.
      log.error('metrics failed', { error: String(error) });
      send(response, 500, 'the agent could not make them; its log says why\n', isHead);
    }
  }

  return {
    async listen() {
      const { address: host, port } = listen;
      const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
        server.once('error', resolve);
        server.listen({ host, port }, () => {
          server.off('error', resolve);
          resolve(undefined);
        });
      });
      if (error === undefined) {
        server.on('error', (later) => log.error('metrics', { error: String(later) }));
        return done;
      }
      const code = error.code === 'EACCES' ? 'permission-denied' : 'input-output';
      return fail({ code, message: `cannot listen on ${host} port ${port}: ${error.code}`, effect: 'none' });
    },
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function send(response: ServerResponse, status: number, text: string, headOnly: boolean): void {
  const bytes = Buffer.from(text);
  response.writeHead(status, {
    'content-type': status === 200 ? METRICS_CONTENT_TYPE : 'text/plain; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(headOnly ? undefined : bytes);
}
