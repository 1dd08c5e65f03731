/** The answers of the API: one for each path and method. docs/API.md describes them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { METRICS_CONTENT_TYPE } from '../../mount/process/metrics-server.ts';
import { type ApiAnswer, JSON_CONTENT_TYPE, jsonText, refusal } from './api-answer.ts';
import { type Changes, WATCHERS_MAX } from './api-changes.ts';
import { createManifestApi, type ManifestApi } from './manifest-api.ts';
import { answerMounts, decoded, type PodMounts } from './mounts-api.ts';
import { answerRelease, type PodReleases } from './release-api.ts';
import { createQuarantineApi, type QuarantineApi, type QuarantineKeeper } from './quarantine-api.ts';
import { BUILD } from '../config/version.ts';
import type { ManifestKeeper } from '../source/manifest-keeper.ts';
import { explain } from '../status/explain.ts';
import type { StatusDocument } from '../status/status-document.ts';

export interface ApiRoutesParts {
  /** The document of this moment under the given revision. */
  readonly status: (revision: string) => StatusDocument;
  readonly quarantine: QuarantineKeeper;
  readonly manifests: ManifestKeeper;
  readonly mounts: PodMounts;
  readonly releases: PodReleases;
  /** Prometheus text. */
  readonly metrics: () => string;
  /** RFC 7517; by default none: no tokens are issued here. */
  readonly publicKeys?: readonly object[];
  /** Does a broker answer? */
  readonly healthy: () => Promise<boolean>;
  readonly runtime: string;
}

const WAIT_MS_MAX = 30_000;
const URL_BYTES_MAX = 2_048;
/** The names of all pods of a node, as `mooring forget` may have them, have room. */
const BODY_BYTES_MAX = 65_536;

export class ApiRoutes {
  readonly #parts: ApiRoutesParts;
  readonly #changes: Changes<Buffer>;
  readonly #quarantine: QuarantineApi;
  readonly #manifests: ManifestApi;

  constructor(parts: ApiRoutesParts, changes: Changes<Buffer>) {
    const status = (): StatusDocument => parts.status(changes.revision());
    this.#parts = parts;
    this.#changes = changes;
    this.#quarantine = createQuarantineApi(parts.quarantine, status);
    this.#manifests = createManifestApi(parts.manifests, status);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<ApiAnswer> {
    const text = request.url ?? '/';
    if (Buffer.byteLength(text) > URL_BYTES_MAX)
      return refusal(414, 'bad-request', `URL above ${URL_BYTES_MAX} bytes`);
    if (!URL.canParse(text, 'http://mooring')) return refusal(400, 'bad-request', 'not a URL');
    const url = new URL(text, 'http://mooring');
    const [, subject, about] = POD_PATH.exec(url.pathname) ?? [];
    const methods = METHODS.get(subject === undefined ? url.pathname : `/v1/pods/<pod>/${about}`);
    if (methods === undefined)
      return refusal(404, 'not-found', `no such path; there are ${PATHS.join(', ')}`);
    const method = request.method ?? '';
    if (!methods.includes(method)) {
      const message = `${method}: ${url.pathname} has only ${methods.join(', ')}`;
      return { ...refusal(405, 'method-not-allowed', message), allow: methods.join(', ') };
    }
    if (subject !== undefined) return this.#answerPod(subject, method, request);
    if (method === 'GET' || method === 'HEAD') return this.#look(url, response);
    if (method === 'DELETE') return this.#quarantine.clear(url.searchParams.get('volume') ?? '');
    return answerJson(
      request,
      url.pathname === '/v1/manifests' ? this.#manifests.change : this.#quarantine.add,
    );
  }

  #answerPod(subject: string, method: string, request: IncomingMessage): Promise<ApiAnswer> | ApiAnswer {
    const name = decoded(subject);
    if (name === undefined)
      return refusal(400, 'bad-request', 'the name of the pod is not percent-encoded UTF-8');
    const { status, mounts, releases } = this.#parts;
    const now = (): StatusDocument => status(this.#changes.revision());
    if (method !== 'POST') return answerMounts(name, now(), mounts);
    return answerJson(request, async (body) => answerRelease(name, body, now(), releases));
  }

  async #look(url: URL, response: ServerResponse): Promise<ApiAnswer> {
    switch (url.pathname) {
      case '/v1/status':
        return this.#answerStatus(url, response);
      case '/v1/explain':
        return this.#answerExplain(url);
      case '/v1/quarantine':
        return this.#quarantine.list();
      case '/v1/manifests':
        return this.#manifests.list();
      case '/v1/version':
        return {
          status: 200,
          body: { apiVersion: 'mooring/v1', kind: 'Version', ...BUILD, runtime: this.#parts.runtime },
        };
      case '/metrics':
        return { status: 200, text: this.#parts.metrics(), contentType: METRICS_CONTENT_TYPE };
      case KEYS_PATH:
        return { status: 200, body: { keys: this.#parts.publicKeys ?? [] } };
      default: {
        const healthy = await this.#parts.healthy();
        return { status: healthy ? 200 : 503, body: { apiVersion: 'mooring/v1', kind: 'Health', healthy } };
      }
    }
  }

  async #answerStatus(url: URL, response: ServerResponse): Promise<ApiAnswer> {
    const after = url.searchParams.get('after');
    const waitMs = wholeNumber(url.searchParams.get('waitMs') ?? '0', WAIT_MS_MAX);
    if (typeof waitMs === 'string') return refusal(400, 'bad-request', `waitMs ${waitMs}`);
    if (after === null || waitMs === 0)
      return { status: 200, body: this.#parts.status(this.#changes.revision()) };
    const wait = this.#changes.wait(after, waitMs);
    if (wait === undefined) return refusal(429, 'too-many-watchers', `${WATCHERS_MAX} clients wait already`);
    response.once('close', wait.cancel);
    await wait.ended;
    // Written out within what is counted: that costs as much as making it.
    const text = this.#changes.tell(() =>
      Buffer.from(jsonText(this.#parts.status(this.#changes.revision()))),
    );
    return { status: 200, text, contentType: JSON_CONTENT_TYPE };
  }

  #answerExplain(url: URL): ApiAnswer {
    const subject = url.searchParams.get('subject') ?? '';
    if (subject === '') return refusal(400, 'bad-request', 'subject: name a pod or a volume');
    const explanation = explain(subject, this.#parts.status(this.#changes.revision()));
    if (explanation.kind === 'found') return { status: 200, body: explanation.document };
    return explanation.kind === 'unknown'
      ? refusal(404, 'subject-unknown', explanation.message)
      : refusal(409, 'subject-ambiguous', explanation.message);
  }
}

/** What is wrong with it, when it is not one from 0 to `max`. */
function wholeNumber(text: string, max: number): number | string {
  if (/^\d{1,6}$/.test(text) && Number(text) <= max) return Number(text);
  return `"${text.slice(0, 32)}": expected a whole number from 0 to ${max}`;
}

const LOOK = ['GET', 'HEAD'];
/** Where a Kubernetes API server has them, too. */
const KEYS_PATH = '/openid/v1/jwks';
const METHODS: ReadonlyMap<string, readonly string[]> = new Map([
  ['/v1/status', LOOK],
  ['/v1/explain', LOOK],
  ['/v1/quarantine', [...LOOK, 'POST', 'DELETE']],
  ['/v1/manifests', [...LOOK, 'POST']],
  ['/v1/pods/<pod>/mounts', LOOK],
  ['/v1/pods/<pod>/release', ['POST']],
  ['/v1/version', LOOK],
  ['/v1/health', LOOK],
  ['/metrics', LOOK],
  [KEYS_PATH, LOOK],
]);
const POD_PATH = /^\/v1\/pods\/([^/]+)\/(mounts|release)$/;
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
