/** The agent's side of the attachment contract, against a store as an API server has it: INV-4, INV-5. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Result } from '../../../mount/failure.ts';
import type { NodeObject } from '../../../agent/source/cluster/node-object.ts';
import { readEnvelope } from '../../../kubernetes/api/api-object.ts';
import { attachmentNameOf } from '../../../kubernetes/objects/attachment-name.ts';
import { csiVolumeId } from '../../../plugins/volume.ts';
import { ABSENT, PRESENT } from '../../../reconciler/model/actual-state.ts';
import { type Json, NOT_OF_THE_SERVER, refusal } from '../../kubernetes/api/api-store.ts';
import { attachmentContract } from '../../contract/attachment.ts';
import { iscsiVolume } from '../../plugins/iscsi/iscsi-world.ts';
import { ATTACHMENTS, attachmentWorld, callOf, NODE, NODE_UID, NODES, specOf } from './attachment-world.ts';

const ONE = specOf('one');
const TWO = specOf('two');
const THREE = specOf('three');
const nameOf = ({ driver, volumeHandle }: typeof ONE): string => csiVolumeId(driver, volumeHandle);
const NAME = nameOf(ONE);
const SECOND_MS = 1_000;

const codeOf = (result: Result<unknown> | undefined): string | undefined =>
  result === undefined || result.ok ? undefined : result.failure.code;
const messageOf = (result: Result<unknown> | undefined): string =>
  result === undefined || result.ok ? '' : result.failure.message;

const metadataOf = (object: Json | undefined): { readonly uid: string; readonly resourceVersion: string } =>
  object?.['metadata'] as never;

/** What a promise came to while the clock went on. */
async function within<T>(
  { clock }: ReturnType<typeof attachmentWorld>,
  promise: Promise<T>,
  spanMs = 100,
): Promise<T | undefined> {
  let value: T | undefined;
  void promise.then((settled) => {
    value = settled;
  });
  await clock.go(spanMs);
  return value;
}

/** So many volumes stand, and are listed. */
async function inUse(count: number) {
  const world = attachmentWorld();
  const specs = Array.from({ length: count }, (_, index) => specOf(`v${index}`));
  for (const spec of specs) world.stand(spec);
  const { attachment } = world.begin();
  await world.clock.go(10 * SECOND_MS);
  return { world, specs, attachment };
}

attachmentContract('granted by an API server', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  const settled = async <T>(promise: Promise<T>): Promise<T> =>
    (await within(world, promise, 2 * SECOND_MS)) as T;
  return {
    attachment: {
      isNeeded: (spec) => attachment.isNeeded(spec),
      attach: (spec, call) => settled(attachment.attach(spec, call)),
      detach: (spec, call) => settled(attachment.detach(spec, call)),
    },
    spec: ONE,
    call: callOf(ONE),
    admit: (context) => world.attach(ONE, { attached: true, attachmentMetadata: context }),
    refuse: () => world.detach(ONE),
  };
});

test('in use is reported and acknowledged before the attachment is asked for', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE, { attached: true, attachmentMetadata: { lun: '7' } });
  world.stand(ONE);
  await world.clock.go(SECOND_MS);
  world.store.asked.splice(0);
  world.actual.clear();
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)));
  assert.ok(attached?.ok);
  assert.deepEqual([attached.value.publishContext, world.inUse()], [{ lun: '7' }, [NAME]]);
  assert.equal(typeof attached.value.attachmentUid, 'string');
});

test('an attachment that was read before the report was acknowledged grants nothing', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE);
  await world.clock.go(SECOND_MS);
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  // While our report is on its way the controller takes the volume back.
  world.store.instead = (method) => {
    if (method !== 'PATCH') return undefined;
    world.store.instead = () => undefined;
    world.detach(ONE);
    return undefined;
  };
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)), SECOND_MS);
  assert.equal(codeOf(attached), 'not-attached');
  assert.deepEqual(world.inUse(), [NAME]);
});

test('a hundred volumes at once are a few writes, and so are they when they go', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  const specs = Array.from({ length: 100 }, (_, index) => specOf(`v${index}`));
  for (const spec of specs) world.stand(spec);
  const writes = (): number => world.store.asked.filter((one) => one.startsWith('PATCH')).length;
  const before = writes();
  void Promise.all(specs.map((spec) => attachment.attach(spec, callOf(spec))));
  await world.clock.go(SECOND_MS);
  assert.equal(world.inUse().length, 100);
  assert.ok(writes() - before <= 3, `${writes() - before} writes`);
  const detached = await within(
    world,
    Promise.all(specs.map((spec) => attachment.detach(spec, callOf(spec)))),
    SECOND_MS,
  );
  assert.ok(detached?.every(({ ok }) => ok));
  assert.deepEqual(world.inUse(), []);
  assert.ok(writes() - before <= 6, `${writes() - before} writes`);
});

test('what leaves one after the other is written at once, less and less often, and all of it', async () => {
  const { world, specs, attachment } = await inUse(200);
  assert.equal(world.inUse().length, 200);
  const writes = (): number => world.store.asked.filter((one) => one.startsWith('PATCH')).length;
  const before = writes();
  let left = 0;
  const leave = async (spec: typeof ONE): Promise<void> => {
    const detached = attachment.detach(spec, callOf(spec));
    world.actual.delete(spec.id);
    if ((await detached).ok) left += 1;
  };
  for (const spec of specs) {
    void leave(spec);
    await world.clock.go(10);
  }
  assert.ok(writes() - before <= 5, `${writes() - before} writes`);
  const first = writes();
  // Who waits to be listed does not wait for those who leave.
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)), 150);
  assert.equal(codeOf(attached), 'not-attached', 'it was reported, and nobody has attached it');
  assert.equal(writes() - first, 1);
  assert.deepEqual(world.inUse().filter((name) => name === NAME).length, 1);
  await world.clock.go(2 * SECOND_MS);
  assert.equal(left, 200);
  await world.clock.go(10 * SECOND_MS);
  world.stand(TWO);
  attachment.look();
  await world.clock.go(100);
  const last = attachment.detach(TWO, callOf(TWO));
  world.actual.clear();
  assert.equal((await within(world, last, 150))?.ok, true, 'the first one again leaves at once');
});

test('what leaves is not refused for what else of the Node has changed meanwhile', async () => {
  const { world, specs, attachment } = await inUse(1);
  const writes = (): number => world.store.asked.filter((one) => one.startsWith('PATCH')).length;
  const before = writes();
  // The controller tells what it has attached and detached.
  world.store.instead = (method) => {
    world.store.instead = () => undefined;
    if (method === 'PATCH') world.patchNode({ volumesAttached: [{ name: NAME, devicePath: '' }] });
    return undefined;
  };
  world.actual.clear();
  const detached = await within(
    world,
    attachment.detach(specs[0] ?? ONE, callOf(specs[0] ?? ONE)),
    SECOND_MS,
  );
  assert.ok(detached?.ok);
  assert.deepEqual([writes() - before, world.inUse()], [1, []]);
});

test('what leaves and was refused because the list had changed meanwhile is written again soon', async () => {
  const { world, specs, attachment } = await inUse(20);
  const leave = (spec: typeof ONE): Promise<Result<void>> => {
    const detached = attachment.detach(spec, callOf(spec));
    world.actual.delete(spec.id);
    return detached;
  };
  for (const spec of specs.slice(0, -1)) {
    void leave(spec);
    await world.clock.go(100);
  }
  let refused = 0;
  // Somebody else has something of his in use.
  const theirs = (): string => `kubernetes.io/csi/theirs^${refused}`;
  world.store.instead = (method) => {
    if (method !== 'PATCH' || refused === 3) return undefined;
    refused += 1;
    world.store.instead = () => undefined;
    world.patchNode({ volumesInUse: [...world.inUse(), theirs()] });
    world.store.instead = instead;
    return undefined;
  };
  const { instead } = world.store;
  void leave(specs.at(-1) ?? ONE);
  await world.clock.go(1_500);
  assert.equal(refused, 3);
  assert.deepEqual(
    [...world.inUse()].sort(),
    [1, 2, 3].map((time) => `kubernetes.io/csi/theirs^${time}`),
  );
});

test('while the server is silent nothing new is attached and nothing leaves the list, with the reason', async () => {
  const world = attachmentWorld();
  world.stand(TWO);
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  world.transport.cut(true);
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)), 20 * SECOND_MS);
  assert.equal(codeOf(attached), 'in-use-unreported');
  assert.match(messageOf(attached), /in-use report not acknowledged: the connection was lost/);
  assert.equal(
    codeOf(await within(world, attachment.detach(TWO, callOf(TWO)), 20 * SECOND_MS)),
    'in-use-unreported',
  );
  assert.deepEqual(world.inUse(), [csiVolumeId(TWO.driver, TWO.volumeHandle)]);
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  world.transport.cut(false);
  await world.clock.go(60 * SECOND_MS);
  assert.ok(woken.includes(ONE.id), 'it is tried again when the server is back');
  assert.deepEqual(world.inUse(), [NAME]);
});

test('who comes while the server has asked for minutes of patience is told that, and waits not', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  world.store.instead = (method) =>
    method === 'PATCH' ? { ...refusal(429, 'too many requests'), retryAfter: '240' } : undefined;
  const first = await within(world, attachment.attach(ONE, callOf(ONE)), SECOND_MS);
  assert.equal(codeOf(first), 'in-use-unreported');
  const writes = () => world.store.asked.filter((one) => one.startsWith('PATCH')).length;
  const before = writes();
  const later = await within(world, attachment.attach(TWO, callOf(TWO)), SECOND_MS);
  assert.equal(codeOf(later), 'in-use-unreported');
  assert.match(messageOf(later), /too many requests/);
  for (const one of [ONE, TWO]) world.stand(one, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  const down = await within(world, attachment.detach(TWO, callOf(TWO)), SECOND_MS);
  assert.equal(codeOf(down), 'in-use-unreported');
  await world.clock.go(230 * SECOND_MS);
  assert.equal(writes(), before, 'the server is not asked before');
  world.store.instead = () => undefined;
  await world.clock.go(30 * SECOND_MS);
  assert.ok(woken.includes(ONE.id) && woken.includes(TWO.id));
  assert.deepEqual(world.inUse(), [nameOf(ONE)]);
});

test('a lost answer is read back', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE);
  world.transport.loseAnswers(true);
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)));
  assert.ok(attached?.ok, messageOf(attached));
});

test('a Node that changes otherwise all the time ends no patience that the server has asked for', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  world.store.instead = (method) =>
    method === 'PATCH' ? { ...refusal(429, 'too many requests'), retryAfter: '60' } : undefined;
  assert.equal(
    codeOf(await within(world, attachment.attach(ONE, callOf(ONE)), SECOND_MS)),
    'in-use-unreported',
  );
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  const writes = (): number => world.store.asked.filter((one) => one.startsWith('PATCH')).length;
  const before = writes();
  // The controller tells of other volumes.
  for (let time = 0; time < 300; time += 1) {
    world.patchNode({ volumesAttached: [{ name: `${NAME}${time}`, devicePath: '' }] });
    await world.clock.go(100);
  }
  assert.equal(writes(), before);
  world.store.instead = () => undefined;
  await world.clock.go(35 * SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
});

/** What is written from now on fails, and has its effect when it comes late: with these answers. */
function holdWrites({ store }: ReturnType<typeof attachmentWorld>): () => readonly number[] {
  const held: [path: string, body: Json][] = [];
  store.instead = (method, path, body) => {
    if (method !== 'PATCH') return undefined;
    held.push([path, body]);
    return refusal(500, 'no quorum');
  };
  return () => {
    store.instead = () => undefined;
    assert.notEqual(held.length, 0, 'something was written');
    return held.map(([path, body]) => store.answer('PATCH', path, body).status);
  };
}

test('a write whose answer was lost cannot undo a later one, however late it comes', async () => {
  const world = attachmentWorld();
  world.stand(TWO);
  world.attach(TWO);
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  // The removal is on its way for long: nobody knows whether it comes.
  const comeLate = holdWrites(world);
  assert.equal(codeOf(await within(world, attachment.detach(TWO, callOf(TWO)))), 'in-use-unreported');
  world.store.instead = () => undefined;
  const attached = await within(world, attachment.attach(TWO, callOf(TWO)), 20 * SECOND_MS);
  assert.ok(attached?.ok, messageOf(attached));
  assert.deepEqual([comeLate(), world.inUse()], [[422], [csiVolumeId(TWO.driver, TWO.volumeHandle)]]);
});

test('nor can it when the list is again what it was made for', async () => {
  const world = attachmentWorld({ reported: NODE_UID });
  world.stand(TWO);
  world.attach(TWO);
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  const comeLate = holdWrites(world);
  // It asks for one more on the list, and is given up.
  void attachment.attach(ONE, callOf(ONE));
  await world.clock.go(SECOND_MS);
  world.store.instead = () => undefined;
  await world.clock.go(20 * SECOND_MS);
  assert.ok((await within(world, attachment.detach(ONE, callOf(ONE)), 20 * SECOND_MS))?.ok);
  assert.deepEqual(world.inUse(), [nameOf(TWO)]);
  assert.deepEqual(new Set(comeLate()), new Set([422]));
  assert.deepEqual(world.inUse(), [nameOf(TWO)]);
});

test('a write of a life that was killed cannot undo what this one was granted (seed 478149215)', async () => {
  const two = csiVolumeId(TWO.driver, TWO.volumeHandle);
  const world = attachmentWorld({ listed: [two], reported: NODE_UID });
  world.attach(TWO);
  // Nothing of it stands: its removal is asked for, the agent is killed, and the server has yet to do it.
  const comeLate = holdWrites(world);
  const { end } = world.begin();
  await world.clock.go(SECOND_MS);
  end();
  world.store.instead = () => undefined;
  const { attachment } = world.begin();
  world.stand(TWO, { attached: { kind: 'unsure', because: 'begun' } });
  const attached = await within(world, attachment.attach(TWO, callOf(TWO)));
  assert.ok(attached?.ok, messageOf(attached));
  assert.deepEqual([new Set(comeLate()), world.inUse()], [new Set([422]), [two]]);
  const writes = metadataOf(world.store.get(NODES, NODE)).resourceVersion;
  assert.ok((await within(world, attachment.attach(TWO, callOf(TWO))))?.ok);
  assert.equal(metadataOf(world.store.get(NODES, NODE)).resourceVersion, writes, 'once in a life is enough');
});

test('a touch whose mark a webhook takes away is no write: one of an earlier life may come yet', async () => {
  const world = attachmentWorld({ listed: [nameOf(TWO)], reported: NODE_UID });
  world.attach(TWO);
  const comeLate = holdWrites(world);
  const { end } = world.begin();
  await world.clock.go(SECOND_MS);
  end();
  // An admission webhook that lets no touch of the Node through.
  world.store.instead = (method, path) =>
    method === 'PATCH' && !path.endsWith('/status')
      ? { status: 200, body: world.store.get(NODES, NODE) }
      : undefined;
  const { attachment } = world.begin();
  world.stand(TWO);
  await world.clock.go(300 * SECOND_MS);
  assert.ok(world.store.asked.includes(`PATCH ${NODES}/${NODE}`), 'it was touched');
  world.stand(TWO, { attached: { kind: 'unsure', because: 'begun' } });
  const attached = await within(world, attachment.attach(TWO, callOf(TWO)));
  assert.ok(attached?.ok, messageOf(attached));
  assert.deepEqual([new Set(comeLate()), world.inUse()], [new Set([422]), [nameOf(TWO)]]);
});

test('another life takes nothing off the list before the disk was read', async () => {
  const world = attachmentWorld({ listed: ['kubernetes.io/csi/d^left', NAME], reported: NODE_UID });
  world.stand(ONE);
  const { attachment, end } = world.begin({ isDiskRead: false });
  await world.clock.go(5 * SECOND_MS);
  assert.deepEqual(world.inUse(), ['kubernetes.io/csi/d^left', NAME]);
  attachment.diskRead('places');
  await world.clock.go(SECOND_MS);
  assert.deepEqual(world.inUse(), ['kubernetes.io/csi/d^left', NAME]);
  attachment.diskRead('all');
  await world.clock.go(SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
  end();
});

test('what came down here is not listed again, though the disk is never read whole', async () => {
  const disk = iscsiVolume();
  const world = attachmentWorld({
    listed: ['kubernetes.io/csi/d^left', NAME, nameOf(TWO), disk.id],
    reported: NODE_UID,
  });
  world.stand(ONE);
  world.stand(disk, { attached: ABSENT, staged: PRESENT });
  const { attachment } = world.begin({ isDiskRead: false });
  // A record that cannot be read: there is no more to come in this life.
  attachment.diskRead('places');
  await world.clock.go(SECOND_MS);
  world.stand(TWO);
  for (const spec of [ONE, TWO])
    assert.equal((await within(world, attachment.detach(spec, callOf(spec)), 2 * SECOND_MS))?.ok, true);
  world.actual.clear();
  attachment.look();
  await world.clock.go(60 * SECOND_MS);
  assert.deepEqual(world.inUse(), ['kubernetes.io/csi/d^left'], 'what nobody has explained stays');
});

for (const [what, reported] of [
  ['that no agent has ever written on', undefined],
  ['that is a copy of an earlier one', 'the-node-of-before'],
] as const)
  test(`nothing is listed in a Node ${what}, before the disk was read: what no record knows may stand`, async () => {
    const world = attachmentWorld(reported === undefined ? {} : { reported });
    world.stand(ONE);
    const { attachment, woken } = world.begin({ isDiskRead: false });
    await world.clock.go(5 * SECOND_MS);
    assert.deepEqual(world.inUse(), []);
    // Nobody has looked at it yet when it is refused, and it is told all the same (seed 8660).
    const attached = await within(world, attachment.attach(THREE, callOf(THREE)));
    assert.equal(codeOf(attached), 'in-use-unreported');
    assert.match(messageOf(attached), /Node n1 is a new one, and what stands here is still being read/);
    attachment.diskRead({ code: 'mount-stacked', message: 'his tmpfs', effect: 'none', blocker: 'tmpfs' });
    const hidden = await within(world, attachment.attach(THREE, callOf(THREE)));
    assert.match(messageOf(hidden), /what stands here cannot be read: his tmpfs/);
    assert.deepEqual(world.inUse(), []);
    for (const one of [TWO, THREE]) world.stand(one);
    // A record that cannot be read keeps names on the list; it does not keep the list from being written.
    attachment.diskRead('places');
    await world.clock.go(SECOND_MS);
    assert.deepEqual([...world.inUse()].sort(), [nameOf(ONE), nameOf(TWO), nameOf(THREE)].sort());
    assert.ok(woken.includes(THREE.id), 'who waited is tried again');
  });

test('a server that compares otherwise than is seen is asked by the version of the Node', async () => {
  const world = attachmentWorld();
  const { attachment } = world.begin();
  world.attach(ONE);
  let compared = 0;
  // As for a name that another program writes otherwise: every comparison fails.
  world.store.instead = (method, _, body) => {
    if (method !== 'PATCH' || !Array.isArray(body)) return undefined;
    compared += 1;
    return refusal(422, 'testing value /status/volumesInUse failed');
  };
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  assert.ok((await within(world, attachment.attach(ONE, callOf(ONE)), SECOND_MS))?.ok);
  assert.deepEqual(world.inUse(), [NAME]);
  world.actual.clear();
  assert.ok((await within(world, attachment.detach(ONE, callOf(ONE)), 2 * SECOND_MS))?.ok);
  assert.deepEqual([world.inUse(), compared], [[], 2]);
});

test('what another one writes is kept, and who takes ours away again and again is told', async () => {
  const world = attachmentWorld();
  world.stand(ONE);
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  world.patchNode({ volumesInUse: [...world.inUse(), 'kubernetes.io/csi/d^theirs'] });
  await world.clock.go(SECOND_MS);
  assert.deepEqual([...world.inUse()].sort(), ['kubernetes.io/csi/d^theirs', NAME].sort());
  // Whatever changes of the Node next, and whatever is written of it.
  world.patchNode({ conditions: [] });
  await world.clock.go(SECOND_MS);
  assert.equal(codeOf(await within(world, attachment.attach(TWO, callOf(TWO)))), 'not-attached');
  assert.ok((await within(world, attachment.detach(TWO, callOf(TWO)), 2 * SECOND_MS))?.ok);
  assert.deepEqual([...world.inUse()].sort(), ['kubernetes.io/csi/d^theirs', NAME].sort());
  for (let time = 0; time < 3; time += 1) {
    world.patchNode({ volumesInUse: [] });
    await world.clock.go(2 * SECOND_MS);
    assert.deepEqual(world.inUse(), [NAME]);
  }
  assert.equal(codeOf(await within(world, attachment.attach(TWO, callOf(TWO)))), 'in-use-contested');
  await world.clock.go(61 * SECOND_MS);
  assert.equal(codeOf(await within(world, attachment.attach(TWO, callOf(TWO)))), 'not-attached');
});

for (const [what, field] of [
  ['an annotation', '/metadata/annotations/volumes.kubernetes.io~1controller-managed-attach-detach'],
  ['the mark', '/metadata/annotations/mooring.dev~1touched'],
  ['the list', '/status/volumesInUse'],
] as const)
  test(`whoever takes ${what} out of our writes is told, and is not written against all the time`, async () => {
    const world = attachmentWorld();
    const { attachment } = world.begin();
    let writes = 0;
    let isInside = false;
    // An admission webhook that changes objects.
    world.store.instead = (method, path, body) => {
      if (method !== 'PATCH' || isInside) return undefined;
      isInside = true;
      writes += 1;
      const operations = body as unknown as readonly Json[];
      const left = operations.filter(({ op, path: at }) => op !== 'add' || at !== field);
      assert.equal(left.length, operations.length - 1);
      const answer = world.store.answer(method, path, left as unknown as Json);
      isInside = false;
      return answer;
    };
    const refused = await within(world, attachment.attach(ONE, callOf(ONE)), 10 * SECOND_MS);
    assert.equal(codeOf(refused), 'in-use-unreported');
    assert.match(messageOf(refused), /keeps another Node than it was given: .*webhook/);
    await world.clock.go(50 * SECOND_MS);
    assert.ok(writes < 20, `${writes} writes`);
    world.store.instead = () => undefined;
    world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
    attachment.look();
    await world.clock.go(20 * SECOND_MS);
    assert.deepEqual(world.inUse(), [NAME]);
  });

test('what a Node that is made anew lists, and nobody has, is off the list when the disk was read', async () => {
  const world = attachmentWorld();
  world.stand(ONE);
  const { attachment } = world.begin({ isDiskRead: false });
  attachment.diskRead('places');
  await world.clock.go(SECOND_MS);
  world.store.remove(NODES, NODE);
  world.store.put(NODES, { metadata: { name: NODE }, status: { volumesInUse: [nameOf(TWO)] } });
  await world.clock.go(SECOND_MS);
  world.patchNode({ conditions: [] });
  await world.clock.go(SECOND_MS);
  assert.deepEqual([...world.inUse()].sort(), [NAME, nameOf(TWO)].sort());
  attachment.diskRead('all');
  await world.clock.go(SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
});

test('what an earlier life asked for, and the server does late, is taken off again', async () => {
  const world = attachmentWorld({ listed: [NAME], reported: NODE_UID });
  world.stand(ONE);
  world.begin();
  await world.clock.go(SECOND_MS);
  const late = world.store.answer('PATCH', `${NODES}/${NODE}/status`, {
    metadata: { resourceVersion: metadataOf(world.store.get(NODES, NODE)).resourceVersion },
    status: { volumesInUse: [NAME, nameOf(TWO)] },
  });
  assert.equal(late.status, 200);
  await world.clock.go(SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
});

test('after a restored backup what stands is on the list again, and writes wait for longer and longer', async () => {
  const world = attachmentWorld({ reported: NODE_UID });
  const { store, clock, transport } = world;
  const backedUp = store.version();
  world.stand(ONE);
  world.attach(ONE);
  const { attachment, node } = world.begin();
  await clock.go(SECOND_MS);
  for (const name of ['x', 'y', 'z']) store.put('/api/v1/namespaces/default/pods', { metadata: { name } });
  world.patchNode({ conditions: [] });
  await clock.go(SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
  transport.cut(true);
  store.restore(backedUp, () => false);
  // As it was then: what has gone since is on the list, and what stands is not.
  world.patchNode({ volumesInUse: [nameOf(TWO)] });
  await clock.go(SECOND_MS);
  transport.cut(false);
  await clock.go(10 * SECOND_MS);
  world.attach(THREE);
  const writes = (): number => store.asked.filter((one) => one.startsWith('PATCH')).length;
  const before = writes();
  const attached = await within(world, attachment.attach(THREE, callOf(THREE)), 60 * SECOND_MS);
  assert.equal(codeOf(attached), 'in-use-unreported');
  assert.ok(writes() - before <= 20, `${writes() - before} writes in a minute`);
  await clock.go(3 * 60 * SECOND_MS);
  assert.equal(node.reflection().trouble, undefined);
  assert.deepEqual(world.inUse(), [NAME]);
  world.stand(THREE);
  assert.ok((await within(world, attachment.attach(THREE, callOf(THREE)), SECOND_MS))?.ok);
  assert.deepEqual(world.inUse(), [NAME, nameOf(THREE)].sort());
});

test('a Node of before is believed after a while, though the server has passed what was seen', async () => {
  const world = attachmentWorld({ reported: NODE_UID });
  const { store, clock, transport } = world;
  const backedUp = store.version();
  const { attachment } = world.begin();
  await clock.go(SECOND_MS);
  world.stand(ONE);
  attachment.look();
  await clock.go(60 * SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
  transport.cut(true);
  store.restore(backedUp, () => false);
  // Others make more versions than were lost before anybody here asks: no list is older than what was seen.
  store.age(20);
  await clock.go(SECOND_MS);
  transport.cut(false);
  await clock.go(5 * SECOND_MS);
  world.stand(THREE);
  store.asked.splice(0);
  void attachment.attach(THREE, callOf(THREE));
  await clock.go(10 * 60 * SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME, nameOf(THREE)].sort());
  assert.ok(store.asked.length <= 200, `${store.asked.length} requests`);
});

test('after a restored backup a list that is answered in vain ends no wait of a write', async () => {
  const world = attachmentWorld({ reported: NODE_UID });
  const { store, clock, transport } = world;
  const backedUp = store.version();
  const { attachment } = world.begin();
  await clock.go(SECOND_MS);
  for (const name of ['x', 'y', 'z']) store.put('/api/v1/namespaces/default/pods', { metadata: { name } });
  world.patchNode({ conditions: [] });
  await clock.go(SECOND_MS);
  transport.cut(true);
  store.restore(backedUp, () => false);
  world.patchNode({ volumesInUse: ['other'] });
  await clock.go(SECOND_MS);
  transport.cut(false);
  await clock.go(10 * SECOND_MS);
  // It stands in doubt: its name stays to be written, however often that fails.
  world.stand(THREE);
  world.attach(THREE);
  store.asked.splice(0);
  void attachment.attach(THREE, callOf(THREE));
  await clock.go(60 * SECOND_MS);
  const writes = store.asked.filter((one) => one.startsWith('PATCH')).length;
  assert.ok(writes > 0 && writes <= 20, `${writes} writes in a minute`);
});

test('a restored backup that nothing but silence tells of is noticed, and what stands is listed again', async () => {
  const world = attachmentWorld({ reported: NODE_UID });
  const { store, clock, transport } = world;
  world.stand(ONE);
  const backedUp = store.version();
  const { attachment } = world.begin();
  for (let minute = 0; minute < 3; minute += 1) {
    await clock.go(60 * SECOND_MS);
    store.age(1_000);
    world.patchNode({ beat: minute });
  }
  await clock.go(SECOND_MS);
  // It is not waited for, whatever became of it: the versions that would tell are a long way off.
  store.instead = (method) => (method === 'PATCH' ? refusal(500, 'no quorum') : undefined);
  assert.equal(codeOf(await within(world, attachment.attach(TWO, callOf(TWO)))), 'in-use-unreported');
  store.instead = () => undefined;
  transport.cut(true);
  store.restore(backedUp, () => false);
  world.patchNode({ volumesInUse: [] });
  await clock.go(SECOND_MS);
  transport.cut(false);
  await clock.go(5 * 60 * SECOND_MS);
  assert.deepEqual(world.inUse(), [NAME]);
  const version = store.version();
  await clock.go(60 * SECOND_MS);
  assert.ok(store.version() - version <= 1, `it is written ${store.version() - version} times more`);
});

test('a Node that is made anew has no other writer: what it lists is written, and nobody is blamed', async () => {
  const world = attachmentWorld();
  world.stand(ONE);
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  for (let time = 0; time < 4; time += 1) {
    world.store.remove(NODES, NODE);
    if (time % 2 === 0) await world.clock.go(SECOND_MS);
    world.store.put(NODES, { metadata: { name: NODE }, status: {} });
    await world.clock.go(2 * SECOND_MS);
    assert.deepEqual(world.inUse(), [NAME]);
  }
  assert.equal(codeOf(await within(world, attachment.attach(TWO, callOf(TWO)))), 'not-attached');
});

test('a volume that waits is tried again when it is attached, and when the Node lists it', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  assert.match(
    messageOf(await within(world, attachment.attach(ONE, callOf(ONE)))),
    /the attach\/detach controller of the cluster has to make it/,
  );
  attachment.look();
  await world.clock.go(SECOND_MS);
  woken.splice(0);
  world.attach(ONE, { attached: false, attachError: { message: 'no free slot' } });
  await world.clock.go(SECOND_MS);
  assert.ok(woken.length > 0);
  assert.match(
    messageOf(await within(world, attachment.attach(ONE, callOf(ONE)))),
    /csi-attacher.*no free slot/,
  );
  woken.splice(0);
  world.attach(ONE);
  await world.clock.go(SECOND_MS);
  assert.ok(woken.length > 0);
  assert.ok((await within(world, attachment.attach(ONE, callOf(ONE))))?.ok);
});

for (const mayWatch of [true, false]) {
  const how = mayWatch ? 'watched by its name' : 'read by its name, where nothing else is allowed';
  test(`an attachment ${how}: lost when it is gone twice, replaced by another uid`, async () => {
    const world = attachmentWorld();
    if (!mayWatch)
      world.store.instead = (_, path) =>
        path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'can only read by name') : undefined;
    world.attach(ONE);
    const uid = metadataOf(world.attachmentOf(ONE)).uid;
    world.stand(ONE, { staged: PRESENT, attachmentUid: uid });
    const { attachment, words } = world.begin();
    await world.clock.go(SECOND_MS);
    const said = { kind: 'granted', uid, publishContext: {} };
    assert.deepEqual(attachment.wordOf(ONE.id), { word: undefined, uid, said });
    const before = words();
    world.detach(ONE);
    await world.clock.go(SECOND_MS);
    assert.ok(words() > before);
    assert.equal(attachment.wordOf(ONE.id)?.word?.lost, false, 'one look is none');
    await world.clock.go(3 * SECOND_MS);
    assert.equal(attachment.wordOf(ONE.id)?.word?.lost, true);
    assert.deepEqual(attachment.standing(), [ONE.id]);
    // What has been taken down is lost to nobody, and its quarantine ends (seed 373).
    world.stand(ONE, { attachmentUid: uid });
    assert.deepEqual(attachment.standing(), []);
    world.stand(ONE, { staged: PRESENT, attachmentUid: uid });
    world.attach(ONE);
    await world.clock.go(SECOND_MS);
    const now = attachment.wordOf(ONE.id);
    assert.equal(now?.word?.lost, false);
    assert.ok(now?.uid !== undefined && now.uid !== uid);
  });
}

test('what our own call attached and nothing stands of is asked about: the cluster may have it, too', async () => {
  const world = attachmentWorld();
  // As a restart of the machine leaves it: nobody knows under which attachment it was used before.
  const attached = { kind: 'unsure', because: 'restart' } as const;
  world.stand(ONE, { attached, attachedNode: 'node-1', publishContext: {} });
  const { attachment, words } = world.begin();
  await world.clock.go(10 * SECOND_MS);
  assert.deepEqual(attachment.standing(), [ONE.id]);
  assert.notEqual(
    attachment.wordOf(ONE.id)?.word?.lost,
    true,
    'that the cluster never attached it is no loss',
  );
  const before = words();
  world.attach(ONE);
  await world.clock.go(SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id)?.uid, metadataOf(world.attachmentOf(ONE)).uid);
  assert.ok(words() > before, 'who reads the words is told');
  world.stand(ONE, { attachedNode: 'node-1', publishContext: {} });
  world.detach(ONE);
  await world.clock.go(10 * SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id)?.word?.lost, false);
});

/** Each way in which the Node's list was another one meanwhile, and nobody here saw it so. */
const UNSEEN: readonly {
  readonly how: string;
  readonly replace: (world: ReturnType<typeof attachmentWorld>, node: NodeObject) => Promise<void>;
}[] = [
  {
    how: 'while the watch of the Node was lost, and its history is gone (seed 136140094)',
    async replace(world) {
      world.transport.cut(true);
      world.detach(ONE);
      world.attach(ONE);
      await world.clock.go(SECOND_MS);
      world.store.compact();
      world.transport.cut(false);
    },
  },
  {
    how: 'and one piece of the watch tells both changes of the Node',
    async replace(world) {
      world.detach(ONE);
      world.attach(ONE);
    },
  },
  {
    how: 'and an answer to a write is faster than the watch',
    async replace(world, node) {
      world.detach(ONE);
      world.attach(ONE);
      const newest = readEnvelope(world.store.get(NODES, NODE));
      assert.ok(newest !== undefined);
      node.learn(newest);
    },
  },
];

for (const { how, replace } of UNSEEN)
  test(`an attachment is replaced ${how}: another uid within a minute`, async () => {
    const world = attachmentWorld();
    world.store.instead = (_, path) =>
      path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'can only read by name') : undefined;
    world.attach(ONE);
    const { uid } = metadataOf(world.attachmentOf(ONE));
    world.stand(ONE, { staged: PRESENT, attachmentUid: uid });
    const { attachment, node, words } = world.begin();
    await world.clock.go(SECOND_MS);
    const before = words();
    await replace(world, node);
    await world.clock.go(60 * SECOND_MS);
    assert.ok(words() > before);
    assert.equal(attachment.wordOf(ONE.id)?.uid, metadataOf(world.attachmentOf(ONE)).uid);
    assert.notEqual(attachment.wordOf(ONE.id)?.uid, uid);
  });

test('an attachment that says something else of its volume is another word about it, and no loss', async () => {
  const world = attachmentWorld();
  world.attach(ONE, { attached: true, attachmentMetadata: { lun: '7' } });
  const { uid } = metadataOf(world.attachmentOf(ONE));
  world.stand(ONE, { staged: PRESENT, attachmentUid: uid, publishContext: { lun: '7' } });
  const { attachment, words } = world.begin();
  await world.clock.go(SECOND_MS);
  assert.deepEqual(attachment.wordOf(ONE.id)?.said?.publishContext, { lun: '7' });
  const before = words();
  world.attach(ONE, { attached: true, attachmentMetadata: { lun: '8' } });
  await world.clock.go(SECOND_MS);
  assert.ok(words() > before);
  const now = attachment.wordOf(ONE.id);
  assert.deepEqual([now?.word, now?.said?.uid, now?.said?.publishContext], [undefined, uid, { lun: '8' }]);
});

test('an attachment that is on its way off is asked for until another one is there (seed 1670)', async () => {
  const world = attachmentWorld();
  // A plain node may not watch it, and the list in the Node is the same before and after.
  world.store.instead = (_, path) =>
    path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'can only read by name') : undefined;
  world.attach(ONE);
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' }, staged: PRESENT });
  const { attachment, words } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE, { attached: true }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  // It is this look that finds it so, and no other one is due for minutes.
  assert.equal(codeOf(await within(world, attachment.attach(ONE, callOf(ONE)))), 'not-attached');
  assert.match(attachment.wordOf(ONE.id)?.word?.blocked.message ?? '', /is being deleted/);
  const before = words();
  world.store.remove(ATTACHMENTS, attachmentNameOf(ONE, NODE));
  world.attach(ONE);
  await world.clock.go(20 * SECOND_MS);
  assert.ok(words() > before);
  assert.equal(attachment.wordOf(ONE.id)?.word, undefined);
});

test('what cannot be read is not gone: nothing new, and nothing lost', async () => {
  const world = attachmentWorld();
  world.attach(ONE);
  world.stand(ONE, { staged: PRESENT });
  world.store.denied.add(ATTACHMENTS);
  const { attachment } = world.begin();
  await world.clock.go(30 * SECOND_MS);
  const word = attachment.wordOf(ONE.id)?.word;
  assert.deepEqual([word?.lost, word?.blocked.code], [false, 'not-attached']);
  assert.match(word?.blocked.message ?? '', /system:node:n1 to get volumeattachments/);
});

test('what stands is not lost because somebody between us and the server finds nothing', async () => {
  const world = attachmentWorld();
  world.stand(ONE);
  world.attach(ONE);
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id)?.word, undefined);
  world.store.instead = () => NOT_OF_THE_SERVER;
  world.patchNode({ volumesAttached: [] });
  await world.clock.go(30 * SECOND_MS);
  assert.ok(world.store.asked.filter((one) => one.startsWith('GET') && one.includes('csi-')).length > 1);
  assert.notEqual(attachment.wordOf(ONE.id)?.word?.lost, true);
});

test('a right to watch that is missing for a moment is used when it is there', async () => {
  const world = attachmentWorld();
  // A server that was started a moment ago does not know its own rules yet.
  world.store.instead = (method, path) =>
    method === 'GET' && path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'role not found') : undefined;
  for (const one of [ONE, TWO, THREE]) {
    world.stand(one);
    world.attach(one);
  }
  const { attachment } = world.begin();
  const tries = () => world.store.asked.filter((one) => one.startsWith(`GET ${ATTACHMENTS}?`)).length;
  await world.clock.go(SECOND_MS);
  const before = tries();
  await world.clock.go(1_800 * SECOND_MS);
  assert.ok(tries() - before <= 4, `${tries() - before} tries in half an hour`);
  world.store.instead = () => undefined;
  await world.clock.go(610 * SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id)?.word, undefined);
  // Nothing but a watch tells of that so soon.
  for (const one of [ONE, TWO, THREE]) world.store.remove(ATTACHMENTS, attachmentNameOf(one, NODE));
  await world.clock.go(5 * SECOND_MS);
  assert.deepEqual(
    [ONE, TWO, THREE].map(({ id }) => attachment.wordOf(id)?.word?.lost),
    [true, true, true],
  );
});

test('a right to watch that was taken away is not asked for at the pace of those that had it', async () => {
  const world = attachmentWorld();
  for (const one of [ONE, TWO]) {
    world.stand(one);
    world.attach(one);
  }
  const { attachment } = world.begin();
  await world.clock.go(10 * SECOND_MS);
  world.store.instead = (method, path) =>
    (method === 'GET' || method === 'WATCH') && path.startsWith(`${ATTACHMENTS}?`)
      ? refusal(403, 'the role was taken away')
      : undefined;
  world.stand(THREE);
  world.attach(THREE);
  attachment.look();
  const name = attachmentNameOf(THREE, NODE);
  const tries = () =>
    world.store.asked.filter((one) => one.startsWith(`GET ${ATTACHMENTS}?`) && one.includes(name)).length;
  await world.clock.go(700 * SECOND_MS);
  const before = tries();
  assert.ok(before > 0);
  await world.clock.go(1_800 * SECOND_MS);
  assert.ok(tries() - before <= 4, `${tries() - before} tries in half an hour`);
});

test('a Node that stays as it is for minutes is touched, and the controller hears of it', async () => {
  const world = attachmentWorld();
  world.begin();
  await world.clock.go(SECOND_MS);
  const version = world.store.version();
  await world.clock.go(200 * SECOND_MS);
  assert.equal(world.store.version(), version);
  await world.clock.go(100 * SECOND_MS);
  assert.ok(world.store.version() > version);
});

test('when what stands is another, the word on it is told anew: nothing waits for a word of before', async () => {
  const world = attachmentWorld();
  world.attach(ONE);
  world.stand(ONE, { staged: PRESENT, attachmentUid: 'of-before' });
  const { attachment, words } = world.begin();
  await world.clock.go(SECOND_MS);
  assert.match(attachment.wordOf(ONE.id)?.word?.blocked.message ?? '', /made anew/);
  const before = words();
  // Out of quarantine: it is down, and asked for once more.
  world.stand(ONE, { attached: { kind: 'unsure', because: 'restart' } });
  attachment.look();
  await world.clock.go(SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id), undefined);
  assert.equal(words(), before + 1);
  attachment.look();
  await world.clock.go(SECOND_MS);
  assert.equal(words(), before + 1, 'and once is enough');
});

test('an attachment that could not be read when it counted is tried again when the server answers', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE, { attached: true, attachmentMetadata: { lun: '7' } });
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  await world.clock.go(30 * SECOND_MS);
  woken.splice(0);
  world.store.instead = (method, path) =>
    method === 'GET' && path.startsWith(`${ATTACHMENTS}/`) ? refusal(500, 'a moment') : undefined;
  const refused = await within(world, attachment.attach(ONE, callOf(ONE)), 3 * SECOND_MS);
  assert.deepEqual([codeOf(refused), woken], ['not-attached', []]);
  world.store.instead = () => undefined;
  await world.clock.go(20 * SECOND_MS);
  assert.ok(woken.includes(ONE.id));
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)));
  assert.deepEqual(attached?.ok && attached.value.publishContext, { lun: '7' });
});

test('what was refused is tried again though the Node changed before anybody had looked at the refusal', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE);
  world.patchNode({ volumesAttached: [] });
  await world.clock.go(SECOND_MS);
  const refused = await within(world, attachment.attach(ONE, callOf(ONE)), SECOND_MS);
  assert.equal(codeOf(refused), 'not-attached');
  // The controller lists it, and only then the agent looks at what came of its operation.
  world.attach(ONE);
  await world.clock.go(1);
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  await world.clock.go(SECOND_MS);
  assert.ok(woken.includes(ONE.id));
});

test('what stands and is not attached is asked about like what waits, until it is attached again', async () => {
  const world = attachmentWorld();
  // A plain node identity: it may read by name, and not watch.
  world.store.instead = (_, path) =>
    path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'cannot list') : undefined;
  world.attach(ONE, { attached: false });
  world.stand(ONE);
  const { attachment, words } = world.begin();
  await world.clock.go(SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id)?.word?.lost, true);
  const before = words();
  await world.clock.go(60 * SECOND_MS);
  world.attach(ONE);
  await world.clock.go(15 * SECOND_MS);
  assert.deepEqual([attachment.wordOf(ONE.id)?.word, words() > before], [undefined, true]);
});

/** ONE was refused while it was not attached, and still comes. */
async function refusedWorld() {
  const world = attachmentWorld();
  world.attach(ONE, { attached: false });
  const { attachment } = world.begin();
  const because = { code: 'not-attached', message: 'not yet', effect: 'unknown' } as const;
  const attached = { kind: 'unsure', because } as const;
  world.stand(ONE, { attached });
  attachment.look();
  assert.equal(codeOf(await within(world, attachment.attach(ONE, callOf(ONE)))), 'not-attached');
  return {
    world,
    attachment,
    standInDoubt(): void {
      world.stand(ONE, { attached, staged: attached });
      attachment.look();
    },
  };
}

test('what an attachment said before anything stood here is no loss of what stands since (16497)', async () => {
  const { world, attachment, standInDoubt } = await refusedWorld();
  await world.clock.go(SECOND_MS);
  // It is attached while nobody can tell, and a call of long ago may have staged it.
  world.transport.cut(true);
  world.attach(ONE);
  standInDoubt();
  const word = () => attachment.wordOf(ONE.id)?.word;
  assert.equal(word()?.lost, false);
  await world.clock.go(60 * SECOND_MS);
  assert.equal(word()?.lost, false);
  assert.match(word()?.blocked.message ?? '', /asked for before anything/);
  world.transport.cut(false);
  await world.clock.go(30 * SECOND_MS);
  assert.equal(word(), undefined);
});

test('what an attachment said before anything stood here is asked for again, and then it is a loss', async () => {
  const { world, attachment, standInDoubt } = await refusedWorld();
  await world.clock.go(60 * SECOND_MS);
  standInDoubt();
  await world.clock.go(SECOND_MS);
  assert.equal(attachment.wordOf(ONE.id)?.word?.lost, true);
});

test('what could not be read when it counted is tried again though a read beside it was answered', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  let reads = 0;
  const attaching: ReturnType<typeof attachment.attach>[] = [];
  world.store.instead = (_, path) => {
    if (path.startsWith(`${ATTACHMENTS}?`)) return refusal(403, 'cannot list');
    if (!path.startsWith(`${ATTACHMENTS}/`)) return undefined;
    reads += 1;
    if (reads === 2) attaching.push(attachment.attach(ONE, callOf(ONE)));
    return reads === 3 ? refusal(500, 'a moment') : undefined;
  };
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  assert.equal(codeOf(await within(world, attachment.attach(ONE, callOf(ONE)))), 'not-attached');
  world.attach(ONE);
  while (attaching.length === 0) await world.clock.go(1);
  woken.splice(0);
  const [second] = attaching;
  assert.ok(second);
  assert.equal(codeOf(await within(world, second, 20)), 'not-attached');
  attachment.look();
  await world.clock.go(50);
  assert.deepEqual(woken, [ONE.id], 'once');
});

test('one that comes is asked about when it is reported and when the Node lists it, and no more', async () => {
  const world = attachmentWorld();
  const { attachment, woken } = world.begin();
  await world.clock.go(SECOND_MS);
  let reads = 0;
  world.store.instead = (method, path) => {
    if (path.startsWith(`${ATTACHMENTS}?`)) return refusal(403, 'cannot list');
    if (method === 'GET' && path.startsWith(`${ATTACHMENTS}/`)) reads += 1;
    return undefined;
  };
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  await world.clock.go(100);
  const refused = await within(world, attachment.attach(ONE, callOf(ONE)), 30);
  assert.deepEqual([codeOf(refused), reads], ['not-attached', 1]);
  const again = await within(world, attachment.attach(ONE, callOf(ONE)), 30);
  assert.deepEqual([codeOf(again), reads], ['not-attached', 1], 'not listed, so it cannot be granted');
  woken.splice(0);
  world.attach(ONE);
  await world.clock.go(30);
  assert.deepEqual(woken, [ONE.id]);
  const attached = await within(world, attachment.attach(ONE, callOf(ONE)), 30);
  assert.deepEqual([attached?.ok, reads], [true, 2]);
});

test('who waits for the Node to list what is attached is told what its attachment says by now', async () => {
  const world = attachmentWorld();
  world.store.instead = (_, path) =>
    path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'cannot list') : undefined;
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  world.attach(ONE);
  world.patchNode({ volumesAttached: [] });
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  const ask = async () => {
    const refused = await within(world, attachment.attach(ONE, callOf(ONE)));
    return refused?.ok === false ? refused.failure.message : '';
  };
  assert.match(await ask(), /has not listed it/);
  world.detach(ONE);
  await world.clock.go(20 * SECOND_MS);
  assert.match(await ask(), /there is no VolumeAttachment/);
});

/** A volume whose use is acknowledged and whose attachment is not there yet; none may be watched. */
async function awaited() {
  const world = attachmentWorld();
  world.store.instead = (_, path) =>
    path.startsWith(`${ATTACHMENTS}?`) ? refusal(403, 'cannot list') : undefined;
  const life = world.begin();
  const { attachment } = life;
  await world.clock.go(SECOND_MS);
  world.stand(ONE, { attached: { kind: 'unsure', because: 'begun' } });
  attachment.look();
  await world.clock.go(100);
  const ask = () => within(world, attachment.attach(ONE, callOf(ONE)), 30);
  assert.match(messageOf(await ask()), /there is no VolumeAttachment/);
  return { world, life, ask };
}

test('what was attached since its use was acknowledged is granted before the Node lists it (D-131)', async () => {
  const { world, life, ask } = await awaited();
  life.woken.splice(0);
  world.make(ONE);
  await world.clock.go(500);
  assert.deepEqual(life.woken, [ONE.id]);
  assert.ok((await ask())?.ok);
  world.stand(ONE, { staged: PRESENT, attachmentUid: metadataOf(world.attachmentOf(ONE)).uid });
  assert.equal(life.attachment.wordOf(ONE.id)?.word, undefined, 'and so it may have a further pod');
  world.attach(ONE);
  await world.clock.go(100);
  world.patchNode({ volumesAttached: [] });
  await world.clock.go(100);
  assert.match(
    life.attachment.wordOf(ONE.id)?.word?.blocked.message ?? '',
    /has not listed/,
    'listed, and no more',
  );
});

/** Each way in which somebody may have begun to take it away, as far as this node can know. */
const NOT_PROVEN: readonly {
  readonly how: string;
  readonly happen: (world: ReturnType<typeof attachmentWorld>) => Promise<void>;
}[] = [
  {
    how: 'somebody took the volume off the list of what is in use',
    async happen(world) {
      world.patchNode({ volumesInUse: [] });
    },
  },
  {
    how: 'the Node was made anew',
    async happen(world) {
      world.store.remove(NODES, NODE);
      await world.clock.go(20);
      world.store.put(NODES, { metadata: { name: NODE, uid: 'another', annotations: {} }, status: {} });
    },
  },
  {
    how: 'states of the Node went by unseen',
    async happen(world) {
      world.transport.cut(true);
      world.patchNode({ images: [] });
      await world.clock.go(100);
      world.store.compact();
      world.transport.cut(false);
    },
  },
];

for (const { how, happen } of NOT_PROVEN)
  test(`an attachment that came while ${how} is granted when the Node lists it`, async () => {
    const { world, ask } = await awaited();
    await happen(world);
    world.make(ONE);
    await world.clock.go(20 * SECOND_MS);
    assert.match(messageOf(await ask()), /has not listed it/);
    world.attach(ONE);
    await world.clock.go(SECOND_MS);
    assert.ok((await ask())?.ok);
  });

for (const attachmentMetadata of [{ lun: '7' }, undefined])
  test(`one that goes is not asked about, ${attachmentMetadata ? 'with' : 'without'} a context`, async () => {
    const world = attachmentWorld();
    let reads = 0;
    world.store.instead = (method, path) => {
      if (path.startsWith(`${ATTACHMENTS}?`)) return refusal(403, 'cannot list');
      if (method === 'GET' && path.startsWith(`${ATTACHMENTS}/`)) reads += 1;
      return undefined;
    };
    const { attachment } = world.begin();
    await world.clock.go(SECOND_MS);
    world.attach(ONE, { attached: true, attachmentMetadata });
    const attached = await within(world, attachment.attach(ONE, callOf(ONE)));
    assert.ok(attached?.ok);
    const { publishContext } = attached.value;
    world.stand(ONE, { publishContext });
    attachment.look();
    await world.clock.go(SECOND_MS);
    const before = reads;
    world.stand(ONE, { publishContext, attached: { kind: 'unsure', because: 'begun' } });
    attachment.look();
    await world.clock.go(SECOND_MS);
    assert.equal((await within(world, attachment.detach(ONE, callOf(ONE))))?.ok, true);
    // The controller is quicker than the look at what has become of the volume.
    world.detach(ONE);
    await world.clock.go(SECOND_MS);
    assert.equal(reads, before);
  });

test('D-116: what its attachment says is told on its way down, too (seed 6473 about cluster)', async () => {
  const world = attachmentWorld();
  world.stand(ONE, { publishContext: { lun: '1' } });
  world.attach(ONE, { attached: true, attachmentMetadata: { lun: '2' } });
  const { attachment } = world.begin();
  await world.clock.go(SECOND_MS);
  const said = () => attachment.wordOf(ONE.id)?.said?.publishContext;
  assert.deepEqual(said(), { lun: '2' });
  const onItsWay = { attached: { kind: 'unsure', because: 'begun' } } as const;
  world.stand(ONE, { ...onItsWay, publishContext: { lun: '1' } });
  assert.deepEqual(said(), { lun: '2' }, 'else it would be wanted by what is believed, and stay');
  world.stand(ONE, onItsWay);
  assert.equal(attachment.wordOf(ONE.id), undefined, 'what comes for the first time knows nothing else');
});
