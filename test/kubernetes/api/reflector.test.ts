import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiFail } from '../../../kubernetes/api/api-failure.ts';
import { createReflector } from '../../../kubernetes/api/reflector.ts';
import { createListReader } from '../../../kubernetes/api/read-list.ts';
import { podsOfNode } from '../../../kubernetes/api/resource-path.ts';
import { ApiStore, refusal } from './api-store.ts';
import { handClock } from './hand-clock.ts';
import { storeTransport } from './store-transport.ts';

const PODS = '/api/v1/namespaces/default/pods';
const pod = (name: string, nodeName = 'n1', annotations = {}) => ({
  metadata: { name, namespace: 'default', annotations },
  spec: { nodeName },
});
/** As many bytes as all annotations of an object may have, but for their names. */
const LARGE = { note: 'a'.repeat(262_000) };

function world() {
  const clock = handClock();
  const store = new ApiStore();
  const transport = storeTransport(store, clock);
  let changes = 0;
  const reflector = createReflector({
    transport,
    clock,
    random: clock.random,
    selection: podsOfNode('n1'),
    onChange: () => (changes += 1),
  });
  const names = () =>
    [...(reflector.current().objects?.values() ?? [])]
      .map(({ value }) => (value['metadata'] as { name: string }).name)
      .sort();
  return { clock, store, transport, reflector, names, changes: () => changes };
}

const lists = ({ asked }: ApiStore): number => asked.filter((one) => one.startsWith('GET')).length;
const watches = ({ asked }: ApiStore): number => asked.filter((one) => one.startsWith('WATCH')).length;

test('it lists what is selected and then hears changes, with the kind that lists leave out', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  store.put(PODS, pod('other', 'n2'));
  reflector.start();
  assert.equal(reflector.current().objects, undefined);
  await clock.settle();
  assert.deepEqual(names(), ['a']);
  store.put(PODS, pod('b'));
  store.remove(PODS, 'a');
  await clock.settle();
  assert.deepEqual(names(), ['b']);
  assert.deepEqual(
    [...(reflector.current().objects?.values() ?? [])].map(({ value }) => value['kind']),
    ['Pod'],
  );
  assert.deepEqual([lists(store), watches(store)], [1, 1]);
});

test('a list is consistent, and read in pages', async () => {
  const { clock, store, reflector, names } = world();
  store.pageObjectsMax = 2;
  for (const name of ['a', 'b', 'c', 'd', 'e']) store.put(PODS, pod(name));
  reflector.start();
  await clock.settle();
  assert.deepEqual(names(), ['a', 'b', 'c', 'd', 'e']);
  assert.equal(lists(store), 3);
  assert.ok(store.asked.every((one) => !one.startsWith('GET') || !one.includes('resourceVersion')));
});

test('a list that never comes to its end is given up, and told', async () => {
  const { clock, store, transport } = world();
  const bound = 5_000;
  store.instead = () =>
    lists(store) > bound
      ? refusal(500, 'asked for ever')
      : { status: 200, body: { metadata: { resourceVersion: '7', continue: 'more' }, items: [] } };
  const listed = await createListReader({ transport, clock, selection: podsOfNode('n1') }).read();
  assert.deepEqual(!listed.ok && listed.failure.code, 'too-large');
  assert.ok(lists(store) < bound, `${lists(store)} requests`);
});

test('one object that no page holds is told, and costs one request when it is asked for again', async () => {
  const { clock, transport } = world();
  let asked = 0;
  const request = async () => {
    asked += 1;
    return apiFail('too-large', 'the answer is too large');
  };
  const lists = createListReader({
    transport: { ...transport, request },
    clock,
    selection: podsOfNode('n1'),
  });
  for (const expected of [9, 10]) {
    const listed = await lists.read();
    assert.deepEqual([!listed.ok && listed.failure.code, asked], ['too-large', expected]);
  }
});

test('a list whose pages are too large is read in smaller ones, as long as it has more than one', async () => {
  const { clock, store, reflector, names } = world();
  const all = Array.from({ length: 65 }, (_, index) => `p${index}`);
  for (const name of all) store.put(PODS, pod(name, 'n1', LARGE));
  const limits = () =>
    store.asked
      .splice(0)
      .flatMap((one) => (one.startsWith('GET') ? Number(/limit=(\d+)/.exec(one)?.[1]) : []));
  reflector.start();
  await clock.go(60_000);
  assert.deepEqual([names().length, reflector.current().trouble], [65, undefined]);
  assert.deepEqual(limits(), [500, 250, 125, 62, 62]);
  reflector.relist();
  await clock.go(1_000);
  assert.deepEqual([names().length, limits()], [65, [62, 62]]);
  for (const name of all.slice(0, 10)) store.remove(PODS, name);
  for (const expected of [62, 500]) {
    reflector.relist();
    await clock.go(1_000);
    assert.deepEqual([names().length, limits()], [55, [expected]]);
  }
});

test('what is too large for a line of the watch is read in a list, and the watch goes on behind it', async () => {
  const { clock, store, reflector, names } = world();
  reflector.start();
  await clock.settle();
  store.put(PODS, pod('large', 'n1', { note: 'a'.repeat(5_000_000) }));
  await clock.go(30_000);
  assert.deepEqual([names(), reflector.current().trouble], [['large'], undefined]);
  const before = lists(store);
  store.put(PODS, pod('small'));
  await clock.settle();
  assert.deepEqual([names(), lists(store)], [['large', 'small'], before]);
});

test('after 410 it lists again, tells what is gone, and the gap itself removes nothing', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  store.put(PODS, pod('b'));
  reflector.start();
  await clock.settle();
  store.endWatches();
  store.remove(PODS, 'a');
  store.compact();
  await clock.settle();
  assert.deepEqual(names(), ['a', 'b']);
  await clock.go(3_000);
  assert.deepEqual(names(), ['b']);
  assert.equal(reflector.current().droppedByList.size, 1);
  assert.equal(reflector.current().trouble, undefined);
});

test('a storm of 410 costs one list a second', async () => {
  const { clock, store, reflector } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.settle();
  for (let turn = 0; turn < 50; turn += 1) {
    store.compact();
    await clock.go(100);
  }
  assert.ok(lists(store) <= 7, `${lists(store)} lists in 5 s`);
});

test('what it knows stays while nothing comes through, and the trouble ends with the next watch', async () => {
  const { clock, store, transport, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.settle();
  transport.cut(true);
  store.remove(PODS, 'a');
  await clock.go(60_000);
  assert.deepEqual(names(), ['a']);
  assert.equal(reflector.current().trouble?.failure.code, 'unreachable');
  transport.cut(false);
  await clock.go(31_000);
  assert.equal(reflector.current().trouble, undefined);
  assert.deepEqual(names(), []);
});

test('a connection that is cut again and again while it is idle costs nobody a wait', async () => {
  const { clock, store, transport, reflector, names } = world();
  reflector.start();
  await clock.go(1_000);
  const before = lists(store);
  // A balancer in front of the server, by the example of kubeadm's guide: `timeout client 20s`.
  for (let turn = 0; turn < 10; turn += 1) {
    await clock.go(20_000);
    transport.cut(true);
    transport.cut(false);
    store.put(PODS, pod(`pod-${turn}`));
    await clock.go(1_000);
    assert.equal(names().length, turn + 1);
    assert.equal(reflector.current().trouble, undefined);
  }
  assert.equal(lists(store), before);
});

test('what is denied is not absent', async () => {
  const { clock, store, reflector } = world();
  store.denied.add('/api/v1/pods');
  reflector.start();
  await clock.go(5_000);
  assert.equal(reflector.current().objects, undefined);
  assert.equal(reflector.current().trouble?.failure.code, 'denied');
});

test('a list from before what was seen is not believed, until two of them at a minute agree', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  store.put(PODS, pod('b'));
  reflector.start();
  await clock.settle();
  store.restore(50, (name) => name === 'a');
  reflector.relist();
  await clock.go(40_000);
  assert.deepEqual(names(), ['a', 'b']);
  assert.match(reflector.current().trouble?.failure.message ?? '', /older state/);
  await clock.go(90_000);
  assert.deepEqual(names(), ['b']);
});

test('a list that takes longer than whoever asks again waits comes to its end, and one more after it', async () => {
  const { clock, store, transport, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.go(10_000);
  let [open, most] = [0, 0];
  const { request } = transport;
  transport.request = async (one) => {
    open += 1;
    most = Math.max(most, open);
    const answered = await request(one);
    await new Promise<void>((resolve) => clock.timer(7_000, resolve));
    open -= 1;
    return answered;
  };
  const before = lists(store);
  for (let second = 0; second < 12; second += 5) {
    reflector.relist();
    await clock.go(5_000);
  }
  store.put(PODS, pod('b'));
  await clock.go(30_000);
  assert.deepEqual(names(), ['a', 'b']);
  assert.deepEqual([most, lists(store) - before, watches(store)], [1, 3, 2]);
});

/** Two pods were followed; the backup that was restored while nobody listened has the first alone. */
async function restoredWorld() {
  const made = world();
  const { clock, store, transport, reflector } = made;
  store.put(PODS, pod('a'));
  store.put(PODS, pod('b'));
  reflector.start();
  await clock.settle();
  transport.cut(true);
  store.restore(50, (name) => name === 'a');
  await clock.go(1_000);
  transport.cut(false);
  return made;
}

test('a backup that was restored is noticed, though the watch is taken and silent', async () => {
  const { clock, store, reflector, names } = await restoredWorld();
  await clock.go(30_000);
  store.put(PODS, pod('c'));
  await clock.go(130_000);
  assert.deepEqual(names(), ['a', 'b']);
  assert.match(reflector.current().trouble?.failure.message ?? '', /older state/);
  await clock.go(120_000);
  assert.deepEqual(names(), ['b', 'c']);
  assert.equal(reflector.current().trouble, undefined);
  store.put(PODS, pod('d'));
  await clock.settle();
  assert.deepEqual(names(), ['b', 'c', 'd']);
});

test('a backup that was restored is noticed, though each watch is cut before it is silent for long', async () => {
  const { clock, store, transport, reflector, names } = await restoredWorld();
  store.put(PODS, pod('c'));
  // By the example of kubeadm's guide: `timeout client 20s`. No bookmark comes as soon as that.
  for (let turn = 0; turn < 20; turn += 1) {
    await clock.go(20_000);
    transport.cut(true);
    transport.cut(false);
  }
  assert.deepEqual(names(), ['b', 'c']);
  assert.equal(reflector.current().trouble, undefined);
});

test('what is heard of each watch is no silence, however short it is open', async () => {
  const { clock, store, transport, reflector } = world();
  reflector.start();
  await clock.go(1_000);
  for (let turn = 0; turn < 20; turn += 1) {
    await clock.go(20_000);
    store.put(PODS, pod('a'));
    await clock.settle();
    transport.cut(true);
    transport.cut(false);
  }
  assert.equal(lists(store), 1);
});

test('a server that was away for long is watched on from where it was left, without a list', async () => {
  const { clock, store, transport, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.settle();
  transport.cut(true);
  store.put(PODS, pod('b'));
  await clock.go(600_000);
  transport.cut(false);
  await clock.go(31_000);
  assert.deepEqual(names(), ['a', 'b']);
  assert.equal(lists(store), 1);
});

test('a watch whose lines are held back is noticed by a list, and costs none while bookmarks come', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  for (let minute = 0; minute < 5; minute += 1) {
    await clock.go(60_000);
    store.bookmark();
  }
  assert.deepEqual([lists(store), watches(store)], [1, 1]);
  store.isMute = true;
  store.put(PODS, pod('b'));
  await clock.go(151_000);
  assert.deepEqual(names(), ['a', 'b']);
  await clock.go(600_000);
  assert.ok(lists(store) <= 6, `${lists(store)} lists`);
});

test('a watch that tells of an older state is a reason to list', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.settle();
  store.restore(10, () => false);
  store.put(PODS, pod('b'));
  await clock.go(2_000);
  assert.match(reflector.current().trouble?.failure.message ?? '', /older state/);
  assert.deepEqual(names(), ['a']);
  await clock.go(120_000);
  assert.deepEqual(names(), ['a', 'b']);
});

test('an event that is older than what is held changes nothing', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.settle();
  const later = store.put(PODS, pod('b'));
  await clock.settle();
  store.restore(10, () => false);
  store.remove(PODS, String((later['metadata'] as { name: string }).name));
  await clock.settle();
  assert.deepEqual(names(), ['a', 'b']);
});

test('the word of the server on when to ask again is kept', async () => {
  const { clock, store, reflector } = world();
  store.instead = () => ({ ...refusal(429, 'slow down'), retryAfter: '20' });
  reflector.start();
  await clock.go(19_000);
  assert.equal(lists(store), 1);
  store.instead = () => undefined;
  await clock.go(2_000);
  assert.equal(lists(store), 2);
  assert.notEqual(reflector.current().objects, undefined);
});

test('a server whose cache lags is asked again for the same, without a list', async () => {
  const { clock, store, reflector, names } = world();
  store.put(PODS, pod('a'));
  reflector.start();
  await clock.settle();
  store.instead = (method) => (method === 'WATCH' ? refusal(504, 'Too large resource version') : undefined);
  store.endWatches();
  await clock.go(10_000);
  store.instead = () => undefined;
  await clock.go(31_000);
  assert.equal(lists(store), 1);
  assert.deepEqual(names(), ['a']);
  assert.equal(reflector.current().trouble, undefined);
});

test('where a watch ends with the same failure at one version, a list leads past it', async () => {
  const { clock, store, transport } = world();
  store.put(PODS, pod('a'));
  let spoilt = 0;
  // An object that the server cannot decode any more: so it says of each watch that would have to tell it.
  const line = {
    type: 'ERROR',
    object: { kind: 'Status', code: 500, message: 'unable to decode watch event' },
  };
  const watch: typeof transport.watch = (request, listener) => {
    const from = Number(/resourceVersion=(\d+)/.exec(request.path)?.[1]);
    const opened = (): void => {
      listener.opened();
      if (from < spoilt) listener.line(line);
    };
    return transport.watch(request, { ...listener, opened });
  };
  const reflector = createReflector({
    ...{ transport: { ...transport, watch }, clock, random: clock.random, onChange: () => {} },
    selection: podsOfNode('n1'),
  });
  reflector.start();
  await clock.settle();
  store.put(PODS, pod('b'));
  await clock.settle();
  spoilt = store.version() + 1;
  store.endWatches();
  store.put(PODS, pod('c'));
  await clock.go(120_000);
  assert.equal(reflector.current().objects?.size, 3);
  assert.equal(reflector.current().trouble, undefined);
  assert.equal(lists(store), 2);
});

test('a stream without a sign for longer than bookmarks take is opened anew', async () => {
  const { clock, store, reflector } = world();
  reflector.start();
  await clock.go(100_000);
  store.bookmark();
  await clock.go(100_000);
  assert.equal(watches(store), 1);
  await clock.go(60_000);
  assert.equal(watches(store), 2);
  reflector.stop();
  await clock.go(600_000);
  assert.equal(watches(store), 2);
});
