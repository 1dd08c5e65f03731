/** A record in the database of open-iscsi gets its settings without anybody's command line. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AbsolutePath } from '../../../mount/host.ts';
import { type IscsiRecord, writeIscsiRecord } from '../../../mount/broker/device/iscsi-record.ts';
import { scratchDirectory } from '../scratch.ts';

const IQN = 'iqn.2026-11.example:disk';

function recordOf(more: Partial<IscsiRecord> = {}): IscsiRecord {
  return {
    path: '/etc/iscsi' as AbsolutePath,
    folder: ['nodes', IQN],
    portal: '10.0.0.1,3260',
    leaf: 'default',
    settings: [['node.session.auth.password', 'precious']],
    ...more,
  };
}

test('a record is found as a file and as a directory, in whichever database it is, and only root reads it', (t) => {
  const directory = scratchDirectory(t);
  const databases = ['one', 'two'].map((name) => join(directory, name) as AbsolutePath);
  for (const [portal, file] of [
    ['10.0.0.1,3260', '10.0.0.1,3260'],
    ['10.0.0.2,3260', '10.0.0.2,3260,1/default'],
  ] as const) {
    const path = join(directory, 'two/nodes', IQN, file);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, '# BEGIN RECORD\n# END RECORD\n');
    chmodSync(path, 0o644);
    assert.deepEqual(writeIscsiRecord(recordOf({ portal }), databases).ok, true);
    assert.equal(
      readFileSync(path, 'utf8'),
      '# BEGIN RECORD\nnode.session.auth.password = precious\n# END RECORD\n',
    );
    assert.equal(statSync(path).mode & 0o777, 0o600);
  }
});

test('one that is missing is told, and a link is followed nowhere', (t) => {
  const directory = scratchDirectory(t);
  const databases = [directory as AbsolutePath];
  const missing = writeIscsiRecord(recordOf(), databases);
  assert.equal(!missing.ok && missing.failure.code, 'path-missing');
  const elsewhere = join(directory, 'elsewhere');
  writeFileSync(elsewhere, 'theirs');
  mkdirSync(join(directory, 'nodes', IQN), { recursive: true });
  symlinkSync(elsewhere, join(directory, 'nodes', IQN, '10.0.0.1,3260'));
  const linked = writeIscsiRecord(recordOf(), databases);
  assert.equal(!linked.ok && linked.failure.code, 'path-unsafe');
  assert.equal(readFileSync(elsewhere, 'utf8'), 'theirs');
});
