import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAbsolutePath } from '../../mount/host.ts';
import { createLayout } from '../../plugins/layout.ts';
import {
  createRecordStore,
  formatRecord,
  parseRecord,
  recordOf,
  type VolumeRecord,
} from '../../reconciler/record.ts';
import { createBenchHost, settled } from './bench-host.ts';
import { actual, csi } from './world.ts';

const root = parseAbsolutePath('/state');
assert.ok(root);
const layout = createLayout(root);
const volume = actual('data', { staged: 'present', pods: { web: 'unsure' } });
const text = formatRecord(recordOf(volume, 'boot-1'));

test('a record reads back as it was written', () => {
  const read = parseRecord(text);
  assert.ok(read.ok);
  assert.deepEqual(formatRecord(read.value), text);
});

test('a record cut short at any byte is unreadable, never half believed (INV-20)', () => {
  for (let length = 0; length < text.length; length += 1) {
    const read = parseRecord(text.slice(0, length));
    assert.equal(read.ok, false, `cut at ${length}`);
  }
});

test('a record with any byte changed is unreadable or unchanged in meaning (RS-14)', () => {
  for (let position = 0; position < text.length; position += 1) {
    for (const bit of [0x01, 0x20, 0x80]) {
      const bytes = Buffer.from(text, 'latin1');
      bytes[position] = (bytes[position] ?? 0) ^ bit;
      const read = parseRecord(bytes.toString('latin1'));
      assert.equal(read.ok, false, `byte ${position} xor ${bit}`);
    }
  }
});

test('a record of a newer version is refused, not guessed at', () => {
  const read = parseRecord(text.replace('mooring-record 1', 'mooring-record 2'));
  assert.ok(!read.ok);
  assert.match(read.failure.message, /version 2/);
});

test('a record of 0.1, which knew no block volumes and no expansion, is read as it was meant', () => {
  const { sizeBytes: _, refusedExpansion: __, quarantine: ___, ...old } = recordOf(volume, 'boot-1');
  assert.ok(old.spec.kind === 'csi');
  const { mode, lifecycle, fsGroupPolicy, tokensInSecrets, seLinuxContext, ...spec } = old.spec;
  const { expand, ...needs } = old.needs;
  const read = parseRecord(formatRecord({ ...old, spec, needs } as unknown as VolumeRecord));
  assert.ok(read.ok && read.value.spec.kind === 'csi');
  assert.deepEqual([read.value.spec.mode, read.value.needs.expand], ['Filesystem', false]);
  assert.deepEqual([mode, lifecycle, fsGroupPolicy, tokensInSecrets, seLinuxContext, expand].length, 6);
});

test('one unreadable record hides no other', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  await records.save(volume);
  await records.save(actual('other', { staged: 'unsure' }));
  const [first] = host.files.keys();
  host.files.set(first ?? '', '');
  const loaded = await createRecordStore(host, layout).load();
  assert.ok(loaded.ok);
  assert.deepEqual([loaded.value.records.length, loaded.value.unreadable.length], [1, 1]);
});

test('saves of one volume that overlap share a write, and the last one wins', async () => {
  const host = createBenchHost();
  let writes = 0;
  const { writeFile } = host;
  host.writeFile = async (path, content, options) => {
    writes += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return writeFile(path, content, options);
  };
  const records = createRecordStore(host, layout);
  const saves = ['a', 'b', 'c', 'd'].map((pod) =>
    records.save(actual('data', { staged: 'present', pods: { [pod]: 'unsure' } })),
  );
  await Promise.all(saves);
  assert.equal(writes, 2);
  const loaded = await createRecordStore(host, layout).load();
  assert.ok(loaded.ok);
  assert.equal(loaded.value.records[0]?.publications[0]?.spec.pod.uid, 'd');
});

test('an erase behind a save leaves nothing, a save behind an erase leaves the record', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  await Promise.all([records.save(volume), records.erase(csi('data').id)]);
  assert.equal(host.files.size, 0);
  await Promise.all([records.erase(csi('data').id), records.save(volume)]);
  assert.equal(host.files.size, 1);
});

test('saving what is on disk already writes nothing', async () => {
  const host = createBenchHost();
  await createRecordStore(host, layout).save(volume);
  const again = createRecordStore(host, layout);
  await again.load();
  host.failWrites = { code: 'disk-full', message: 'full', effect: 'none' };
  assert.ok((await again.save(volume)).ok);
});

test('an erase that failed is tried again, with what a failed write left', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  await records.save(volume);
  const [file = ''] = host.files.keys();
  host.failWrites = { code: 'disk-full', message: 'full', effect: 'unknown' };
  await records.save(actual('data', { staged: 'unsure' }));
  host.files.set(file.replace(/([^/]+)$/, '.$1.tmp'), 'half');
  const { removeFile } = host;
  host.removeFile = async () => ({
    ok: false,
    failure: { code: 'input-output', message: '', effect: 'none' },
  });
  assert.equal((await records.erase(volume.spec.id)).ok, false);
  host.removeFile = removeFile;
  records.sweep();
  await settled();
  assert.deepEqual([...host.files.keys()], []);
});
