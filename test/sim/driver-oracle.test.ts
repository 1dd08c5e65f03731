import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  NodeExpandVolumeRequest,
  NodePublishVolumeRequest,
  NodeUnpublishVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';
import { STATUS, type VolumeCallRecord } from './driver-call.ts';
import { PLAIN_NATURE } from './driver-nature.ts';
import { DriverOracle } from './driver-oracle.ts';
import { bytesFrom } from '../../plugins/volume.ts';
import type { WishHistory } from './wish-history.ts';

const TARGET = '/pods/web/mount';
const NATURE = { ...PLAIN_NATURE, stages: false };
const WISH: WishHistory = {
  attributes: new Set(['{}']),
  stageSecrets: undefined,
  publishSecrets: undefined,
  accessModes: new Set(['ReadWriteOnce']),
  isChanged: false,
  blocks: new Set([false]),
  ephemeral: true,
  groups: new Set(),
  sizes: new Set(),
};
const publish: VolumeCallRecord = {
  method: 'NodePublishVolume',
  request: NodePublishVolumeRequest.fromPartial({ volumeId: 'inline', targetPath: TARGET }),
};
const unpublish: VolumeCallRecord = {
  method: 'NodeUnpublishVolume',
  request: NodeUnpublishVolumeRequest.fromPartial({ volumeId: 'inline', targetPath: TARGET }),
};

function bench(ephemeral = true) {
  const violations: string[] = [];
  const oracle = new DriverOracle({
    nowMs: () => 0,
    violate: (invariant) => void violations.push(invariant),
    wishHistory: () => ({ ...WISH, ephemeral }),
    isMountPoint: () => true,
    isMounted: () => true,
    recordsDamaged: () => false,
    mountsTaken: () => false,
    onTeardown: () => {},
    onClimb: () => {},
    isRepublished: () => false,
    isUnderStranger: () => false,
    isJustTaken: () => false,
    isDirty: () => false,
    isThoughtHad: () => false,
    agentLife: () => 1,
  });
  const answered = (call: VolumeCallRecord, status: number, heard = true): boolean => {
    oracle.begin(call, NATURE, () => heard)(status, heard);
    return oracle.hasEnded('inline', TARGET);
  };
  return { oracle, answered, violations };
}

test('an inline volume has ended when its driver has said so and was heard, until it is published again', () => {
  const { oracle, answered } = bench();
  assert.equal(answered(publish, 0), false);
  assert.equal(answered(unpublish, 13), false, 'it refuses');
  assert.equal(answered(unpublish, 0, false), false, 'nobody heard it');
  assert.equal(answered(unpublish, 0), true);
  assert.equal(oracle.hasEnded('inline', '/pods/other/mount'), false);
  assert.equal(answered(unpublish, 13), true, 'it has said so already');
  assert.equal(answered(publish, 13), false);
  assert.equal(answered(unpublish, 5), true, 'it does not know it');
  oracle.forgetNode();
  assert.equal(oracle.hasEnded('inline', TARGET), false);
});

test('a persistent volume is never ended by an unpublish', () => {
  assert.equal(bench(false).answered(unpublish, 0), false);
});

test('what was refused to a life that is over is known to the next by size, as it is recorded', () => {
  const { oracle, answered, violations } = bench(false);
  const grow = (bytes: bigint): VolumeCallRecord => ({
    method: 'NodeExpandVolume',
    request: NodeExpandVolumeRequest.fromPartial({
      volumeId: 'inline',
      volumePath: TARGET,
      capacityRange: { requiredBytes: bytes },
    }),
  });
  const asked = (bytes: bigint): boolean => {
    violations.length = 0;
    answered(grow(bytes), STATUS.outOfRange);
    return violations.includes('A-071');
  };
  assert.equal(asked(5n), false);
  assert.equal(asked(7n), false, 'another size');
  assert.equal(asked(7n), true, 'nobody has forgotten it');
  const recorded = { toBytes: bytesFrom(5n), because: 'infeasible', message: '' } as const;
  oracle.forgetUnrecorded(
    () => recorded,
    () => false,
  );
  assert.equal(asked(7n), false, 'killed before it was written');
  assert.equal(asked(5n), true, 'that is on the disk');
});
