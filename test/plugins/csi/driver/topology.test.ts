import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reachableFrom } from '../../../../plugins/csi/driver/topology.ts';
import type { CsiVolumeSpec, TopologyRule } from '../../../../plugins/volume.ts';
import { csi } from '../../../reconciler/world.ts';

const IN_Z1: TopologyRule = { key: 'a.example/zone', operator: 'In', values: ['z1'] };
const IN_Z2: TopologyRule = { key: 'a.example/zone', operator: 'In', values: ['z2'] };

function verdict(terms: CsiVolumeSpec['reachableFrom']): string {
  const spec = { ...csi('data'), ...(terms === undefined ? {} : { reachableFrom: terms }) };
  const reached = reachableFrom(spec, { topology: { 'a.example/zone': 'z1' } }, 'node-1');
  return reached.ok ? 'reachable' : reached.failure.message;
}

test('A-052: a volume is reachable when all rules of one of its terms hold', () => {
  assert.equal(verdict(undefined), 'reachable');
  assert.equal(verdict([[IN_Z1]]), 'reachable');
  assert.equal(verdict([[IN_Z2], [IN_Z1]]), 'reachable');
  assert.match(verdict([[IN_Z2]]), /wants a\.example\/zone In z2, and the driver says z1/);
  assert.match(verdict([[IN_Z1, IN_Z2]]), /wants a\.example\/zone In z2/);
});

test('A-052: a term without rules selects no node, as in Kubernetes', () => {
  assert.match(verdict([[]]), /its nodeAffinity has no rules/);
  assert.match(verdict([[], [IN_Z2]]), /wants a\.example\/zone In z2/);
  assert.equal(verdict([[], [IN_Z1]]), 'reachable');
});
