/** Which parts of its volumes a pod wants bound, and why it cannot have them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import { wholly } from '../../../mount/process/slices.ts';
import { expandExpression, namesInExpression } from '../../../kubernetes/fields/variable-expression.ts';
import { STAND_ALONE } from '../desired.ts';
import { claimYaml, volumeYaml, wishOf } from '../manifests.ts';
import { webYaml } from '../mounts/pod-mounts.ts';

function desired(...documents: readonly string[]) {
  const wish = wishOf({ 'web.yaml': documents.join('---\n') });
  assert.deepEqual(wish.rejected, []);
  return wholly(desire(wish, STAND_ALONE));
}

/** The parts of the one volume, or what is wrong. */
function partsOf(env: string, expression: string, ...more: readonly string[]) {
  const mounts = `[{name: tmp, mountPath: /a, subPathExpr: "${expression}"}]`;
  const pod = webYaml(
    `containers: [{name: main, env: [${env}], volumeMounts: ${mounts}}]`,
    '[{name: tmp, emptyDir: {}}]',
  );
  const { volumes, unresolved, frozenPods } = desired(pod, ...more);
  const [volume] = volumes.values();
  const [place] = volume?.publications.values() ?? [];
  const [failure] = unresolved.map((one) => one.failure);
  if (failure !== undefined) assert.equal(frozenPods.size, 1);
  return failure === undefined
    ? place?.spec.subpaths?.map(({ path }) => path)
    : `${failure.code}: ${failure.message}`;
}

test('an expression is made of the variables of its container, literal ones, fields and ConfigMaps', () => {
  const env =
    '{name: A, value: a}, {name: B, value: $(A)/b}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, ' +
    '{name: C, valueFrom: {configMapKeyRef: {name: settings, key: part}}}, {name: LATE, value: $(Z)}, ' +
    '{name: Z, value: z}';
  const settings = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {part: of/config}\n';
  assert.deepEqual(partsOf(env, '$(B)/$(POD)', settings), ['a/b/web']);
  assert.deepEqual(partsOf(env, '$(C)', settings), ['of/config']);
  assert.deepEqual(partsOf(env, 'plain/$$(A)', settings), ['plain/$(A)']);
  // As in Kubernetes a variable knows those before it, and the later one of a name counts.
  assert.deepEqual(partsOf(env, 'x$(LATE)', settings), ['x$(Z)']);
  assert.deepEqual(partsOf('{name: A, value: a}, {name: A, value: b}', '$(A)'), ['b']);
});

test('what an expression cannot be made of is refused, by name, and no secret is in the words', () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {key: hidden}\n';
  for (const [env, expression, why] of [
    [
      '',
      '$(A)',
      /spec-invalid: subPathExpr "\$\(A\)" of container main names \$\(A\), and its env has no such/,
    ],
    ['{name: A, value: ../up}', '$(A)', /spec-invalid: .*comes to "\.\.\/up": expected a relative path/],
    ['{name: A, value: /etc}', '$(A)', /spec-invalid: .*expected a relative path/],
    ['{name: A, valueFrom: {secretKeyRef: {name: keys, key: key}}}', '$(A)', /not made of a secret/],
    [
      '{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}',
      '$(A)',
      /variable A .*expected value, config/,
    ],
    [
      '{name: A, valueFrom: {configMapKeyRef: {name: no, key: k}}}',
      '$(A)',
      /reference-missing: ConfigMap default\/no/,
    ],
    [
      '{name: A, valueFrom: {configMapKeyRef: {name: "Not a name", key: k}}}',
      '$(A)',
      /spec-invalid: variable A .*configMapKeyRef.*expected a name of lower-case letters/,
    ],
  ] as const) {
    const told = partsOf(env, expression, secret);
    assert.match(String(told), why);
    assert.doesNotMatch(String(told), /hidden/);
  }
});

test("a variable that is empty makes no path: what is above its part is everybody's", () => {
  const ofPod = (path: string) =>
    `{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.${path}['tenant']"}}}`;
  const settings = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {tenant: ""}\n';
  for (const env of [
    '{name: A, value: ""}',
    '{name: A}',
    '{name: A, value: a}, {name: A, value: ""}',
    '{name: B, value: ""}, {name: A, value: $(B)}',
    ofPod('labels'),
    ofPod('annotations'),
    '{name: A, valueFrom: {configMapKeyRef: {name: settings, key: tenant}}}',
  ])
    for (const expression of ['tenants/$(A)', 'tenants/$(A)/data', 'of-$(A)', '$(A)'])
      assert.match(
        String(partsOf(env, expression, settings)),
        /^spec-invalid: subPathExpr ".*" of container main names \$\(A\), and that is empty/,
        `${env} in ${expression}`,
      );
  // As in the kubelet: empty may be what another variable is made of, and what is no reference.
  assert.deepEqual(partsOf('{name: A, value: ""}, {name: B, value: "$(A)b"}', 'x/$(B)'), ['x/b']);
  assert.deepEqual(partsOf('{name: A, value: ""}', 'x/$$(A)'), ['x/$(A)']);
});

test('a name in an expression ends with the first parenthesis that closes, whatever is in it, as in Kubernetes', () => {
  const env = '{name: B, value: b}, {name: "A$(B", value: odd}, {name: "C(D", value: c}';
  assert.deepEqual(partsOf(env, 'x/$(A$(B)'), ['x/odd']);
  assert.deepEqual(partsOf(env, '$(C(D)/$(B'), ['c/$(B']);
  assert.match(
    String(partsOf(env, 'x/$(E$(B)')),
    /^spec-invalid: .* names \$\(E\$\(B\), and its env has no such/,
  );
  // A variable that is made of others has what has no value as it is written.
  assert.deepEqual(partsOf('{name: B, value: b}, {name: F, value: "$(E$(B)"}', '$(F)'), ['$(E$(B)']);
});

test('a variable that no expression needs is not read, whatever it is', () => {
  const env = '{name: A, value: a}, {name: OTHER, valueFrom: {secretKeyRef: {name: none, key: k}}}';
  assert.deepEqual(partsOf(env, '$(A)'), ['a']);
});

test('a claim that a pod names twice is one place with the parts of both, by container and mount', () => {
  const pod = webYaml(
    `containers: [{name: main, volumeMounts: [{name: a, mountPath: /w}, {name: a, mountPath: /x, subPath: p}]}]
  initContainers: [{name: first, volumeMounts: [{name: b, mountPath: /y, subPath: q}]}]`,
    '[{name: a, persistentVolumeClaim: {claimName: data}}, {name: b, persistentVolumeClaim: {claimName: data}}]',
  );
  const [volume] = desired(pod, claimYaml('data'), volumeYaml('pv-data')).volumes.values();
  const [place] = volume?.publications.values() ?? [];
  assert.deepEqual(place?.spec.subpaths, [
    { container: 'main', index: 1, path: 'p' },
    { container: 'first', index: 0, path: 'q' },
  ]);
});

test('only what is written as Kubernetes has it is a reference', () => {
  assert.deepEqual(namesInExpression('$(A) $$(B) $C $D $(E.f) $('), ['A', 'E.f']);
  assert.equal(
    expandExpression('$(A)$$(A)$X', (name) => name.toLowerCase()),
    'a$(A)$X',
  );
  assert.equal(
    expandExpression('$(A)', () => undefined),
    '$(A)',
  );
});
