/** Service account tokens on their way to a driver that asks (CSIDriver tokenRequests; KEP-1855, KEP-5538). */
import type { PublicationCall } from '../../plugin.ts';
import { type SecretData, Sensitive } from '../../secret/sensitive.ts';

/** The kubelet's key, in the volume context or in the secrets; the slash is not for other secrets (CSI: A-037). */
export const TOKENS_KEY = 'csi.storage.k8s.io/serviceAccount.tokens';

/** As one entry for the volume context or the secrets; empty when the driver asked for none. */
export function tokenEntry({ tokens }: Pick<PublicationCall, 'tokens'>): Readonly<Record<string, string>> {
  return tokens === undefined ? {} : { [TOKENS_KEY]: tokens.reveal() };
}

/** What must not be shown of them: the JSON as a whole, and each token in it. */
export function tokenSecrets({ tokens }: Pick<PublicationCall, 'tokens'>): SecretData | undefined {
  if (tokens === undefined) return undefined;
  const json = tokens.reveal();
  return new Sensitive(Object.fromEntries([json, ...tokensIn(json)].map((text, index) => [index, text])));
}

/** `{"<audience>": {"token": "…", "expirationTimestamp": "…"}}` */
function tokensIn(json: string): readonly string[] {
  try {
    const byAudience: unknown = JSON.parse(json);
    if (typeof byAudience !== 'object' || byAudience === null) return [];
    return Object.values(byAudience).flatMap((status: unknown) => {
      const token = typeof status === 'object' && status !== null && 'token' in status && status.token;
      return typeof token === 'string' ? [token] : [];
    });
  } catch {
    return [];
  }
}
