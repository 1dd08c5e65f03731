/**
 * Pods that share a volume come and go while the agent, the controllers and the API server are killed at any moment.
 * Each call is judged by the oracle in front of the driver, which itself refuses what is too early or too late, and the
 * server never lacks a mounted volume in its list of what is in use. `SHARED_ROUNDS=200` is what was promised; the gate
 * has fewer. `SHARED_SEED` draws the same again.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { mountsBelow } from '../demo/machine.ts';
import { buildPrograms, programFile } from '../interop/go-program.ts';
import { startRegistrar } from '../interop/mock.ts';
import { inWorld, type World } from '../interop/world.ts';
import { createRandom } from '../sim/random.ts';
import { until } from '../until.ts';
import { claim, inUse, MINUTES, startManagedAgent, untilDetached } from './attached-world.ts';
import {
  type Cluster,
  clusterObstacle,
  deletePod,
  makeCsiDriver,
  makeImage,
  makePod,
  makeVolume,
  sharedCluster,
} from './cluster-world.ts';
import { startAttacher } from './test-attacher.ts';

const skip = clusterObstacle() || (buildPrograms(['registrar']) ?? false);
const cluster = sharedCluster();
const ROUNDS = Number(process.env['SHARED_ROUNDS'] ?? 16);
const SEED = Number(process.env['SHARED_SEED'] ?? randomInt(1_000_000));
const PODS_MAX = 3;
/** From what is asked for to its end: the attach/detach controller takes most of it. */
const MOMENT_MS_MAX = 1_500;
const DRIVER = 'shared.example.com';

test(`${ROUNDS} rounds of pods that share a volume, and of whatever is killed (seed ${SEED}): no call out of order`, {
  skip,
}, async (t) => {
  const shared = await cluster();
  const { admin, plane } = shared;
  await makeCsiDriver(admin, DRIVER, true);
  await inWorld(async (world) => {
    const witness = world.witness(DRIVER);
    await world.startLoopfile(witness.behind, '--name', DRIVER, '--attach');
    await witness.open();
    startRegistrar(world, programFile('registrar'), witness);
    const attacher = startAttacher(admin, DRIVER, witness.front);
    const handle = await makeImage(world, 'shared');
    await makeVolume(admin, 'shared', DRIVER, handle);
    const sampled = sampleUse(world, shared, `kubernetes.io/csi/${DRIVER}^${handle}`);
    try {
      const told = await play(world, shared);
      t.diagnostic(told);
      await untilDetached(admin, DRIVER);
    } finally {
      await attacher.stop();
    }
    const { samples, missing } = await sampled.end();
    t.diagnostic(`mounted in ${samples} samples of what is in use`);
    assert.deepEqual(missing, [], 'what is mounted is in use for the server');
    assert.deepEqual(attacher.refused, [], 'nothing was asked of the driver that was too early or too late');
  }, `kubeconfig: ${plane.nodeKubeconfig}`);
});

/** The answer: what happened, for people. */
async function play(world: World, shared: Cluster): Promise<string> {
  const { admin } = shared;
  const random = createRandom(SEED);
  const killed = { agent: 0, controllers: 0, server: 0 };
  const wanted: string[] = [];
  let agent = await startManagedAgent(world, admin, DRIVER);
  const kill = async (what: keyof typeof killed): Promise<void> => {
    killed[what] += 1;
    if (what === 'controllers') return shared.restartControllers();
    if (what === 'server') return shared.restartApiServer();
    await agent.end('SIGKILL');
    agent = await world.startAgent();
  };
  const settle = async (): Promise<void> => {
    await world.until(`the pods ${wanted.join(', ')} are ready, and no others there`, ({ pods }) => {
      const names = pods.map(({ name }) => name).sort();
      return names.join() === [...wanted].sort().join() && pods.every(({ ready }) => ready);
    });
    if (wanted.length === 0 && random.chance(0.5)) await untilDetached(admin, DRIVER);
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const goes = wanted.length === PODS_MAX || (wanted.length > 0 && random.chance(0.5));
    if (goes) {
      const [name = ''] = wanted.splice(random.below(wanted.length), 1);
      await deletePod(admin, name);
    } else {
      wanted.push(`pod-${round}`);
      await makePod(admin, `pod-${round}`, claim('shared'));
    }
    if (random.chance(0.4)) {
      await pause(random.between(0, MOMENT_MS_MAX));
      await kill(random.pick(['agent', 'agent', 'controllers', 'controllers', 'server'] as const));
    }
    if (random.chance(0.6)) await settle();
  }
  for (const name of wanted.splice(0)) await deletePod(admin, name);
  await world.untilEmpty();
  await until('nothing is in use', async () => (await inUse(admin)).length === 0, MINUTES);
  const { agent: agents, controllers, server } = killed;
  return `killed: the agent ${agents}, the controllers ${controllers}, the API server ${server} times`;
}

/** What is mounted before and after the server is asked, by the same mount, was mounted when it answered. */
function sampleUse(world: World, { admin }: Cluster, name: string) {
  const missing: string[] = [];
  let [samples, isOver] = [0, false];
  const mounted = (): readonly string[] =>
    mountsBelow(world.root).flatMap(({ mountId, target }) =>
      target.includes('kubernetes.io/csi') || target.includes('kubernetes.io~csi')
        ? [`${mountId} ${target}`]
        : [],
    );
  const over = (async () => {
    while (!isOver) {
      const before = mounted();
      const listed = before.length === 0 ? undefined : await inUse(admin).catch(() => undefined);
      const stayed = new Set(mounted());
      const one = before.find((mount) => stayed.has(mount));
      if (listed !== undefined && one !== undefined) {
        samples += 1;
        if (!listed.includes(name)) missing.push(one);
      }
      await pause(20);
    }
  })();
  return {
    async end() {
      isOver = true;
      await over;
      return { samples, missing };
    },
  };
}
