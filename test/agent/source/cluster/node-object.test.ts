/** The Node of this machine where a server's data is set back, and has passed what was seen before anybody asks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNodeObject } from '../../../../agent/source/cluster/node-object.ts';
import { readEnvelope } from '../../../../kubernetes/api/api-object.ts';
import { ApiStore, type Json, type StoredAnswer } from '../../../kubernetes/api/api-store.ts';
import { handClock } from '../../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../../kubernetes/api/store-transport.ts';

const NODES = '/api/v1/nodes';
const SECOND_MS = 1_000;

async function world() {
  const clock = handClock();
  const store = new ApiStore();
  const transport = storeTransport(store, clock);
  const put = (phase: string): Json => store.put(NODES, { metadata: { name: 'n1' }, status: { phase } });
  const before = put('of the backup');
  const backedUp = store.version();
  store.age(20);
  put('later');
  const node = createNodeObject({ transport, clock, random: () => clock.random(), nodeName: 'n1' });
  node.start();
  await clock.go(SECOND_MS);
  const phase = (): unknown => ((node.current()?.value['status'] ?? {}) as Json)['phase'];
  assert.equal(phase(), 'later');
  /** One list has the Node as it was. */
  const lag = (): void => {
    const metadata = { resourceVersion: `${store.version()}` };
    const older: StoredAnswer = { status: 200, body: { kind: 'List', metadata, items: [before] } };
    store.instead = (method, path) => {
      if (method !== 'GET' || !path.startsWith(`${NODES}?`)) return undefined;
      store.instead = () => undefined;
      return older;
    };
  };
  return { clock, store, node, put, phase, backedUp, lag };
}

test('a Node that a list has as it was before is listed again after a minute, and is believed then', async () => {
  const { clock, store, node, put, phase, backedUp } = await world();
  store.restore(backedUp - 1, () => false);
  put('of the backup');
  store.age(40);
  // Somebody's write was refused, and nobody writes again.
  node.doubt();
  await clock.go(59 * SECOND_MS);
  assert.equal(phase(), 'later');
  store.bookmark();
  await clock.go(2 * SECOND_MS);
  assert.equal(phase(), 'of the backup');
  store.asked.splice(0);
  for (let minute = 0; minute < 10; minute += 1) {
    store.bookmark();
    await clock.go(60 * SECOND_MS);
  }
  assert.deepEqual(
    store.asked.filter((one) => one.startsWith('GET')),
    [],
  );
});

test('a list that has the Node as it was before counts no more when one after it has it as it is', async () => {
  const { clock, node, phase, lag } = await world();
  lag();
  node.doubt();
  await clock.go(30 * SECOND_MS);
  node.doubt();
  await clock.go(60 * SECOND_MS);
  lag();
  node.doubt();
  await clock.go(SECOND_MS);
  assert.equal(phase(), 'later');
});

test('a list that was asked for before the Node was read as it is says nothing of what it is', async () => {
  const { clock, store, node, put, phase, lag } = await world();
  lag();
  node.doubt();
  const written = readEnvelope(put('newest'));
  assert.ok(written !== undefined);
  node.learn(written);
  await clock.go(30 * SECOND_MS);
  store.bookmark();
  await clock.go(40 * SECOND_MS);
  lag();
  node.doubt();
  await clock.go(SECOND_MS);
  assert.equal(phase(), 'newest');
});

test('nothing is listed any more once the agent stops', async () => {
  const { clock, store, node, lag } = await world();
  lag();
  node.doubt();
  await clock.go(SECOND_MS);
  node.stop();
  store.asked.splice(0);
  await clock.go(120 * SECOND_MS);
  assert.deepEqual(store.asked, []);
});
