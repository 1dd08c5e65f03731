/** Duties of an orchestrator (docs/CSI.md) about what the wish says and the agent keeps and shows of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ControllerUnpublishVolumeRequest } from '../../plugins/csi/wire/generated/csi.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { type AgentWorld, agentWorld, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, podYaml, secretYaml, volumeYaml } from './manifests.ts';

const PLAIN = {
  'pod.yaml': podYaml('web', { data: claimSource('data') }),
  'claim.yaml': claimYaml('data'),
  'volume.yaml': volumeYaml('pv-data'),
};
const SECRETS = {
  ...PLAIN,
  'volume.yaml': volumeYaml('pv-data', {
    csi: 'controllerPublishSecretRef: {namespace: default, name: login}',
  }),
  'secret.yaml': secretYaml('login', { word: 's3cret-c4nary' }),
};
const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };

/** The pod goes, its objects stay, and everything comes down. */
async function takeDown(world: AgentWorld, files: Readonly<Record<string, string>>): Promise<void> {
  world.write(Object.fromEntries(Object.entries(files).filter(([name]) => name !== 'pod.yaml')));
  await until('down', () => world.agent.view().reconciler.actual().size === 0);
}

function detachments({ host }: AgentWorld): readonly ControllerUnpublishVolumeRequest[] {
  const detached = host.requests.filter(({ method }) => method === 'ControllerUnpublishVolume');
  return detached.map(({ bytes }) => ControllerUnpublishVolumeRequest.decode(bytes));
}

test('A-021: a mount option that is refused is named without its value', async () => {
  const options = 'mountOptions: ["password=0ption\\tc4nary"]';
  const world = await agentWorld({ ...PLAIN, 'volume.yaml': volumeYaml('pv-data', { spec: options }) });
  assert.match(world.seen(), /mountOptions\[0\]/);
  assert.doesNotMatch(world.seen(), /c4nary/);
});

test('A-040: the secret a volume was attached with goes with its detachment', async () => {
  const world = await agentWorld(SECRETS, ATTACHES);
  await untilSettled(world);
  await takeDown(world, SECRETS);
  assert.deepEqual(
    detachments(world).map(({ secrets }) => secrets),
    [{ word: 's3cret-c4nary' }],
  );
});

test('A-050: what was attached under one node id is detached under that id', async () => {
  const world = await agentWorld(PLAIN, ATTACHES);
  await untilSettled(world);
  await world.replaceDriver({ nodeId: 'node-2' });
  await until('replaced', () => world.agent.view().drivers.list()[0]?.nodeId === 'node-2');
  await takeDown(world, PLAIN);
  assert.deepEqual(
    detachments(world).map(({ nodeId }) => nodeId),
    ['node-1'],
  );
});

const elsewhere = (zone: string) =>
  volumeYaml('pv-data', {
    spec:
      'nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: ' +
      `[{key: a.example/zone, operator: In, values: [${zone}]}]}]}}`,
  });

test('A-052: a volume that can be reached from other nodes only is refused before any call', async () => {
  const world = await agentWorld(
    { ...PLAIN, 'volume.yaml': elsewhere('z2') },
    { segments: { 'a.example/zone': 'z1' } },
  );
  await until('a verdict', () => {
    const [pod] = world.status().pods;
    return world.asked().length > 0 || pod?.volumes[0]?.reason?.message.includes('zone') === true;
  });
  assert.deepEqual(world.asked(), []);
  world.write({ ...PLAIN, 'volume.yaml': elsewhere('z1') });
  await untilSettled(world);
  assert.deepEqual(world.asked(), ['NodeStageVolume', 'NodePublishVolume']);
});

test('A-011: a number this build does not know is shown among what the driver can do', async () => {
  const world = await agentWorld(PLAIN, { nodeCapabilities: [1, 4, 99] });
  await untilSettled(world);
  assert.match(JSON.stringify(world.status().drivers), /unknown\(99\)/);
});
