/** Service account tokens that an API server issues: asked for when somebody wants one, and again before it is old. */
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { tokenPath } from '../../kubernetes/api/resource-path.ts';
import type { TokenRequest } from '../../kubernetes/objects/objects.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { PodReference } from '../../plugins/volume.ts';
import { refuse } from '../source/refuse.ts';
import { type ServiceAccountToken, type TokenSource, tokensJson } from '../source/token-source.ts';

export interface ClusterTokenParts {
  readonly host: Pick<Host, 'wallMs' | 'timer' | 'random'>;
  readonly transport: ApiTransport;
}

export interface ClusterTokenSource extends TokenSource {
  stop(): void;
}

/** As the kubelet: a new one at 80 % of its life, or after a day, up to 10 s earlier by chance. */
const FRESH_SHARE = 0.8;
const FRESH_MS_MAX = 24 * 3_600_000;
const JITTER_MS_MAX = 10_000;
const TIMER_MS_MAX = 3_600_000;
const RETRY_FIRST_MS = 1_000;
const RETRY_MS_MAX = 60_000;
const LIFE_SECONDS_DEFAULT = 3_600;
const ANSWER_BYTES_MAX = 256 * 1_024;
const ANSWER_MS_MAX = 10_000;
/** A JWT: three parts of base64url. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

interface Issued {
  readonly token: Sensitive<string>;
  readonly expirationTimestamp: string;
  readonly issue: string;
  readonly issuedWallMs: number;
  readonly expiresWallMs: number;
  readonly freshUntilWallMs: number;
}

interface Entry {
  issued: Issued | undefined;
  /** Why there is none, or no newer one. */
  message: string;
  isAsking: boolean;
  retryMs: number;
  /** Whether anybody has wanted it since it was issued. */
  isWanted: boolean;
  cancel: Cancel;
}

/**
 * Guarantees: one request at a time for each pod, audience and life; the token that is there is answered until it
 * expires, also while no newer one can be had; a clock set back asks anew. Tokens are in memory alone, and sealed.
 */
export function createClusterTokenSource(parts: ClusterTokenParts): ClusterTokenSource {
  return new ClusterTokens(parts);
}

class ClusterTokens implements ClusterTokenSource {
  readonly #parts: ClusterTokenParts;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<() => void>();
  #issues = 0;
  #isStopped = false;

  constructor(parts: ClusterTokenParts) {
    this.#parts = parts;
  }

  tokenFor(pod: PodReference, request: TokenRequest): ReturnType<TokenSource['tokenFor']> {
    const entry = this.#current(pod, request);
    const { issued } = entry;
    return issued === undefined
      ? missing(pod, entry.message)
      : { kind: 'token', token: issued.token, issue: issued.issue };
  }

  tokensFor(pod: PodReference, requests: readonly TokenRequest[]): ReturnType<TokenSource['tokensFor']> {
    const entries = requests.map((request) => [request.audience, this.#current(pod, request)] as const);
    const tokens = new Map<string, ServiceAccountToken>();
    for (const [audience, { issued, message }] of entries) {
      if (issued === undefined) return missing(pod, message);
      const { token, expirationTimestamp } = issued;
      tokens.set(audience, { token: token.reveal(), expirationTimestamp });
    }
    return { kind: 'tokens', json: tokensJson(tokens) };
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#isStopped = true;
    for (const { cancel } of this.#entries.values()) cancel();
    this.#listeners.clear();
  }

  /** What is at hand; asked for when it is missing or old. */
  #current(pod: PodReference, request: TokenRequest): Entry {
    const key = JSON.stringify([pod, request.audience, request.expirationSeconds ?? LIFE_SECONDS_DEFAULT]);
    const known = this.#entries.get(key);
    const entry = known ?? {
      issued: undefined,
      message: 'it is being asked for',
      isAsking: false,
      retryMs: RETRY_FIRST_MS,
      isWanted: true,
      cancel: () => {},
    };
    if (known === undefined) this.#entries.set(key, entry);
    entry.isWanted = true;
    const wallMs = this.#parts.host.wallMs();
    const { issued } = entry;
    if (issued !== undefined && (wallMs >= issued.expiresWallMs || wallMs < issued.issuedWallMs))
      entry.issued = undefined;
    if (known === undefined) void this.#ask(key, entry, pod, request);
    return entry;
  }

  async #ask(key: string, entry: Entry, pod: PodReference, request: TokenRequest): Promise<void> {
    if (this.#isStopped || entry.isAsking) return;
    entry.isAsking = true;
    const { transport, host } = this.#parts;
    const answered = await transport.request({
      method: 'POST',
      path: tokenPath({ namespace: pod.namespace, name: pod.serviceAccount }),
      body: requestBody(pod, request),
      answerBytesMax: ANSWER_BYTES_MAX,
      deadlineMs: ANSWER_MS_MAX,
    });
    entry.isAsking = false;
    if (this.#isStopped) return;
    const issued = answered.ok ? this.#read(answered.value) : undefined;
    const again = (): void => {
      // Whoever wanted it has not come back since: the pod is gone.
      if (!entry.isWanted) this.#entries.delete(key);
      else void this.#ask(key, entry, pod, request);
    };
    if (issued === undefined) {
      entry.message = answered.ok ? 'the API server answered something else' : answered.failure.message;
      const waitMs = Math.max(
        entry.retryMs * (0.5 + host.random() / 2),
        answered.ok ? 0 : (answered.failure.retryAfterMs ?? 0),
      );
      entry.retryMs = Math.min(entry.retryMs * 2, RETRY_MS_MAX);
      entry.cancel = host.timer(waitMs, again);
    } else {
      entry.issued = issued;
      entry.retryMs = RETRY_FIRST_MS;
      entry.isWanted = false;
      const waitMs = Math.max(issued.freshUntilWallMs - host.wallMs(), RETRY_FIRST_MS);
      entry.cancel = host.timer(Math.min(waitMs, TIMER_MS_MAX), () => this.#due(issued, entry, again));
    }
    for (const listener of this.#listeners) listener();
  }

  /** A timer is no longer than an hour, and the clock of the wall may have been set meanwhile. */
  #due(issued: Issued, entry: Entry, again: () => void): void {
    const wallMs = this.#parts.host.wallMs();
    if (wallMs >= issued.freshUntilWallMs || wallMs < issued.issuedWallMs) return again();
    const waitMs = Math.min(issued.freshUntilWallMs - wallMs, TIMER_MS_MAX);
    entry.cancel = this.#parts.host.timer(waitMs, () => this.#due(issued, entry, again));
  }

  #read(value: unknown): Issued | undefined {
    const { status } = (value ?? {}) as { status?: { token?: unknown; expirationTimestamp?: unknown } };
    const { token, expirationTimestamp } = status ?? {};
    if (typeof token !== 'string' || !TOKEN.test(token) || typeof expirationTimestamp !== 'string')
      return undefined;
    const expiresWallMs = Date.parse(expirationTimestamp);
    const { host } = this.#parts;
    const issuedWallMs = host.wallMs();
    if (!(expiresWallMs > issuedWallMs)) return undefined;
    this.#issues += 1;
    const freshMs = Math.min((expiresWallMs - issuedWallMs) * FRESH_SHARE, FRESH_MS_MAX);
    return {
      token: new Sensitive(token),
      expirationTimestamp,
      issue: `${issuedWallMs}-${this.#issues}`,
      issuedWallMs,
      expiresWallMs,
      freshUntilWallMs: issuedWallMs + freshMs - host.random() * Math.min(JITTER_MS_MAX, freshMs / 2),
    };
  }
}

function requestBody({ name, uid }: PodReference, { audience, expirationSeconds }: TokenRequest): unknown {
  return {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      audiences: audience === '' ? [] : [audience],
      expirationSeconds: expirationSeconds ?? LIFE_SECONDS_DEFAULT,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
    },
  };
}

function missing(
  { namespace, serviceAccount }: PodReference,
  why: string,
): { readonly kind: 'none'; readonly failure: ReturnType<typeof refuse>['failure'] } {
  const message = `there is no token of service account ${namespace}/${serviceAccount} from the API server yet: ${why}`;
  return { kind: 'none', failure: refuse('token-missing', message).failure };
}
