/** What an operation taught is written down soon, and who waits for a record that is erased. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done } from '../../../mount/failure.ts';
import type { ActualVolume } from '../../../reconciler/model/actual-state.ts';
import type { RecordStore } from '../../../reconciler/recovery/record-store.ts';
import { createRecordWriter } from '../../../reconciler/recovery/record-writer.ts';
import { createBenchHost, settled } from '../bench-host.ts';
import { actual } from '../world.ts';

for (const gathersErases of [true, false]) {
  const title = gathersErases
    ? 'an erase that is gathered holds nothing but the end'
    : 'an erase that is a file of its own holds its operation';
  test(title, async () => {
    const told: string[] = [];
    const writer = createRecordWriter({
      host: createBenchHost(),
      records: { gathersErases } as RecordStore,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      believed: () => undefined,
      onNoted: () => told.push('noted'),
    });
    let erase: () => void = () => {};
    const erased = new Promise<void>((resolve) => {
      erase = resolve;
    });
    void writer.forget(erased).then(() => told.push('the operation ends'));
    await settled();
    assert.deepEqual(told, gathersErases ? ['the operation ends'] : []);
    // The operation itself is what is under way otherwise.
    assert.deepEqual([writer.idle(), writer.isErasing()], [!gathersErases, gathersErases]);
    erase();
    await settled();
    assert.deepEqual(told, gathersErases ? ['the operation ends', 'noted'] : ['the operation ends']);
    assert.deepEqual([writer.idle(), writer.isErasing()], [true, false]);
  });
}

test('what an operation taught is written though another one of its volume runs longer (seed 136160435)', async () => {
  const host = createBenchHost();
  const saved: string[] = [];
  const volume = actual('shared', { staged: 'present', pods: { 'pod-1': 'present', 'pod-2': 'unsure' } });
  const writer = createRecordWriter({
    host,
    records: {
      async save({ spec }: ActualVolume) {
        saved.push(spec.id);
        return done;
      },
    } as RecordStore,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    believed: () => volume,
    onNoted: () => {},
  });
  await writer.note(volume.spec.id, false);
  await host.advance(100);
  assert.deepEqual(saved, [volume.spec.id]);
});
