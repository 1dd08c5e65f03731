/** The key that signs the tokens of this machine: a private key in a PEM file that only root can read. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { fail, ok, type Result } from '../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../mount/host.ts';

export type SigningAlgorithm = 'ES256' | 'RS256';

export interface SigningKey {
  readonly algorithm: SigningAlgorithm;
  /** As the API server names its keys: a hash of the public key, so that it is the same in every life. */
  readonly id: string;
  /** The signature of the text, base64url. */
  sign(text: string): string;
  /** RFC 7517: what a verifier needs, and nothing of the private key. */
  readonly publicKey: Readonly<Record<string, unknown>>;
}

const KEY_BYTES_MAX = 16_384;
const OTHERS = 0o077;
const RSA_BITS_MIN = 2_048;
const RIGHT_KEY =
  'expected one private key in PEM: EC on the curve prime256v1, or RSA of at least 2048 bits ' +
  '(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1)';

/** By `path-missing`, `path-unsafe` when others than root may read or change it, `spec-invalid`; no byte of it. */
export async function readSigningKey(
  host: Pick<Host, 'inspect' | 'readFile'>,
  path: AbsolutePath,
): Promise<Result<SigningKey>> {
  const facts = await host.inspect(path);
  if (!facts.ok) return facts;
  const { kind, mode, uid } = facts.value;
  if (kind === 'absent') return refuse('path-missing', `the signing key ${path} is not there`);
  if (kind !== 'file')
    return refuse('path-wrong-kind', `the signing key ${path} is a ${kind}; expected a file`);
  if (uid !== 0 || (mode & OTHERS) !== 0) {
    const found = `it belongs to uid ${uid} and has mode ${(mode & 0o7777).toString(8).padStart(4, '0')}`;
    const advice = `expected root and 0600 (chown root ${path}; chmod 0600 ${path})`;
    return refuse('path-unsafe', `the signing key ${path} may be read by others: ${found}; ${advice}`);
  }
  const content = await host.readFile(path, KEY_BYTES_MAX);
  if (!content.ok) return content;
  const key = parseSigningKey(Buffer.from(content.value).toString('latin1'));
  return key === undefined
    ? refuse('spec-invalid', `the signing key ${path} is not one: ${RIGHT_KEY}`)
    : ok(key);
}

/** Undefined for a text that is no such key. */
export function parseSigningKey(pem: string): SigningKey | undefined {
  const key = privateKeyIn(pem);
  const algorithm = key === undefined ? undefined : algorithmOf(key);
  if (key === undefined || algorithm === undefined) return undefined;
  const shown = createPublicKey(key);
  const der = shown.export({ format: 'der', type: 'spki' });
  const id = createHash('sha256').update(der).digest('base64url');
  // A JWT holds the two numbers of the signature as they are (RFC 7518, 3.4), not in DER.
  const signing = algorithm === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' as const } : { key };
  return {
    algorithm,
    id,
    sign: (text) => sign('sha256', Buffer.from(text), signing).toString('base64url'),
    publicKey: { ...shown.export({ format: 'jwk' }), use: 'sig', alg: algorithm, kid: id },
  };
}

function privateKeyIn(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): SigningAlgorithm | undefined {
  const { namedCurve, modulusLength = 0 } = asymmetricKeyDetails ?? {};
  if (asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'ES256';
  return asymmetricKeyType === 'rsa' && modulusLength >= RSA_BITS_MIN ? 'RS256' : undefined;
}

function refuse(
  code: 'path-missing' | 'path-wrong-kind' | 'path-unsafe' | 'spec-invalid',
  message: string,
): ReturnType<typeof fail> {
  return fail({ code, message, effect: 'none' });
}
