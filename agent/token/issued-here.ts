/** What this machine issues itself, as it is configured: nothing, unless there is a key. */
import { ok, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { Config } from '../config/config.ts';
import { NO_TOKENS, type TokenSource } from '../source/token-source.ts';
import { createLocalTokenSource } from './local-token-source.ts';
import { readSigningKey, type SigningKey } from './signing-key.ts';

export interface IssuedHere {
  readonly tokens: TokenSource;
  /** Those that verify the tokens; empty when none are issued. */
  readonly publicKeys: readonly SigningKey['publicKey'][];
  stop(): void;
}

type TokenConfig = Pick<Config, 'tokenSigningKey' | 'tokenIssuer' | 'nodeName'>;

/** The key is read once: another one counts after a restart. Failures as `readSigningKey`. */
export async function issuedHere(
  host: Pick<Host, 'inspect' | 'readFile' | 'nowMs' | 'wallMs' | 'timer' | 'random'>,
  { tokenSigningKey, tokenIssuer, nodeName }: TokenConfig,
): Promise<Result<IssuedHere>> {
  if (tokenSigningKey === undefined) return ok({ tokens: NO_TOKENS, publicKeys: [], stop: () => {} });
  const key = await readSigningKey(host, tokenSigningKey);
  if (!key.ok) return key;
  const tokens = createLocalTokenSource({ host, key: key.value, issuer: tokenIssuer, nodeName });
  return ok({ tokens, publicKeys: [key.value.publicKey], stop: () => tokens.stop() });
}
