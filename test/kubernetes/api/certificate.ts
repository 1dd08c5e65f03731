/** A certificate for 127.0.0.1 that signs itself, made anew for each run of a test (RFC 5280, DER). */
import { createSign, generateKeyPairSync } from 'node:crypto';

export interface SelfSigned {
  readonly certificate: string;
  readonly key: string;
}

const SEQUENCE = 0x30;
const DAY_MS = 86_400_000;
const LENGTH_SHORT_MAX = 127;

export function selfSigned(commonName: string): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = tagged(SEQUENCE, objectId('2a8648ce3d040302'));
  const name = tagged(
    SEQUENCE,
    tagged(0x31, tagged(SEQUENCE, objectId('550403'), tagged(0x0c, Buffer.from(commonName)))),
  );
  const validity = tagged(SEQUENCE, time(Date.now() - DAY_MS), time(Date.now() + DAY_MS));
  const addresses = tagged(
    SEQUENCE,
    tagged(0x87, Buffer.from([127, 0, 0, 1])),
    tagged(0x82, Buffer.from('localhost')),
  );
  const extensions = tagged(
    0xa3,
    tagged(
      SEQUENCE,
      extension('551d11', addresses),
      extension('551d13', tagged(SEQUENCE, tagged(0x01, Buffer.from([0xff])))),
    ),
  );
  const body = tagged(
    SEQUENCE,
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.from([1, Date.now() & 0x7f])),
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  );
  const signature = createSign('sha256').update(body).sign(privateKey);
  const whole = tagged(SEQUENCE, body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    certificate: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}

function extension(id: string, value: Buffer): Buffer {
  return tagged(SEQUENCE, objectId(id), tagged(0x04, value));
}

function objectId(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'));
}

/** UTCTime: `YYMMDDhhmmssZ`. */
function time(wallMs: number): Buffer {
  const digits = new Date(wallMs).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return tagged(0x17, Buffer.from(`${digits}Z`));
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const bytes: number[] = [];
  for (let rest = value.length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  const length = value.length <= LENGTH_SHORT_MAX ? [value.length] : [0x80 | bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...length]), value]);
}
