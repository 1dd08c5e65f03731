/** Events against a store as an API server has it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEventReporter } from '../../../agent/event/event-reporter.ts';
import type { EventView } from '../../../agent/event/volume-event.ts';
import type { UnresolvedVolume } from '../../../reconciler/model/desired-state.ts';
import { ApiStore, type Json, refusal } from '../../kubernetes/api/api-store.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../kubernetes/api/store-transport.ts';
import { podUid } from '../manifests.ts';
import * as node from '../status-fixture.ts';

const ORIGIN = 'https://store.test:6443 node n1';
const EVENTS = '/api/v1/namespaces/default/events';
const MINUTE_MS = 60_000;

const CART = { ...node.WEB, uid: podUid('uid-cart'), namespace: 'shop', name: 'cart' };
/** Each in a namespace of its own. */
const SHOPS = Array.from({ length: 20 }, (_, index) => ({
  ...CART,
  ...{ uid: podUid(`uid-${index}`), namespace: `shop-${index}` },
}));

function missing(name: string, pod = node.WEB): UnresolvedVolume {
  const message = `Secret ${pod.namespace}/${name} is missing`;
  return { pod, volumeName: name, failure: { code: 'reference-missing', message, effect: 'none' } };
}

function nameOf(event: Json | undefined): string {
  return String((event?.['metadata'] as Json | undefined)?.['name']);
}

function world() {
  const clock = handClock();
  const store = new ApiStore();
  const transport = storeTransport(store, clock);
  const warned: string[] = [];
  const listeners = new Set<() => void>();
  let unresolved: readonly UnresolvedVolume[] = [];
  const view: EventView = {
    reconciler: {
      actual: () => new Map(),
      desired: () => node.desired([], { unresolved }),
      obstacles: () => [],
    },
    desiredObjects: {
      pods: new Map([node.WEB, CART, ...SHOPS].map(({ uid }) => [uid, { origin: ORIGIN }])),
      rejected: [],
    },
  };
  const begin = () => {
    const log = { warn: (event: string) => void warned.push(event) };
    const reporter = createEventReporter({
      ...{ transport, clock, nodeName: 'n1', origin: ORIGIN, component: 'mooring', log },
    });
    reporter.begin({
      view: () => view,
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    });
    return reporter;
  };
  return {
    clock,
    store,
    transport,
    warned,
    begin,
    say(all: readonly UnresolvedVolume[]) {
      unresolved = all;
      for (const listener of listeners) listener();
    },
    events: (path = EVENTS) => ((store.answer('GET', path).body as Json)['items'] ?? []) as readonly Json[],
    writes: () => store.asked.filter((one) => !one.startsWith('GET')).length,
  };
}

test('a trouble becomes an event of its pod within seconds, and a count every five minutes', async () => {
  const { clock, begin, say, events, writes } = world();
  begin();
  say([missing('a')]);
  await clock.go(5_000);
  const [event = {}] = events();
  const { metadata, firstTimestamp, lastTimestamp, ...rest } = event;
  assert.match(nameOf({ metadata }), /^web\.[0-9a-f]{16}$/);
  assert.match(
    `${String(firstTimestamp)} ${String(lastTimestamp)}`,
    /^2026-01-01T00:00:\d\dZ 2026-01-01T00:00:\d\dZ$/,
  );
  assert.deepEqual(rest, {
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web', namespace: 'default', uid: node.WEB.uid },
    type: 'Warning',
    reason: 'FailedMount',
    message: 'volume "a": Secret default/a is missing',
    source: { component: 'mooring', host: 'n1' },
    reportingComponent: 'mooring',
    reportingInstance: 'n1',
    count: 1,
  });
  await clock.go(11 * MINUTE_MS);
  assert.deepEqual([events().length, events()[0]?.['count'], writes()], [1, 3, 3]);
  say([]);
  await clock.go(30 * MINUTE_MS);
  assert.equal(writes(), 3, 'nothing is in the way, and nothing is written');
});

test('another life goes on with the event of the one before, and makes anew what was removed', async () => {
  const { clock, store, begin, say, events } = world();
  const first = begin();
  say([missing('a')]);
  await clock.go(5_000);
  first.stop();
  begin();
  await clock.go(5_000);
  assert.equal(events().length, 1);
  // Kubernetes forgets events after an hour.
  store.remove(EVENTS, nameOf(events()[0]));
  await clock.go(6 * MINUTE_MS);
  assert.deepEqual([events().length, events()[0]?.['count']], [1, 2]);
});

test('what is said while the server is away is said when it is back, and a flood is bounded', async () => {
  const { clock, store, transport, begin, say, events } = world();
  begin();
  transport.cut(true);
  say([missing('a'), missing('b')]);
  await clock.go(2 * MINUTE_MS);
  const asked = store.asked.length;
  transport.cut(false);
  await clock.go(2 * MINUTE_MS);
  assert.equal(events().length, 2);
  assert.ok(store.asked.length - asked <= 4, 'each is written once');
});

test('a lost answer makes no second event, and what is denied is told once and not tried for ever', async () => {
  const { clock, store, transport, warned, begin, say, events, writes } = world();
  begin();
  transport.loseAnswers(true);
  say([missing('a')]);
  await clock.go(3_500);
  transport.loseAnswers(false);
  await clock.go(MINUTE_MS);
  assert.equal(events().length, 1);
  store.instead = (method) => (method === 'GET' ? undefined : refusal(403, 'events is forbidden'));
  const before = writes();
  say([missing('b'), missing('c')]);
  await clock.go(MINUTE_MS);
  assert.equal(writes() - before, 2);
  assert.deepEqual(warned, ['events not written', 'events not written']);
});

test('a namespace whose events the server fails to take, as for a webhook, silences no other', async () => {
  const { clock, store, begin, say, events } = world();
  begin();
  store.instead = (method, path) =>
    method !== 'GET' && path.startsWith(EVENTS) ? refusal(500, 'failed calling webhook') : undefined;
  const theirs = Array.from({ length: 4 }, (_, index) => missing(`data-${index}`));
  say(theirs);
  await clock.go(20 * MINUTE_MS);
  say([...theirs, missing('a', CART)]);
  await clock.go(10_000);
  assert.equal(events('/api/v1/namespaces/shop/events').length, 1);
  say([...theirs, missing('a', CART), missing('b', CART)]);
  await clock.go(10_000);
  assert.equal(events('/api/v1/namespaces/shop/events').length, 2);
  assert.equal(events().length, 0);
  store.instead = () => undefined;
  await clock.go(2 * MINUTE_MS);
  assert.equal(events().length, 4);
});

test('what is told late is told with the time when it stood', async () => {
  const { clock, transport, begin, say, events } = world();
  begin();
  transport.cut(true);
  say([missing('a')]);
  await clock.go(5_000);
  say([]);
  await clock.go(20 * MINUTE_MS);
  transport.cut(false);
  await clock.go(2 * MINUTE_MS);
  const told = events().map(({ firstTimestamp, lastTimestamp }) => [firstTimestamp, lastTimestamp]);
  assert.deepEqual(told, [['2026-01-01T00:00:01Z', '2026-01-01T00:00:03Z']]);
});

test('a server that takes nothing is tried once a minute at last, however many namespaces wait', async () => {
  const { clock, store, begin, say, writes } = world();
  begin();
  store.instead = (method) => (method === 'GET' ? undefined : refusal(500, 'the database is away'));
  say([missing('a'), missing('b'), missing('a', CART)]);
  await clock.go(10 * MINUTE_MS);
  const before = writes();
  await clock.go(10 * MINUTE_MS);
  assert.ok(writes() - before <= 11, `${writes() - before} in ten minutes`);
});

for (const status of [429, 503])
  test(`a server that is too busy (${status}) is asked by no namespace before the next try`, async () => {
    const { clock, store, begin, say, writes } = world();
    begin();
    store.instead = (method) => (method === 'GET' ? undefined : refusal(status, 'too many requests'));
    say([missing('a')]);
    await clock.go(20 * MINUTE_MS);
    const before = writes();
    for (const index of SHOPS.keys()) {
      say([missing('a'), ...SHOPS.slice(0, index + 1).map((pod) => missing('data', pod))]);
      await clock.go(3_000);
    }
    assert.ok(writes() - before <= 2, `${writes() - before} in a minute`);
  });
