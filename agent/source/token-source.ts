/** Where service account tokens come from: those a driver asks for in its CSIDriver object (KEP-1855), and files. */
import type { Failure } from '../../mount/failure.ts';
import type { Cancel } from '../../mount/host.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { PodReference } from '../../plugins/volume.ts';
import type { TokenRequest } from '../../kubernetes/objects/objects.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';

/** `json` is what `tokensJson` makes. */
export type TokenAnswer =
  | { readonly kind: 'tokens'; readonly json: Sensitive<string> }
  | { readonly kind: 'none'; readonly failure: Failure };

export type SingleTokenAnswer =
  /** `issue` names the token and tells nothing of it: another token, another issue. */
  | { readonly kind: 'token'; readonly token: Sensitive<string>; readonly issue: string }
  | { readonly kind: 'none'; readonly failure: Failure };

export interface TokenSource {
  /**
   * The tokens of the pod's service account, bound to this pod, one for each request, as far as they are at hand now:
   * never waits. Whoever gets `none` asks again when the source has changed. `requests` is never empty.
   */
  tokensFor(pod: PodReference, requests: readonly TokenRequest[]): TokenAnswer;
  /** As `tokensFor`, one token alone: a file in a volume. */
  tokenFor(pod: PodReference, request: TokenRequest): SingleTokenAnswer;
  /** Called when another answer may be given for somebody. */
  onChange(listener: () => void): Cancel;
}

/** One token, as the API server answers it. */
export interface ServiceAccountToken {
  readonly token: string;
  /** RFC 3339. */
  readonly expirationTimestamp: string;
}

/** What drivers parse: `{"<audience>": {"token": …, "expirationTimestamp": …}}`, as the kubelet writes it. */
export function tokensJson(tokens: ReadonlyMap<string, ServiceAccountToken>): Sensitive<string> {
  const written = [...tokens].map(([audience, { token, expirationTimestamp }]) => {
    return [audience, { token, expirationTimestamp }] as const;
  });
  return new Sensitive(JSON.stringify(Object.fromEntries(written)));
}

/** Stand-alone and without a signing key: nobody issues tokens. By `token-missing`. */
export const NO_TOKENS: TokenSource = {
  tokensFor: ({ namespace, serviceAccount }, requests) => {
    const audiences = requests.map(({ audience }) => audience || 'the API server').join(', ');
    const message =
      `the driver asks for tokens of service account ${namespace}/${serviceAccount}, and nobody issues them here: ` +
      'set token_signing_key, or take tokenRequests out of its CSIDriver object if it works without ' +
      `(audiences: ${audiences})`;
    return { kind: 'none', failure: refuse('token-missing', message).failure };
  },
  tokenFor: ({ namespace, serviceAccount }) => {
    const message =
      `the volume wants a token of service account ${namespace}/${serviceAccount}, and nobody issues tokens here: ` +
      'the API server of a cluster does, or this machine with a key of its own (token_signing_key)';
    return { kind: 'none', failure: refuse('token-missing', message).failure };
  },
  onChange: () => () => {},
};
