/** One object that is read by its name, and a server whose data is set back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNamedObject } from '../../../../agent/source/cluster/named-object.ts';
import { ApiStore, type Json } from '../../../kubernetes/api/api-store.ts';
import { handClock } from '../../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../../kubernetes/api/store-transport.ts';

const VOLUMES = '/api/v1/persistentvolumes';
const SECOND_MS = 1_000;

async function world() {
  const clock = handClock();
  const store = new ApiStore();
  const transport = storeTransport(store, clock);
  const put = (phase: string): Json => store.put(VOLUMES, { metadata: { name: 'pv' }, status: { phase } });
  put('of the backup');
  const backedUp = store.version();
  put('later');
  let changes = 0;
  const one = createNamedObject({
    ...{ transport, clock, random: () => clock.random(), path: `${VOLUMES}/pv` },
    isWaitedFor: () => false,
    onChange: () => {
      changes += 1;
    },
  });
  await clock.settle();
  const phase = (): unknown => {
    const answer = one.answer();
    return answer.kind === 'present' ? (answer.object.value['status'] as Json)['phase'] : answer.kind;
  };
  /** As it was then: `put` makes the version after it. */
  const restore = (): void => {
    store.restore(backedUp - 1, () => false);
    put('of the backup');
  };
  return { clock, store, one, put, phase, restore, changes: () => changes };
}

const reads = ({ asked }: ApiStore): number => asked.filter((one) => one.startsWith('GET')).length;

test('an older answer is not believed, until a minute of them has come', async () => {
  const { clock, store, one, phase, restore, changes } = await world();
  assert.equal(phase(), 'later');
  restore();
  one.read();
  await clock.go(30 * SECOND_MS);
  assert.equal(phase(), 'later');
  const before = changes();
  await clock.go(90 * SECOND_MS);
  assert.equal(phase(), 'of the backup');
  assert.ok(changes() > before);
  assert.ok(reads(store) <= 20, `${reads(store)} reads`);
});

test('another object of its name that was there before is not believed either, until a minute of it', async () => {
  const { clock, store, one, put, phase } = await world();
  const before = store.get(VOLUMES, 'pv');
  store.remove(VOLUMES, 'pv');
  put('made anew');
  one.read();
  await clock.settle();
  assert.equal(phase(), 'made anew');
  store.instead = () => ({ status: 200, body: before });
  one.read();
  await clock.go(30 * SECOND_MS);
  assert.equal(phase(), 'made anew');
  await clock.go(90 * SECOND_MS);
  assert.equal(phase(), 'later');
});

test('one that nobody waits for comes to the same, by reads of its own pace', async () => {
  const { clock, store, phase, restore } = await world();
  restore();
  await clock.go(4 * 60 * SECOND_MS);
  assert.equal(phase(), 'of the backup');
  assert.ok(reads(store) <= 5, `${reads(store)} reads`);
});

test('an answer that comes late is no older state of the server, however often that happens', async () => {
  const { clock, store, one, put, phase } = await world();
  for (let time = 0; time < 4; time += 1) {
    const late = store.get(VOLUMES, 'pv') as { metadata: { uid: string; resourceVersion: string } };
    put(`change ${time}`);
    one.read();
    await clock.settle();
    one.learn({ ...late.metadata, value: late });
    assert.equal(phase(), `change ${time}`);
    await clock.go(61 * SECOND_MS);
    one.learn({ ...late.metadata, value: late });
    assert.equal(phase(), `change ${time}`);
    assert.equal(phase(), `change ${time}`);
  }
});

test('who reads now is told that it is older, and of the answer that counts in the end', async () => {
  const { clock, one, phase, restore, changes } = await world();
  restore();
  const answer = await one.readNow();
  assert.equal(answer.kind, 'unknown');
  const before = changes();
  await clock.go(120 * SECOND_MS);
  assert.equal(phase(), 'of the backup');
  assert.ok(changes() > before);
  assert.equal((await one.readNow()).kind, 'present');
});
