import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeviceNumber } from '../../../mount/host.ts';
import { type ActualVolume, PRESENT } from '../../../reconciler/model/actual-state.ts';
import { enterQuarantine } from '../../../reconciler/model/quarantine.ts';
import { actual } from '../world.ts';

const disk = '8:16' as DeviceNumber;

function publishedFrom(mount: NonNullable<ActualVolume['stagedMount']>): ActualVolume {
  const volume = actual('data', { staged: 'present', pods: { web: 'present' } });
  const [entry] = volume.publications;
  assert.ok(entry !== undefined);
  return { ...volume, publications: new Map([[entry[0], { ...entry[1], presence: PRESENT, mount }]]) };
}

test('of a bound device node the device is searched for users, not the file system that the node lies on (B-4)', () => {
  const volume = publishedFrom({ mountId: 30, device: '254:1', blockDevice: disk });
  assert.deepEqual(enterQuarantine(volume, 'operator', 0).quarantine?.devices, [disk]);
});

test('the device of a file system is searched for users, the number of an anonymous one is not', () => {
  const ofDisk = publishedFrom({ mountId: 30, device: disk });
  assert.deepEqual(enterQuarantine(ofDisk, 'operator', 0).quarantine?.devices, [disk]);
  const ofNetwork = publishedFrom({ mountId: 30, device: '0:44' });
  assert.deepEqual(enterQuarantine(ofNetwork, 'operator', 0).quarantine?.devices, []);
});
