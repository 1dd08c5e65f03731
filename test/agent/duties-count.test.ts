/** RPC counts: what each operation costs at the driver, as the table in docs/CSI.md says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { accept } from '../plugins/csi/answers.ts';
import { call, SPEC, UNSTAGED, up, world } from '../plugins/csi/csi-world.ts';
import { CAPABILITY } from '../plugins/csi/scripted-driver.ts';
import { type AgentWorld, agentWorld, DUTY_DRIVER, until, untilSettled } from './duties-world.ts';
import { claimSource, claimYaml, csiDriverYaml, podYaml, volumeYaml } from './manifests.ts';

const DOCUMENT = readFileSync(fileURLToPath(new URL('../../docs/CSI.md', import.meta.url)), 'utf8');

/** `| operation | RPCs | which | kubelet | … |` */
function documented(operation: string): number {
  const row = DOCUMENT.split('\n').find((line) => line.startsWith(`| ${operation} |`));
  assert.ok(row !== undefined, `docs/CSI.md has a row "${operation}"`);
  return Number(row.split('|')[2]);
}

const CLAIM = {
  'claim.yaml': claimYaml('data', undefined, '', '{capacity: {storage: 1Gi}}'),
  'volume.yaml': volumeYaml('pv-data', { spec: 'capacity: {storage: 1Gi}' }),
};
const WEB = { 'web.yaml': podYaml('web', { data: claimSource('data') }) };
const MORE = { 'more.yaml': podYaml('more', { data: claimSource('data') }) };

/** Runs `act` to its end and answers all that the driver was asked meanwhile, capabilities included. */
async function during(made: AgentWorld, act: () => void, end: () => boolean): Promise<readonly string[]> {
  const before = made.host.called.length;
  act();
  await until('the end of the operation', end);
  await untilSettled(made);
  return made.host.called.slice(before);
}

function assertCount(operation: string, methods: readonly string[], expected: readonly string[]): void {
  assert.deepEqual(methods, expected, operation);
  assert.equal(documented(operation), expected.length, `docs/CSI.md: ${operation}`);
}

const published = (made: AgentWorld) =>
  [...made.agent.view().reconciler.actual().values()].flatMap(({ publications }) =>
    [...publications.values()].filter(({ presence }) => presence.kind === 'present'),
  ).length;

test('RPC counts: a pod comes, another one, a larger size, and both go', async () => {
  const made = await agentWorld(CLAIM, {
    nodeCapabilities: [CAPABILITY.node.STAGE_UNSTAGE_VOLUME, CAPABILITY.node.EXPAND_VOLUME],
    capacityBytes: 0n,
  });
  await until('registered', () => made.agent.view().drivers.list().length === 1);
  assertCount('register a driver by its socket', made.host.called, [
    'GetPluginInfo',
    'Probe',
    'GetPluginCapabilities',
    'NodeGetInfo',
    'NodeGetCapabilities',
  ]);
  const mount = await during(
    made,
    () => made.write({ ...CLAIM, ...WEB }),
    () => published(made) === 1,
  );
  assertCount('mount, staged', mount, ['NodeStageVolume', 'NodePublishVolume']);
  const second = await during(
    made,
    () => made.write({ ...CLAIM, ...WEB, ...MORE }),
    () => published(made) === 2,
  );
  assertCount('second pod of a volume', second, ['NodePublishVolume']);
  const larger = { ...CLAIM, 'volume.yaml': volumeYaml('pv-data', { spec: 'capacity: {storage: 2Gi}' }) };
  const growth = await during(
    made,
    () => made.write({ ...larger, ...WEB, ...MORE }),
    () => [...made.agent.view().reconciler.actual().values()][0]?.sizeBytes === String(2 * 1_024 ** 3),
  );
  assertCount('expand', growth, ['NodeExpandVolume']);
  const one = await during(
    made,
    () => made.write({ ...larger, ...WEB }),
    () => published(made) === 1,
  );
  assertCount('unmount, another pod stays', one, ['NodeUnpublishVolume']);
  const last = await during(
    made,
    () => made.write(larger),
    () => made.agent.view().reconciler.actual().size === 0,
  );
  assertCount('unmount and unstage', last, ['NodeUnpublishVolume', 'NodeUnstageVolume']);
});

test('RPC counts: a volume that is attached', async () => {
  const made = await agentWorld(CLAIM, {
    controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME],
  });
  await until('registered', () => made.agent.view().drivers.list().length === 1);
  const mount = await during(
    made,
    () => made.write({ ...CLAIM, ...WEB }),
    () => published(made) === 1,
  );
  assertCount('attach and mount, staged', mount, [
    'ControllerPublishVolume',
    'NodeStageVolume',
    'NodePublishVolume',
  ]);
});

test('RPC counts: an inline volume, and a driver that does not stage', async () => {
  const driver = csiDriverYaml(
    DUTY_DRIVER,
    '{attachRequired: false, volumeLifecycleModes: [Persistent, Ephemeral]}',
  );
  const pod = podYaml('web', { scratch: `csi: {driver: ${DUTY_DRIVER}}` });
  const inline = await agentWorld({ 'driver.yaml': driver });
  await until('registered', () => inline.agent.view().drivers.list().length === 1);
  const mount = await during(
    inline,
    () => inline.write({ 'driver.yaml': driver, 'pod.yaml': pod }),
    () => published(inline) === 1,
  );
  assertCount('inline ephemeral volume', mount, ['NodePublishVolume']);
  const plain = await agentWorld(CLAIM, { nodeCapabilities: [] });
  await until('registered', () => plain.agent.view().drivers.list().length === 1);
  const unstaged = await during(
    plain,
    () => plain.write({ ...CLAIM, ...WEB }),
    () => published(plain) === 1,
  );
  assertCount('mount, not staged', unstaged, ['NodePublishVolume']);
});

test('RPC counts: a republish, and questions about a volume that is there', async () => {
  const made = await world({ nodeCapabilities: [1, 2] });
  await up(made);
  const { plugin, host } = made;
  host.called.splice(0);
  const { mount } = accept(await plugin.publish(call({ refresh: true })));
  assert.ok(mount);
  assertCount('republish', host.called.splice(0), ['NodePublishVolume']);
  await plugin.statistics?.({ ...call(), mount, stillThere: () => true });
  assertCount('stats', host.called.splice(0), ['NodeGetVolumeStats']);
  assert.ok(made.instance);
  made.instance = { ...made.instance, nodeCapabilities: new Set([1, 2, 7]) };
  await plugin.statistics?.({ ...call(), mount, stillThere: () => true });
  assertCount('stats and health', host.called.splice(0), ['NodeGetVolumeHealth', 'NodeGetVolumeStats']);
  accept(await plugin.unpublish(call({ facts: UNSTAGED })));
  assert.equal(SPEC.mode, 'Filesystem');
});

test('RPC counts: a restart of the agent asks the driver who it is, and nothing about its volumes', async () => {
  const before = await agentWorld({ ...CLAIM, ...WEB });
  await untilSettled(before);
  before.host.called.splice(0);
  const made = await before.restart();
  await until('registered', () => made.agent.view().drivers.list().length === 1);
  await untilSettled(made);
  assertCount('restart of the agent, per volume', made.asked(), []);
});
