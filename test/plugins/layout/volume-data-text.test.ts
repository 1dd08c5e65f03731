import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatVolumeData, parseVolumeData } from '../../../plugins/layout/volume-data-text.ts';

const text = fc.string({ unit: 'binary' });
const lifecycle = fc.constantFrom('Persistent' as const, 'Ephemeral' as const);

test('vol_data.json has the bytes that it always had, with the kubelet’s names in order', () => {
  const data = {
    driver: 'example.com',
    volumeHandle: 'vol-1',
    specName: 'pv-1',
    nodeName: 'node-1',
    attachmentId: 'csi-1',
    lifecycle: 'Persistent',
    seLinuxContext: 'system_u:object_r:svirt_sandbox_file_t:s0',
  } as const;
  assert.equal(
    formatVolumeData(data),
    '{"attachmentID":"csi-1","driverName":"example.com","nodeName":"node-1",' +
      '"seLinuxMountContext":"system_u:object_r:svirt_sandbox_file_t:s0","specVolID":"pv-1",' +
      '"volumeHandle":"vol-1","volumeLifecycleMode":"Persistent"}\n',
  );
  const staged = formatVolumeData({ driver: 'example.com', volumeHandle: 'vol-1', seLinuxContext: '' });
  assert.equal(staged, '{"driverName":"example.com","volumeHandle":"vol-1"}\n');
});

test('what is written is read back, whatever the driver and the handle', () => {
  fc.assert(
    fc.property(text, text, text, lifecycle, (driver, volumeHandle, specName, mode) => {
      const written = formatVolumeData({ driver, volumeHandle, specName, lifecycle: mode });
      assert.deepEqual(parseVolumeData(written), { driver, volumeHandle, lifecycle: mode });
    }),
  );
});

test('any other text is nobody’s, and none makes the parser throw', () => {
  const damaged = [
    '',
    '{',
    '{}',
    '[]',
    'null',
    '"x"',
    '0',
    '{"driverName":"d"}',
    '{"driverName":"d","volumeHandle":1}',
  ];
  for (const one of damaged) assert.equal(parseVolumeData(one), undefined, one);
  fc.assert(
    fc.property(fc.oneof(text, fc.json()), (one) => {
      parseVolumeData(one);
    }),
  );
});
