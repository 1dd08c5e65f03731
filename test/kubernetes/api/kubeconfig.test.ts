import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readKubeconfig } from '../../../kubernetes/api/kubeconfig.ts';
import type { AbsolutePath } from '../../../mount/host.ts';

const DIRECTORY = '/etc/node' as AbsolutePath;
const PEM = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64');

function config(user: object, cluster: object = {}, more: object = {}): unknown {
  return {
    clusters: [
      {
        name: 'c',
        cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority': 'ca.crt', ...cluster },
      },
    ],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
    ...more,
  };
}

function problemsOf(value: unknown): readonly string[] {
  const reading = readKubeconfig(value, DIRECTORY);
  assert.ok(!reading.ok);
  return reading.problems.map(({ field, message }) => `${field}: ${message}`);
}

test('certificates from files, relative to the kubeconfig, or in it', () => {
  const files = readKubeconfig(
    config({ 'client-certificate': '/a/n.crt', 'client-key': 'n.key' }),
    DIRECTORY,
  );
  assert.ok(files.ok);
  assert.deepEqual(files.access, {
    server: 'https://10.0.0.1:6443',
    serverName: undefined,
    authority: { kind: 'file', path: '/etc/node/ca.crt' },
    identity: {
      kind: 'certificate',
      certificate: { kind: 'file', path: '/a/n.crt' },
      key: { kind: 'file', path: '/etc/node/n.key' },
    },
  });
  const inside = readKubeconfig(
    config({ 'client-certificate-data': PEM, 'client-key-data': PEM }),
    DIRECTORY,
  );
  assert.ok(inside.ok && inside.access.identity.kind === 'certificate');
  const { certificate } = inside.access.identity;
  assert.ok(certificate.kind === 'bytes');
  assert.equal(Buffer.from(certificate.bytes.reveal()).toString(), '-----BEGIN CERTIFICATE-----');
});

test('a token file wins over a token, as in client-go', () => {
  const reading = readKubeconfig(config({ token: 'abc', tokenFile: 'token' }), DIRECTORY);
  assert.ok(reading.ok);
  assert.deepEqual(reading.access.identity, {
    kind: 'token',
    token: { kind: 'file', path: '/etc/node/token' },
  });
});

for (const { title, value, says } of [
  {
    title: 'a program that makes credentials',
    value: config({ exec: { command: 'aws' } }),
    says: /^users\[0\]\.user\.exec: programs that make credentials are not run/,
  },
  {
    title: 'a password',
    value: config({ username: 'root', password: 'canary' }),
    says: /^users\[0\]\.user\.username: API servers take no passwords/,
  },
  {
    title: 'a server that is not to be proven',
    value: config({ token: 'x' }, { 'insecure-skip-tls-verify': true }),
    says: /insecure-skip-tls-verify: an API server that nobody has proven is not believed/,
  },
  {
    title: 'a server without TLS',
    value: config({ token: 'x' }, { server: 'http://10.0.0.1' }),
    says: /^clusters\[0\]\.cluster\.server: expected the address of an API server .*found "http:\/\/10\.0\.0\.1"/,
  },
  {
    title: 'a context that is not there',
    value: config({ token: 'x' }, {}, { 'current-context': 'y' }),
    says: /^contexts: has no context "y", which current-context names; it has "x"/,
  },
  {
    title: 'a certificate without its key',
    value: config({ 'client-certificate': 'n.crt' }),
    says: /^users\[0\]\.user\.client-key: is missing; a certificate and its key belong together/,
  },
  {
    title: 'nobody',
    value: config({}),
    says: /^users\[0\]\.user: has no credentials; expected client-certificate/,
  },
  { title: 'no mapping', value: 'canary', says: /expected a mapping/ },
]) {
  test(`refused, with the field and what would be right: ${title}`, () => {
    assert.ok(
      problemsOf(value).some((one) => says.test(one)),
      problemsOf(value).join('\n'),
    );
  });
}

test('no credential is in what is said of it', () => {
  const said = [
    ...problemsOf(config({ token: 'canary with spaces' })),
    ...problemsOf(config({ 'client-key-data': '?canary?', 'client-certificate-data': '?canary?' })),
    ...problemsOf(config({ 'client-key-data': 12, token: true })),
  ].join('\n');
  assert.doesNotMatch(said, /canary/);
});
