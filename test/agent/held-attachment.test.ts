/** A node of a cluster attaches nothing itself, and does not speak with the controller that does: volumes are held. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { type AgentWorld, agentWorld, DUTY_DRIVER, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, csiDriverYaml, podYaml, volumeYaml } from './manifests.ts';

const STORAGE = { 'pv.yaml': `${claimYaml('data')}---\n${volumeYaml('pv-data')}` };
const FILES = { ...STORAGE, 'app.yaml': podYaml('app', { data: claimSource('data') }) };
const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };
const IN_CLUSTER = { kubeconfig: '/etc/kubernetes/node.conf', vanished_hold_ms: 0 };

const reasonIn = (world: AgentWorld) => world.status().pods[0]?.volumes[0]?.reason ?? undefined;

for (const { title, files } of [
  { title: 'without a CSIDriver object', files: FILES },
  {
    title: 'whose CSIDriver object has attachRequired: true',
    files: { ...FILES, 'driver.yaml': csiDriverYaml(DUTY_DRIVER, '{attachRequired: true}') },
  },
]) {
  test(`a volume of a driver ${title} is held, with the reason, and the driver is asked nothing`, async () => {
    const world = await agentWorld(files, ATTACHES, IN_CLUSTER);
    await until('it is held', () => reasonIn(world)?.code === 'not-attached');
    assert.match(
      reasonIn(world)?.message ?? '',
      /attached by the controller of the cluster, which this version/,
    );
    await until('it is idle', () => world.agent.view().reconciler.idle());
    assert.deepEqual(world.asked(), []);
    world.write({ ...files, 'driver.yaml': csiDriverYaml(DUTY_DRIVER, '{attachRequired: false}') });
    await untilSettled(world);
    assert.deepEqual(world.asked(), ['NodeStageVolume', 'NodePublishVolume']);
  });
}

test('what an earlier life attached itself is detached by the driver, in a cluster, too', async () => {
  const before = await agentWorld(FILES, ATTACHES, { vanished_hold_ms: 0 });
  await untilSettled(before);
  assert.equal(before.asked()[0], 'ControllerPublishVolume');
  const world = await before.restart(IN_CLUSTER);
  await until('it is known again', () => world.status().volumes.length === 1);
  world.write(STORAGE);
  await untilSettled(world);
  assert.ok(world.asked().includes('ControllerUnpublishVolume'), world.asked().join());
});
