import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Presence, RESTARTED, untoldPlace } from '../../../reconciler/model/actual-state.ts';
import { isGrowthDue } from '../../../reconciler/model/growth.ts';
import { actual, bytes, place, wantedOfSize } from '../world.ts';

const needs = { attach: false, stage: true, expand: true } as const;
const failed: Presence = {
  kind: 'unsure',
  because: { code: 'driver-deadline', message: '', effect: 'unknown' },
};

/** Staged, and smaller than it is wanted; one pod may have it. */
function dueWith(presence: Presence): ReturnType<typeof isGrowthDue> {
  const spec = place('web', 'data');
  const publications = new Map([[spec.key, untoldPlace(spec, presence)]]);
  const standing = { ...actual('data', { staged: 'present', needs }), sizeBytes: bytes(10), publications };
  return isGrowthDue(needs, wantedOfSize('data', ['web', 'other'], 20), standing);
}

test('a volume is grown first where all that may be there stood before a reboot', () => {
  assert.equal(dueWith(RESTARTED), 'first');
});

test('a publish that is under way, or in doubt, is no reason that other pods wait for a growth', () => {
  assert.equal(dueWith({ kind: 'unsure', because: 'begun' }), 'no');
  assert.equal(dueWith(failed), 'no');
});
