/** How large a volume should be here, and why it is not grown yet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DATA, desired, volumeOf } from './desired.ts';
import { claimSource, claimYaml, podYaml, secretYaml, type VolumeParts, volumeYaml } from './manifests.ts';

const GI = 1_073_741_824n;

interface Case {
  readonly capacity?: string;
  readonly status?: string;
  readonly claim?: string;
  readonly volume?: VolumeParts;
  readonly pods?: readonly string[];
}

/** Wanted and known size in Gi where they are whole, and what holds it. */
function sizeOf({ capacity = '2Gi', status, claim, volume, pods }: Case) {
  const state = desired(
    ...(pods ?? [podYaml('web', { v: claimSource('data') })]),
    claimYaml('data', undefined, claim, status),
    volumeYaml('pv-data', { ...volume, spec: `capacity: {storage: ${capacity}}` }),
  );
  const { size } = volumeOf(state, DATA);
  const inGi = (bytes: string | undefined) => (bytes === undefined ? undefined : Number(BigInt(bytes) / GI));
  return size && { wanted: inGi(size.bytes), known: inGi(size.knownBytes), held: size.held };
}

const at = (known: string, allocated: string, resize: string): string =>
  `{capacity: {storage: ${known}}, allocatedResources: {storage: ${allocated}}, ` +
  `allocatedResourceStatuses: {storage: ${resize}}}`;

test('KV-F1: what is wanted is the capacity of the PersistentVolume, what is known the status of the claim', () => {
  assert.deepEqual(sizeOf({}), { wanted: 2, known: undefined, held: undefined });
  assert.deepEqual(sizeOf({ status: '{capacity: {storage: 1Gi}}' }), {
    wanted: 2,
    known: 1,
    held: undefined,
  });
  assert.equal(sizeOf({ capacity: '0' }), undefined);
});

test('a claim that asks for more than its volume has is told, and holds nothing', () => {
  const asking = (storage: string): string | undefined => {
    const claim = `{volumeName: pv-data, resources: {requests: {storage: ${storage}}}}`;
    const { size } = volumeOf(
      desired(
        podYaml('web', { v: claimSource('data') }),
        claimYaml('data', claim),
        volumeYaml('pv-data', { spec: 'capacity: {storage: 2Gi}' }),
      ),
      DATA,
    );
    assert.equal(size?.held, undefined);
    return size?.claimLarger;
  };
  const told =
    'PersistentVolumeClaim default/data asks for 3 GiB, and its PersistentVolume pv-data has 2 GiB';
  assert.deepEqual([asking('3Gi'), asking('2Gi'), asking('1Gi')], [told, undefined, undefined]);
});

test('KV-F5, A-072: growing waits for the cluster’s word, goes to what was allotted, ends at infeasible', () => {
  const controller = sizeOf({ status: at('1Gi', '2Gi', 'ControllerResizeInProgress') });
  assert.match(controller?.held ?? '', /cluster is not done .*ControllerResizeInProgress/);
  for (const resize of ['NodeResizePending', 'NodeResizeInProgress']) {
    const expected = { wanted: 3, known: 1, held: undefined };
    assert.deepEqual(sizeOf({ capacity: '4Gi', status: at('1Gi', '3Gi', resize) }), expected, resize);
  }
  assert.match(
    sizeOf({ status: at('1Gi', '2Gi', 'NodeResizeInfeasible') })?.held ?? '',
    /impossible on the node/,
  );
  assert.match(sizeOf({ status: at('1Gi', '2Gi', 'FutureResizeWord') })?.held ?? '', /FutureResizeWord/);
});

test('KV-F5, KV-F8: an empty status is the turn of the node only for a resizer that writes nothing else either', () => {
  const between = sizeOf({ status: '{capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}}' });
  assert.match(between?.held ?? '', /cluster is not done/);
  const done = sizeOf({ status: '{capacity: {storage: 2Gi}, allocatedResources: {storage: 2Gi}}' });
  assert.deepEqual(done, { wanted: 2, known: 2, held: undefined });
});

test('KV-F4: what can only be read is not grown: by the volume, by its access modes, or by all its pods', () => {
  assert.equal(sizeOf({ volume: { csi: 'readOnly: true' } })?.held, 'read-only');
  assert.equal(sizeOf({ volume: { accessModes: 'ReadOnlyMany' } })?.held, 'read-only');
  assert.equal(sizeOf({ volume: { accessModes: 'ReadOnlyMany, ReadWriteOnce' } })?.held, undefined);
  const reader = podYaml('reader', { v: claimSource('data', true) });
  assert.equal(sizeOf({ pods: [reader] })?.held, 'read-only');
  assert.equal(sizeOf({ pods: [reader, podYaml('writer', { v: claimSource('data') })] })?.held, undefined);
});

test('KV-F7: a claim that says the node has nothing to do is not grown here', () => {
  const claim = 'annotations: {volume.kubernetes.io/node-expansion-not-required: ""}';
  assert.match(sizeOf({ claim, status: '{capacity: {storage: 1Gi}}' })?.held ?? '', /nothing to do/);
});

test('KV-C8: a secret that only growing needs holds the growing and nothing else', () => {
  const volume = volumeYaml('pv-data', {
    spec: 'capacity: {storage: 2Gi}',
    csi: 'nodeExpandSecretRef: {namespace: default, name: grow}, nodeStageSecretRef: {namespace: default, name: s}',
  });
  const documents = [
    podYaml('web', { v: claimSource('data') }),
    claimYaml('data', undefined, undefined, '{capacity: {storage: 1Gi}}'),
    volume,
    secretYaml('s', { password: 'hunter2' }),
  ];
  const without = volumeOf(desired(...documents), DATA);
  assert.deepEqual([without.blocked, without.secrets.expand], [undefined, undefined]);
  assert.equal(without.secrets.stage?.reveal()['password'], 'hunter2');
  assert.equal(without.size?.held, 'Secret default/grow does not exist');
  assert.equal(without.secrets.mayBeMore, true, 'the driver may have been given it before it went');
  const complete = volumeOf(desired(...documents, secretYaml('grow', { key: 'value' })), DATA);
  assert.deepEqual([complete.secrets.expand?.reveal(), complete.size?.held], [{ key: 'value' }, undefined]);
});

test('A-018: sizes are exact to the byte beyond what a JavaScript number holds', () => {
  const bytesOf = (capacity: string): string | undefined => {
    const volume = volumeYaml('pv-data', { spec: `capacity: {storage: ${capacity}}` });
    return volumeOf(desired(podYaml('web', { v: claimSource('data') }), claimYaml('data'), volume), DATA).size
      ?.bytes;
  };
  assert.equal(bytesOf('"9007199254740993"'), '9007199254740993');
  assert.equal(bytesOf('7Ei'), (7n << 60n).toString());
  assert.equal(bytesOf('10Gi'), '10737418240');
});
