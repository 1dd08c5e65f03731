import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type JsonWebKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createLocalTokenSource } from '../../../agent/token/local-token-source.ts';
import { parseSigningKey } from '../../../agent/token/signing-key.ts';
import type { TokenRequest } from '../../../kubernetes/objects/objects.ts';
import type { PodReference } from '../../../plugins/volume.ts';
import { podUid } from '../manifests.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const KEY = parseSigningKey(String(privateKey.export({ format: 'pem', type: 'pkcs8' }))) ?? assert.fail();
const WEB: PodReference = { uid: podUid('uid-web'), name: 'web', namespace: 'shop', serviceAccount: 'cart' };
const BEGIN_MS = Date.UTC(2026, 0, 1);
const VAULT: TokenRequest = { audience: 'vault', expirationSeconds: 1_000 };

/** One timer at a time, and a wall clock that goes, and can be set. */
function world(random = 0) {
  let nowMs = 0;
  let aheadMs = BEGIN_MS;
  let timer: { readonly atMs: number; readonly fire: () => void } | undefined;
  const host = {
    nowMs: () => nowMs,
    wallMs: () => nowMs + aheadMs,
    random: () => random,
    timer: (delayMs: number, fire: () => void) => {
      const mine = { atMs: nowMs + delayMs, fire };
      timer = mine;
      return () => {
        if (timer === mine) timer = undefined;
      };
    },
  };
  const source = createLocalTokenSource({ host, key: KEY, issuer: 'urn:test', nodeName: 'node-1' });
  let changes = 0;
  source.onChange(() => (changes += 1));
  const go = (toMs: number): void => {
    while (timer !== undefined && timer.atMs + aheadMs <= toMs) {
      const { atMs, fire } = timer;
      timer = undefined;
      nowMs = atMs;
      fire();
    }
    nowMs = toMs - aheadMs;
  };
  const setWall = (byMs: number): void => {
    aheadMs += byMs;
  };
  const tokenOf = (request = VAULT, pod = WEB): string => {
    const answer = source.tokenFor(pod, request);
    return answer.kind === 'token' ? answer.token.reveal() : assert.fail(answer.failure.message);
  };
  return { source, go, setWall, tokenOf, changes: () => changes, isWaiting: () => timer !== undefined };
}

function partsOf(token: string) {
  const [header = '', claims = '', signature = ''] = token.split('.');
  const read = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, 'base64url').toString());
  return { header: read(header), claims: read(claims), signed: `${header}.${claims}`, signature };
}

test('a token says what the API server says, bound to the pod, and the published key verifies it', () => {
  const { header, claims, signed, signature } = partsOf(world().tokenOf());
  assert.deepEqual(header, { alg: 'ES256', kid: KEY.id });
  const { jti, 'kubernetes.io': bound, ...others } = claims as Record<string, Record<string, unknown>>;
  const at = BEGIN_MS / 1_000;
  assert.deepEqual(others, {
    aud: ['vault'],
    exp: at + 1_000,
    iat: at,
    nbf: at,
    iss: 'urn:test',
    sub: 'system:serviceaccount:shop:cart',
  });
  assert.match(String(jti), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const { serviceaccount, ...rest } = bound ?? {};
  assert.deepEqual(rest, {
    namespace: 'shop',
    node: { name: 'node-1' },
    pod: { name: 'web', uid: 'uid-web' },
  });
  assert.equal((serviceaccount as Record<string, unknown>)['name'], 'cart');
  const key = createPublicKey({ key: KEY.publicKey as JsonWebKey, format: 'jwk' });
  const bytes = Buffer.from(signature, 'base64url');
  assert.ok(verify('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, bytes));
});

test('each pod, audience and life has a token of its own, the same one until it is due', () => {
  const { tokenOf, source } = world();
  assert.equal(tokenOf(), tokenOf());
  const other = { ...WEB, uid: podUid('uid-other') };
  const tokens = [
    tokenOf(),
    tokenOf({ ...VAULT, audience: '' }),
    tokenOf({ ...VAULT, expirationSeconds: 2_000 }),
    tokenOf(VAULT, other),
  ];
  assert.equal(new Set(tokens).size, tokens.length);
  assert.deepEqual(partsOf(tokens[1] ?? '').claims['aud'], ['urn:test'], 'the issuer is its own audience');
  assert.doesNotMatch(inspect(source.tokenFor(WEB, VAULT), { depth: 9 }), new RegExp(tokenOf().slice(-20)));
});

test('at 80 % of its life, up to 10 s earlier by chance, another one is there, and it is told once', () => {
  for (const [random, dueSeconds] of [
    [0, 800],
    [0.5, 795],
  ] as const) {
    const { tokenOf, go, changes } = world(random);
    const first = tokenOf();
    go(BEGIN_MS + dueSeconds * 1_000 - 1);
    assert.deepEqual([tokenOf(), changes()], [first, 0]);
    go(BEGIN_MS + dueSeconds * 1_000 + 1);
    assert.equal(changes(), 1);
    const second = tokenOf();
    assert.notEqual(second, first);
    assert.equal(tokenOf(), second);
  }
});

test('a token that lives for days is another one after a day', () => {
  const { tokenOf, go, changes } = world();
  const request = { audience: '', expirationSeconds: 7 * 86_400 };
  const first = tokenOf(request);
  go(BEGIN_MS + 86_400_000 - 1);
  assert.deepEqual([tokenOf(request), changes()], [first, 0]);
  go(BEGIN_MS + 86_400_000 + 1);
  assert.equal(changes(), 1);
  assert.notEqual(tokenOf(request), first);
});

test('what nobody asks for any more is forgotten, a clock set back makes anew, and after the end no timer runs', () => {
  const { tokenOf, go, setWall, source, isWaiting } = world();
  const first = tokenOf();
  setWall(-60_000);
  const early = tokenOf();
  assert.notEqual(early, first);
  go(BEGIN_MS + 3_600_000);
  assert.equal(isWaiting(), false, 'nothing is kept of a pod that has gone');
  tokenOf();
  assert.equal(isWaiting(), true);
  source.stop();
  assert.equal(isWaiting(), false);
});

test('a clock that is set is noticed within a minute: what is verified by it is issued anew', () => {
  for (const byMs of [86_400_000, -86_400_000]) {
    const { tokenOf, go, setWall, changes } = world();
    const first = tokenOf();
    go(BEGIN_MS + 30_000);
    setWall(byMs);
    go(BEGIN_MS + 91_000 + byMs);
    assert.equal(changes(), 1);
    assert.notEqual(tokenOf(), first);
  }
});

test('no token lives shorter than ten minutes, nor without being told an hour', () => {
  const life = (request: TokenRequest): number => {
    const { claims } = partsOf(world().tokenOf(request));
    return Number(claims['exp']) - Number(claims['iat']);
  };
  assert.equal(life({ audience: '', expirationSeconds: 60 }), 600);
  assert.equal(life({ audience: '', expirationSeconds: undefined }), 3_600);
});

test("a driver's tokens are written as the kubelet writes them", () => {
  const { source } = world();
  const answer = source.tokensFor(WEB, [VAULT, { audience: '', expirationSeconds: undefined }]);
  const tokens = JSON.parse(answer.kind === 'tokens' ? answer.json.reveal() : '{}') as Record<
    string,
    unknown
  >;
  assert.deepEqual(Object.keys(tokens), ['vault', '']);
  assert.deepEqual(tokens['vault'], {
    token: (tokens['vault'] as { token: string }).token,
    expirationTimestamp: '2026-01-01T00:16:40Z',
  });
});
