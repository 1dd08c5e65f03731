/** What a token of a pod's service account says, in the words of the API server's own. */
import { createHash } from 'node:crypto';
import type { PodReference } from '../../plugins/volume.ts';
import type { SigningKey } from './signing-key.ts';

export interface TokenTerms {
  readonly issuer: string;
  readonly audience: string;
  readonly nodeName: string;
  /** Seconds since the epoch, both. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** No two tokens have the same. */
  readonly id: string;
}

/** RFC 7519, signed; bound to the pod by its uid (`kubernetes.io`), valid from the moment of its issue. */
export function serviceAccountToken(key: SigningKey, pod: PodReference, terms: TokenTerms): string {
  const { namespace, serviceAccount } = pod;
  const claims = {
    aud: [terms.audience],
    exp: terms.expiresAt,
    iat: terms.issuedAt,
    iss: terms.issuer,
    jti: terms.id,
    'kubernetes.io': {
      namespace,
      node: { name: terms.nodeName },
      pod: { name: pod.name, uid: pod.uid },
      serviceaccount: { name: serviceAccount, uid: accountUid(namespace, serviceAccount) },
    },
    nbf: terms.issuedAt,
    sub: `system:serviceaccount:${namespace}:${serviceAccount}`,
  };
  const signed = [{ alg: key.algorithm, kid: key.id }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${signed}.${key.sign(signed)}`;
}

/** There is no ServiceAccount object here: the same name is the same account, in every life of the agent. */
function accountUid(namespace: string, name: string): string {
  return uuidFrom(`mooring service account\n${namespace}\n${name}`);
}

/** The same text, the same UUID. */
export function uuidFrom(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const cuts = [0, 8, 12, 16, 20, 32];
  return cuts
    .slice(1)
    .map((end, index) => hex.slice(cuts[index], end))
    .join('-');
}
