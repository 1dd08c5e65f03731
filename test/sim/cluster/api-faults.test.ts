/** What goes wrong on the way to the simulated API server goes wrong as it does with a real one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiResult } from '../../../kubernetes/api/api-failure.ts';
import { createReflector } from '../../../kubernetes/api/reflector.ts';
import { patchObject } from '../../../kubernetes/api/write-object.ts';
import { createRandom } from '../random.ts';
import { createVirtualTime } from '../virtual-time.ts';
import { type ApiFaults, drawApiFaults, NO_API_FAULTS } from './api-faults.ts';
import { ApiServer } from './api-server.ts';
import { type Json, metadataOf, nameOf, uidOf } from './json-object.ts';
import { ObjectStore } from './object-store.ts';
import { createSimTransport } from './sim-transport.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const GET = { method: 'GET', answerBytesMax: 1_000_000, deadlineMs: 10_000 } as const;
const SELECTION = { path: MAPS, fieldSelector: '', kind: 'ConfigMap', apiVersion: 'v1' };

function makeMap(name: string, value: string): Json {
  return { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, namespace: 'default' }, data: { value } };
}

function makeWorld(first: Partial<ApiFaults>, seed = 1) {
  const random = createRandom(seed);
  const time = createVirtualTime(random.fork());
  const store = new ObjectStore(() => time.nowMs());
  let faults: ApiFaults = { ...NO_API_FAULTS, ...first };
  const shared = { time, faults: () => faults };
  const server = new ApiServer({ ...shared, store, random: random.fork(), forbids: () => undefined });
  const transport = createSimTransport({
    ...{ ...shared, server, random: random.fork() },
    isAway: () => false,
    isAlive: () => true,
  });
  async function go(spanMs: number): Promise<void> {
    const endMs = time.nowMs() + spanMs;
    time.after(spanMs, () => {});
    await time.settle();
    while ((time.nextAtMs() ?? Number.POSITIVE_INFINITY) <= endMs) await time.step();
  }
  async function answerOf<T>(asked: Promise<ApiResult<T>>): Promise<ApiResult<T>> {
    let answer: ApiResult<T> | undefined;
    void asked.then((one) => {
      answer = one;
    });
    while (answer === undefined) await (time.step() ?? time.settle());
    return answer;
  }
  const heal = (): void => {
    faults = NO_API_FAULTS;
    server.catchUp();
  };
  return { random, time, store, server, transport, go, answerOf, heal };
}

type World = ReturnType<typeof makeWorld>;

async function patchIn({ store, transport, answerOf }: World) {
  const stored = store.create(MAPS, makeMap('one', 'old'));
  const before = { uid: uidOf(stored), resourceVersion: String(metadataOf(stored)['resourceVersion']) };
  const patch = { path: `${MAPS}/one`, before, change: { data: { value: 'new' } } };
  const answered = await answerOf(patchObject(transport, patch));
  assert.ok(!answered.ok);
  return answered.failure;
}

const valueIn = ({ store }: World): unknown => store.get(MAPS, 'one')?.['data'];

test('a write whose answer is lost was done, and nobody knows', async () => {
  const world = makeWorld({ requests: { lost: 1 } });
  const { code, effect } = await patchIn(world);
  assert.deepEqual([code, effect, valueIn(world)], ['unreachable', 'unknown', { value: 'new' }]);
});

test('a write that comes late is done after its deadline, and one that hangs never', async () => {
  for (const fate of ['late', 'hung'] as const) {
    const world = makeWorld({ requests: { [fate]: 1 } });
    const { code, effect } = await patchIn(world);
    assert.deepEqual([code, effect, valueIn(world)], ['unreachable', 'unknown', { value: 'old' }]);
    await world.go(60_000);
    assert.deepEqual(valueIn(world), { value: fate === 'late' ? 'new' : 'old' });
  }
});

test('a server that is busy says when to come again, and one that fails may have done it', async () => {
  const busy = makeWorld({ requests: { busy: 1 } });
  const { code, effect, retryAfterMs } = await patchIn(busy);
  assert.deepEqual([code, effect, retryAfterMs], ['busy', 'none', 1_000]);
  assert.deepEqual(valueIn(busy), { value: 'old' });
  for (const fate of ['failed', 'failed-done'] as const) {
    const failing = makeWorld({ requests: { [fate]: 1 } });
    const failure = await patchIn(failing);
    assert.deepEqual([failure.code, failure.effect], ['failed', 'unknown']);
    assert.deepEqual(valueIn(failing), { value: fate === 'failed' ? 'old' : 'new' });
  }
});

test('only who allows it is answered from a cache that lags', async () => {
  const { store, transport, answerOf } = makeWorld({ staleRead: 1 });
  for (let round = 0; round < 20; round += 1) store.create(MAPS, makeMap(`map-${round}`, 'there'));
  const countAt = async (query: string): Promise<number> => {
    const listed = await answerOf(transport.request({ ...GET, path: `${MAPS}${query}` }));
    assert.ok(listed.ok);
    return (listed.value as { readonly items: readonly unknown[] }).items.length;
  };
  for (let round = 0; round < 10; round += 1) assert.equal(await countAt(''), 20);
  const counts = await Promise.all([1, 2, 3, 4, 5].map(() => countAt('?resourceVersion=0')));
  assert.ok(Math.min(...counts) < 20, counts.join());
  const version = store.version - 1;
  for (let round = 0; round < 10; round += 1)
    assert.ok((await countAt(`?resourceVersion=${version}&resourceVersionMatch=NotOlderThan`)) >= 19);
});

test('the rest of a list expires when the history is cut', async () => {
  const { store, server, transport, answerOf } = makeWorld({});
  for (let round = 0; round < 3; round += 1) store.create(MAPS, makeMap(`map-${round}`, 'there'));
  const first = await answerOf(transport.request({ ...GET, path: `${MAPS}?limit=2` }));
  assert.ok(first.ok);
  const { continue: more } = (first.value as { readonly metadata: { readonly continue: string } }).metadata;
  store.create(MAPS, makeMap('another', 'there'));
  server.compact();
  const rest = await answerOf(transport.request({ ...GET, path: `${MAPS}?limit=2&continue=${more}` }));
  assert.equal(!rest.ok && rest.failure.code, 'expired');
});

test('what a reflector shows was so, in this order, and in the end it is what the store has', async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = createRandom(seed + 1_000);
    const world = makeWorld(drawApiFaults(random), seed);
    const { store, server, transport, time, go, heal } = world;
    const past: { readonly shape: string; readonly version: number }[] = [{ shape: '', version: 0 }];
    store.onChange(({ version }) => past.push({ shape: shapeOf(all(world)), version }));
    const wrong: string[] = [];
    let seenVersion = 0;
    const reflector = createReflector({
      ...{ transport, random: () => random.next(), selection: SELECTION },
      clock: { nowMs: () => time.nowMs(), timer: (delayMs, fire) => time.after(delayMs, fire) },
      onChange() {
        const { objects } = reflector.current();
        if (objects === undefined) return;
        const shape = shapeOf([...objects.values()].map(({ value }) => value));
        // What was taken away again makes the same of it as was before.
        const found = past.find((one) => one.shape === shape && one.version >= seenVersion);
        if (found === undefined) wrong.push(`${time.nowMs()}: ${shape}`);
        seenVersion = found?.version ?? seenVersion;
      },
    });
    reflector.start();
    for (let round = 0; round < 60; round += 1) {
      await go(random.between(0, 4_000));
      changeOne(world, random.between(1, 4), `${round}`);
      if (random.chance(0.1)) server.compact();
      if (random.chance(0.1)) server.cutWatches();
      if (random.chance(0.1)) server.endWatches();
    }
    heal();
    await go(200_000);
    assert.deepEqual(wrong, [], `seed ${seed}`);
    const shown = [...(reflector.current().objects?.values() ?? [])].map(({ value }) => value);
    assert.equal(shapeOf(shown), shapeOf(all(world)), `seed ${seed}`);
    reflector.stop();
    assert.equal(server.watches <= 1, true);
  }
});

function all({ store }: World): readonly Json[] {
  return store.list(MAPS).map(([, one]) => one);
}

function changeOne({ store }: World, number: number, value: string): void {
  const name = `map-${number}`;
  if (store.get(MAPS, name) === undefined) store.create(MAPS, makeMap(name, value));
  else if (Number(value) % 3 === 0) store.remove(MAPS, name);
  else store.replace(MAPS, makeMap(name, value));
}

function shapeOf(objects: readonly Json[]): string {
  return objects
    .map((one) => `${nameOf(one)} ${uidOf(one)} ${String(metadataOf(one)['resourceVersion'])}`)
    .sort()
    .join();
}
