/** A node that joined a cluster: what it attached by a call of its own before, it detaches by one. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createGrants } from '../plugins/csi/attach/granted.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { agentWorld, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, podYaml, volumeYaml } from './manifests.ts';

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
