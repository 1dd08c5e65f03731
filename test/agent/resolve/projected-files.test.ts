/** Volumes of several sources: as they are read, refused and put together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { NO_TOKENS, type TokenSource } from '../../../agent/source/token-source.ts';
import { ownTrustBundles, type TrustBundleSource } from '../../../agent/source/trust-bundle-source.ts';
import type { TrustBundles } from '../../../kubernetes/objects/content-source.ts';
import type { TokenRequest } from '../../../kubernetes/objects/objects.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { blockedIn, desired, desiredWith, filesOf, only, publicationOf, unresolvedIn } from '../desired.ts';
import { configMapYaml, onlyRejection, podYaml, secretYaml, withSpec, wishOf } from '../manifests.ts';

const OBJECTS = [
  secretYaml('s', { a: 'hunter2-a', b: 'hunter2-b' }),
  configMapYaml('c', { b: 'from c', c: 'more' }),
] as const;

function pod(sources: string, more = ''): string {
  return podYaml('web', { v: `projected: {${more}sources: [${sources}]}` });
}

const shown = (yaml: string) => filesOf(publicationOf(desired(yaml, ...OBJECTS)));
const refused = (yaml: string): string => onlyRejection(wishOf({ 'one.yaml': yaml }));
const generationOf = (yaml: string, ...objects: readonly string[]): string =>
  publicationOf(desired(yaml, ...objects)).generation;

const FIELD = 'downwardAPI: {items: [{path: x/name, mode: 0400, fieldRef: {fieldPath: metadata.name}}]}';

const BARE = '{matchExpressions: [{key: k, operator: NotIn}]}';

test('the files of all sources are in one volume, with the modes of their items or of the volume', () => {
  const yaml = pod(
    `{secret: {name: s, items: [{key: a, path: ./x//a, mode: 0600}]}}, {configMap: {name: c}}, {${FIELD}}`,
    'defaultMode: 0440, ',
  );
  const volume = only(desired(yaml, ...OBJECTS).volumes.values());
  assert.deepEqual([volume.spec.kind, volume.spec.id], ['projected', 'kubernetes.io/projected/uid-web/v']);
  assert.deepEqual(filesOf(only(volume.publications.values())), {
    'x/a': '600 hunter2-a',
    b: '440 from c',
    c: '440 more',
    'x/name': '400 web',
  });
  assert.deepEqual(shown(pod('')), {}, 'no sources are an empty volume');
  assert.doesNotMatch(inspect(desired(yaml, ...OBJECTS), { depth: 20 }), /hunter2/);
});

test('of two files with one path that of the later source counts', () => {
  assert.equal(shown(pod('{secret: {name: s}}, {configMap: {name: c}}'))['b'], '644 from c');
  assert.equal(shown(pod('{configMap: {name: c}}, {secret: {name: s}}'))['b'], '644 hunter2-b');
});

test('what is missing keeps all of the volume from being set up, unless its source is optional', () => {
  const whole = '{configMap: {name: c}}';
  assert.match(
    blockedIn(desired(pod(`${whole}, {secret: {name: t}}`), ...OBJECTS)),
    /^reference-missing: Secret default\/t does not exist/,
  );
  assert.deepEqual(shown(pod(`${whole}, {secret: {name: t, optional: true}}`)), {
    b: '644 from c',
    c: '644 more',
  });
  const items = (optional: boolean): string =>
    pod(`{configMap: {name: c, optional: ${optional}, items: [{key: c, path: c}, {key: z, path: z}]}}`);
  assert.match(blockedIn(desired(items(false), ...OBJECTS)), /ConfigMap default\/c has no key z/);
  assert.deepEqual(shown(items(true)), { c: '644 more' });
});

test('the generation changes with each source, with how it is shown and with the order', () => {
  const parts = ['{secret: {name: s}}', '{configMap: {name: c}}', `{${FIELD}}`];
  const before = generationOf(pod(parts.join(', ')), ...OBJECTS);
  assert.equal(generationOf(pod(parts.join(', ')), ...OBJECTS), before);
  assert.notEqual(generationOf(pod(parts.toReversed().join(', ')), ...OBJECTS), before);
  assert.notEqual(generationOf(pod(parts.join(', '), 'defaultMode: 0400, '), ...OBJECTS), before);
  const later = [configMapYaml('first', {}), ...OBJECTS];
  assert.notEqual(generationOf(pod(parts.join(', ')), ...later), before, 'another revision');
});

test('paths that contradict each other, and what is no source, are refused with what would be right', () => {
  const named = (path: string): string =>
    `{downwardAPI: {items: [{path: ${path}, fieldRef: {fieldPath: metadata.name}}]}}`;
  const cases: readonly (readonly [string, RegExp])[] = [
    [`${named('a/b')}, ${named('a//b')}`, /sources: "a\/b" is the path of two files/],
    [
      '{secret: {name: s, items: [{key: k, path: a}, {key: j, path: a}]}}',
      /sources: "a" is the path of two files/,
    ],
    [`${named('a')}, ${named('a/b')}`, /sources: one path is a directory of another/],
    [`${named('a')}, {serviceAccountToken: {path: a/token}}`, /sources: one path is a directory of another/],
    [named('../a'), /sources\[0\]\.downwardAPI\.items\[0\]\.path: expected a relative path .*"\.\.\/a"/],
    [
      '{secret: {name: s}, configMap: {name: c}}',
      /sources\[0\]: has more than one source: secret, configMap/,
    ],
    ['{}', /sources\[0\]: has no source; expected one of secret, configMap, downwardAPI/],
    ['{secret: {}}', /sources\[0\]\.secret\.name: is missing/],
    ['{serviceAccountToken: {}}', /serviceAccountToken\.path: is missing/],
    ['{serviceAccountToken: {path: /etc/token}}', /serviceAccountToken\.path: expected a relative path/],
    [
      '{serviceAccountToken: {path: t, expirationSeconds: 599}}',
      /expirationSeconds: expected whole seconds from 600 .*, found the number 599/,
    ],
    ['{clusterTrustBundle: {path: ca}}', /clusterTrustBundle: has neither name and signerName/],
    ['{clusterTrustBundle: {path: ca, name: x, signerName: a.b/c}}', /has both name and signerName/],
    [
      '{clusterTrustBundle: {path: ca, name: x, labelSelector: {}}}',
      /labelSelector: selects bundles of a signer/,
    ],
    [
      '{clusterTrustBundle: {path: ca, signerName: a.b/c, labelSelector: {matchExpressions: [{key: k}]}}}',
      /matchExpressions\[0\]\.operator: is missing; expected one of In, NotIn, Exists, DoesNotExist/,
    ],
    [
      `{clusterTrustBundle: {path: ca, signerName: a.b/c, labelSelector: ${BARE}}}`,
      /matchExpressions\[0\]\.values: is missing or empty; expected at least one value for NotIn/,
    ],
    [
      '{clusterTrustBundle: {path: ca, signerName: "no signer"}}',
      /signerName: expected the name of a signer/,
    ],
  ];
  for (const [sources, right] of cases) assert.match(refused(pod(sources)), right, sources);
  assert.match(
    unresolvedIn(desired(pod('{podCertificate: {}}'))),
    /^kind-unsupported: volumes of kind projected with a source podCertificate/,
  );
});

const ASKED: (readonly [string, TokenRequest])[] = [];
let issue = '1';
const TOKENS: TokenSource = {
  ...NO_TOKENS,
  tokenFor: (who, request) => {
    ASKED.push([who.serviceAccount, request]);
    return { kind: 'token', token: new Sensitive(`hunter2-${issue}`), issue };
  },
};
const TOKEN = '{serviceAccountToken: {path: sa/token, audience: vault, expirationSeconds: 7200}}';

test('a token of the service account is a file, for a pod with a group its owner’s alone', () => {
  const files = (yaml: string) => filesOf(publicationOf(desiredWith({ tokens: TOKENS }, yaml)));
  ASKED.length = 0;
  assert.deepEqual(files(withSpec(pod(TOKEN), 'serviceAccountName: shop')), { 'sa/token': '644 hunter2-1' });
  assert.deepEqual(ASKED, [['shop', { audience: 'vault', expirationSeconds: 7_200 }]]);
  assert.deepEqual(files(withSpec(pod(TOKEN), 'securityContext: {fsGroup: 2000}')), {
    'sa/token': '600 hunter2-1',
  });
  ASKED.length = 0;
  files(pod('{serviceAccountToken: {path: token}}'));
  assert.deepEqual(ASKED, [['default', { audience: '', expirationSeconds: 3_600 }]]);
});

test('another token is another generation, and no token keeps the volume as it is', () => {
  const generation = (): string => publicationOf(desiredWith({ tokens: TOKENS }, pod(TOKEN))).generation;
  const before = generation();
  assert.equal(generation(), before);
  issue = '2';
  assert.notEqual(generation(), before);
  assert.match(
    blockedIn(desired(pod(TOKEN))),
    /^token-missing: the volume wants a token of service account default\/default/,
  );
});

test('certificates come through their port; without a cluster they are refused, or an empty file', () => {
  const asked: TrustBundles[] = [];
  const trustBundles: TrustBundleSource = {
    ...ownTrustBundles('called'),
    bundleFor: (bundles) => {
      asked.push(bundles);
      return { kind: 'bundle', pem: 'PEM', revision: '7' };
    },
  };
  const bundle = (more: string): string => pod(`{clusterTrustBundle: {path: ca.pem, ${more}}}`);
  const files = (yaml: string) => filesOf(publicationOf(desiredWith({ trustBundles }, yaml)));
  const selector = 'labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: k, operator: Exists}]}';
  assert.deepEqual(files(bundle('name: "a.b:c:d"')), { 'ca.pem': '644 PEM' });
  files(bundle('signerName: a.b/c'));
  files(bundle(`signerName: a.b/c, ${selector}`));
  const labels = {
    matchLabels: { a: 'b' },
    matchExpressions: [{ key: 'k', operator: 'Exists', values: [] }],
  };
  assert.deepEqual(asked, [
    { name: 'a.b:c:d' },
    { signerName: 'a.b/c', labels: undefined },
    { signerName: 'a.b/c', labels },
  ]);
  assert.match(
    blockedIn(desired(bundle('name: x'))),
    /^reference-missing: .*ClusterTrustBundle x, and only the API server .* put the certificates into a ConfigMap/,
  );
  assert.deepEqual(shown(bundle('name: x, optional: true')), { 'ca.pem': '644 ' });
});
