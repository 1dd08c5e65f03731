/** A wish that changes under a volume that stands: what is told is what stands, and that something else is wanted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain } from '../../../agent/status/explain.ts';
import { statusOf } from '../../../agent/status/status.ts';
import type { StatusFacts } from '../../../agent/status/status-facts.ts';
import { statusText } from '../../../agent/cli/status-text.ts';
import type { CsiVolumeSpec, PublicationSpec } from '../../../plugins/volume.ts';
import { type ActualVolume, PRESENT } from '../../../reconciler/model/actual-state.ts';
import { actual, csi, desired, facts, LAYOUT, wanted, WEB } from '../status-fixture.ts';

const DATA = csi('data', 'vol-data');

/** Stands as `DATA`, for WEB to write; wanted as given. */
function changed(
  spec: Partial<CsiVolumeSpec>,
  place: Partial<PublicationSpec> = {},
  reconstructed?: true,
  there?: ActualVolume['publications'],
) {
  const want = wanted({ ...DATA, ...spec }, WEB);
  const [entry] = want.publications.values();
  assert.ok(entry);
  const publications = new Map([[entry.spec.key, { ...entry, spec: { ...entry.spec, ...place } }]]);
  const here = actual(DATA, PRESENT, PRESENT, WEB);
  const given: Partial<StatusFacts> = {
    desired: desired([{ ...want, publications }]),
    pods: [WEB],
    actual: new Map([[DATA.id, { ...here, reconstructed, publications: there ?? here.publications }]]),
  };
  return statusOf(facts(given), LAYOUT, '1');
}

test('A-062: a volume that turns into a device is told as the files it still is, at the path where they are', () => {
  const status = changed({ mode: 'Block' });
  assert.deepEqual([status.volumes[0]?.mode, status.volumes[0]?.changed], ['Filesystem', ['mode']]);
  const place = status.pods[0]?.volumes[0];
  assert.equal(place?.path, changed({}).pods[0]?.volumes[0]?.path);
  assert.equal(place?.state, 'mounted');
});

test('the path of a place that is not there yet is where it will be, in the volume that is wanted', () => {
  const status = changed({ mode: 'Block' }, {}, undefined, new Map());
  assert.match(status.pods[0]?.volumes[0]?.path ?? '', /\/volumeDevices\//);
  assert.equal(status.volumes[0]?.mode, 'Filesystem');
});

test('what a pod may do with it is what it was published for, and that is said', () => {
  const status = changed({}, { readOnly: true, fsGroup: { gid: 2000, changePolicy: 'Always' } });
  assert.equal(status.pods[0]?.volumes[0]?.readOnly, false, 'it can be written to');
  assert.deepEqual(status.volumes[0]?.changed, ['readOnly', 'fsGroup']);
});

test('explain and status name the fields, never what is in them, and the cure', () => {
  const status = changed({ mountOptions: ['password=canary'], volumeAttributes: { token: 'canary' } });
  const sentence =
    'it stands as it was set up, and now another mountOptions, volumeAttributes is wanted: ' +
    'that takes effect once its pods have let go of it and come back';
  const found = explain('data', status);
  assert.ok(found.kind === 'found');
  assert.deepEqual(
    found.document.conditions.map(({ kind, sentence: one }) => [kind, one]),
    [['changed', sentence]],
  );
  const text = statusText(status, {
    look: { widthMax: undefined, colour: false, unicode: true },
    wide: false,
  });
  assert.ok(text.includes(sentence), text);
  assert.ok(!`${text}${JSON.stringify([status, found])}`.includes('canary'));
});

test('what is the same is no change, and of what was found on disk nobody knows how it was set up', () => {
  assert.deepEqual(changed({}).volumes[0]?.changed, []);
  assert.deepEqual(changed({ fsType: 'xfs' }, {}, true).volumes[0]?.changed, []);
});
