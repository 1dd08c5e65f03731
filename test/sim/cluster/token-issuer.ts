/** What a server has issued of service account tokens: for which pod each is, and until when it is good. */
import { CANARY } from '../trace.ts';
import { at, type Json, nameOf, uidOf } from './json-object.ts';
import { type ApiAnswer, refusal } from './api-answer.ts';
import type { ObjectStore } from './object-store.ts';

interface IssuedToken {
  readonly text: string;
  readonly podUid: string;
  readonly expiresMs: number;
}

export interface TokenIssuerParts {
  readonly store: ObjectStore;
  readonly nowMs: () => number;
  /** What is issued lives no longer, whatever was asked for. */
  readonly lifeMsMax: () => number;
}

const SECONDS_DEFAULT = 3_600;
const SECOND_MS = 1_000;

export class TokenIssuer {
  readonly #parts: TokenIssuerParts;
  readonly #issued: IssuedToken[] = [];

  constructor(parts: TokenIssuerParts) {
    this.#parts = parts;
  }

  /** As TokenRequest: bound to a pod that is there, by name and uid, and of this service account. */
  issue(account: Json, pods: string, body: Json): ApiAnswer {
    const { store, nowMs, lifeMsMax } = this.#parts;
    const { kind, name, uid } = at(body, 'spec', 'boundObjectRef');
    if (kind !== 'Pod') return refusal(403, `token of ${nameOf(account)}: it is to be bound to a pod`);
    const pod = store.get(pods, String(name));
    if (pod === undefined) return refusal(404, `pods "${String(name)}" not found`);
    if (uidOf(pod) !== uid)
      return refusal(409, 'the UID in the bound object reference is not that of the pod');
    const { expirationSeconds } = at(body, 'spec');
    const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : SECONDS_DEFAULT;
    const lifeMs = Math.min(seconds * SECOND_MS, lifeMsMax());
    const text = `${CANARY}-${uidOf(pod)}.${this.#issued.length + 1}.sign`;
    this.#issued.push({ text, podUid: uidOf(pod), expiresMs: nowMs() + lifeMs });
    const status = { token: text, expirationTimestamp: store.timeText(lifeMs) };
    const spec = { ...at(body, 'spec'), expirationSeconds: lifeMs / SECOND_MS };
    return { status: 201, body: { ...body, kind: 'TokenRequest', spec, status } };
  }

  /** Whoever verifies it believes it. */
  isGood(text: string, podUid: string): boolean {
    const found = this.#issued.find((one) => one.text === text);
    return found !== undefined && found.podUid === podUid && found.expiresMs > this.#parts.nowMs();
  }
}
