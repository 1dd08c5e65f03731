import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { test } from 'node:test';
import { parseSigningKey, readSigningKey } from '../../../agent/token/signing-key.ts';
import { createMemoryHost } from '../../plugins/memory-host.ts';
import { path } from '../manifests.ts';

const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey;
const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).privateKey;
const pem = (key: KeyObject): string => String(key.export({ format: 'pem', type: 'pkcs8' }));
const EC = pem(ec('prime256v1'));
const KEY = path('/etc/mooring/signing.pem');

test('whoever has the published key verifies what was signed, and it holds nothing of the private one', () => {
  for (const [text, algorithm] of [
    [EC, 'ES256'],
    [pem(rsa(2_048)), 'RS256'],
  ] as const) {
    const key = parseSigningKey(text);
    assert.ok(key);
    assert.equal(key.algorithm, algorithm);
    const { kid, alg, use, ...jwk } = key.publicKey;
    assert.deepEqual([kid, alg, use], [key.id, algorithm, 'sig']);
    for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi']) assert.equal(jwk[secret], undefined);
    const signature = Buffer.from(key.sign('text'), 'base64url');
    if (algorithm === 'ES256')
      assert.equal(signature.length, 64, 'two numbers of 32 bytes, as RFC 7518 wants');
    const published = createPublicKey({ key: jwk as import('node:crypto').JsonWebKey, format: 'jwk' });
    const verifying = { key: published, dsaEncoding: 'ieee-p1363' } as const;
    assert.ok(verify('sha256', Buffer.from('text'), verifying, signature));
    assert.ok(!verify('sha256', Buffer.from('texT'), verifying, signature));
    assert.equal(parseSigningKey(text)?.id, key.id, 'the same key has the same name in every life');
  }
});

test('what is no such key is none', () => {
  const shown = pem(ec('prime256v1')).replaceAll('PRIVATE', 'PUBLIC');
  for (const text of ['', 'hunter2', shown, pem(ec('secp384r1')), pem(rsa(1_024))])
    assert.equal(parseSigningKey(text), undefined);
});

test('a key that others may read is refused with what would be right, and is in no message', async () => {
  const read = async (mode: number, text = EC, kind: 'file' | 'directory' = 'file'): Promise<string> => {
    const host = createMemoryHost();
    if (kind === 'file') host.plant(KEY, { kind, mode, content: text });
    else host.plant(KEY, { kind, mode });
    const key = await readSigningKey(host, KEY);
    return key.ok ? key.value.algorithm : `${key.failure.code}: ${key.failure.message}`;
  };
  assert.equal(await read(0o600), 'ES256');
  assert.equal(await read(0o400), 'ES256');
  for (const mode of [0o640, 0o604, 0o620, 0o601])
    assert.match(await read(mode), /^path-unsafe: .*signing\.pem.* mode 06[0-9]{2}; expected root and 0600/);
  assert.match(await read(0o700, '', 'directory'), /^path-wrong-kind: .* is a directory; expected a file/);
  assert.match(
    await read(0o600, 'hunter2'),
    /^spec-invalid: .* is not one: expected one private key in PEM: EC/,
  );
  assert.doesNotMatch(await read(0o600, 'hunter2'), /hunter2/);
  const missing = await readSigningKey(createMemoryHost(), KEY);
  assert.match(missing.ok ? '' : missing.failure.message, /signing\.pem/);
});
