/** A record in the database of open-iscsi gets its settings without anybody's command line. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ok } from '../../../mount/failure.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import {
  type IscsiRecord,
  ownerOfQuestion,
  writeIscsiRecord,
} from '../../../mount/broker/device/iscsi-record.ts';
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

test('the record of a question is ours while it tells of nothing, or says that it is', (t) => {
  const directory = scratchDirectory(t);
  const databases = ['one', 'two'].map((name) => join(directory, name) as AbsolutePath);
  const question = { ...recordOf(), folder: ['send_targets'], leaf: 'st_config', isOurs: true } as const;
  const owner = () => ownerOfQuestion(question, databases);
  const place = join(directory, 'two/send_targets/10.0.0.1,3260');
  const path = join(place, 'st_config');
  const write = (line: string): void => writeFileSync(path, `# BEGIN RECORD\n${line}\n# END RECORD\n`);
  assert.deepEqual(owner(), ok('nobody'));
  mkdirSync(place, { recursive: true });
  assert.deepEqual(owner(), ok('nobody'), 'a crash came before it');
  write('discovery.startup = manual');
  assert.deepEqual(owner(), ok('ours'), 'a crash came behind it');
  for (const line of ['discovery.startup = automatic', 'discovery.sendtargets.auth.authmethod = CHAP']) {
    write(line);
    assert.deepEqual(owner(), ok('somebody'), line);
    // Anew by our question, which says so.
    assert.ok(writeIscsiRecord(question, databases).ok);
    assert.deepEqual(owner(), ok('ours'), line);
  }
  symlinkSync('/nowhere', join(place, `${IQN},10.0.0.1,3260,1,default`));
  assert.deepEqual(owner(), ok('somebody'), 'a node was found by it');
});
