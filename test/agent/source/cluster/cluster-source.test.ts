import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClaimDesk } from '../../../../agent/claim/claim-desk.ts';
import { createClusterSource } from '../../../../agent/source/cluster/cluster-source.ts';
import { createNodeObject } from '../../../../agent/source/cluster/node-object.ts';
import { volumeEvents } from '../../../../agent/event/volume-event.ts';
import { createMergedSources } from '../../../../agent/source/merged-sources.ts';
import type { NodeSight } from '../../../../agent/source/objects-source.ts';
import { createRejectionLog } from '../../../../agent/source/rejection-log.ts';
import { createVanishedHold } from '../../../../agent/source/vanished-hold.ts';
import { identityOf } from '../../../../kubernetes/objects/objects.ts';
import type { PublicationSpec } from '../../../../plugins/volume.ts';
import { type ActualPublication, onTheGround, PRESENT } from '../../../../reconciler/model/actual-state.ts';
import { createSlices } from '../../../../mount/process/slices.ts';
import { ApiStore, type Json, refusal } from '../../../kubernetes/api/api-store.ts';
import { handClock } from '../../../kubernetes/api/hand-clock.ts';
import { storeTransport } from '../../../kubernetes/api/store-transport.ts';
import * as node from '../../status-fixture.ts';
import { podUid } from '../../manifests.ts';
import { EMPTY_NODE } from '../../one-source.ts';

const PODS = '/api/v1/namespaces/default/pods';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const SECRETS = '/api/v1/namespaces/default/secrets';
const VOLUMES = '/api/v1/persistentvolumes';
const CSI = {
  driver: 'd.example.com',
  volumeHandle: 'h',
  // A node may read what it needs itself (Node authorizer), and not what whoever attaches the volume does.
  controllerPublishSecretRef: { namespace: 'default', name: 'unused' },
  nodeStageSecretRef: { namespace: 'default', name: 'key' },
};
const MINUTE_MS = 60_000;

function pod(name: string, source: Json = { emptyDir: {} }, more: Json = {}): Json {
  return {
    metadata: { name, namespace: 'default', ...more },
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
      volumes: [{ name: 'v', ...source }],
    },
  };
}

const claim = (more: Json = {}): Json => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name: 'data',
    namespace: 'default',
    annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
    ...more,
  },
  spec: { volumeName: 'pv', accessModes: ['ReadWriteOnce'] },
});

const volume = (claimUid: unknown): Json => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    csi: CSI,
    ...(claimUid === undefined ? {} : { claimRef: { namespace: 'default', name: 'data', uid: claimUid } }),
  },
});

const uidOf = (object: Json): string => (object['metadata'] as { uid: string }).uid;

/** `lookMs`: how long each look at all that is known takes. */
function world({ withNode = true, atStake = false, lookMs = 0 } = {}) {
  const clock = handClock();
  const store = new ApiStore();
  if (withNode) store.put('/api/v1/nodes', { metadata: { name: 'n1' } });
  const transport = storeTransport(store, clock);
  const node = createNodeObject({ transport, clock, random: () => clock.random(), nodeName: 'n1' });
  const log = { warn: () => {} };
  const claims = createClaimDesk({ transport, clock, nodeName: 'n1', log });
  let looks = 0;
  const host = { ...clock, nowMs: () => clock.nowMs() + looks * lookMs };
  const keep: typeof claims.keep = (sight) => {
    looks += 1;
    claims.keep(sight);
  };
  const seen = { ...{ doubt: claims.doubt.bind(claims), onAnswer: claims.onAnswer.bind(claims) }, keep };
  const source = createClusterSource({ host, transport, nodeName: 'n1', node, claims: seen });
  const sight: NodeSight = { ...EMPTY_NODE, stake: () => (atStake ? 'something' : 'nothing') };
  return {
    clock,
    store,
    transport,
    source,
    looks: () => looks,
    /** Settles when it has read, as far as it can. */
    async start() {
      const started = source.start(sight);
      await clock.go(2_000);
      await started;
    },
    shown: () =>
      source
        .current()
        .parts.flatMap(({ objects }) => objects.map(identityOf))
        .sort(),
    frozen: () => source.current().parts.flatMap(({ frozenPods }) => [...frozenPods]),
    waiting: () =>
      source.current().parts.flatMap(({ rejected }) => rejected.flatMap(({ pod: one }) => one ?? [])),
    said: () => source.current().parts.flatMap(({ rejected }) => rejected.map(({ message }) => message)),
  };
}

test('the pods of this node and what they lead to, and nothing else', async () => {
  const { store, start, source, shown } = world();
  store.put(PODS, { ...pod('other'), spec: { ...(pod('other')['spec'] as Json), nodeName: 'n2' } });
  const { metadata } = store.put(CLAIMS, claim());
  store.put(VOLUMES, volume((metadata as { uid: string }).uid));
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' }, data: { a: 'Yg==' } });
  store.put(SECRETS, { metadata: { name: 'unused', namespace: 'default' } });
  store.put(PODS, pod('web', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  assert.equal(source.current().complete, true);
  assert.deepEqual(shown(), [
    'Node n1',
    'PersistentVolume pv',
    'PersistentVolumeClaim default/data',
    'Pod default/web',
    'Secret default/key',
  ]);
  assert.ok(
    !store.asked.some((one) => one.includes('unused') || /(secrets|persistentvolumes)\?limit/.test(one)),
  );
});

test('a pod is shown when each object that it names was answered, and frozen until then', async () => {
  const { clock, store, start, shown, frozen, said, waiting } = world();
  store.denied.add(SECRETS);
  const web = store.put(PODS, pod('web', { secret: { secretName: 'key', optional: true } }));
  await start();
  await clock.go(MINUTE_MS);
  assert.deepEqual(shown(), ['Node n1']);
  assert.deepEqual(frozen(), [uidOf(web)]);
  assert.match(
    said().join('\n'),
    /it waits for Secret default\/key: .* is forbidden \(403\); .*administrator.* list and watch secrets/,
  );
  // Its object is told so by an event, which is found by all three.
  assert.deepEqual(waiting(), [{ namespace: 'default', name: 'web', uid: uidOf(web) }]);
  // That there is none is an answer, too.
  store.denied.delete(SECRETS);
  await clock.go(MINUTE_MS);
  assert.deepEqual(shown(), ['Node n1', 'Pod default/web']);
  assert.deepEqual(frozen(), []);
});

test('a ConfigMap that a path in a volume is made of is read and awaited, and no other one', async () => {
  const { clock, store, start, source, shown, frozen, said } = world();
  const from = (name: string): Json => ({ configMapKeyRef: { name, key: 'part' } });
  const container = {
    name: 'first',
    env: [
      { name: 'PART', valueFrom: from('settings') },
      { name: 'OTHER', valueFrom: from('unused') },
    ],
    volumeMounts: [{ name: 'v', mountPath: '/v', subPathExpr: 'parts/$(PART)' }],
  };
  const settings = (part: string): Json => ({
    metadata: { name: 'settings', namespace: 'default' },
    data: { part },
  });
  store.put(CONFIG_MAPS, settings('a'));
  store.put(CONFIG_MAPS, { metadata: { name: 'unused', namespace: 'default' }, data: { part: 'b' } });
  store.denied.add(CONFIG_MAPS);
  const { spec, ...web } = pod('web');
  const put = store.put(PODS, { ...web, spec: { ...(spec as Json), initContainers: [container] } });
  await start();
  await clock.go(MINUTE_MS);
  assert.deepEqual([shown(), frozen()], [['Node n1'], [uidOf(put)]]);
  assert.match(said().join('\n'), /waits for ConfigMap default\/settings: .*list and watch configmaps/);
  store.denied.delete(CONFIG_MAPS);
  await clock.go(MINUTE_MS);
  assert.deepEqual(shown(), ['ConfigMap default/settings', 'Node n1', 'Pod default/web']);
  store.put(CONFIG_MAPS, settings('b'));
  await clock.go(2_000);
  const parts = source
    .current()
    .parts.flatMap(({ objects }) => objects)
    .flatMap((one) => (one.kind === 'ConfigMap' ? [Buffer.from(one.data.get('part') ?? []).toString()] : []));
  assert.deepEqual(parts, ['b']);
  assert.ok(!store.asked.some((one) => one.includes('unused')));
});

test('what is only being read is not logged as not taken; what the server denies is', async () => {
  const { clock, store, start, source, shown } = world();
  const lines: string[] = [];
  const note = (event: string, facts: object = {}): void =>
    void lines.push(`${event} ${JSON.stringify(facts)}`);
  const log = createRejectionLog({ debug() {}, info: note, warn: note, error() {} });
  source.onChange(() => log.note({ rejected: source.current().parts.flatMap(({ rejected }) => rejected) }));
  store.put(VOLUMES, volume(uidOf(store.put(CLAIMS, claim()))));
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' }, data: { a: 'Yg==' } });
  store.put(PODS, pod('web', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  // Its claim and volume are read once more.
  store.put(PODS, pod('db', { persistentVolumeClaim: { claimName: 'data' } }));
  await clock.go(MINUTE_MS);
  assert.ok(shown().includes('Pod default/web') && shown().includes('Pod default/db'));
  assert.deepEqual(lines, []);
  store.denied.add(CONFIG_MAPS);
  store.put(PODS, pod('late', { configMap: { name: 'settings' } }));
  await clock.go(MINUTE_MS);
  assert.match(lines.join('\n'), /^not taken .*ConfigMap default\/settings.* is forbidden/);
});

test('after a restart nothing has failed to mount for a pod of which all volumes stand', async () => {
  const { store, start, source } = world();
  store.denied.add(SECRETS);
  const running = podUid(String(uidOf(store.put(PODS, pod('web', { secret: { secretName: 'key' } })))));
  await start();
  const rejected = source.current().parts.flatMap((part) => part.rejected);
  const saidWith = (...standing: readonly PublicationSpec[]): number => {
    const known = onTheGround(node.DATA, { attach: false, stage: false, expand: false });
    const places = standing.map((spec) => [
      spec.key,
      { spec, presence: PRESENT, generation: undefined, mount: undefined },
    ]) as [PublicationSpec['key'], ActualPublication][];
    const reconciler = {
      actual: () => new Map([[node.DATA.id, { ...known, publications: new Map(places) }]]),
      desired: () => node.desired([]),
      obstacles: () => [],
    };
    return volumeEvents({ reconciler, desiredObjects: { pods: new Map(), rejected } }, source.name).length;
  };
  assert.equal(saidWith(), 1);
  assert.equal(saidWith(node.publication({ ...node.WEB, uid: running }, 'v')), 0);
  assert.equal(saidWith(node.publication(node.WEB, 'v')), 1);
});

test('an object that is refused is told once, however many pods lead to it', async () => {
  const { store, start, said, frozen } = world();
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' }, data: { a: '%%%' } });
  for (const name of ['web', 'db', 'job']) store.put(PODS, pod(name, { secret: { secretName: 'key' } }));
  await start();
  assert.deepEqual(frozen(), []);
  assert.equal(said().length, 1, said().join('\n'));
  assert.match(said().join(''), /base64/);
});

test('a volume that is denied may be gone, and that is said beside the right', async () => {
  const { clock, store, start, said } = world();
  store.denied.add(VOLUMES);
  store.put(CLAIMS, claim());
  store.put(PODS, pod('web', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  await clock.go(MINUTE_MS);
  const both =
    /persistentvolumes.* is forbidden \(403\); if it stays so, it is gone, or an administrator has to/;
  assert.match(said().join('\n'), both);
});

test('a pod whose objects it may read no more keeps what was read of them', async () => {
  const { clock, store, start, shown } = world();
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' } });
  store.put(PODS, pod('web', { secret: { secretName: 'key' } }));
  await start();
  store.denied.add(SECRETS);
  store.endWatches();
  await clock.go(10 * MINUTE_MS);
  assert.deepEqual(shown(), ['Node n1', 'Pod default/web', 'Secret default/key']);
});

test('a claim is read once more for a pod that is new to it', async () => {
  const { clock, store, start, shown, said } = world();
  const { metadata } = store.put(CLAIMS, claim());
  store.put(VOLUMES, volume((metadata as { uid: string }).uid));
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' } });
  store.put(PODS, pod('first', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  const reads = (): number => store.asked.filter((one) => one === `GET ${CLAIMS}/data`).length;
  assert.equal(reads(), 1);
  store.put(PODS, pod('second', { persistentVolumeClaim: { claimName: 'data' } }));
  await clock.go(2_000);
  assert.equal(reads(), 2);
  assert.ok(shown().includes('Pod default/second'));
  // And of one that cannot be read now nothing new is begun.
  store.denied.add(CLAIMS);
  store.put(PODS, pod('third', { persistentVolumeClaim: { claimName: 'data' } }));
  await clock.go(MINUTE_MS);
  assert.deepEqual(
    shown().filter((one) => one.startsWith('Pod')),
    ['Pod default/first', 'Pod default/second'],
  );
  const text =
    /waits for PersistentVolumeClaim default\/data: .* forbidden \(403\); .*administrator.* get persistentvolumeclaims/;
  assert.match(said().join('\n'), text);
  store.denied.delete(CLAIMS);
  store.instead = (_, path) => (path.startsWith(VOLUMES) ? refusal(500, 'no quorum') : undefined);
  await clock.go(MINUTE_MS);
  assert.match(said().join('\n'), /it waits for .*data: PersistentVolume pv: no quorum \(500\)/);
  store.instead = () => undefined;
  await clock.go(MINUTE_MS);
  assert.ok(shown().includes('Pod default/third'));
  assert.deepEqual(said(), []);
});

test('a server that asks for patience is not asked again for each change of some pod', async () => {
  const { clock, store, start, shown } = world();
  const { metadata } = store.put(CLAIMS, claim());
  store.put(VOLUMES, volume((metadata as { uid: string }).uid));
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' } });
  store.put(PODS, pod('first', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  store.instead = (_, path) =>
    path.startsWith(CLAIMS) ? { ...refusal(429, 'too many requests'), retryAfter: '60' } : undefined;
  const reads = (): number => store.asked.filter((one) => one === `GET ${CLAIMS}/data`).length;
  const before = reads();
  store.put(PODS, pod('second', { persistentVolumeClaim: { claimName: 'data' } }));
  for (let change = 0; change < 50; change += 1) {
    store.put(PODS, pod('other', undefined, { annotations: { change: `${change}` } }));
    await clock.go(1_000);
  }
  assert.ok(reads() - before <= 3, `${reads() - before} reads`);
  store.instead = () => undefined;
  await clock.go(MINUTE_MS);
  assert.ok(shown().includes('Pod default/second'));
});

test('a pod that is new gets the volume as it is by now, not as a pod before it had it', async () => {
  const { clock, store, start, source } = world();
  const claimUid = uidOf(store.put(CLAIMS, claim()));
  const withHandle = (volumeHandle: string): Json => {
    const made = volume(claimUid);
    return { ...made, spec: { ...(made['spec'] as Json), csi: { driver: 'd.example.com', volumeHandle } } };
  };
  store.put(VOLUMES, withHandle('before'));
  store.put(PODS, pod('first', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  store.remove(PODS, 'first');
  await clock.go(2_000);
  // An administrator has it made anew by `kubectl replace --force`: nothing but that changes what it is of.
  store.remove(VOLUMES, 'pv');
  store.put(VOLUMES, withHandle('now'));
  const told: unknown[] = [];
  source.onChange(() => {
    const objects = source.current().parts.flatMap((part) => part.objects);
    if (objects.some((one) => identityOf(one) === 'Pod default/second'))
      told.push(...objects.flatMap((one) => (one.kind === 'PersistentVolume' ? [one.source] : [])));
  });
  store.put(PODS, pod('second', { persistentVolumeClaim: { claimName: 'data' } }));
  await clock.go(2_000);
  assert.ok(told.length > 0);
  assert.deepEqual(
    new Set(told.map((one) => (one as { readonly volumeHandle: string }).volumeHandle)),
    new Set(['now']),
  );
});

test('a pod keeps its volume when a server that lags answers with the claim that had the name before', async () => {
  const { clock, store, start, shown } = world();
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' } });
  const earlier = store.put(CLAIMS, claim());
  store.put(VOLUMES, volume(uidOf(earlier)));
  store.remove(CLAIMS, 'data');
  const now = { ...claim(), spec: { volumeName: 'pv-2', accessModes: ['ReadWriteOnce'] } };
  const { spec } = volume(uidOf(store.put(CLAIMS, now)));
  store.put(VOLUMES, { ...volume(undefined), metadata: { name: 'pv-2' }, spec });
  store.put(PODS, pod('web', { persistentVolumeClaim: { claimName: 'data' } }));
  await start();
  const all = shown();
  assert.deepEqual(all.slice(1, 4), [
    'PersistentVolume pv-2',
    'PersistentVolumeClaim default/data',
    'Pod default/web',
  ]);
  store.instead = (method, path) =>
    method === 'GET' && path === `${CLAIMS}/data` ? { status: 200, body: earlier } : undefined;
  await clock.go(100_000);
  assert.deepEqual(shown(), all);
  store.instead = () => undefined;
  await clock.go(100_000);
  assert.deepEqual(shown(), all);
});

test('a binding counts when the binder has written both sides', async () => {
  const { clock, store, start, source } = world();
  const claimed = store.put(CLAIMS, claim({ annotations: {} }));
  store.put(VOLUMES, volume(undefined));
  store.put(PODS, pod('web', { persistentVolumeClaim: { claimName: 'data' } }));
  const volumeName = (): unknown =>
    source
      .current()
      .parts.flatMap(({ objects }) => objects)
      .flatMap((one) => (one.kind === 'PersistentVolumeClaim' ? [one.volumeName] : []))[0];
  await start();
  assert.equal(volumeName(), undefined);
  store.put(CLAIMS, claim());
  await clock.go(MINUTE_MS);
  assert.equal(volumeName(), undefined);
  store.put(VOLUMES, volume(uidOf(claimed)));
  await clock.go(2 * MINUTE_MS);
  assert.equal(volumeName(), 'pv');
});

test('while nothing comes through all that was wanted stays wanted, and it says so', async () => {
  const { clock, store, transport, start, source, shown } = world();
  store.put(PODS, pod('web'));
  await start();
  transport.cut(true);
  store.remove(PODS, 'web');
  await clock.go(9_000);
  assert.equal(source.current().doubt, undefined);
  await clock.go(60 * MINUTE_MS);
  assert.deepEqual(shown(), ['Node n1', 'Pod default/web']);
  assert.equal(source.current().doubt?.code, 'source-unreadable');
  // It is told beside the name of the source.
  assert(!source.current().doubt?.message.includes(source.name));
  assert.equal(source.current().report?.cluster?.state, 'broken');
  assert.deepEqual(
    source.current().parts.map(({ unknown }) => unknown),
    [true],
  );
  transport.cut(false);
  await clock.go(MINUTE_MS);
  assert.deepEqual(shown(), ['Node n1']);
  assert.equal(source.current().report?.cluster?.state, 'following');
});

test('a start does not wait for a server that does not answer, and is not complete', async () => {
  const { transport, start, source } = world();
  transport.cut(true);
  await start();
  assert.equal(source.current().complete, false);
  assert.match(source.current().doubt?.message ?? '', /the connection was lost/);
});

test('without its Node object nothing is set up, and what is missing is named', async () => {
  const { clock, store, start, source, shown, frozen } = world({ withNode: false });
  const web = store.put(PODS, pod('web'));
  await start();
  assert.deepEqual([source.current().complete, shown(), frozen()], [false, [], [uidOf(web)]]);
  assert.match(source.current().doubt?.message ?? '', /has no Node n1/);
  store.put('/api/v1/nodes', { metadata: { name: 'n1' } });
  await clock.go(1_000);
  assert.deepEqual([source.current().complete, shown()], [true, ['Node n1', 'Pod default/web']]);
});

test('that there are no pods is believed when it was said twice, where something stands', async () => {
  const { clock, start, source } = world({ atStake: true });
  await start();
  assert.equal(source.current().complete, false);
  await clock.go(20_000);
  assert.equal(source.current().complete, true);
});

test('a pod that is heard of after an empty list does not make that list believed', async () => {
  const { clock, store, source, start } = world({ atStake: true });
  await start();
  assert.equal(source.current().complete, false);
  store.put(PODS, pod('web'));
  await clock.go(1_000);
  assert.equal(source.current().complete, false);
  await clock.go(20_000);
  assert.equal(source.current().complete, true);
});

test('most pods gone at once stay until a second list says so', async () => {
  const { clock, store, start, source, shown } = world();
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) store.put(PODS, pod(name));
  await start();
  for (const name of names) store.remove(PODS, name);
  await clock.go(9_000);
  assert.equal(shown().length, 6);
  assert.equal(source.current().report?.massRemoval?.pods.size, 5);
  await clock.go(10_000);
  assert.deepEqual(shown(), ['Node n1']);
  assert.equal(source.current().report?.massRemoval, undefined);
});

/** The server takes so long for each answer about pods. */
function answerPodsAfter(
  waitMs: number,
  { clock, transport }: Pick<ReturnType<typeof world>, 'clock' | 'transport'>,
): void {
  const { request } = transport;
  transport.request = async (one) => {
    const answered = await request(one);
    if (one.path.startsWith('/api/v1/pods'))
      await new Promise<void>((resolve) => clock.timer(waitMs, resolve));
    return answered;
  };
}

test('most pods gone at once are believed to be gone by a server that takes its time for a list', async () => {
  const { clock, store, transport, start, source, shown } = world();
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) store.put(PODS, pod(name));
  await start();
  answerPodsAfter(8_000, { clock, transport });
  for (const name of names) store.remove(PODS, name);
  await clock.go(15_000);
  store.put(PODS, pod('late'));
  await clock.go(60_000);
  assert.deepEqual(shown(), ['Node n1', 'Pod default/late']);
  assert.equal(source.current().report?.massRemoval, undefined);
  assert.ok(store.asked.filter((one) => one.startsWith('GET /api/v1/pods')).length <= 4);
});

test('what goes a while after most pods is asked for in time, however much else is heard of', async () => {
  const { clock, store, transport, start, source, shown } = world();
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of [...names, 'busy']) store.put(PODS, pod(name));
  await start();
  answerPodsAfter(4_000, { clock, transport });
  for (const name of names.slice(0, 4)) store.remove(PODS, name);
  await clock.go(3_000);
  store.remove(PODS, 'e');
  for (let second = 0; second < 60; second += 2) {
    store.put(PODS, pod('busy', undefined, { labels: { second: `${second}` } }));
    await clock.go(2_000);
  }
  assert.deepEqual(shown(), ['Node n1', 'Pod default/busy']);
  assert.equal(source.current().report?.massRemoval, undefined);
});

test('a pod that is being deleted keeps what it has, until its containers have stopped', async () => {
  const { clock, store, start, shown, frozen } = world();
  const deleted = { uid: 'uid-web', deletionTimestamp: '2026-01-01T00:00:00Z' };
  store.put(PODS, pod('web', { emptyDir: {} }, deleted));
  await start();
  assert.deepEqual([shown(), frozen()], [['Node n1'], ['uid-web']]);
  const status = { containerStatuses: [{ state: { terminated: {} } }] };
  store.put(PODS, { ...pod('web', { emptyDir: {} }, deleted), status });
  await clock.go(1_000);
  assert.deepEqual([shown(), frozen()], [['Node n1'], []]);
});

test('of what stands at the start only a pod that the server has not shown vanished while nobody looked', async () => {
  const { clock, store, source, start } = world({ atStake: true });
  store.denied.add(SECRETS);
  const ending = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  store.put(PODS, pod('web'));
  store.put(PODS, {
    ...pod('ending', undefined, { uid: 'ending', ...ending }),
    status: { phase: 'Running' },
  });
  store.put(PODS, { ...pod('over', undefined, { uid: 'over' }), status: { phase: 'Succeeded' } });
  store.put(PODS, pod('waiting', { secret: { secretName: 'key' } }, { uid: 'waiting' }));
  const annotations = { 'kubernetes.io/config.mirror': 'x' };
  store.put(PODS, pod('static', undefined, { uid: 'static', annotations }));
  const wish = createMergedSources({ host: clock, sources: [source], slices: createSlices({ clock }) });
  const hold = createVanishedHold({ clock, holdMs: 5 * MINUTE_MS, onDue: () => {} });
  const standing = ['ending', 'over', 'waiting', 'static', 'unseen'].map((name) => {
    return { uid: podUid(name), name, namespace: 'default', serviceAccount: '' };
  });
  const held = () => [...hold.look(wish.current(), standing).keys()];
  await start();
  assert.deepEqual(held(), ['static', 'unseen']);
  for (const name of ['ending', 'waiting']) store.remove(PODS, name);
  await clock.go(10_000);
  assert.deepEqual([held(), wish.current().frozenPods.size], [['static', 'unseen'], 0]);
});

test('what nobody leads to any more is followed for a minute, and then no longer', async () => {
  const { clock, store, start } = world();
  store.put(SECRETS, { metadata: { name: 'key', namespace: 'default' } });
  store.put(PODS, pod('web', { secret: { secretName: 'key' } }));
  await start();
  assert.equal(store.watches(), 4);
  store.remove(PODS, 'web');
  await clock.go(30_000);
  assert.equal(store.watches(), 4);
  await clock.go(45_000);
  assert.equal(store.watches(), 3);
});

test('one change is looked at when it comes, and a burst of a hundred pods in a few looks', async () => {
  const { clock, store, start, shown, looks } = world({ lookMs: 10 });
  await start();
  const before = looks();
  store.put(PODS, pod('first'));
  await clock.settle();
  assert.deepEqual([shown(), looks()], [['Node n1', 'Pod default/first'], before + 1], 'no time has passed');
  await clock.go(1_000);
  for (let index = 0; index < 100; index += 1) store.put(PODS, pod(`pod-${index}`));
  await clock.go(1_000);
  assert.equal(shown().length, 102);
  assert.ok(looks() <= before + 6, `${looks() - before} looks`);
});

test('changes that keep coming are looked at for a twentieth of the time, and a late one at once', async () => {
  const { clock, store, start, shown, looks } = world({ lookMs: 10 });
  await start();
  const before = looks();
  for (let index = 0; index < 1_000; index += 1) {
    store.put(PODS, pod(`pod-${index}`));
    await clock.go(10);
  }
  const during = looks() - before;
  assert.ok(during >= 40 && during <= 60, `${during} looks of 10 ms in 10 s`);
  await clock.go(1_000);
  assert.equal(shown().length, 1_001);
  await clock.go(5_000);
  store.put(PODS, pod('late'));
  await clock.settle();
  assert.equal(shown().length, 1_002, 'no time has passed');
});
