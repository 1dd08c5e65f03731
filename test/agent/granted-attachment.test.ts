/** A cluster decides where volumes may be: the agent waits for it with a reason, and gives back what it asked for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csiVolumeId } from '../../plugins/volume.ts';
import { createGrants } from '../plugins/csi/attach/granted.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { type AgentWorld, agentWorld, DUTY_DRIVER, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, podYaml, volumeYaml } from './manifests.ts';

const VOLUME = csiVolumeId(DUTY_DRIVER, 'handle-pv-data');
const STORAGE = { 'pv.yaml': `${claimYaml('data')}---\n${volumeYaml('pv-data')}` };
const FILES = { ...STORAGE, 'app.yaml': podYaml('app', { data: claimSource('data') }) };
/** Whatever the driver could attach itself decides nothing. */
const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };

async function waiting() {
  const grants = createGrants();
  const world = await agentWorld(FILES, ATTACHES, { vanished_hold_ms: 0 }, {}, { attachment: grants });
  await until('it waits', () => reasonIn(world)?.code === 'not-attached');
  return { grants, world };
}

function reasonIn(world: AgentWorld) {
  return world.status().pods[0]?.volumes[0]?.reason ?? undefined;
}

test('a volume waits for its grant, told as not attached, and is set up when it is given', async () => {
  const { grants, world } = await waiting();
  assert.match(reasonIn(world)?.message ?? '', /the cluster has not attached it to this node/);
  assert.deepEqual([[...grants.inUse], world.asked()], [[VOLUME], []]);
  grants.give(VOLUME, { lun: '7' });
  await untilSettled(world);
  assert.deepEqual(world.asked(), ['NodeStageVolume', 'NodePublishVolume']);
  world.write(STORAGE);
  await until('it is given back', () => grants.inUse.size === 0);
  assert.deepEqual(world.asked().slice(2), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
});

test('a grant that never came is given back when nobody wants the volume any more', async () => {
  const { grants, world } = await waiting();
  world.write(STORAGE);
  await until('it is given back', () => grants.inUse.size === 0);
  await untilSettled(world);
  assert.deepEqual(world.asked(), []);
});

test('a grant that was withdrawn before anything was set up is waited for again', async () => {
  const { grants, world } = await waiting();
  grants.give(VOLUME);
  grants.withdraw(VOLUME);
  await until('it was tried', () => reasonIn(world)?.code === 'not-attached');
  assert.deepEqual(world.asked(), []);
  grants.give(VOLUME);
  await untilSettled(world);
  assert.deepEqual(world.asked(), ['NodeStageVolume', 'NodePublishVolume']);
});

/** A secret that a StorageClass has put into each of its volumes for who attaches them: no node may read it. */
const OF_THE_ATTACHER = 'controllerPublishSecretRef: {namespace: vault, name: attacher}';
const ATTACHED_BY_SECRET = {
  'pv.yaml': `${claimYaml('data')}---\n${volumeYaml('pv-data', { csi: OF_THE_ATTACHER })}`,
  'app.yaml': podYaml('app', { data: claimSource('data') }),
};

test('a volume does not wait for the secret that its attacher needs, before a restart and after', async () => {
  const grants = createGrants();
  grants.give(VOLUME);
  const before = await agentWorld(ATTACHED_BY_SECRET, ATTACHES, {}, {}, { attachment: grants });
  await untilSettled(before);
  assert.deepEqual(before.asked(), ['NodeStageVolume', 'NodePublishVolume']);
  const world = await before.restart();
  await untilSettled(world);
  assert.equal(reasonIn(world), undefined);
});

test('the certificates of a cluster, which are not read, are not taken for none where they are optional', async () => {
  const bundle = '{clusterTrustBundle: {name: ca, path: ca.pem, optional: true}}';
  const files = { 'app.yaml': podYaml('app', { ca: `projected: {sources: [${bundle}]}` }) };
  const world = await agentWorld(files, {}, {}, {}, { attachment: createGrants() });
  const stateIn = () => world.status().pods[0]?.volumes[0]?.state;
  await until('it is mounted or waits', () => ['mounted', 'blocked'].includes(stateIn() ?? ''));
  assert.equal(stateIn(), 'blocked');
  assert.equal(reasonIn(world)?.code, 'reference-missing');
  assert.match(
    reasonIn(world)?.message ?? '',
    /ClusterTrustBundle ca, and this version reads none of a cluster/,
  );
});
