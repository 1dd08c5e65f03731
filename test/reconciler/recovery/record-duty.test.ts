/** What is not written down is not begun, and the end of that patience. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, fail, type Result } from '../../../mount/failure.ts';
import type { Operation } from '../../../reconciler/model/operation.ts';
import { createRecordDuty, mayBegin, RECORDLESS_MS } from '../../../reconciler/recovery/record-duty.ts';
import { createBenchHost } from '../bench-host.ts';
import { actual } from '../world.ts';

const begun = actual('data', { staged: 'unsure' });
const UP: Operation = { kind: 'stage', volume: begun.spec.id };
const DOWN: Operation = { kind: 'unstage', volume: begun.spec.id };
const SICK = fail({ code: 'record-write', message: 'sick', effect: 'none' });

function world(maxMs = 120_000) {
  const host = createBenchHost();
  const told: string[] = [];
  const say = (event: string): void => void told.push(event);
  const disk: { room: Result<void>; write: Result<void> } = { room: done, write: done };
  const write = createRecordDuty({
    host,
    mayBegin,
    backOff: { maxMs },
    log: { debug: say, info: say, warn: say, error: say },
    records: {
      save: async () => disk.write,
      saveWithRoom: async () => (disk.write.ok ? disk.room : disk.write),
    },
  });
  const begins = async (operation: Operation) => (await write(operation, begun)).ok;
  return { host, told, disk, begins };
}

test('without room for the way down nothing climbs, and what stands comes down', async () => {
  const { disk, begins, told } = world();
  disk.room = SICK;
  assert.deepEqual([await begins(UP), await begins(DOWN)], [false, true]);
  assert.deepEqual(told, []);
});

test('while no record can be written nothing is taken down, but not for ever, and not silently', async () => {
  const { host, disk, begins, told } = world();
  disk.write = SICK;
  assert.equal(await begins(DOWN), false);
  await host.advance(RECORDLESS_MS - 1);
  assert.equal(await begins(DOWN), false);
  await host.advance(1);
  assert.equal(await begins(UP), false);
  assert.equal(await begins(DOWN), true);
  assert.deepEqual(told, ['taken down by the record of before']);
});

test('patience begins anew with every record that was written, and a climb uses none of it', async () => {
  const { host, disk, begins } = world();
  disk.write = SICK;
  assert.equal(await begins(UP), false);
  await host.advance(RECORDLESS_MS);
  assert.equal(await begins(DOWN), false);
  disk.write = done;
  assert.equal(await begins(DOWN), true);
  disk.write = SICK;
  await host.advance(RECORDLESS_MS);
  assert.equal(await begins(DOWN), false);
});

test('a failure of long ago is no reason: patience begins anew where no record failed meanwhile', async () => {
  const { host, disk, begins, told } = world();
  disk.write = SICK;
  assert.equal(await begins(DOWN), false);
  await host.advance(20 * RECORDLESS_MS);
  assert.equal(await begins(DOWN), false);
  assert.deepEqual(told, []);
  await host.advance(RECORDLESS_MS);
  assert.equal(await begins(DOWN), true);
});

test('tries that are farther apart than that patience, as their back-off may be, are of one row', async () => {
  const maxMs = 2 * RECORDLESS_MS;
  const { host, disk, begins } = world(maxMs);
  disk.write = SICK;
  assert.equal(await begins(DOWN), false);
  await host.advance(1.2 * maxMs);
  assert.equal(await begins(DOWN), true);
});
