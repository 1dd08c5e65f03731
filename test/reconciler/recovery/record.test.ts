import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../../../mount/failure.ts';
import { parseAbsolutePath } from '../../../mount/host.ts';
import { createLayout, sha256Hex } from '../../../plugins/layout/layout.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import {
  formatRecord,
  parseRecord,
  recordOf,
  type VolumeRecord,
} from '../../../reconciler/recovery/record.ts';
import { createRecordStore } from '../../../reconciler/recovery/record-store.ts';
import { type BenchHost, createBenchHost, settled } from '../bench-host.ts';
import { actual, csi } from '../world.ts';

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

test('a record with any byte changed is unreadable or less is believed (RS-14)', () => {
  const [header = '', body = ''] = text.split('\n');
  const wholeBytes = header.length + 1 + body.length + 1;
  for (let position = 0; position < wholeBytes; position += 1) {
    for (const bit of [0x01, 0x20, 0x80]) {
      const bytes = Buffer.from(text, 'latin1');
      bytes[position] = (bytes[position] ?? 0) ^ bit;
      assert.equal(parseRecord(bytes).ok, false, `byte ${position} xor ${bit}`);
    }
  }
  for (const position of [wholeBytes, text.length / 2, text.length - 1]) {
    const bytes = Buffer.from(text, 'latin1');
    bytes[position] = 0;
    const read = parseRecord(bytes);
    assert.ok(read.ok, `byte ${position}`);
    assert.notEqual(position >= text.length / 2 && read.value.staged, 'present');
  }
});

test('a record of a newer version is refused, not guessed at', () => {
  const read = parseRecord(text.replace('mooring-record 2', 'mooring-record 3'));
  assert.ok(!read.ok);
  assert.match(read.failure.message, /version 3/);
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

/** More than fits into the file of a volume with one pod. */
function larger(handle: string): ActualVolume {
  const pods = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`pod-${n}`, 'present' as const]));
  return actual(handle, { staged: 'present', pods });
}

const FULL: Failure = { code: 'disk-full', message: 'no space left on device', effect: 'none' };

async function loaded(host: BenchHost) {
  const found = await createRecordStore(host, layout).load();
  assert.ok(found.ok);
  return found.value;
}

test('on a full disk every record of the way down is written, one after the other (MT-08)', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  const pods = ['a', 'b', 'c'];
  const stands = actual('data', {
    staged: 'present',
    pods: Object.fromEntries(pods.map((pod) => [pod, 'present' as const])),
  });
  assert.ok((await records.saveWithRoom(stands)).ok);
  const [before] = (await loaded(host)).records;
  assert.deepEqual(
    before?.publications.map(({ presence }) => presence),
    ['present', 'present', 'present'],
  );
  host.failWrites = FULL;
  for (let left = pods.length; left >= 0; left -= 1) {
    const kinds = pods.slice(0, left).map((pod) => [pod, 'unsure' as const]);
    const staged = left === 0 ? 'unsure' : 'present';
    const saved = await records.save(actual('data', { staged, pods: Object.fromEntries(kinds) }));
    assert.ok(saved.ok, `${left} pods left`);
    const [record] = (await loaded(host)).records;
    assert.deepEqual([record?.staged, record?.publications.length], [staged, left]);
  }
});

test('a volume does not climb where its record has no room to come down again', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  host.failWrites = FULL;
  const first = await records.saveWithRoom(volume);
  assert.deepEqual([first.ok || first.failure.code, host.files.size], ['record-write', 0]);
  host.failWrites = undefined;
  assert.ok((await records.saveWithRoom(volume)).ok);
  host.failWrites = FULL;
  const grown = await records.saveWithRoom(larger('data'));
  assert.equal(grown.ok || grown.failure.code, 'record-write');
  // What stands is on the disk still, and comes down.
  assert.ok((await records.save(actual('data', { staged: 'unsure' }))).ok);
  host.failWrites = undefined;
  assert.ok((await records.saveWithRoom(larger('data'))).ok);
  assert.equal((await loaded(host)).records[0]?.publications.length, 40);
});

test('a write in place that was cut short leaves the record of before, and nothing of it is sure', async () => {
  for (let cut = 1; cut <= 4_096; cut += 7) {
    const host = createBenchHost();
    const records = createRecordStore(host, layout);
    await records.saveWithRoom(volume);
    const { overwriteFile } = host;
    host.overwriteFile = async (path, offsetBytes, content) => {
      await overwriteFile(path, offsetBytes, content.subarray(0, cut));
      return { ok: false, failure: { code: 'broker-lost', message: '', effect: 'unknown' } };
    };
    await records.save(actual('data', { staged: 'unsure', pods: { other: 'unsure' } }));
    const { records: found, unreadable } = await loaded(host);
    assert.deepEqual([found.length, unreadable.length], [1, 0], `cut at ${cut}`);
    assert.equal(found[0]?.staged, 'unsure', `cut at ${cut}`);
    host.overwriteFile = overwriteFile;
    await records.save(volume);
    assert.equal((await loaded(host)).records[0]?.staged, 'present', `cut at ${cut}`);
  }
});

test('what a replacement without an answer left is read before the next record is written', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  await records.saveWithRoom(volume);
  const { writeFile } = host;
  host.writeFile = async (path, content, options) => {
    await writeFile(path, content, options);
    return { ok: false, failure: { code: 'broker-lost', message: '', effect: 'unknown' } };
  };
  await records.saveWithRoom(larger('data'));
  host.writeFile = async () => ({ ok: false, failure: FULL });
  assert.ok((await records.save(actual('data', { staged: 'unsure' }))).ok);
  const [record] = (await loaded(host)).records;
  assert.deepEqual([record?.staged, record?.publications.length], ['unsure', 0]);
});

test('a record of 0.1 gets room at the start, or it is told that it has none', async () => {
  const body = JSON.stringify(recordOf(volume, 'boot-1'));
  const old = `mooring-record 1 ${sha256Hex(body)}\n${body}\n`;
  const host = createBenchHost();
  const file = `${layout.records}/${sha256Hex(volume.spec.id)}.json`;
  host.files.set(file, old);
  host.failWrites = FULL;
  const full = await loaded(host);
  assert.deepEqual([full.records.length, full.roomless.length, host.files.get(file)], [1, 1, old]);
  host.failWrites = undefined;
  const roomy = await loaded(host);
  assert.deepEqual([roomy.records.length, roomy.roomless.length], [1, 0]);
  host.failWrites = FULL;
  const records = createRecordStore(host, layout);
  await records.load();
  assert.ok((await records.save(actual('data', { staged: 'unsure' }))).ok);
});

test('one unreadable record hides no other', async () => {
  const host = createBenchHost();
  const records = createRecordStore(host, layout);
  await records.save(volume);
  await records.save(actual('other', { staged: 'unsure' }));
  const [first] = host.files.keys();
  host.files.set(first ?? '', '');
  const { records: found, unreadable } = await loaded(host);
  assert.deepEqual([found.length, unreadable.length], [1, 1]);
});

test('saves of one volume that overlap share a write, and the last one wins', async () => {
  const host = createBenchHost();
  let writes = 0;
  const { writeFile, overwriteFile } = host;
  host.writeFile = async (path, content, options) => {
    writes += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return writeFile(path, content, options);
  };
  host.overwriteFile = async (path, offsetBytes, content) => {
    writes += 1;
    return overwriteFile(path, offsetBytes, content);
  };
  const records = createRecordStore(host, layout);
  const saves = ['a', 'b', 'c', 'd'].map((pod) =>
    records.save(actual('data', { staged: 'present', pods: { [pod]: 'unsure' } })),
  );
  await Promise.all(saves);
  assert.equal(writes, 2);
  assert.equal((await loaded(host)).records[0]?.publications[0]?.spec.pod.uid, 'd');
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
  host.failWrites = { code: 'input-output', message: 'sick', effect: 'unknown' };
  await records.save(larger('data'));
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
