/** One table says what staging fixes: whoever compares two specifications of a volume says so of every field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conflictOf } from '../../../agent/resolve/volume-conflict.ts';
import { CSI_TRAITS } from '../../../plugins/csi/csi-traits.ts';
import type { FieldRule } from '../../../plugins/traits/volume-traits.ts';
import type { CsiVolumeSpec } from '../../../plugins/volume.ts';
import { fieldsWantedOtherwise } from '../../../reconciler/model/staged-spec.ts';
import { createDesiredChanges } from '../../../reconciler/model/desired-change.ts';
import { actual, csi, place, wanted } from '../world.ts';

type Field = keyof typeof CSI_TRAITS.fields;

const BEFORE: CsiVolumeSpec = csi('data');
const DEVICE: CsiVolumeSpec = { ...BEFORE, mode: 'Block' };

/** For every field another value than that of `csi`; the compiler misses none. */
const OTHERWISE: Required<Pick<CsiVolumeSpec, Field>> = {
  driver: 'other.example',
  volumeHandle: 'other',
  mode: 'Block',
  lifecycle: 'Ephemeral',
  fsType: 'xfs',
  mountOptions: ['noatime'],
  volumeAttributes: { tier: 'fast' },
  accessModes: ['ReadWriteMany'],
  readOnly: true,
  seLinuxContext: 'system_u:object_r:container_file_t:s0:c1,c2',
  attachRequired: false,
  specName: 'pv-other',
  podInfoOnMount: true,
  fsGroupPolicy: 'None',
  tokensInSecrets: true,
  reachableFrom: [[{ key: 'zone', operator: 'In', values: ['a'] }]],
  controllerPublishSecret: { namespace: 'default', name: 'attacher' },
};

for (const [field, rule] of Object.entries(CSI_TRAITS.fields) as [Field, FieldRule<CsiVolumeSpec>][]) {
  const before = rule.fixed?.(BEFORE) === true ? BEFORE : DEVICE;
  const after: CsiVolumeSpec = { ...before, [field]: OTHERWISE[field] };
  const isFixed = rule.fixed?.(before) === true;
  const title = `${field} ${isFixed ? 'is fixed by staging' : 'follows the wish'}`;

  test(`${title}: what stands says so`, () => {
    const standing = { ...actual('data', { staged: 'present', pods: { web: 'present' } }), spec: before };
    assert.deepEqual(fieldsWantedOtherwise(standing, after), isFixed ? [field] : []);
    assert.deepEqual(fieldsWantedOtherwise(actual('data', {}), after), []);
  });

  test(`${title}: two pods that want it otherwise are told so`, () => {
    const [web, more] = [place('web', 'data').pod, place('more', 'data').pod];
    const conflict = conflictOf({ spec: before, pod: web }, { spec: after, pod: more });
    if (!isFixed || rule.ofDriver === true) assert.equal(conflict, undefined);
    else if (rule.inTurn === true) assert.equal(conflict?.failure.code, 'volume-in-use');
    else {
      assert.equal(conflict?.failure.code, 'spec-invalid');
      assert.match(conflict?.failure.message ?? '', new RegExp(`with another ${field}$`));
    }
    assert.equal(conflictOf({ spec: before, pod: web }, { spec: { ...before }, pod: more }), undefined);
  });

  test(`${title}: another try is worth while when it is changed`, () => {
    const heeded = createDesiredChanges();
    const want = { ...wanted('data', ['web']), spec: before };
    heeded.isNews(before.id, want);
    assert.equal(heeded.isNews(before.id, { ...want, spec: { ...before } }), false);
    assert.equal(heeded.isNews(before.id, { ...want, spec: after }), true);
  });
}

test('attributes that are written in another order are no news', () => {
  const heeded = createDesiredChanges();
  const spec = (volumeAttributes: Record<string, string>): CsiVolumeSpec => ({ ...BEFORE, volumeAttributes });
  heeded.isNews(BEFORE.id, { ...wanted('data', ['web']), spec: spec({ a: '1', b: '2' }) });
  const again = { ...wanted('data', ['web']), spec: spec({ b: '2', a: '1' }) };
  assert.equal(heeded.isNews(BEFORE.id, again), false);
});
