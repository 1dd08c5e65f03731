import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClaimDesk } from '../../../agent/claim/claim-desk.ts';
import type { GrowthFacts } from '../../../agent/claim/growth-report.ts';
import { createClusterSource } from '../../../agent/source/cluster/cluster-source.ts';
import { createNodeObject } from '../../../agent/source/cluster/node-object.ts';
import { objectKey } from '../../../kubernetes/objects/objects.ts';
import type { Bytes } from '../../../plugins/volume.ts';
import { ApiStore, type Json } from '../../kubernetes/api/api-store.ts';
import { handClock } from '../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../kubernetes/api/store-transport.ts';
import { EMPTY_NODE } from '../one-source.ts';

const PODS = '/api/v1/namespaces/default/pods';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';
const PATCH = `PATCH ${CLAIMS}/data/status`;
const PROTECTION = 'kubernetes.io/pvc-protection';
const OTHERS = { type: 'Resizing', status: 'True' };

const pod = (name: string): Json => ({
  metadata: { name, namespace: 'default', uid: `uid-${name}` },
  spec: {
    nodeName: 'n1',
    containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
    volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
  },
});

function claim(state: 'kept' | 'deleted' | 'unprotected'): Json {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'data',
      namespace: 'default',
      uid: 'uid-claim',
      annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
      ...(state === 'kept' ? {} : { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      finalizers: state === 'unprotected' ? ['example.com/other'] : [PROTECTION],
    },
    spec: { volumeName: 'pv', accessModes: ['ReadWriteOnce'] },
    status: { conditions: [OTHERS] },
  };
}

const volume: Json = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'd.example.com', volumeHandle: 'h' },
    claimRef: { namespace: 'default', name: 'data', uid: 'uid-claim' },
  },
};

async function world(state: Parameters<typeof claim>[0]) {
  const clock = handClock();
  const store = new ApiStore();
  store.put('/api/v1/nodes', { metadata: { name: 'n1' } });
  store.put(CLAIMS, claim(state));
  store.put(VOLUMES, volume);
  const transport = storeTransport(store, clock);
  const logged: string[] = [];
  const log = { warn: (message: string) => void logged.push(message) };
  const claims = createClaimDesk({ transport, clock, nodeName: 'n1', log });
  const node = createNodeObject({ transport, clock, random: () => clock.random(), nodeName: 'n1' });
  const source = createClusterSource({ host: clock, transport, nodeName: 'n1', node, claims });
  const started = source.start(EMPTY_NODE);
  await clock.go(2_000);
  await started;
  const standing = new Set<string>();
  const listeners = new Set<() => void>();
  let growth: GrowthFacts | undefined;
  claims.begin({
    standing: () => standing,
    growthOf: () => growth,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  const objects = () => source.current().parts.flatMap((part) => part.objects);
  return {
    ...{ clock, store, transport, logged },
    stand(names: readonly string[]) {
      standing.clear();
      for (const name of names) standing.add(name);
      for (const listener of listeners) listener();
    },
    grow(facts: GrowthFacts | undefined) {
      growth = facts;
      for (const listener of listeners) listener();
    },
    shown: () => objects().flatMap((one) => (one.kind === 'Pod' ? [one.reference.name] : [])),
    isLeaving: () =>
      objects().flatMap((one) => (one.kind === 'PersistentVolumeClaim' ? [one.leaving] : []))[0],
    said: () => source.current().parts.flatMap(({ rejected }) => rejected.map(({ message }) => message)),
    writes: () => store.asked.filter((one) => one === PATCH).length,
    conditions: () => {
      const { conditions = [] } = (store.get(CLAIMS, 'data')?.['status'] ?? {}) as { conditions?: Json[] };
      return conditions;
    },
  };
}

const types = (conditions: readonly Json[]): readonly unknown[] => conditions.map(({ type }) => type);

function versionOf(object: Json | undefined): unknown {
  const { resourceVersion } = (object?.['metadata'] ?? {}) as Json;
  return resourceVersion;
}

test('a claim that is not being deleted is not written', async () => {
  const { clock, store, shown, writes } = await world('kept');
  store.put(PODS, pod('web'));
  await clock.go(2_000);
  assert.deepEqual([shown(), writes()], [['web'], 0]);
});

test('one that is deleted and held back is written to before its pod is shown; what was decided fails', async () => {
  const { clock, store, shown, isLeaving, writes, conditions } = await world('deleted');
  const read = versionOf(store.get(CLAIMS, 'data'));
  store.put(PODS, pod('web'));
  await clock.go(2_000);
  assert.deepEqual([shown(), isLeaving(), writes()], [['web'], false, 1]);
  // The controller had read the claim, and looked for pods, before ours was there.
  const removal = store.answer('PATCH', `${CLAIMS}/data`, {
    metadata: { resourceVersion: read, finalizers: [] },
  });
  assert.equal(removal.status, 409);
  assert.deepEqual(types(conditions()), ['Resizing', 'mooring.dev/InUse']);
  const [, mark] = conditions();
  assert.deepEqual([mark?.['status'], mark?.['reason']], ['True', 'n1']);
  // Once for each pod: the next one may have been bound after the next look for pods.
  store.put(PODS, pod('second'));
  await clock.go(10_000);
  assert.deepEqual([shown().sort(), writes()], [['second', 'web'], 2]);
  await clock.go(300_000);
  assert.equal(writes(), 2);
});

test('a protection that is taken away between the read and the write is seen, and nothing is begun', async () => {
  const { clock, store, shown, isLeaving, conditions } = await world('deleted');
  store.instead = (method) => {
    if (method !== 'PATCH') return undefined;
    store.instead = () => undefined;
    store.put(CLAIMS, claim('unprotected'));
    return undefined;
  };
  store.put(PODS, pod('web'));
  await clock.go(10_000);
  // It is shown with a claim that counts as gone.
  assert.deepEqual([shown(), isLeaving()], [['web'], true]);
  assert.deepEqual(types(conditions()), ['Resizing']);
});

test('a claim that is gone before the write is missing', async () => {
  const { clock, store, shown, isLeaving } = await world('deleted');
  store.instead = (method) => {
    if (method === 'PATCH') store.remove(CLAIMS, 'data');
    return undefined;
  };
  store.put(PODS, pod('web'));
  await clock.go(10_000);
  assert.deepEqual([shown(), isLeaving()], [['web'], undefined]);
});

test('while the server does not take the write the pod waits, and it is said why', async () => {
  const { clock, store, shown, said, logged } = await world('deleted');
  store.denied.add(`${CLAIMS}/data/status`);
  store.put(PODS, pod('web'));
  await clock.go(120_000);
  assert.deepEqual(shown(), []);
  assert.match(
    said().join('\n'),
    /waits for PersistentVolumeClaim default\/data: .*does not take.* patch persistentvolumeclaims\/status/,
  );
  assert.deepEqual(logged, ['claim not written']);
  store.denied.clear();
  await clock.go(75_000);
  assert.deepEqual(shown(), ['web']);
});

test('a pod waits while its claim is not written after all, and it is said why', async () => {
  const { clock, store, shown, said, writes, conditions } = await world('deleted');
  // An admission webhook takes out what it does not know: the write is well, and makes no version.
  store.instead = (method) =>
    method === 'PATCH' ? { status: 200, body: store.get(CLAIMS, 'data') } : undefined;
  store.put(PODS, pod('web'));
  await clock.go(120_000);
  assert.deepEqual(shown(), []);
  assert.match(
    said().join('\n'),
    /waits for PersistentVolumeClaim default\/data: .*does not take.*keeps the claim as it was.*webhook/,
  );
  assert.ok(writes() < 20, `${writes()} writes`);
  store.instead = () => undefined;
  await clock.go(75_000);
  assert.deepEqual([shown(), types(conditions())], [['web'], ['Resizing', 'mooring.dev/InUse']]);
});

test('a write whose answer is lost is made again', async () => {
  const { clock, store, transport, shown, conditions } = await world('deleted');
  transport.loseAnswers(true);
  store.put(PODS, pod('web'));
  await clock.go(3_000);
  assert.deepEqual([shown(), types(conditions())], [[], ['Resizing', 'mooring.dev/InUse']]);
  transport.loseAnswers(false);
  await clock.go(60_000);
  assert.deepEqual(shown(), ['web']);
});

test('the mark goes with the last place here, and other conditions stay', async () => {
  const { clock, store, stand, conditions, writes } = await world('deleted');
  store.put(PODS, pod('web'));
  await clock.go(2_000);
  stand(['pv']);
  store.put(PODS, { ...pod('web'), status: { phase: 'Succeeded' } });
  await clock.go(2_000);
  assert.deepEqual(types(conditions()), ['Resizing', 'mooring.dev/InUse']);
  stand([]);
  await clock.go(2_000);
  assert.deepEqual([conditions(), writes()], [[OTHERS], 2]);
});

test('a mark that may not be taken away any more, because the pod is gone, goes with the claim', async () => {
  const { clock, store, stand, writes } = await world('deleted');
  store.put(PODS, pod('web'));
  await clock.go(2_000);
  stand(['pv']);
  store.remove(PODS, 'web');
  await clock.go(2_000);
  stand([]);
  await clock.go(600_000);
  assert.equal(writes(), 1);
});

const GROWN: GrowthFacts = {
  wantedBytes: '2048' as Bytes,
  hasBytes: '2048' as Bytes,
  held: undefined,
  hasBegun: true,
  refused: undefined,
  failure: undefined,
};

function growing(): Json {
  const status = {
    capacity: { storage: '1Ki' },
    allocatedResources: { storage: '2Ki' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
    conditions: [{ type: 'FileSystemResizePending', status: 'True' }, { type: 'Kept' }],
  };
  return { ...claim('kept'), status };
}

function statusIn(store: ApiStore): Readonly<Record<string, Json>> {
  return (store.get(CLAIMS, 'data')?.['status'] ?? {}) as Readonly<Record<string, Json>>;
}

test('a claim is told that its volume grows, and that it has grown, once each', async () => {
  const { clock, store, grow, writes } = await world('kept');
  store.put(CLAIMS, growing());
  store.put(PODS, pod('web'));
  grow({ ...GROWN, hasBytes: '1024' as Bytes });
  await clock.go(2_000);
  assert.deepEqual(statusIn(store)['allocatedResourceStatuses'], { storage: 'NodeResizeInProgress' });
  grow(GROWN);
  await clock.go(2_000);
  assert.deepEqual(statusIn(store)['capacity'], { storage: '2Ki' });
  assert.deepEqual(statusIn(store)['allocatedResourceStatuses'], {});
  assert.deepEqual(statusIn(store)['conditions'], [{ type: 'Kept' }]);
  await clock.go(600_000);
  assert.equal(writes(), 2);
});

test('what another writer has written meanwhile stays, and the report is made for that', async () => {
  const { clock, store, grow } = await world('kept');
  store.put(CLAIMS, growing());
  store.put(PODS, pod('web'));
  store.instead = (method) => {
    if (method !== 'PATCH') return undefined;
    store.instead = () => undefined;
    const status = { ...(growing()['status'] as Json), conditions: [{ type: 'Another' }] };
    store.put(CLAIMS, { ...growing(), status });
    return undefined;
  };
  grow(GROWN);
  await clock.go(5_000);
  const { capacity, conditions } = statusIn(store);
  assert.deepEqual([capacity, conditions], [{ storage: '2Ki' }, [{ type: 'Another' }]]);
});

test('a claim of a restored backup, older than it was seen, is told of its growth all the same', async () => {
  const { clock, store, grow, writes } = await world('kept');
  const backedUp = store.version();
  store.put(CLAIMS, claim('kept'));
  store.put(CLAIMS, growing());
  store.put(PODS, pod('web'));
  await clock.go(2_000);
  store.restore(backedUp, () => false);
  store.put(CLAIMS, growing());
  grow(GROWN);
  await clock.go(5_000);
  assert.deepEqual(statusIn(store)['capacity'], { storage: '2Ki' });
  await clock.go(600_000);
  assert.ok(writes() <= 3, `${writes()} writes`);
});

test('a report that the server does not take is told, and tried less and less often', async () => {
  const { clock, store, grow, writes, logged, shown } = await world('kept');
  store.put(CLAIMS, growing());
  store.put(PODS, pod('web'));
  store.denied.add(`${CLAIMS}/data/status`);
  grow(GROWN);
  await clock.go(600_000);
  assert.deepEqual([logged, shown()], [['claim not written'], ['web']]);
  assert.ok(writes() < 25, `${writes()} writes`);
  store.denied.clear();
  await clock.go(61_000);
  assert.deepEqual(statusIn(store)['capacity'], { storage: '2Ki' });
});

test('a status that the server does not keep is not written at the pace of its answers', async () => {
  const { clock, store, grow, writes } = await world('kept');
  store.put(CLAIMS, growing());
  store.put(PODS, pod('web'));
  store.instead = (method) =>
    method === 'PATCH' ? { status: 200, body: store.get(CLAIMS, 'data') } : undefined;
  grow(GROWN);
  await clock.go(600_000);
  assert.ok(writes() < 25, `${writes()} writes`);
});

test('what stands is put together once for all claims that are looked at', async () => {
  const clock = handClock();
  const transport = storeTransport(new ApiStore(), clock);
  const claims = createClaimDesk({ transport, clock, nodeName: 'n1', log: { warn: () => {} } });
  let asked = 0;
  const standing = (): ReadonlySet<string> => {
    asked += 1;
    return new Set(['pv']);
  };
  claims.begin({ standing, growthOf: () => undefined, onChange: () => () => {} });
  const seen = Array.from({ length: 100 }, (_, index) => {
    const metadata = {
      name: `data-${index}`,
      namespace: 'default',
      uid: `uid-${index}`,
      resourceVersion: '1',
    };
    const object = {
      uid: metadata.uid,
      resourceVersion: '1',
      value: { metadata, spec: { volumeName: 'pv' } },
    };
    return { reference: { namespace: 'default', name: metadata.name }, object };
  });
  const ended = new Set(seen.map(({ reference }) => objectKey(reference)));
  claims.keep({ seen, led: new Set(), ended });
  await clock.go(100);
  assert.equal(asked, 1);
  claims.stop();
});
