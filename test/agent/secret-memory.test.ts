/** A driver keeps what it was given: its words about a volume may hold secrets that the wish does not have any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { agentWorld, stateFiles, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, podYaml, secretYaml, volumeYaml } from './manifests.ts';

const CANARY = 's3cret-c4nary';
const POD = { 'pod.yaml': podYaml('web', { v: claimSource('v') }) };
const VOLUME = {
  'v.yaml': claimYaml('v'),
  'pv.yaml': volumeYaml('pv-v', { csi: 'nodeStageSecretRef: {namespace: default, name: login}' }),
  'secret.yaml': secretYaml('login', { word: CANARY }),
};

/** A driver that sets up, and tells its secret when it is to take down. */
async function talkative() {
  let word: 'well' | 'talks' = 'well';
  const world = await agentWorld(
    { ...POD, ...VOLUME },
    {
      before: (method) => {
        if (word === 'talks' && method === 'NodeUnstageVolume')
          throw new GrpcStatus(13, `umount -o word=${CANARY}: target is busy`);
      },
    },
  );
  await untilSettled(world);
  return {
    world,
    talk: () => {
      word = 'talks';
    },
  };
}

type World = Awaited<ReturnType<typeof talkative>>['world'];

/** What kept the volume from being unstaged, once a try has ended. */
async function reasonIn(world: World): Promise<string> {
  const reason = (): string | undefined => {
    const told = world.status().volumes[0]?.reason;
    return told?.kind === 'waiting-retry' ? told.message : undefined;
  };
  let message = '';
  await until('it is told', () => {
    message = reason() ?? message;
    return message.includes('NodeUnstageVolume');
  });
  assert.ok(!world.seen().includes(CANARY));
  for (const [name, text] of stateFiles(world)) assert.ok(!text.includes(CANARY), name);
  return message;
}

test('A-038: with pod, volume and secret gone, what the driver says is shown without the secret', async () => {
  const { world, talk } = await talkative();
  talk();
  world.write({});
  assert.match(await reasonIn(world), /word=\[redacted\]: target is busy/);
});

test('A-038: after a restart the secret of a volume that is still in the wish is taken out', async () => {
  const { world, talk } = await talkative();
  talk();
  world.write(VOLUME);
  assert.match(await reasonIn(world), /word=\[redacted\]: target is busy/);
  assert.match(await reasonIn(await world.restart()), /word=\[redacted\]: target is busy/);
});

test('A-038: after a restart nothing of what a driver says is shown when its secrets are not known', async () => {
  const { world, talk } = await talkative();
  talk();
  world.write({});
  await reasonIn(world);
  const message = await reasonIn(await world.restart());
  assert.match(message, /INTERNAL: \(not shown: .* the driver's log has it\)$/);
});
