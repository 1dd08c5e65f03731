/** Service account tokens that this machine issues itself, with a key of its own: for drivers and local services. */
import type { Cancel, Host } from '../../mount/host.ts';
import type { TokenRequest } from '../../kubernetes/objects/objects.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { PodReference } from '../../plugins/volume.ts';
import { type ServiceAccountToken, type TokenSource, tokensJson } from '../source/token-source.ts';
import { serviceAccountToken, uuidFrom } from './service-account-claims.ts';
import type { SigningKey } from './signing-key.ts';
import {
  dueInMs,
  isFresh,
  LIFE_SECONDS_DEFAULT,
  momentOf,
  requestKey,
  type TokenLife,
  tokenLife,
} from './token-life.ts';

export interface LocalTokenParts {
  readonly host: Pick<Host, 'nowMs' | 'wallMs' | 'timer' | 'random'>;
  readonly key: SigningKey;
  /** `iss`, and the audience where none is asked for. */
  readonly issuer: string;
  readonly nodeName: string;
}

/** As the API server: no token lives shorter. */
const LIFE_SECONDS_MIN = 600;
const SECOND_MS = 1_000;

interface Issued extends TokenLife {
  readonly token: Sensitive<string>;
  readonly issue: string;
  /** As it says itself, in seconds since the epoch. */
  readonly expiresAt: number;
}

export interface LocalTokenSource extends TokenSource {
  stop(): void;
}

/**
 * Guarantees: whoever asks gets a token with at least a fifth of its life before it, the same one until then; nothing
 * of it is kept on disk. What nobody asks for any more is forgotten when it is due. A clock that is set makes anew.
 */
export function createLocalTokenSource(parts: LocalTokenParts): LocalTokenSource {
  return new LocalTokens(parts);
}

class LocalTokens implements LocalTokenSource {
  readonly #parts: LocalTokenParts;
  readonly #issued = new Map<string, Issued>();
  readonly #listeners = new Set<() => void>();
  #issues = 0;
  #cancel: Cancel | undefined;
  #stopped = false;

  constructor(parts: LocalTokenParts) {
    this.#parts = parts;
  }

  tokenFor(pod: PodReference, request: TokenRequest): ReturnType<TokenSource['tokenFor']> {
    const { token, issue } = this.#current(pod, request);
    return { kind: 'token', token, issue };
  }

  tokensFor(pod: PodReference, requests: readonly TokenRequest[]): ReturnType<TokenSource['tokensFor']> {
    const tokens = new Map<string, ServiceAccountToken>();
    for (const request of requests) {
      const { token, expiresAt } = this.#current(pod, request);
      const expirationTimestamp = new Date(expiresAt * SECOND_MS).toISOString().replace('.000Z', 'Z');
      tokens.set(request.audience, { token: token.reveal(), expirationTimestamp });
    }
    return { kind: 'tokens', json: tokensJson(tokens) };
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  #current(pod: PodReference, request: TokenRequest): Issued {
    const key = requestKey(pod, request);
    const known = this.#issued.get(key);
    if (known !== undefined && isFresh(known, this.#parts.host)) return known;
    const fresh = this.#issue(pod, request);
    this.#issued.set(key, fresh);
    this.#arm();
    return fresh;
  }

  #issue(pod: PodReference, { audience, expirationSeconds }: TokenRequest): Issued {
    const { host, key, issuer, nodeName } = this.#parts;
    const moment = momentOf(host);
    const issuedAt = Math.floor(moment.wallMs / SECOND_MS);
    const lifeSeconds = Math.max(expirationSeconds ?? LIFE_SECONDS_DEFAULT, LIFE_SECONDS_MIN);
    const expiresAt = issuedAt + lifeSeconds;
    this.#issues += 1;
    const id = uuidFrom(`${key.id}\n${issuedAt}\n${this.#issues}\n${host.random()}\n${host.random()}`);
    const terms = { issuer, audience: audience || issuer, nodeName, issuedAt, expiresAt, id };
    return {
      token: new Sensitive(serviceAccountToken(key, pod, terms)),
      issue: id,
      expiresAt,
      ...tokenLife({ ...moment, wallMs: issuedAt * SECOND_MS }, lifeSeconds * SECOND_MS, host.random()),
    };
  }

  #arm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#stopped || this.#issued.size === 0) return;
    const { host } = this.#parts;
    const delaysMs = [...this.#issued.values()].map((issued) => dueInMs(issued, host));
    this.#cancel = host.timer(Math.min(...delaysMs), () => this.#look());
  }

  #look(): void {
    const due = [...this.#issued].filter(([, issued]) => !isFresh(issued, this.#parts.host));
    for (const [key] of due) this.#issued.delete(key);
    this.#arm();
    if (due.length > 0) for (const listener of this.#listeners) listener();
  }
}
