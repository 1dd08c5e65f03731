/** A node that joined a cluster: what it attached by a call of its own before, it detaches by one. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createGrants } from '../plugins/csi/attach/granted.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { agentWorld, until, untilSettled } from './duties-world.ts';
import { attachmentYaml, claimSource, claimYaml, podYaml, volumeYaml } from './manifests.ts';

const STORAGE = { 'pv.yaml': `${claimYaml('data')}---\n${volumeYaml('pv-data')}` };
const FILES = { ...STORAGE, 'app.yaml': podYaml('app', { data: claimSource('data') }) };
const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };

test('what an earlier life attached itself is detached by the driver, and given back to the cluster', async () => {
  const before = await agentWorld(FILES, ATTACHES, { vanished_hold_ms: 0 });
  await untilSettled(before);
  assert.equal(before.asked()[0], 'ControllerPublishVolume');
  const grants = createGrants();
  const world = await before.restart({}, { attachment: grants });
  await until('it is asked for', () => grants.inUse.size === 1);
  world.write(STORAGE);
  await untilSettled(world);
  assert.ok(world.asked().includes('ControllerUnpublishVolume'), world.asked().join());
  assert.equal(grants.inUse.size, 0);
});

/** Joined to a cluster, beside a driver that has left its controller service to the cluster, with the pod gone. */
async function leftToTheCluster(attachments: Readonly<Record<string, string>>, nodeId = 'node-1') {
  const before = await agentWorld(FILES, ATTACHES, { vanished_hold_ms: 0 });
  await untilSettled(before);
  Object.assign(before.plan, { controllerCapabilities: undefined, nodeId });
  const grants = createGrants();
  const world = await before.restart({}, { attachment: grants });
  world.write({ ...FILES, ...attachments });
  const volume = () => [...world.agent.view().reconciler.actual().values()][0];
  const isNoted = () => volume()?.attachmentUid !== undefined;
  await until('it is known', () => grants.inUse.size === 1 && isNoted() === 'attachment.yaml' in attachments);
  world.write(STORAGE);
  const reason = () => world.status().volumes[0]?.reason?.message ?? '';
  await until('it is detached, or waits', () => volume() === undefined || reason().includes('controller'));
  assert.ok(!world.asked().includes('ControllerUnpublishVolume'), world.asked().join());
  return { world, volume, grants, reason: reason() };
}

const ATTACHED = {
  'attachment.yaml': attachmentYaml('a', '{attached: true}', { node: 'node-a', metadata: 'uid: a-1' }),
};

test('what it cannot detach itself is given back to a cluster that has attached it, too', async () => {
  const { grants } = await leftToTheCluster(ATTACHED);
  assert.equal(grants.inUse.size, 0);
});

test('what no cluster has attached waits for a driver that can detach it, or for a pod to come and go', async () => {
  const { world, volume, grants, reason } = await leftToTheCluster({});
  assert.match(reason, /attached by a call .* no controller service .* the cluster is not known/);
  assert.equal(grants.inUse.size, 1);
  world.write({ ...FILES, ...ATTACHED });
  await until('it is noted', () => volume()?.attachmentUid !== undefined);
  world.write(STORAGE);
  await until('it is detached', () => volume() === undefined);
  assert.equal(grants.inUse.size, 0);
});

test('an attachment that is seen while its detach waits ends the wait, though no pod wants the volume', async () => {
  const { world, volume, grants } = await leftToTheCluster({});
  world.write({ ...STORAGE, ...ATTACHED });
  await until('it is detached', () => volume() === undefined);
  assert.equal(grants.inUse.size, 0);
});

test('what the cluster has attached under another node id waits for a driver that can detach it', async () => {
  const { grants, reason } = await leftToTheCluster(ATTACHED, 'node-2');
  assert.match(reason, /attached by a call .* no controller service/);
  assert.equal(grants.inUse.size, 1);
});
