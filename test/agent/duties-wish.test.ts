/** Duties of an orchestrator (docs/CSI.md) about what the wish says and the agent keeps and shows of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ControllerPublishVolumeRequest,
  ControllerUnpublishVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { isOnTheGround } from '../../reconciler/model/actual-state.ts';
import { CAPABILITY, refusing, type Script } from '../plugins/csi/scripted-driver.ts';
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

/** Under which node ids the storage still has the volume attached, as its controller was asked. */
function attachedUnder({ host }: AgentWorld): readonly string[] {
  const nodes = new Set<string>();
  for (const { method, bytes } of host.requests) {
    if (method === 'ControllerPublishVolume') nodes.add(ControllerPublishVolumeRequest.decode(bytes).nodeId);
    if (method === 'ControllerUnpublishVolume')
      nodes.delete(ControllerUnpublishVolumeRequest.decode(bytes).nodeId);
  }
  return [...nodes];
}

async function renameNode(world: AgentWorld, changes: Partial<Script> = {}): Promise<void> {
  await world.replaceDriver({ nodeId: 'node-2', ...changes });
  await until('replaced', () => world.agent.view().drivers.list()[0]?.nodeId === 'node-2');
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
  await renameNode(world);
  await takeDown(world, PLAIN);
  assert.deepEqual(
    detachments(world).map(({ nodeId }) => nodeId),
    ['node-1'],
  );
});

test('A-050, A-085, DR-17: it stays attached under that id alone while a pod has it, over a restart, too', async () => {
  const before = await agentWorld(PLAIN, ATTACHES);
  await untilSettled(before);
  await renameNode(before);
  const world = await before.restart();
  await untilSettled(world);
  assert.deepEqual(attachedUnder(world), ['node-1']);
  await takeDown(world, PLAIN);
  assert.deepEqual(attachedUnder(world), []);
});

test('A-050, DR-17: a storage that knows the old id no more is told by both ids; a pod keeps its mounts', async () => {
  const before = await agentWorld(PLAIN, ATTACHES);
  await untilSettled(before);
  await renameNode(before, { before: refusing('ControllerPublishVolume', 5, 'no such node') });
  const world = await before.restart();
  const reason = () => world.status().volumes[0]?.reason?.message ?? '';
  await until('a reason', () => reason().includes('no such node'));
  assert.match(reason(), /attached under the node id "node-1", and the driver calls this node "node-2" now/);
  assert.deepEqual(attachedUnder(world), ['node-1']);
  assert.equal(world.host.mounts.size, 2);
});

test('A-050, DR-17: what no pod has yet is detached by the old id before it is attached by the new one', async () => {
  const world = await agentWorld(PLAIN, { ...ATTACHES, before: refusing('NodeStageVolume', 13) });
  await until('staged in vain', () => world.asked().includes('NodeStageVolume'));
  let isRefused = false;
  await renameNode(world, {
    before: (method) => {
      if (method !== 'NodeStageVolume' || isRefused) return;
      isRefused = true;
      throw new GrpcStatus(9, 'not attached to node-2');
    },
  });
  await untilSettled(world);
  assert.deepEqual(attachedUnder(world), ['node-2']);
  await takeDown(world, PLAIN);
  assert.deepEqual(attachedUnder(world), []);
});

test('A-033, A-050, DR-17: an attach that was given up is detached under the id it was asked with', async () => {
  const world = await agentWorld(PLAIN, {
    ...ATTACHES,
    after: (method) => {
      if (method === 'ControllerPublishVolume') throw new GrpcStatus(4, 'took too long');
    },
  });
  await until('given up', () => world.asked().includes('ControllerPublishVolume'));
  await renameNode(world, { before: refusing('ControllerPublishVolume', 8), after: () => undefined });
  world.write({});
  const known = () => [...world.agent.view().reconciler.actual().values()];
  await until('down', () => known().every(isOnTheGround));
  assert.deepEqual(attachedUnder(world), []);
});

test('A-008, DR-16: a volume is remembered as attached until the driver can detach it again', async () => {
  const world = await agentWorld(PLAIN, ATTACHES);
  await untilSettled(world);
  await world.replaceDriver({ controllerCapabilities: undefined });
  const driver = () => world.agent.view().drivers.list()[0];
  await until('replaced', () => driver()?.controllerCapabilities === undefined);
  const { 'pod.yaml': _, ...rest } = PLAIN;
  world.write(rest);
  const reason = () => world.status().volumes[0]?.reason?.message ?? '';
  await until(
    'a reason, or forgotten',
    () => reason().includes('controller') || world.status().volumes.length === 0,
  );
  assert.deepEqual(attachedUnder(world), ['node-1']);
  assert.match(reason(), /attached .* no controller service/);
  await world.replaceDriver(ATTACHES);
  await until('down', () => world.agent.view().reconciler.actual().size === 0);
  assert.deepEqual(attachedUnder(world), []);
});

test('A-035, DR-16: what its driver has no detach for any more is told when it is forgotten', async () => {
  const world = await agentWorld(PLAIN, ATTACHES);
  await untilSettled(world);
  const told = () => world.log.filter((line) => line.includes('may still be attached'));
  await world.replaceDriver({
    controllerCapabilities: [],
    before: refusing('ControllerUnpublishVolume', 12),
  });
  const driver = () => world.agent.view().drivers.list()[0];
  await until('replaced', () => driver()?.controllerCapabilities?.size === 0);
  await takeDown(world, PLAIN);
  assert.equal(told().length, 1, world.log.join('\n'));
  assert.match(told()[0] ?? '', /"volume":"[^"]+".*"node":"node-1"/);
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
