/** The store behind a real HTTP/2 server on the loopback: what the product's transport speaks with in tests. */
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { AbsolutePath } from '../../../mount/host.ts';
import type { ApiAccess } from '../../../kubernetes/api/kubeconfig.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { type ApiStore, type Json, refusal, type StoredAnswer } from './api-store.ts';
import { selfSigned } from './certificate.ts';

export interface StoreServer {
  /** With a token out of `tokenFile`. */
  access(tokenFile: AbsolutePath): ApiAccess;
  /** The header of each request, as it came. */
  readonly authorizations: string[];
  /** Connections that are open. */
  sessions(): number;
  /** Connections so far. */
  met(): number;
  /** Each new connection is told to go before it has asked for anything. */
  turnAway(isTurning: boolean): void;
  /** Requests are taken and never answered. */
  hang(isHanging: boolean): void;
  /** Every connection is told to go, and may end what it has begun. */
  goAway(): void;
  /** Every connection is lost. */
  cut(): void;
  close(): Promise<void>;
}

export async function serveStore(
  store: Pick<ApiStore, 'answer' | 'watch'>,
  settings: { readonly streamsMax?: number } = {},
): Promise<StoreServer> {
  const { certificate, key } = selfSigned('store');
  const open = new Set<ServerHttp2Session>();
  const authorizations: string[] = [];
  let isHanging = false;
  let isTurningAway = false;
  let met = 0;

  function answer(request: Http2ServerRequest, response: Http2ServerResponse): void {
    request.on('error', () => undefined);
    response.stream.on('error', () => undefined);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => serve(request, response, Buffer.concat(chunks).toString('utf8')));
  }

  function serve(request: Http2ServerRequest, response: Http2ServerResponse, text: string): void {
    authorizations.push(request.headers.authorization ?? '');
    if (isHanging) return;
    const target = request.url;
    if (!new URL(target, 'https://server').searchParams.has('watch')) {
      const misread =
        request.method === 'PATCH' ? misreadPatch(request.headers['content-type'], text) : undefined;
      const { status, body, retryAfter } =
        misread ?? store.answer(request.method, target, text === '' ? undefined : (JSON.parse(text) as Json));
      response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
      return;
    }
    // What has been is told at once, and the headers come before it.
    const before: string[] = [];
    let isOpen = false;
    const opened = store.watch(target, {
      line: (event) => {
        const line = `${JSON.stringify(event)}\n`;
        if (isOpen) response.write(line);
        else before.push(line);
      },
      ended: () => response.end(),
    });
    if (typeof opened === 'function') {
      isOpen = true;
      response.writeHead(200);
      response.stream.on('close', opened);
      for (const line of before) response.write(line);
    } else {
      response.writeHead(opened.status);
      response.end(JSON.stringify(opened.body));
    }
  }

  const server = createSecureServer(
    {
      cert: certificate,
      key,
      settings: settings.streamsMax === undefined ? {} : { maxConcurrentStreams: settings.streamsMax },
    },
    answer,
  );
  server.on('session', (session) => {
    open.add(session);
    met += 1;
    if (isTurningAway) session.goaway();
    session.on('error', () => undefined);
    session.on('close', () => open.delete(session));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    access: (tokenFile) => ({
      server: `https://127.0.0.1:${port}`,
      serverName: undefined,
      authority: { kind: 'bytes', bytes: new Sensitive(Buffer.from(certificate)) },
      identity: { kind: 'token', token: { kind: 'file', path: tokenFile } },
    }),
    authorizations,
    sessions: () => open.size,
    met: () => met,
    turnAway(next) {
      isTurningAway = next;
    },
    hang(next) {
      isHanging = next;
    },
    goAway() {
      for (const session of open) session.close();
    },
    cut() {
      for (const session of open) session.destroy();
    },
    async close() {
      for (const session of open) session.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** What Go's encoder escapes in a text, and JSON.stringify leaves as it is. */
const UNLIKE_GO = /[<>&\u2028\u2029]/;

/**
 * The API server takes a patch for what its type says, and not for what its text looks like. What a JSON patch compares
 * is compared byte by byte with what Go has written; here such bytes are refused wherever they are.
 */
function misreadPatch(type: string | undefined, text: string): StoredAnswer | undefined {
  const isJsonPatch = type === 'application/json-patch+json';
  if (!isJsonPatch && type !== 'application/merge-patch+json')
    return refusal(415, `the body of the request was in an unknown format - ${type}`);
  if (Array.isArray(JSON.parse(text)) !== isJsonPatch) return refusal(400, 'error decoding patch');
  return isJsonPatch && UNLIKE_GO.test(text) ? refusal(422, 'test failed') : undefined;
}
