/** What is missing because it was refused is told so: "does not exist" sends people to look for a file they have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wholly } from '../../../mount/process/slices.ts';
import { desire } from '../../../agent/resolve/desired-state-populator.ts';
import type { DesiredState } from '../../../reconciler/model/desired-state.ts';
import { blockedIn, STAND_ALONE, unresolvedIn } from '../desired.ts';
import {
  claimSource,
  claimYaml,
  csiDriverYaml,
  podYaml,
  secretYaml,
  volumeYaml,
  wishOf,
} from '../manifests.ts';

const web = podYaml('web', { data: claimSource('data') });

function withRefused(...documents: readonly string[]): DesiredState {
  const wish = wishOf({ 'all.yaml': documents.join('---\n') });
  assert.equal(wish.rejected.length, 1, JSON.stringify(wish.rejected));
  return wholly(desire(wish, STAND_ALONE));
}

test('a PersistentVolume that was refused is not said to be missing, but why it was refused', () => {
  const refused = volumeYaml('pv-data', { spec: 'volumeMode: Raw' });
  assert.equal(
    unresolvedIn(withRefused(web, claimYaml('data'), refused)),
    'reference-missing: PersistentVolume pv-data of PersistentVolumeClaim default/data was refused ' +
      '(all.yaml#3, spec.volumeMode: "Raw" is not one of Filesystem, Block; the document begins on line 20)',
  );
});

test('so is a claim, whoever names it', () => {
  const refused = claimYaml('data', '{volumeName: pv-data, volumeMode: Raw}');
  assert.match(
    unresolvedIn(withRefused(web, refused, volumeYaml('pv-data'))),
    /^reference-missing: PersistentVolumeClaim default\/data was refused \(all.yaml#2, spec.volumeMode: /,
  );
  const own = podYaml('web', { data: 'ephemeral: {volumeClaimTemplate: {spec: {}}}' });
  assert.match(
    unresolvedIn(withRefused(own, claimYaml('web-data', '{volumeName: pv-data, volumeMode: Raw}'))),
    /PersistentVolumeClaim default\/web-data of the ephemeral volume data was refused \(all.yaml#2, spec.volumeMode: /,
  );
});

test('so is a secret, of a driver and of a volume, and nothing of it is shown', () => {
  const secret = secretYaml('login', { 'a/b': 'canary-5d1e' });
  const volume = volumeYaml('pv-data', { csi: 'nodeStageSecretRef: {name: login, namespace: default}' });
  const blocked = blockedIn(withRefused(web, claimYaml('data'), volume, secret));
  assert.match(blocked, /^reference-missing: Secret default\/login was refused \(all.yaml#4, stringData\./);
  const pod = podYaml('web', { data: 'secret: {secretName: login}' });
  const ofVolume = blockedIn(withRefused(pod, secret));
  assert.match(ofVolume, /^reference-missing: Secret default\/login was refused \(all.yaml#2, stringData\./);
  assert.ok(!`${blocked}${ofVolume}`.includes('canary'));
});

test('KV-C10: a driver whose CSIDriver object was refused is not taken for one without', () => {
  const driver = csiDriverYaml('test.csi.example', '{podInfoOnMount: "yes"}');
  assert.match(
    blockedIn(withRefused(web, claimYaml('data'), volumeYaml('pv-data'), driver)),
    /^reference-missing: CSIDriver test.csi.example was refused \(all.yaml#4, spec.podInfoOnMount: expected true or/,
  );
});

test('a driver has no defaults while a file is yet to be read: its CSIDriver may be there (seed 411038990)', () => {
  const objects = [web, claimYaml('data'), volumeYaml('pv-data')];
  const wish = { ...wishOf({ 'all.yaml': objects.join('---\n') }), awaited: 'z.yaml' };
  assert.match(
    blockedIn(wholly(desire(wish, STAND_ALONE))),
    /^reference-missing: CSIDriver test.csi.example may be in z.yaml, which is being read/,
  );
  const told = wishOf({ 'all.yaml': [...objects, csiDriverYaml('test.csi.example', '{}')].join('---\n') });
  const { volumes } = wholly(desire({ ...told, awaited: 'z.yaml' }, STAND_ALONE));
  assert.deepEqual(
    [...volumes.values()].map(({ blocked }) => blocked),
    [undefined],
  );
});

test('an optional secret or configMap that is not known is not taken for one that is not there', () => {
  const optional = podYaml('web', { data: 'secret: {secretName: login, optional: true}' });
  assert.match(
    blockedIn(withRefused(optional, secretYaml('login', { 'a/b': 'canary-5d1e' }))),
    /^reference-missing: Secret default\/login was refused \(all.yaml#2, stringData\./,
  );
  const source = 'projected: {sources: [{configMap: {name: c, optional: true}}]}';
  const wish = { ...wishOf({ 'all.yaml': podYaml('web', { data: source }) }), awaited: 'z.yaml' };
  assert.match(
    blockedIn(wholly(desire(wish, STAND_ALONE))),
    /^reference-missing: ConfigMap default\/c may be in z.yaml, which is being read for the first time/,
  );
});
