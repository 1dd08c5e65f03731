/**
 * A node that nobody hears any more, and whose containers go on writing: the cluster gives its volume to another one by
 * force. What the first one writes from then on is in no byte that the other reads, and when it is heard again it lets
 * go of all that it has before it is given the volume anew.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { mountsBelow, runToEnd } from '../demo/machine.ts';
import type { Program } from '../interop/program.ts';
import { createWorld, NODE, type World } from '../interop/world.ts';
import { until } from '../until.ts';
import { claim, inUse, isFree, MINUTES, startDriver, startManagedAgent } from './attached-world.ts';
import {
  type Cluster,
  clusterObstacle,
  deletePod,
  makeCsiDriver,
  makeImage,
  makePod,
  makeVolume,
  placeOf,
  sharedCluster,
} from './cluster-world.ts';
import { logIn, startWriter, turnsIn } from './container.ts';
import { createLink, type Link } from './link.ts';
import { collectPod, returnToService, setReady, takeOutOfService } from './out-of-service.ts';
import { type SharedDisk, shareDisk } from './shared-disk.ts';
import { attachmentsIn, startAttacher } from './test-attacher.ts';

const skip = clusterObstacle();
const OTHER = 'other-node';
const cluster = sharedCluster({ otherNodes: [OTHER], collectsPods: true });
const MINUTE_MS = 60_000;
/** Without a word, as short as everybody's own clocks allow. */
const PARTITION_MINUTES = Number(process.env['PARTITION_MINUTES'] ?? 0);
/** Then nobody declares the node out of service: the attach/detach controller takes it after its own six minutes. */
const BY_CLOCK = PARTITION_MINUTES >= 7;
const TAKEN = { waitMsMax: 10 * MINUTE_MS, lookEveryMs: 50 };

interface Parted {
  readonly admin: Cluster['admin'];
  /** The volume has it, and its claim. */
  readonly name: string;
  /** The one that is not heard, and how it would be. */
  readonly lone: World;
  readonly link: Link;
  readonly other: World;
  readonly disk: SharedDisk;
}

/** The nodes that have the volume, as far as the cluster knows. */
async function attachedTo({ admin }: Parted): Promise<readonly string[]> {
  const all = await attachmentsIn(admin);
  return all.filter(({ status }) => status?.attached === true).map(({ spec }) => spec.nodeName);
}

/** The cluster gives the node up, and takes the volume without a word of the node. */
async function takeByForce({ admin }: Parted, pod: string): Promise<void> {
  if (BY_CLOCK) {
    await setReady(admin, false);
    await deletePod(admin, pod);
  } else {
    await takeOutOfService(admin);
    await collectPod(admin, pod);
  }
  await until('the volume is taken', async () => (await attachmentsIn(admin)).length === 0, TAKEN);
}

/** Both have it, and the one that was not asked writes to nobody. The answer: who writes, here and there. */
async function liveApart(parted: Parted, place: string, whileApart: () => Promise<void>) {
  const { admin, name, lone, other, disk, link } = parted;
  const beginMs = performance.now();
  link.cut(true);
  await lone.until('it hears nothing', ({ sources }) => sources.cluster?.state === 'broken');
  await takeByForce(parted, 'before');
  const here = await startWriter(place, 'stray');
  await whileApart();
  await makePod(admin, 'after', claim(name), OTHER);
  const otherPlace = placeOf(await other.untilReady('after'), 'after');
  assert.deepEqual(turnsIn(logIn(otherPlace)), ['before']);
  const there = await startWriter(otherPlace, 'after');
  await pause(Math.max(0, beginMs + PARTITION_MINUTES * MINUTE_MS - performance.now()));
  // As it has no word of anybody, it has all that it had.
  assert.ok(logIn(place).endsWith('\n') && mountsBelow(lone.root).some(({ target }) => target === place));
  // On its own disk, so that nobody is the witness of what was never written.
  await runToEnd('sync', ['--file-system', place]);
  assert.ok(disk.holdsOf(lone, 'stray 3\n'));
  assert.ok(link.knocks() > 0, 'it has tried to be heard');
  return { here, there };
}

/**
 * It is heard again, and still has what it had: in quarantine, unless the right to read of the attachment went with the
 * pod that led to it, so that nobody tells the node that it is gone.
 */
async function returnStained(parted: Parted): Promise<string> {
  const { admin, lone, link } = parted;
  link.cut(false);
  const { volumes } = await lone.until('it knows what it may know', (status) => {
    const isHeld =
      status.pods.every(({ wanted }) => !wanted) && /volume-held/.test(JSON.stringify(status.pods));
    const isKnown = BY_CLOCK ? isHeld : status.volumes.some(({ quarantine }) => quarantine !== null);
    return isKnown && status.sources.cluster?.state === 'following';
  });
  assert.deepEqual(await attachedTo(parted), [OTHER]);
  assert.equal((await inUse(admin)).length, 1);
  return volumes[0]?.id ?? assert.fail('there is one');
}

/** The cluster gives the volume to the lone node again, before that has let go of what it had: it waits. */
async function waitStained(parted: Parted): Promise<void> {
  const { admin, name, lone } = parted;
  await returnToService(admin);
  await makePod(admin, 'back', claim(name));
  await until(
    'the cluster has given it back',
    async () => (await attachedTo(parted)).includes(NODE),
    MINUTES,
  );
  const { pods, volumes } = await lone.until('it is kept from the pod', (status) => {
    const isBlocked = ({ state }: { readonly state: string }): boolean => state === 'blocked';
    return (
      status.pods.some((pod) => pod.name === 'back' && pod.volumes.every(isBlocked)) &&
      status.volumes.some(({ quarantine }) => quarantine !== null)
    );
  });
  const uid = pods.find(({ name }) => name === 'back')?.uid ?? assert.fail();
  assert.ok(!mountsBelow(lone.root).some(({ target }) => target.includes(uid)));
  assert.ok(volumes.every(({ quarantine }) => quarantine !== null && !quarantine.verified));
}

async function partAndReturn(parted: Parted, whileApart: () => Promise<void>): Promise<void> {
  const { admin, name, lone, other, disk } = parted;
  await makePod(admin, 'before', claim(name));
  const place = placeOf(await lone.untilReady('before'), 'before');
  const first = await startWriter(place, 'before');
  const writers = [first];
  try {
    const { here, there } = await liveApart(parted, place, whileApart);
    writers.push(here, there);
    const volume = await returnStained(parted);
    await there.end();
    await deletePod(admin, 'after');
    await other.untilEmpty();
    await until('nobody has it', async () => (await attachedTo(parted)).length === 0, MINUTES);
    assert.equal(disk.holds('stray '), false, 'what it wrote alone is on the disk that the other one had');
    await waitStained(parted);
    await first.end();
    await here.end();
    // Whoever says so before has looked at nothing.
    await until('nothing of it is mounted', () => mountsBelow(lone.root).length === 0, MINUTES);
    await until('it is proven clean, or an operator says so', () => isFree(lone, volume), MINUTES);
  } finally {
    for (const writer of writers) await writer.end();
  }
  const again = placeOf(await lone.untilReady('back'), 'back');
  assert.deepEqual(turnsIn(logIn(again)), ['before', 'after']);
  await deletePod(admin, 'back');
  await lone.untilEmpty();
  await until('it is detached', async () => (await attachmentsIn(admin)).length === 0, MINUTES);
  await until('it is off the list', async () => (await inUse(admin)).length === 0, MINUTES);
  assert.equal(disk.holds('stray '), false);
  assert.deepEqual(disk.givenTwice, []);
}

async function inParted(
  name: string,
  tell: (parted: Parted, agent: Program) => Promise<void>,
): Promise<void> {
  const { admin, plane } = await cluster();
  const driver = `${name}.example.com`;
  const link = await createLink(plane.nodeKubeconfig);
  const lone = createWorld([`kubeconfig: ${link.kubeconfig}`]);
  const other = createWorld([`kubeconfig: ${plane.kubeconfigOf(OTHER)}`], OTHER);
  const attachers: ReturnType<typeof startAttacher>[] = [];
  const left: string[] = [];
  try {
    await makeCsiDriver(admin, driver, true);
    const handle = await makeImage(lone, name);
    const disk = shareDisk(handle, lone, [other]);
    await makeVolume(admin, name, driver, handle);
    const agents: Program[] = [];
    for (const [nodeName, world] of [
      [OTHER, other],
      [NODE, lone],
    ] as const) {
      await startDriver(world, driver);
      const storage = disk.storageOf(world);
      attachers.push(startAttacher(admin, driver, world.socketOf(driver), { nodeName, storage }));
      agents.push(await startManagedAgent(world, admin, driver, nodeName));
    }
    await tell({ admin, name, lone, link, other, disk }, agents.at(-1) ?? assert.fail());
    assert.deepEqual(
      attachers.flatMap(({ refused }) => refused),
      [],
    );
  } catch (error) {
    process.stderr.write(`${lone.lastWords()}\n${other.lastWords()}\n`);
    throw error;
  } finally {
    for (const attacher of attachers) await attacher.stop();
    for (const world of [lone, other]) left.push(...(await world.close()));
    await link.close();
  }
  assert.deepEqual(left, [], 'left behind');
}

const howLong = PARTITION_MINUTES === 0 ? '' : ` for ${PARTITION_MINUTES} minutes`;

test(`a node is cut off${howLong} and its volume given away: nothing that it writes reaches the new owner`, {
  skip,
}, async () => {
  await inParted('parted', (parted) => partAndReturn(parted, async () => undefined));
});

test(`a node is cut off${howLong}, and its agent starts anew before it is heard: it is the same`, {
  skip,
}, async () => {
  await inParted('anew', (parted, agent) =>
    partAndReturn(parted, async () => {
      await agent.end('SIGKILL');
      await parted.lone.startAgent();
      await parted.lone.until('it has looked', ({ sources }) => sources.cluster?.state === 'broken');
    }),
  );
});
