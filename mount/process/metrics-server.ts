/** The metrics over TCP, for a Prometheus that does not read unix sockets: GET /metrics, and nothing else. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { done, fail, type Result } from '../failure.ts';
import type { Clock } from '../host.ts';
import type { Log } from './log.ts';
import type { ListenAddress } from './listen-address.ts';

export interface MetricsServerParts {
  readonly listen: ListenAddress;
  /** The text of this moment. */
  readonly metrics: () => string;
  readonly clock: Pick<Clock, 'nowMs'>;
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
/** From the connection until the answer was taken: whoever is slower has lost it. */
const REQUEST_MS_MAX = 10_000;
/** A page is for all who ask while it is so young, however many: thousands of volumes take long to be told. */
const PAGE_MS = 1_000;
/** And while it is not so many times older than it took to make: pages take a tenth of the time at most. */
const PAGE_COSTS = 10;

interface Page {
  readonly status: 200 | 500;
  readonly bytes: Buffer;
  /** When it is too old to be told. */
  readonly endsMs: number;
}

/**
 * Listens on nothing before `listen`. A connection is for one request, and ends when it has a second one: thousands
 * have room in what is read of a connection at once, and each would be answered before anything else is done.
 */
export function createMetricsServer({ listen, metrics, clock, log }: MetricsServerParts): MetricsServer {
  const connections = new Map<Socket, NodeJS.Timeout>();
  const asked = new WeakSet<Socket>();
  const pageOfNow = keepPages({ metrics, clock, log });
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX }, (request, response) => {
    request.resume();
    if (asked.has(request.socket)) {
      request.socket.destroy();
      return;
    }
    asked.add(request.socket);
    respond(request, response);
  });
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => {
      clearTimeout(connections.get(socket));
      connections.delete(socket);
    });
    connections.set(
      socket,
      setTimeout(() => socket.destroy(), REQUEST_MS_MAX),
    );
    // The one that has waited longest goes, so that slow ones, however many, keep nobody out.
    const [oldest] = connections.keys();
    if (connections.size > CONNECTIONS_MAX) oldest?.destroy();
  });

  function respond({ method, url = '' }: IncomingMessage, response: ServerResponse): void {
    const isHead = method === 'HEAD';
    if (method !== 'GET' && !isHead) return send(response, 405, Buffer.from('only GET\n'), false);
    if (url.split('?', 1)[0] !== '/metrics')
      return send(response, 404, Buffer.from('only /metrics\n'), isHead);
    const { status, bytes } = pageOfNow();
    send(response, status, bytes, isHead);
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

/** The page to be told now: the one that was made last while it is young enough, or a new one. */
function keepPages({ metrics, clock, log }: Omit<MetricsServerParts, 'listen'>): () => Page {
  let page: Page | undefined;
  const textOfNow = (): { status: Page['status']; text: string } => {
    try {
      return { status: 200, text: metrics() };
    } catch (error) {
      // A look at the state cannot have spoilt it: the request fails, the volumes go on.
      log.error('metrics failed', { error: String(error) });
      return { status: 500, text: 'the agent could not make them; its log says why\n' };
    }
  };
  return () => {
    const askedMs = clock.nowMs();
    if (page !== undefined && askedMs < page.endsMs) return page;
    const { status, text } = textOfNow();
    const bytes = Buffer.from(text);
    const madeMs = clock.nowMs();
    page = { status, bytes, endsMs: madeMs + Math.max(PAGE_MS, PAGE_COSTS * (madeMs - askedMs)) };
    return page;
  };
}

function send(response: ServerResponse, status: number, bytes: Buffer, headOnly: boolean): void {
  response.writeHead(status, {
    'content-type': status === 200 ? METRICS_CONTENT_TYPE : 'text/plain; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    connection: 'close',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(headOnly ? undefined : bytes);
}
