/** What the cluster is told of this node's drivers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CsiVolumeSpec } from '../../../plugins/volume.ts';
import type { Json } from '../../kubernetes/api/api-store.ts';
import { refusal } from '../../kubernetes/api/api-store.ts';
import { attachmentWorld, callOf, NODE, NODES, specOf } from './attachment-world.ts';

const CSI_NODES = '/apis/storage.k8s.io/v1/csinodes';
const ZONE = 'topology.example.com/zone';
const ONE = { name: 'one.example.com', nodeId: 'node-one', topology: { [ZONE]: 'a' }, volumesMax: 7 };
const TWO = { name: 'two.example.com', nodeId: 'node-two', topology: {}, volumesMax: 0 };
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

type World = ReturnType<typeof attachmentWorld>;
type Attachment = ReturnType<World['begin']>['attachment'];

const driversIn = ({ store }: World): readonly Json[] =>
  ((store.get(CSI_NODES, NODE)?.['spec'] as Json | undefined)?.['drivers'] ?? []) as Json[];
const namesIn = (world: World): readonly unknown[] => driversIn(world).map(({ name }) => name);
const metadataOf = (object: Json | undefined) => (object?.['metadata'] ?? {}) as Json;
const nodeMetadata = ({ store }: World) => metadataOf(store.get(NODES, NODE)) as Record<string, Json>;
const nodeIdsIn = (world: World) =>
  JSON.parse((nodeMetadata(world)['annotations']?.['csi.volume.kubernetes.io/nodeid'] ?? '{}') as string);

async function begun(prepare: (world: World) => void = () => {}): Promise<World> {
  const world = attachmentWorld();
  prepare(world);
  world.begin();
  await world.clock.go(SECOND_MS);
  return world;
}

test('a driver is announced with its id, topology and count, and the Node has its id and labels', async () => {
  const world = await begun();
  world.drivers.register(ONE);
  world.drivers.register(TWO);
  await world.clock.go(SECOND_MS);
  assert.deepEqual(driversIn(world), [
    { name: ONE.name, nodeID: 'node-one', topologyKeys: [ZONE], allocatable: { count: 7 } },
    { name: TWO.name, nodeID: 'node-two' },
  ]);
  const [owner] = metadataOf(world.store.get(CSI_NODES, NODE))['ownerReferences'] as Json[];
  assert.deepEqual([owner?.['kind'], owner?.['uid']], ['Node', nodeMetadata(world)['uid']]);
  assert.deepEqual(nodeIdsIn(world), { [ONE.name]: 'node-one', [TWO.name]: 'node-two' });
  assert.deepEqual(nodeMetadata(world)['labels'], { [ZONE]: 'a' });
  const { asked } = world.store;
  const marked = asked.indexOf(`PATCH ${NODES}/${NODE}`);
  assert.ok(marked >= 0 && marked < asked.indexOf(`POST ${CSI_NODES}`), asked.join('\n'));
});

test('a driver that starts again is not forgotten meanwhile; one that goes is, when nothing of it stands', async () => {
  const world = await begun();
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  world.drivers.remove(ONE.name);
  await world.clock.go(30 * SECOND_MS);
  assert.deepEqual(namesIn(world), [ONE.name]);
  world.drivers.register(ONE);
  await world.clock.go(2 * MINUTE_MS);
  assert.deepEqual(namesIn(world), [ONE.name]);
  const spec = { ...specOf('held'), driver: ONE.name };
  world.stand(spec);
  world.drivers.remove(ONE.name);
  await world.clock.go(5 * MINUTE_MS);
  assert.deepEqual(namesIn(world), [ONE.name]);
  world.actual.clear();
  await world.clock.go(2 * MINUTE_MS);
  assert.deepEqual([namesIn(world), nodeIdsIn(world)], [[], {}]);
});

test('what is another one under its old name is announced anew, a count alone in place', async () => {
  const world = await begun();
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  world.drivers.register({ ...ONE, nodeId: 'another' });
  await world.clock.go(SECOND_MS);
  assert.deepEqual(driversIn(world)[0]?.['nodeID'], 'another');
  world.drivers.register({ ...ONE, nodeId: 'another', volumesMax: 3 });
  await world.clock.go(SECOND_MS);
  assert.deepEqual(driversIn(world)[0]?.['allocatable'], { count: 3 });
});

test('a server that takes no other count of a driver that is there has it taken away and announced anew', async () => {
  const world = await begun();
  world.drivers.register(ONE);
  world.drivers.register(TWO);
  await world.clock.go(SECOND_MS);
  // Kubernetes before MutableCSINodeAllocatableCount (1.35).
  world.store.instead = (method, path, body) => {
    if (method !== 'PATCH' || !path.startsWith(CSI_NODES)) return undefined;
    const before = new Map(driversIn(world).map((one) => [one['name'], JSON.stringify(one)]));
    const isOther = (one: Json): boolean =>
      (before.get(one['name']) ?? JSON.stringify(one)) !== JSON.stringify(one);
    const after = ((body['spec'] as Json)['drivers'] ?? []) as Json[];
    return after.some(isOther) ? refusal(422, 'spec.drivers: field is immutable') : undefined;
  };
  world.drivers.register({ ...ONE, volumesMax: 3 });
  await world.clock.go(2 * SECOND_MS);
  const one = driversIn(world).find(({ name }) => name === ONE.name);
  assert.deepEqual(one?.['allocatable'], { count: 3 });
  assert.deepEqual([...namesIn(world)].sort(), [ONE.name, TWO.name]);
  assert.deepEqual(world.warned(), []);
});

test('what others have written stays: entries, ids, and a label with another value, which is told', async () => {
  const theirs = { name: 'theirs.example.com', nodeID: 'x' };
  const world = await begun(({ store }) => {
    const node = store.put(NODES, {
      metadata: {
        name: NODE,
        labels: { [ZONE]: 'b' },
        annotations: { 'csi.volume.kubernetes.io/nodeid': '{"theirs.example.com":"x"}' },
      },
    });
    store.put(CSI_NODES, {
      metadata: { name: NODE, ownerReferences: [{ kind: 'Node', uid: metadataOf(node)['uid'] }] },
      spec: { drivers: [theirs] },
    });
  });
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  assert.deepEqual(namesIn(world), [theirs.name, ONE.name]);
  assert.deepEqual(nodeMetadata(world)['labels'], { [ZONE]: 'b' });
  assert.deepEqual(nodeIdsIn(world), { [theirs.name]: 'x', [ONE.name]: 'node-one' });
  assert.match(world.warned().join(), /topology value collision: .*says .*zone=a, and the Node has .*zone=b/);
});

test('a label that came to agree with its driver and differs again is told again', async () => {
  const world = await begun();
  const collisions = () => world.warned().filter((text) => text.includes('topology value collision')).length;
  const counts: number[] = [];
  for (const [volumesMax, value] of ['b', 'b', 'a', 'b'].entries()) {
    const node = world.store.get(NODES, NODE);
    world.store.put(NODES, { ...node, metadata: { ...metadataOf(node), labels: { [ZONE]: value } } });
    await world.clock.go(SECOND_MS);
    world.drivers.register({ ...ONE, volumesMax });
    await world.clock.go(SECOND_MS);
    counts.push(collisions());
  }
  assert.deepEqual(counts, [1, 1, 1, 2]);
});

test('an object of an earlier Node is made anew, and what the server refuses is tried again and told', async () => {
  const world = await begun(
    ({ store }) =>
      void store.put(CSI_NODES, {
        metadata: { name: NODE, ownerReferences: [{ kind: 'Node', uid: 'of-before' }] },
        spec: { drivers: [{ name: 'old.example.com', nodeID: 'x' }] },
      }),
  );
  world.store.instead = (method) => (method === 'DELETE' ? refusal(403, 'not allowed') : undefined);
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  assert.deepEqual(namesIn(world), ['old.example.com']);
  assert.match(world.warned().join(), /not allowed/);
  world.store.instead = () => undefined;
  await world.clock.go(10 * SECOND_MS);
  assert.deepEqual(namesIn(world), [ONE.name]);
});

test('a Node that was set back is written when that is noticed, and asked for less and less often before', async () => {
  const world = await begun();
  const { store, clock } = world;
  const backedUp = store.version();
  for (const beat of [1, 2, 3]) world.patchNode({ beat });
  await clock.go(SECOND_MS);
  world.transport.cut(true);
  store.restore(backedUp, () => false);
  await clock.go(SECOND_MS);
  world.transport.cut(false);
  world.drivers.register(ONE);
  store.asked.splice(0);
  await clock.go(MINUTE_MS);
  const patches = store.asked.filter((one) => one === `PATCH ${NODES}/${NODE}`).length;
  assert.ok(patches <= 8, `${patches} times`);
  await clock.go(5 * MINUTE_MS);
  assert.deepEqual([namesIn(world), nodeMetadata(world)['labels']], [[ONE.name], { [ZONE]: 'a' }]);
});

/** What no server takes of one driver, wherever it is written. */
const BAD = {
  ...ONE,
  name: 'bad.example.com',
  nodeId: 'node-bad',
  topology: { 'bad.kubernetes.io/zone': 'a' },
};

for (const [where, path, status] of [
  ['its label on the Node', `${NODES}/${NODE}`, 403],
  ['its entry in the CSINode', CSI_NODES, 422],
] as const)
  test(`a driver of which the server refuses ${where} keeps no other back, and is told`, async () => {
    const world = await begun();
    const refusedBy = (method: string, target: string, body: Json): boolean =>
      method !== 'GET' && target.startsWith(path) && JSON.stringify(body).includes('bad.kubernetes.io');
    let refused = 0;
    world.store.instead = (method, target, body) => {
      if (!refusedBy(method, target, body)) return undefined;
      refused += 1;
      return refusal(status, 'not allowed: bad.kubernetes.io/zone');
    };
    for (const driver of [BAD, ONE, TWO]) world.drivers.register(driver);
    await world.clock.go(10 * SECOND_MS);
    assert.deepEqual(namesIn(world).toSorted(), [ONE.name, TWO.name]);
    assert.equal(nodeIdsIn(world)[ONE.name], ONE.nodeId);
    assert.deepEqual(nodeMetadata(world)['labels']?.[ZONE], 'a');
    assert.match(world.warned().join('\n'), /bad\.example\.com.*not allowed: bad\.kubernetes\.io\/zone/);
    refused = 0;
    await world.clock.go(60 * MINUTE_MS);
    assert.ok(refused <= 65, `${refused} times in an hour`);
    assert.equal(world.warned().filter((line) => line.includes('not allowed')).length, 1, 'it is told once');
    // What comes later is announced all the same, and what is refused as soon as the server takes it.
    const three = { ...TWO, name: 'three.example.com' };
    world.drivers.register(three);
    await world.clock.go(SECOND_MS);
    assert.deepEqual(namesIn(world).toSorted(), [ONE.name, three.name, TWO.name]);
    world.store.instead = () => undefined;
    await world.clock.go(2 * MINUTE_MS);
    assert.deepEqual(namesIn(world).toSorted(), [BAD.name, ONE.name, three.name, TWO.name]);
  });

/** BAD is registered, and its label was refused. */
async function refusing(): Promise<World> {
  const world = await begun();
  world.store.instead = (method, target, body) =>
    method === 'PATCH' && target.startsWith(NODES) && JSON.stringify(body).includes('bad.kubernetes.io')
      ? refusal(403, 'not allowed: bad.kubernetes.io/zone')
      : undefined;
  world.drivers.register(BAD);
  await world.clock.go(SECOND_MS);
  return world;
}

test('a driver that was refused waits for a Node that is gone, and nobody asks meanwhile', async () => {
  const world = await refusing();
  const node = world.store.get(NODES, NODE) ?? {};
  world.store.remove(NODES, NODE);
  await world.clock.go(SECOND_MS);
  world.store.asked.splice(0);
  await world.clock.go(2 * MINUTE_MS);
  assert.deepEqual(
    world.store.asked.filter((one) => one.includes(CSI_NODES) || one.startsWith('PATCH')),
    [],
  );
  world.store.instead = () => undefined;
  world.store.put(NODES, { ...node, metadata: { name: NODE, uid: 'the-next-node' } });
  await world.clock.go(SECOND_MS);
  assert.deepEqual(namesIn(world), [BAD.name]);
});

test('a driver that was refused and has another socket by now is waited for, not looked for all the time', async () => {
  const world = await refusing();
  world.drivers.outdate(BAD.name);
  await world.clock.go(2 * MINUTE_MS);
  world.drivers.register({ ...BAD, topology: {} });
  await world.clock.go(SECOND_MS);
  assert.deepEqual(namesIn(world), [BAD.name]);
});

test('what is refused once more is told once more, when something was taken between', async () => {
  const world = await refusing();
  const told = (): number => world.warned().filter((line) => line.includes('not allowed')).length;
  world.drivers.register({ ...BAD, topology: {} });
  await world.clock.go(SECOND_MS);
  assert.deepEqual([told(), namesIn(world)], [1, [BAD.name]]);
  world.drivers.register(BAD);
  await world.clock.go(SECOND_MS);
  assert.equal(told(), 2);
});

test('a server that keeps another CSINode than it was given is not asked without end', async () => {
  const world = await begun();
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  const { store } = world;
  let patches = 0;
  store.instead = (method, path, body) => {
    if (method !== 'PATCH' || !path.startsWith(CSI_NODES)) return undefined;
    patches += 1;
    if (patches > 100) return refusal(500, 'asked without end');
    const entries = ((body['spec'] as Json)['drivers'] as Json[]).map(({ allocatable: _, ...one }) => one);
    const before = store.get(CSI_NODES, NODE) ?? {};
    return { status: 200, body: store.put(CSI_NODES, { ...before, spec: { drivers: entries } }) };
  };
  world.drivers.register({ ...ONE, volumesMax: 9 });
  for (let turn = 0; turn < 100; turn += 1) await world.clock.settle();
  await world.clock.go(MINUTE_MS);
  assert.ok(patches > 0 && patches <= 30, `${patches} times`);
  assert.match(world.warned().join(), /keeps another CSINode/);
});

/** As csi-attacher of a driver that has no room here (KEP-4876). */
function refuse(world: World, time: number, errorCode = 8): void {
  const spec = { ...specOf('late'), driver: ONE.name };
  const attachError = { errorCode, message: 'no room', time: `2026-01-01T00:00:0${time}Z` };
  world.stand(spec, { attached: { kind: 'unsure', because: 'asked' } as never });
  world.attach(spec, { attached: false, attachError });
}

test('KEP-4876: a driver whose volume is refused as one too many is asked for its limit anew', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  world.drivers.limit(ONE.name, 3);
  refuse(world, 0, 13);
  const late = { ...specOf('late'), driver: ONE.name };
  void attachment.attach(late, callOf(late));
  attachment.look();
  await world.clock.go(SECOND_MS);
  assert.deepEqual([world.drivers.asked(), driversIn(world)[0]?.['allocatable']], [0, { count: 7 }]);
  refuse(world, 1);
  await world.clock.go(2 * SECOND_MS);
  assert.deepEqual(driversIn(world)[0]?.['allocatable'], { count: 3 });
  const asked = world.drivers.asked();
  // The same refusal is heard of again, and others come: once in ten seconds is enough.
  for (let time = 2; time < 7; time += 1) {
    refuse(world, time);
    await world.clock.go(SECOND_MS);
  }
  assert.equal(world.drivers.asked(), asked);
  await world.clock.go(20 * SECOND_MS);
  assert.equal(world.drivers.asked(), asked + 1);
  // One that registers says all of itself.
  world.drivers.register({ ...ONE, volumesMax: 9 });
  await world.clock.go(2 * SECOND_MS);
  assert.deepEqual(driversIn(world)[0]?.['allocatable'], { count: 9 });
});

/** What the attachment of it has answered a second later. */
async function attachOne(world: World, attachment: Attachment, spec: CsiVolumeSpec) {
  let answer: { readonly ok: boolean; readonly failure?: { readonly message: string } } | undefined;
  void attachment.attach(spec, callOf(spec)).then((one) => {
    answer = one;
  });
  await world.clock.go(SECOND_MS);
  return answer;
}

test('a driver calls the node otherwise: nothing new is attached before the CSINode says so for a minute', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  const [stands, comes] = [specOf('stands'), specOf('comes')].map((spec) => ({ ...spec, driver: ONE.name }));
  assert.ok(stands !== undefined && comes !== undefined);
  world.attach(stands);
  world.stand(stands);
  world.drivers.register({ ...ONE, nodeId: 'another' });
  await world.clock.go(SECOND_MS);
  assert.equal(driversIn(world)[0]?.['nodeID'], 'another');
  assert.ok(world.warned().some((line) => /node-one.*another/.test(JSON.stringify(line))));
  world.attach(comes);
  const attach = () => attachOne(world, attachment, comes);
  const refused = await attach();
  assert.equal(refused?.ok, false);
  assert.match(refused?.failure?.message ?? '', /another, and called it node-one before/);
  assert.notEqual(attachment.wordOf(stands.id)?.word?.lost, true, 'what stands is left alone');
  woken.splice(0);
  await world.clock.go(MINUTE_MS);
  assert.ok(woken.includes(comes.id), 'who waited is tried again');
  assert.equal((await attach())?.ok, true);
});

test('a driver that takes the old name again before the CSINode said the new one is held up no longer', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  const comes = { ...specOf('comes'), driver: ONE.name };
  world.attach(comes);
  world.store.instead = (method, path) =>
    method === 'PATCH' && path.startsWith(CSI_NODES) ? refusal(500, 'no quorum') : undefined;
  world.drivers.register({ ...ONE, nodeId: 'another' });
  await world.clock.go(SECOND_MS);
  assert.equal((await attachOne(world, attachment, comes))?.ok, false);
  assert.equal(driversIn(world)[0]?.['nodeID'], 'node-one');
  world.store.instead = () => undefined;
  woken.splice(0);
  world.drivers.register(ONE);
  await world.clock.go(SECOND_MS);
  assert.ok(woken.includes(comes.id), 'who waited is tried again');
  assert.equal((await attachOne(world, attachment, comes))?.ok, true);
});
