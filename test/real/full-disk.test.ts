/** Records on file systems without a free block and without a free inode. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { type AbsolutePath, below } from '../../mount/host.ts';
import { instanceLockHolder, takeInstanceLock } from '../../mount/process/instance-lock.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import { createRecords, type RecordForm } from '../../reconciler/journal/record-forms.ts';
import type { RecordStore } from '../../reconciler/recovery/record-store.ts';
import type { Host } from '../../mount/host.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { realHost, scratchDirectory } from '../mount/scratch.ts';
import { actual } from '../reconciler/world.ts';
import { value } from '../value.ts';
import { inPrivateNamespace } from './namespace.ts';

const skip = inPrivateNamespace();
const MIB = 1_024 * 1_024;
const run = (tool: string, ...argv: readonly string[]): string =>
  execFileSync(tool, argv, { encoding: 'utf8' }).trim();

function mountTmpfs(_: TestContext, target: AbsolutePath): void {
  run('mount', '-t', 'tmpfs', '-o', 'size=4m,nr_inodes=200', 'mooring-test', target);
}

/** Made with a tool of its own, on a loop device that goes with the test. */
function onImage(mebibytes: number, tool: string, make: readonly string[], options: readonly string[] = []) {
  return (t: TestContext, target: AbsolutePath): void => {
    const image = `${target}.image`;
    writeFileSync(image, '');
    truncateSync(image, mebibytes * MIB);
    run(tool, ...make, image);
    const device = run('losetup', '--find', '--show', image);
    // After the scratch directory's hook, which unmounts.
    t.after(() => run('losetup', '--detach', device));
    run('mount', ...options, device, target);
  };
}

/** Large files, then small ones, then empty ones, until nothing of any size can be made. */
function fill(directory: string): void {
  mkdirSync(directory);
  for (let bytes = 256 * MIB; bytes >= 4_096; bytes /= 2) {
    while (spawnSync('fallocate', ['--length', String(bytes), join(directory, fresh())]).status === 0);
  }
  for (const bytes of [4_096, 1, 0]) while (addFile(join(directory, fresh()), bytes));
}

let files = 0;
function fresh(): string {
  files += 1;
  return `file-${files}`;
}

function addFile(path: string, bytes: number): boolean {
  try {
    writeFileSync(path, Buffer.alloc(bytes), { flag: 'wx' });
    return true;
  } catch (error) {
    assert.match(String((error as NodeJS.ErrnoException).code), /^(ENOSPC|EDQUOT)$/);
    return false;
  }
}

const PODS = ['a', 'b', 'c', 'd'];

function standing(left: number, staged: 'present' | 'unsure') {
  const pods = Object.fromEntries(PODS.slice(0, left).map((pod) => [pod, 'present' as const]));
  return actual('data', { staged, pods });
}

function storeOn(host: Host, layout: Layout, form: RecordForm): RecordStore {
  return createRecords({ form, host, layout, log: { warn: (event) => assert.fail(event) } });
}

async function recordsOn(
  t: TestContext,
  mountOn: (t: TestContext, target: AbsolutePath) => void,
  form: RecordForm,
) {
  const target = below(scratchDirectory(t), 'state');
  mkdirSync(target);
  mountOn(t, target);
  const host = await realHost(t);
  const layout = createLayout(target);
  const records = storeOn(host, layout, form);
  value(await records.load());
  value(await records.takeOver());
  value(await records.saveWithRoom(standing(PODS.length, 'present')));
  fill(join(target, 'filled'));
  run('sync', '--file-system', target);
  return { host, layout, records };
}

const IN_PLACE = {
  tmpfs: mountTmpfs,
  ext4: onImage(16, 'mkfs.ext4', ['-q', '-N', '256']),
  'ext4 with its data in the journal': onImage(16, 'mkfs.ext4', ['-q', '-N', '256'], ['-o', 'data=journal']),
  xfs: onImage(320, 'mkfs.xfs', ['-q']),
} as const;

const IN_FORMS = Object.entries(IN_PLACE).flatMap(([name, mountOn]) =>
  (['files', 'journal'] as const).map((form) => ({ name, mountOn, form })),
);

for (const { name, mountOn, form } of IN_FORMS) {
  test(`MT-08: on a full ${name} every record of the way down is written (${form}), and nothing climbs without room`, {
    skip,
  }, async (t) => {
    const { host, layout, records } = await recordsOn(t, mountOn, form);
    for (let left = PODS.length - 1; left >= 0; left -= 1) {
      value(await records.save(standing(left, left === 0 ? 'unsure' : 'present')));
      const { records: found } = value(await storeOn(host, layout, form).load());
      assert.deepEqual(
        found.map(({ publications }) => publications.length),
        [left],
      );
    }
    // More than any room that was bought before.
    const many = Array.from({ length: 400 }, (_, index) => [`pod-${index}`, 'unsure'] as const);
    const other = actual('other', { staged: 'unsure', pods: Object.fromEntries(many) });
    const climbed = await records.saveWithRoom(other);
    assert.equal(climbed.ok || climbed.failure.code, 'record-write');
    value(await records.erase(standing(0, 'unsure').spec.id));
    assert.deepEqual(value(await storeOn(host, layout, form).load()).records, []);
  });
}

test('a file system that never writes in place is full for records too, and says so', { skip }, async (t) => {
  const { host, layout, records } = await recordsOn(t, onImage(114, 'mkfs.btrfs', ['-q']), 'files');
  const saved = await records.save(standing(0, 'unsure'));
  const { records: found, unreadable } = value(await storeOn(host, layout, 'files').load());
  // By chance of its trees there may be room; what was answered is what is there.
  assert.ok(saved.ok || saved.failure.code === 'record-write');
  assert.deepEqual([found.length, unreadable.length], [1, 0]);
  if (saved.ok) assert.equal(found[0]?.staged, 'unsure');
  t.diagnostic(saved.ok ? 'there was room' : saved.failure.message);
});

test('on a full disk an agent has its lock, and nobody who went before is named as who has it', {
  skip,
}, async (t) => {
  const target = below(scratchDirectory(t), 'state');
  mkdirSync(target);
  IN_PLACE.ext4(t, target);
  const [old, fresh] = [below(target, 'old.lock'), below(target, 'fresh.lock')];
  // A start that a kill or a power cut ended has left it without a block.
  writeFileSync(fresh, '');
  writeFileSync(old, '99999999\n');
  fill(join(target, 'filled'));
  run('sync', '--file-system', target);
  const inOld = value(await takeInstanceLock(old));
  assert.equal(readFileSync(old, 'utf8').trim(), String(process.pid));
  const inFresh = value(await takeInstanceLock(fresh));
  const second = await takeInstanceLock(fresh);
  assert.deepEqual(!second.ok && [second.failure.code, second.failure.blocker], [
    'already-running',
    undefined,
  ]);
  assert.equal(value(await instanceLockHolder(fresh)), 'an agent that could not write its pid');
  for (const lock of [inOld, inFresh]) lock.release();
});
