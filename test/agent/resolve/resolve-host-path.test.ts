/** A PersistentVolume of kind hostPath, is the path itself, for each pod of its claim. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOST_PATH_PLUGIN } from '../../../plugins/pod/pod-traits.ts';
import { podVolumeId, type PodUid } from '../../../plugins/volume.ts';
import type { DesiredState } from '../../../reconciler/model/desired-state.ts';
import { desired, refusalOf, volumeOf } from '../desired.ts';
import { claimSource, claimYaml, podYaml, withDevices } from '../manifests.ts';

const ID = podVolumeId(HOST_PATH_PLUGIN, 'uid-web' as PodUid, 'pv-data');

function documents(hostPath: string, spec = ''): readonly string[] {
  const pod = podYaml('web', { v: claimSource('data', true) });
  const isBlock = spec.includes('Block');
  return [
    isBlock ? withDevices(pod) : pod,
    isBlock ? claimYaml('data', '{volumeName: pv-data, volumeMode: Block}') : claimYaml('data'),
    `apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-data}
spec: {accessModes: [ReadWriteOnce], hostPath: ${hostPath}, ${spec}}
`,
  ];
}

function state(hostPath: string, spec = ''): DesiredState {
  return desired(...documents(hostPath, spec));
}

function onNode(name: string): string {
  return `nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [
    {key: kubernetes.io/hostname, operator: In, values: [${name}]}]}]}}`;
}

test('its path is shown, checked by its type, and read-only when the claim in the pod is', () => {
  const { spec, publications, blocked } = volumeOf(
    state('{path: /srv/data, type: DirectoryOrCreate}', onNode('node-1')),
    ID,
  );
  assert.ok(spec.kind === 'host-path');
  assert.deepEqual([spec.path, spec.type, blocked], ['/srv/data', 'DirectoryOrCreate', undefined]);
  assert.deepEqual(
    [...publications.values()].map(({ spec: place }) => [place.specName, place.readOnly]),
    [['pv-data', true]],
  );
});

test('on another node than the one that it is on, it waits', () => {
  const { blocked } = volumeOf(state('{path: /srv/data}', onNode('elsewhere')), ID);
  assert.equal(blocked?.code, 'wrong-topology');
});

test('what no pod may have as a hostPath it may not have by a claim either, nor as a device', () => {
  assert.match(
    refusalOf(...documents('{path: /var/lib}')),
    /^spec-invalid: .*pv-data: hostPath \/var\/lib is denied/,
  );
  assert.match(refusalOf(...documents('{path: /srv/data}', 'volumeMode: Block')), /^spec-invalid: /);
});

test('two volumes of one pod that lead to it are the same, or the second is refused', () => {
  const [, ...claim] = documents('{path: /srv/data}');
  const twice = desired(podYaml('web', { a: claimSource('data'), b: claimSource('data') }), ...claim);
  assert.deepEqual([twice.unresolved, volumeOf(twice, ID).publications.size], [[], 1]);
  const beside = podYaml('web', { v: claimSource('data'), 'pv-data': 'hostPath: {path: /srv/other}' });
  const { unresolved } = desired(beside, ...claim);
  assert.deepEqual(
    unresolved.map(({ failure }) => failure.code),
    ['spec-invalid'],
  );
  assert.match(unresolved[0]?.failure.message ?? '', /with another path/);
});

test('mount options are refused, as by the kubelet: nothing is mounted that could have them', () => {
  for (const options of ['mountOptions: [ro, noexec]', 'mountOptions: [noatime]'])
    assert.match(
      refusalOf(...documents('{path: /srv/data}', options)),
      /^spec-invalid: PersistentVolume pv-data: a hostPath is not mounted, so it cannot have mount options \(/,
    );
  assert.equal(refusalOf(...documents('{path: /srv/data}', 'mountOptions: []')), 'resolved');
});
