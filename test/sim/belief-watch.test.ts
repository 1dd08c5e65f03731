import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualState, ActualVolume } from '../../reconciler/model/actual-state.ts';
import { changeOfBelief } from './belief-watch.ts';

const ONE = 'one' as VolumeId;
const OTHER = 'other' as VolumeId;

function volume(): ActualVolume {
  return {} as ActualVolume;
}

test('belief that is replaced, learnt or forgotten is another one, and else it is the same', () => {
  const actual = new Map([[ONE, volume()]]);
  const reconciler = { actual: (): ActualState => actual };
  const isSame = (): boolean => changeOfBelief(reconciler).isSame;
  assert.equal(isSame(), false);
  assert.equal(isSame(), true);
  actual.set(ONE, volume());
  assert.equal(isSame(), false);
  assert.equal(isSame(), true);
  actual.set(OTHER, volume());
  assert.equal(isSame(), false);
  actual.delete(ONE);
  assert.equal(isSame(), false);
  actual.delete(OTHER);
  actual.set(ONE, volume());
  assert.equal(isSame(), false);
  assert.equal(isSame(), true);
});

test('what was believed before is as it was, and of each agent its own', () => {
  const known = volume();
  const actual = new Map([[ONE, known]]);
  const reconciler = { actual: (): ActualState => actual };
  assert.equal(changeOfBelief(reconciler).before, undefined);
  actual.delete(ONE);
  assert.equal(changeOfBelief(reconciler).before?.get(ONE), known);
  assert.equal(changeOfBelief(reconciler).before?.size, 0);
  assert.equal(changeOfBelief({ actual: () => actual }).before, undefined);
});
