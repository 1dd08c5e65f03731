/** Sessions and disks as sysfs has them; the tree is made by the test as Linux 6.1 shows it. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { readIscsiSessions } from '../../../mount/broker/device/iscsi-sysfs.ts';
import { value } from '../../value.ts';
import { scratchDirectory } from '../scratch.ts';

function lay(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), `${content}\n`);
  }
}

const sessionFiles = (number: number, address: string, state = 'LOGGED_IN') => ({
  [`class/iscsi_session/session${number}/targetname`]: 'iqn.2026-11.example:disk',
  [`class/iscsi_session/session${number}/ifacename`]: 'default',
  [`class/iscsi_session/session${number}/state`]: state,
  [`class/iscsi_connection/connection${number}:0/persistent_address`]: address,
  [`class/iscsi_connection/connection${number}:0/persistent_port`]: '3260',
});

test('each session has its portal, its state and its disks by their LUN', (t) => {
  const directory = scratchDirectory(t);
  const disks = 'class/iscsi_session/session12/device/target2:0:0';
  lay(directory, {
    ...sessionFiles(12, '10.0.0.1'),
    ...sessionFiles(3, '2001:db8::1', 'FAILED'),
    [`${disks}/2:0:0:0/type`]: '12',
    [`${disks}/2:0:0:1/block/sda/dev`]: '8:0',
    [`${disks}/2:0:0:21/block/sdb/dev`]: '8:16',
    'block/sda/holders/dm-3/x': '',
    'block/dm-3/dm/uuid': 'mpath-360000000000000000e00000000010001',
    'block/dm-3/dev': '253:3',
    'block/sdb/holders/dm-4/x': '',
    'block/dm-4/dm/uuid': 'LVM-abc',
    'block/dm-4/dev': '253:4',
  });
  const common = { iqn: 'iqn.2026-11.example:disk', iface: 'default' };
  assert.deepEqual(value(readIscsiSessions(directory)), [
    { number: 3, ...common, portal: '[2001:db8::1]:3260', isLoggedIn: false, disks: [] },
    {
      number: 12,
      ...common,
      portal: '10.0.0.1:3260',
      isLoggedIn: true,
      disks: [
        { lun: 1, node: '/dev/sda', device: '8:0', map: { node: '/dev/dm-3', device: '253:3' } },
        { lun: 21, node: '/dev/sdb', device: '8:16' },
      ],
    },
  ]);
});

test('a kernel without iSCSI has no session, and one that goes meanwhile is none', (t) => {
  const directory = scratchDirectory(t);
  assert.deepEqual(value(readIscsiSessions(directory)), []);
  lay(directory, { 'class/iscsi_session/session1/state': 'LOGGED_IN' });
  assert.deepEqual(value(readIscsiSessions(directory)), []);
});
