/** Records of open-iscsi as text, and what iscsiadm(8) says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOfExit, recordNameOf, targetsIn, withSettings } from '../../../mount/iscsi/iscsi-tools.ts';

const RECORD = `# BEGIN RECORD 2.1.8
node.name = iqn.2026-11.example:disk
node.startup = manual
node.session.auth.authmethod = None
# END RECORD
`;

test('settings take the place of those that are there, and others come before the end', () => {
  assert.equal(
    withSettings(RECORD, [
      ['node.session.auth.authmethod', 'CHAP'],
      ['node.session.auth.password', 'a = $& b'],
    ]),
    RECORD.replace('None\n', 'CHAP\nnode.session.auth.password = a = $$& b\n'),
  );
  assert.equal(withSettings(RECORD, []), RECORD);
  assert.equal(withSettings('', [['a', 'b']]), '\na = b', 'one that was cut short');
});

test('a portal is called in records without brackets', () => {
  assert.equal(recordNameOf('10.0.0.1:3260'), '10.0.0.1,3260');
  assert.equal(recordNameOf('[2001:db8::1]:3261'), '2001:db8::1,3261');
});

test('the targets of a portal are told a line each', () => {
  const said = '10.0.0.1:3260,1 iqn.2026-11.example:a\n[::1]:3260,1 iqn.2026-11.example:b\n\n';
  assert.deepEqual(targetsIn(said), ['iqn.2026-11.example:a', 'iqn.2026-11.example:b']);
  assert.deepEqual(targetsIn(''), []);
});

test('who was refused is told from who was not answered', () => {
  assert.deepEqual([24, 21, 8, 4, 20, undefined].map(codeOfExit), [
    'target-refused',
    'target-refused',
    'target-unreachable',
    'target-unreachable',
    'input-output',
    'input-output',
  ]);
});
