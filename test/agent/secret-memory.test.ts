/** A driver keeps what it was given: its words about a volume may hold secrets that the wish does not have any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { NO_TOKENS, tokensJson, type TokenSource } from '../../agent/source/token-source.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { agentWorld, type Beside, DUTY_DRIVER, stateFiles, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, csiDriverYaml, podYaml, secretYaml, volumeYaml } from './manifests.ts';

const CANARY = 's3cret-c4nary';
const POD = { 'pod.yaml': podYaml('web', { v: claimSource('v') }) };
const VOLUME = {
  'v.yaml': claimYaml('v'),
  'pv.yaml': volumeYaml('pv-v', { csi: 'nodeStageSecretRef: {namespace: default, name: login}' }),
  'secret.yaml': secretYaml('login', { word: CANARY }),
};

const ROTATED = { ...VOLUME, 'secret.yaml': secretYaml('login', { word: 'an0ther-word' }) };

type Talking = 'NodeStageVolume' | 'NodeUnstageVolume' | 'NodeUnpublishVolume';

/** A driver that sets up, and tells its secret when it is to take down. */
async function talkative(
  files: Readonly<Record<string, string>> = { ...POD, ...VOLUME },
  beside: Beside = {},
) {
  let talking: Talking | undefined;
  const before = (method: string): void => {
    if (method === talking) throw new GrpcStatus(13, `umount -o word=${CANARY}: target is busy`);
  };
  const world = await agentWorld(files, { before }, {}, {}, beside);
  await untilSettled(world);
  return {
    world,
    talk: (method: Talking = 'NodeUnstageVolume') => {
      talking = method;
    },
    fallSilent: () => {
      talking = undefined;
    },
  };
}

type World = Awaited<ReturnType<typeof talkative>>['world'];

/** What kept the volume from coming down, once a try has ended. */
async function reasonIn(world: World, method: Talking = 'NodeUnstageVolume'): Promise<string> {
  const told = await until('it is told', () => {
    const { volumes, pods } = world.status();
    const reasons = [...volumes, ...pods.flatMap((pod) => pod.volumes)].map(({ reason }) => reason);
    return reasons.flatMap((one) =>
      one?.kind === 'waiting-retry' && one.message.includes(method) ? [one.message] : [],
    )[0];
  });
  assert.ok(!world.seen().includes(CANARY), 'the secret is seen');
  for (const [name, text] of stateFiles(world)) assert.ok(!text.includes(CANARY), name);
  return told;
}

test('A-038: with pod, volume and secret gone, what the driver says is shown without the secret', async () => {
  const { world, talk } = await talkative();
  talk();
  world.write({});
  assert.match(await reasonIn(world), /word=\[redacted\]: target is busy/);
});

const NOT_SHOWN = /INTERNAL: \(not shown: .* the driver's log has it\)$/;

test('A-038: what a call that was given up was sent is hidden as long as it may still take effect', async () => {
  let said = new GrpcStatus(4, 'still at it');
  const before = (method: string): void => {
    if (method === 'NodeStageVolume') throw said;
  };
  const world = await agentWorld({ ...POD, ...VOLUME }, { before });
  await until('it was given up', () => world.asked().includes('NodeStageVolume'));
  world.write(VOLUME);
  await until('it is down', () => world.log.some((line) => line.includes('volume unstaged')));
  assert.equal(world.status().volumes[0]?.lateEffects.length, 1);
  said = new GrpcStatus(13, `mount -o word=${CANARY} is still going on`);
  world.write({ ...POD, ...ROTATED });
  assert.match(await reasonIn(world, 'NodeStageVolume'), /word=\[redacted\] is still going on/);
});

test('A-038: after a restart the secret in the wish may not be the one that the driver was given', async () => {
  const { world, talk } = await talkative();
  world.write({ ...POD, ...ROTATED });
  const again = await world.restart();
  await untilSettled(again);
  talk();
  again.write(ROTATED);
  assert.match(await reasonIn(again), NOT_SHOWN);
});

test('A-038: nor is it when the driver was asked in this life for what it had done in the one before', async () => {
  const { world, talk } = await talkative();
  const two = { 'two.yaml': podYaml('two', { v: claimSource('v') }), ...ROTATED };
  const again = await world.restart();
  again.write({ ...POD, ...two });
  await until('both have it', () => again.status().pods.length === 2);
  await untilSettled(again);
  talk('NodeUnpublishVolume');
  again.write(two);
  assert.match(await reasonIn(again, 'NodeUnpublishVolume'), NOT_SHOWN);
});

test('A-038: once the volume was down in this life, what the driver says is shown again', async () => {
  const { world, talk, fallSilent } = await talkative();
  const again = await world.restart();
  talk();
  again.write(VOLUME);
  assert.match(await reasonIn(again), NOT_SHOWN);
  fallSilent();
  await until('it is down', () => again.status().volumes.length === 0);
  again.write({ ...POD, ...VOLUME });
  await until('it is wanted', () => again.status().pods.length === 1);
  await untilSettled(again);
  talk();
  again.write(ROTATED);
  assert.match(await reasonIn(again), /word=\[redacted\]: target is busy/);
});

test('A-038: after a restart nobody knows the tokens that the driver was given in the life before', async () => {
  const issued = (token: string): TokenSource => {
    const json = tokensJson(new Map([['', { token, expirationTimestamp: '2030-01-01T00:00:00Z' }]]));
    return { ...NO_TOKENS, tokensFor: () => ({ kind: 'tokens', json }) };
  };
  const volume = { 'v.yaml': claimYaml('v'), 'pv.yaml': volumeYaml('pv-v') };
  const terms = '{attachRequired: false, requiresRepublish: true, tokenRequests: [{audience: ""}]}';
  const files = { ...volume, 'driver.yaml': csiDriverYaml(DUTY_DRIVER, terms) };
  const { world, talk } = await talkative({ ...POD, ...files }, { tokens: issued(CANARY) });
  const again = await world.restart({}, { tokens: issued('an0ther-t0ken') });
  await untilSettled(again);
  talk();
  again.write(files);
  assert.match(await reasonIn(again), NOT_SHOWN);
});

test('A-038: of a volume without secrets what the driver says is shown, after a restart, too', async () => {
  const volume = { 'v.yaml': claimYaml('v'), 'pv.yaml': volumeYaml('pv-v') };
  const { world, talk } = await talkative({ ...POD, ...volume });
  const again = await world.restart();
  talk();
  again.write(volume);
  const reason = (): string => JSON.stringify(again.status().volumes[0]?.reason ?? '');
  await until('it is told', () => reason().includes(`word=${CANARY}: target is busy`));
});

test('A-038: after a restart nothing of what a driver says is shown when its secrets are not known', async () => {
  const { world, talk } = await talkative();
  talk();
  world.write({});
  await reasonIn(world);
  const message = await reasonIn(await world.restart());
  assert.match(message, NOT_SHOWN);
});

/** Its storage is well until it is told to be ill; then what it says of that holds the secret, and a word that does. */
async function withIllStorage() {
  const backendHealth: object[] = [];
  const answers = { NodeGetStorageHealth: { backendHealth } };
  const world = await agentWorld(
    { ...POD, ...VOLUME },
    { nodeCapabilities: [CAPABILITY.node.STAGE_UNSTAGE_VOLUME, CAPABILITY.node.GET_STORAGE_HEALTH] },
    { statistics_interval_ms: 1_000 },
    answers,
  );
  await untilSettled(world);
  const reason = `Refused${CANARY}`;
  const fallIll = (): void => {
    backendHealth.push({ status: 1, reason, message: `login with ${CANARY} failed` });
  };
  return { world, fallIll };
}

/** What is told of the health of the driver's storage, in the status and as a metric. */
async function storageIn(world: World): Promise<string> {
  const [said] = await until('it is told', () => {
    const health = world.status().drivers[0]?.health ?? [];
    return health.length > 0 && health;
  });
  assert.ok(!world.seen().includes(CANARY), 'the secret is seen');
  assert.ok(world.metrics().includes(`status="storage-degraded"`));
  return `${said?.reason}: ${said?.message}`;
}

test('A-038: what a driver says of the storage behind it tells no secret that it was given for a volume', async () => {
  const { world, fallIll } = await withIllStorage();
  world.write({ ...POD, ...ROTATED });
  fallIll();
  assert.equal(await storageIn(world), 'Refused[redacted]: login with [redacted] failed');
});

test('A-038: nor one that it was given in an earlier life of the agent, and that nobody knows', async () => {
  const { world, fallIll } = await withIllStorage();
  world.write({ ...POD, ...ROTATED });
  const again = await world.restart();
  await untilSettled(again);
  fallIll();
  assert.match(await storageIn(again), /^\(not shown: .*: \(not shown: /);
});

test('A-038: a driver that comes back and cannot register tells no secret that was given before', async () => {
  const { world } = await talkative();
  world.write({ ...POD, ...ROTATED });
  await world.replaceDriver({
    before: (method) => {
      if (method === 'Probe') throw new GrpcStatus(9, `the session of ${CANARY} is stale`);
    },
  });
  const reason = await until('it is refused', () =>
    world
      .status()
      .drivers.map((one) => one.reason ?? '')
      .find((one) => one.includes('Probe')),
  );
  assert.match(reason, /Probe: FAILED_PRECONDITION: the session of \[redacted\] is stale$/);
  assert.ok(!world.seen().includes(CANARY), 'the secret is seen');
});
