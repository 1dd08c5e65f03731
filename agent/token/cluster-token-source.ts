/** Service account tokens that an API server issues: asked for when somebody wants one, and again before it is old. */
import type { ApiFailure } from '../../kubernetes/api/api-failure.ts';
import type { ApiTransport } from '../../kubernetes/api/api-transport.ts';
import { tokenPath } from '../../kubernetes/api/resource-path.ts';
import { objectKey, type TokenRequest } from '../../kubernetes/objects/objects.ts';
import type { Cancel, Host } from '../../mount/host.ts';
import { Retries } from '../../mount/process/back-off.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { PodReference } from '../../plugins/volume.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import { type ServiceAccountToken, type TokenSource, tokensJson } from '../source/token-source.ts';
import {
  dueInMs,
  isFresh,
  isValid,
  LIFE_SECONDS_DEFAULT,
  type Moment,
  momentOf,
  requestKey,
  type TokenLife,
  tokenLife,
} from './token-life.ts';
import type { Unrenewed } from './unrenewed.ts';

export interface ClusterTokenParts {
  readonly host: Pick<Host, 'nowMs' | 'wallMs' | 'timer' | 'random'>;
  readonly transport: ApiTransport;
}

export interface ClusterTokenSource extends TokenSource {
  /** Those that could not be renewed time and again, by service account; `onChange` tells of them, too. */
  unrenewed(): readonly Unrenewed[];
  stop(): void;
}

const RETRY = { firstMs: 1_000, maxMs: 60_000 } as const;
/** What fails less often is nothing to tell while the token of before is good. */
const FAILURES_TOLD_MIN = 3;
/** Whoever wants a token comes back for it within this: a wish that has changed is read in less. */
const WISH_READ_MS_MAX = 60_000;
const ANSWER_BYTES_MAX = 256 * 1_024;
const ANSWER_MS_MAX = 10_000;
const SECOND_MS = 1_000;
/** A JWT: three parts of base64url. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

interface Issued extends TokenLife {
  readonly token: Sensitive<string>;
  readonly expirationTimestamp: string;
  readonly issue: string;
}

/** What it is made of, if the server is one. */
interface TokenAnswer {
  readonly spec?: { readonly expirationSeconds?: unknown };
  readonly status?: { readonly token?: unknown; readonly expirationTimestamp?: unknown };
}

type Refusal = Pick<ApiFailure, 'message' | 'retryAfterMs'>;
type Answer =
  | { readonly ok: true; readonly value: Issued }
  | { readonly ok: false; readonly failure: Refusal };

interface Entry {
  readonly key: string;
  readonly pod: PodReference;
  readonly request: TokenRequest;
  issued: Issued | undefined;
  /** Why there is none, or no newer one. */
  message: string;
  /** How often in a row the server has not issued one. */
  failures: number;
  isAsking: boolean;
  readonly retries: Retries;
  /** Whether anybody has wanted it since the server answered last. */
  isWanted: boolean;
  /** Host clock: when that was. */
  answeredMs: number;
  cancel: Cancel;
}

/**
 * Guarantees: one request at a time for each pod, audience and life; the token that is there is answered until it
 * expires, also while no newer one can be had, however wrong the clock of this machine is; one that is set asks anew.
 * What nobody asks for any more is forgotten, after one more request at most, whatever the server says of it. Tokens
 * are in memory alone, and sealed.
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

  unrenewed(): readonly Unrenewed[] {
    const byAccount = new Map<string, Unrenewed>();
    for (const { pod, issued, message, failures } of this.#entries.values()) {
      if (issued === undefined || failures < FAILURES_TOLD_MIN) continue;
      const serviceAccount = objectKey({ namespace: pod.namespace, name: pod.serviceAccount });
      const endsAt = issued.expirationTimestamp;
      const known = byAccount.get(serviceAccount);
      if (known === undefined || Date.parse(endsAt) < Date.parse(known.endsAt))
        byAccount.set(serviceAccount, { serviceAccount, endsAt, message });
    }
    return [...byAccount.values()];
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

  /** What is at hand; asked for when there is none, or none that is good by the clock any more. */
  #current(pod: PodReference, request: TokenRequest): Entry {
    const key = requestKey(pod, request);
    const known = this.#entries.get(key);
    const entry = known ?? {
      ...{ key, pod, request, issued: undefined, isAsking: false, isWanted: true, answeredMs: 0 },
      ...{ message: 'it is being asked for', failures: 0 },
      retries: new Retries(RETRY),
      cancel: () => {},
    };
    if (known === undefined) this.#entries.set(key, entry);
    entry.isWanted = true;
    const isDropped = entry.issued !== undefined && !isValid(entry.issued, this.#parts.host);
    if (isDropped) entry.issued = undefined;
    if (known === undefined || isDropped) {
      entry.cancel();
      void this.#ask(entry);
    }
    return entry;
  }

  async #ask(entry: Entry): Promise<void> {
    if (this.#isStopped || entry.isAsking) return;
    entry.isAsking = true;
    const { pod, request } = entry;
    const askedAt = momentOf(this.#parts.host);
    const answered = await this.#parts.transport.request({
      method: 'POST',
      path: tokenPath({ namespace: pod.namespace, name: pod.serviceAccount }),
      body: requestBody(pod, request),
      answerBytesMax: ANSWER_BYTES_MAX,
      deadlineMs: ANSWER_MS_MAX,
    });
    entry.isAsking = false;
    if (this.#isStopped) return;
    entry.isWanted = false;
    entry.answeredMs = this.#parts.host.nowMs();
    const issued = answered.ok ? this.#read(answered.value, askedAt) : answered;
    if (issued.ok) this.#take(entry, issued.value);
    else this.#retry(entry, issued.failure);
    for (const listener of this.#listeners) listener();
  }

  #take(entry: Entry, issued: Issued): void {
    entry.issued = issued;
    entry.failures = 0;
    entry.retries.reset();
    this.#look(entry, issued);
  }

  #retry(entry: Entry, { message, retryAfterMs }: Refusal): void {
    entry.message = message;
    entry.failures += 1;
    this.#wait(entry, retryAfterMs);
  }

  #wait(entry: Entry, leastMs = 0): void {
    const { host } = this.#parts;
    const waitMs = entry.retries.nextMs({ leastMs, share: 0.5 + host.random() / 2 });
    entry.cancel = host.timer(waitMs, () => this.#again(entry));
  }

  #look(entry: Entry, issued: Issued): void {
    const { host } = this.#parts;
    entry.cancel = host.timer(Math.max(dueInMs(issued, host), RETRY.firstMs), () => {
      if (isFresh(issued, host)) this.#look(entry, issued);
      else this.#again(entry);
    });
  }

  #again(entry: Entry): void {
    if (entry.isWanted) return void this.#ask(entry);
    // Whoever wanted it has not come back since: the pod is gone. That it is refused says less: so it is while the
    // server does not know yet that the pod is here.
    const isGone = this.#parts.host.nowMs() - entry.answeredMs >= WISH_READ_MS_MAX;
    if (isGone) this.#entries.delete(entry.key);
    else this.#wait(entry);
  }

  /** How long it lives the spec says; until when, only by the clock of the server, which may not be ours. */
  #read(value: unknown, askedAt: Moment): Answer {
    const { spec, status } = (value ?? {}) as TokenAnswer;
    const { token, expirationTimestamp } = status ?? {};
    const seconds = spec?.expirationSeconds;
    const isDate = typeof expirationTimestamp === 'string' && !Number.isNaN(Date.parse(expirationTimestamp));
    if (typeof token !== 'string' || !TOKEN.test(token) || !isDate || typeof seconds !== 'number')
      return none('the API server answered something else');
    const { host } = this.#parts;
    const life = tokenLife(askedAt, seconds * SECOND_MS, host.random());
    if (!isValid(life, host)) return none('what it issued has expired by now');
    this.#issues += 1;
    const issue = `${askedAt.wallMs}-${this.#issues}`;
    return { ok: true, value: { ...life, token: new Sensitive(token), expirationTimestamp, issue } };
  }
}

function none(message: string): Answer {
  return { ok: false, failure: { message } };
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
