/** Duties of an orchestrator (docs/CSI.md) that only a whole agent can show. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnstageVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';
import { GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';
import { CAPABILITY, type Script } from '../plugins/csi/scripted-driver.ts';
import { type AgentWorld, agentWorld, DUTY_DRIVER, stateFiles, until, untilSettled } from './duties-world.ts';
import {
  claimSource,
  claimYaml,
  csiDriverYaml,
  podYaml,
  secretYaml,
  volumeYaml,
  withDevices,
} from './manifests.ts';

const WEB = podYaml('web', { data: claimSource('data') });
const PLAIN = {
  'pod.yaml': WEB,
  'claim.yaml': claimYaml('data'),
  'volume.yaml': volumeYaml('pv-data'),
};
/** Without the pod. */
const { 'pod.yaml': _, ...NO_POD } = PLAIN;

function sent<T>({ host }: AgentWorld, method: string, codec: { decode(bytes: Buffer): T }): T[] {
  return host.requests.filter((one) => one.method === method).map(({ bytes }) => codec.decode(bytes));
}

const count = (world: AgentWorld, method: string) => world.asked().filter((one) => one === method).length;

/** The pod goes, and everything comes down. */
async function takeDown(world: AgentWorld, files: Readonly<Record<string, string>> = NO_POD): Promise<void> {
  world.write(files);
  await until('down', () => world.agent.view().reconciler.actual().size === 0);
}

test('A-007, A-010: in the life of a pod the driver is probed once, and asked once what it can do', async () => {
  const world = await agentWorld(PLAIN);
  await untilSettled(world);
  world.write({ ...PLAIN, 'more.yaml': podYaml('more', { data: claimSource('data') }) });
  await until('the second pod', () => count(world, 'NodePublishVolume') === 2);
  await untilSettled(world);
  await takeDown(world);
  for (const method of ['Probe', 'NodeGetCapabilities', 'GetPluginCapabilities', 'NodeGetInfo'])
    assert.equal(world.host.called.filter((one) => one === method).length, 1, method);
  assert.deepEqual(world.asked(), [
    'NodeStageVolume',
    'NodePublishVolume',
    'NodePublishVolume',
    'NodeUnpublishVolume',
    'NodeUnpublishVolume',
    'NodeUnstageVolume',
  ]);
});

test('A-008: a driver without a controller service is never asked as a controller, whatever the wish', async () => {
  const world = await agentWorld({
    ...PLAIN,
    'driver.yaml': csiDriverYaml(DUTY_DRIVER, '{attachRequired: true}'),
  });
  await untilSettled(world);
  await takeDown(world);
  assert.deepEqual(
    world.host.called.filter((method) => method.startsWith('Controller')),
    [],
  );
});

test('A-033, A-065: a pod that goes while its publish has no answer has it unpublished', async () => {
  const world = await agentWorld(
    PLAIN,
    {
      before: (method) => (method === 'NodePublishVolume' ? new Promise(() => {}) : undefined),
    },
    { csi_deadline_ms: 1_000, late_effect_ms: 1_000 },
  );
  await until('publishing', () => count(world, 'NodePublishVolume') === 1);
  await takeDown(world);
  assert.equal(count(world, 'NodePublishVolume'), 1);
  // And once more, when it can take effect no longer (DR-05): on a busy machine that is before it was unstaged.
  assert.equal(count(world, 'NodeUnpublishVolume'), 2);
  assert.deepEqual(world.asked().slice(-2), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
});

test('A-031, A-032: killed in mid-stage and told ABORTED three times, the next life gets there', async () => {
  let arrived = 0;
  const before = await agentWorld(PLAIN, {
    before: (method) => {
      if (method !== 'NodeStageVolume') return;
      arrived += 1;
      return new Promise(() => {});
    },
  });
  await until('staging', () => arrived === 1);
  before.plan.before = (method) => {
    if (method !== 'NodeStageVolume') return;
    arrived += 1;
    if (arrived <= 4) throw new GrpcStatus(10, 'pending');
  };
  const world = await before.restart();
  await untilSettled(world);
  const stages = world.host.requests.filter(({ method }) => method === 'NodeStageVolume');
  assert.equal(stages.length, 5);
  assert.ok(stages.every(({ bytes }) => bytes.equals(stages[0]?.bytes ?? Buffer.alloc(0))));
});

test('A-059, A-057: what is there after a restart is neither staged nor published again, and counted', async () => {
  const both = { ...PLAIN, 'more.yaml': podYaml('more', { data: claimSource('data') }) };
  const before = await agentWorld(both);
  await untilSettled(before);
  const asked = before.asked().length;
  const world = await before.restart();
  await untilSettled(world);
  assert.deepEqual(world.asked().slice(asked), []);
  world.write(PLAIN);
  await until('one pod is gone', () => count(world, 'NodeUnpublishVolume') === 1);
  await untilSettled(world);
  assert.equal(count(world, 'NodeUnstageVolume'), 0, 'the other pod has it');
  await takeDown(world);
  assert.deepEqual(world.asked().slice(asked), [
    'NodeUnpublishVolume',
    'NodeUnpublishVolume',
    'NodeUnstageVolume',
  ]);
});

test('A-020, A-053, A-067: attached first and detached last, the publish context kept over a restart', async () => {
  const before = await agentWorld(
    PLAIN,
    {
      controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME],
      publishContext: { device: 'sdb', lun: '7' },
      before: (method) => {
        if (method === 'NodePublishVolume') throw new GrpcStatus(14, 'not now');
      },
    },
    { csi_deadline_ms: 5_000, late_effect_ms: 1_000 },
  );
  await until('publishing', () => count(before, 'NodePublishVolume') > 0);
  const world = await before.restart();
  world.plan.before = () => undefined;
  await untilSettled(world);
  for (const codec of [NodeStageVolumeRequest, NodePublishVolumeRequest] as const) {
    const method = codec === NodeStageVolumeRequest ? 'NodeStageVolume' : 'NodePublishVolume';
    const last = sent<{ publishContext: Record<string, string> }>(world, method, codec).at(-1);
    assert.deepEqual(last?.publishContext, { device: 'sdb', lun: '7' }, method);
  }
  assert.deepEqual(world.asked().slice(0, 2), ['ControllerPublishVolume', 'NodeStageVolume']);
  await takeDown(world);
  const down = world.asked().filter((method) => method.includes('Un'));
  assert.deepEqual(down.slice(0, 3), [
    'NodeUnpublishVolume',
    'NodeUnstageVolume',
    'ControllerUnpublishVolume',
  ]);
});

const GROWING = {
  ...PLAIN,
  'claim.yaml': claimYaml('data', undefined, '', '{capacity: {storage: 1Gi}}'),
  'volume.yaml': volumeYaml('pv-data', { spec: 'capacity: {storage: 2Gi}' }),
};

test('A-072: an expansion that the node owes is made by the next life of the agent', async () => {
  const before = await agentWorld(GROWING, {
    nodeCapabilities: [CAPABILITY.node.STAGE_UNSTAGE_VOLUME, CAPABILITY.node.EXPAND_VOLUME],
    before: (method) => {
      if (method === 'NodeExpandVolume') throw new GrpcStatus(14, 'not now');
    },
  });
  await until('expanding', () => count(before, 'NodeExpandVolume') > 0);
  const refused = count(before, 'NodeExpandVolume');
  const world = await before.restart();
  world.plan.before = () => undefined;
  await until('expanded', () => world.status().volumes[0]?.size.current === String(2 * 1_024 ** 3));
  assert.ok(count(world, 'NodeExpandVolume') > refused);
  await untilSettled(world);
  assert.equal(world.status().volumes[0]?.expansion.state, 'none');
});

const SECRETS = {
  ...PLAIN,
  'volume.yaml': volumeYaml('pv-data', {
    csi: ['controllerPublish', 'nodeStage', 'nodePublish']
      .map((one) => `${one}SecretRef: {namespace: default, name: login}`)
      .join(', '),
    spec: 'mountOptions: [noatime, password=0ption-c4nary]',
  }),
  'secret.yaml': secretYaml('login', { word: 's3cret-c4nary' }),
};
const ATTACHES = { controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] };

test('A-021, A-038: no log line, status, metric or file of the agent shows a secret, nor a mount flag', async () => {
  const world = await agentWorld(SECRETS, {
    ...ATTACHES,
    before: (method) => {
      if (method === 'NodePublishVolume')
        throw new GrpcStatus(13, 'mount -o noatime,password=0ption-c4nary: login with s3cret-c4nary');
    },
  });
  await until('publishing', () => count(world, 'NodePublishVolume') > 1);
  await until('told', () => world.seen().includes('login with [redacted]'));
  assert.doesNotMatch(world.seen(), /c4nary/);
  const files = stateFiles(world);
  for (const [name, text] of files) {
    assert.doesNotMatch(text, /s3cret-c4nary/, name);
    if (!name.startsWith('mooring/records/')) assert.doesNotMatch(text, /c4nary/, name);
  }
  assert.ok([...files.keys()].some((name) => name.endsWith('vol_data.json')));
});

test('A-050: a driver that comes back with another node id is an alarm in the status', async () => {
  const world = await agentWorld(PLAIN);
  await untilSettled(world);
  await world.replaceDriver({ nodeId: 'node-2' });
  const alarm = () =>
    world
      .status()
      .drivers.find(({ reason }) => /node id changed from "node-1" to "node-2"/.test(reason ?? ''));
  await until('the alarm', () => alarm() !== undefined);
  assert.equal(alarm()?.name, DUTY_DRIVER);
});

test('A-039: with claim, volume and secret gone together with the pod, everything comes down', async () => {
  const world = await agentWorld(SECRETS);
  await untilSettled(world);
  await takeDown(world, {});
  assert.deepEqual(world.asked().slice(-2), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
  assert.equal(world.host.mounts.size, 0);
});

test('A-054, k/k#121357: after an unstage that failed nothing is published before it is staged again', async () => {
  const world = await agentWorld(PLAIN);
  await untilSettled(world);
  world.plan.before = (method) => {
    if (method === 'NodeUnstageVolume') throw new GrpcStatus(13, 'busy');
  };
  world.write(NO_POD);
  await until('unstaging', () => count(world, 'NodeUnstageVolume') > 0);
  world.write(PLAIN);
  await untilSettled(world);
  const sinceUnstage = world.asked().slice(world.asked().lastIndexOf('NodeUnstageVolume') + 1);
  assert.deepEqual(sinceUnstage, ['NodeStageVolume', 'NodePublishVolume']);
});

test('A-058, A-067: while one of two targets may be there, the volume is neither unstaged nor detached', async () => {
  const both = { ...PLAIN, 'more.yaml': podYaml('more', { data: claimSource('data') }) };
  const world = await agentWorld(both, ATTACHES);
  await untilSettled(world);
  let asked = 0;
  world.plan.before = (method) => {
    if (method !== 'NodeUnpublishVolume') return;
    asked += 1;
    if (asked > 1 && asked < 6) throw new GrpcStatus(13, 'busy');
  };
  await takeDown(world);
  const down = world.asked().slice(world.asked().lastIndexOf('NodePublishVolume') + 1);
  assert.deepEqual(down, [
    ...Array(6).fill('NodeUnpublishVolume'),
    'NodeUnstageVolume',
    'ControllerUnpublishVolume',
  ]);
});

test('A-074, A-075: whatever a driver says of a volume’s health, people are told and nothing is done', async () => {
  const ill = (status: number, reason: string) => ({ status, reason, message: 'is it, really?' });
  const world = await agentWorld(
    PLAIN,
    { nodeCapabilities: [1, 2, 4, 7] },
    { statistics_interval_ms: 1_000 },
    {
      NodeGetVolumeHealth: {
        volumeHealth: {
          volumeId: 'handle-pv-data',
          healthStatuses: [ill(2, 'NoRoute'), ill(3, 'Gone'), ill(99, 'New')],
        },
      },
      NodeGetVolumeStats: { usage: [], volumeCondition: { abnormal: true, message: 'broken' } },
    },
  );
  await untilSettled(world);
  await until('two rounds of questions', () => count(world, 'NodeGetVolumeStats') >= 2);
  const changes = world.asked().filter((method) => !method.startsWith('NodeGet'));
  assert.deepEqual(changes, ['NodeStageVolume', 'NodePublishVolume']);
  const { volumes, pods, summary } = world.status();
  assert.deepEqual(
    volumes[0]?.health?.map(({ status }) => status),
    ['inaccessible', 'data-loss', 'unknown(99)'],
  );
  assert.deepEqual([pods[0]?.ready, summary.unhealthy, summary.quarantined], [true, 1, 0]);
});

test('A-062, A-057: what is staged keeps its capability until it is unstaged, whatever the wish says', async () => {
  const world = await agentWorld(PLAIN);
  await untilSettled(world);
  const changed = { ...PLAIN, 'volume.yaml': volumeYaml('pv-data', { spec: 'mountOptions: [noatime]' }) };
  world.write(changed);
  await until('the change', () => {
    const [volume] = world.agent.view().desiredObjects.volumes.values();
    return volume?.mountOptions.length === 1;
  });
  world.write({ ...changed, 'more.yaml': podYaml('more', { data: claimSource('data') }) });
  await until('the second pod', () => count(world, 'NodePublishVolume') === 2);
  const [stage] = sent(world, 'NodeStageVolume', NodeStageVolumeRequest);
  for (const publish of sent(world, 'NodePublishVolume', NodePublishVolumeRequest))
    assert.deepEqual(publish.volumeCapability, stage?.volumeCapability);
});

/** A driver that holds each stage to what it was staged as, and gives the first one up whenever it has done it. */
function heldToCapability(world: () => AgentWorld): Pick<Script, 'before' | 'after'> {
  let stagedAs: string | undefined;
  let first: string | undefined;
  return {
    before: (method) => {
      if (method === 'NodeUnstageVolume') stagedAs = undefined;
      if (method !== 'NodeStageVolume') return;
      const asked = JSON.stringify(sent(world(), method, NodeStageVolumeRequest).at(-1)?.volumeCapability);
      if (stagedAs !== undefined && stagedAs !== asked) throw new GrpcStatus(6, `staged as ${stagedAs}`);
      stagedAs = asked;
      first ??= asked;
    },
    after: (method) => {
      if (method === 'NodeStageVolume' && stagedAs === first) throw new GrpcStatus(4, 'took too long');
    },
  };
}

const { STAGE_UNSTAGE_VOLUME, VOLUME_MOUNT_GROUP, SINGLE_NODE_MULTI_WRITER } = CAPABILITY.node;

const ofGroup = (name: string, gid: number) =>
  `${podYaml(name, { data: claimSource('data') })}  securityContext: {fsGroup: ${gid}}\n`;

test('A-056, A-057: a stage that was given up is undone for a pod of another group, and made anew', async () => {
  const world: AgentWorld = await agentWorld(
    { ...NO_POD, 'old.yaml': ofGroup('old', 1_000) },
    { nodeCapabilities: [STAGE_UNSTAGE_VOLUME, VOLUME_MOUNT_GROUP], ...heldToCapability(() => world) },
  );
  await until('staged', () => count(world, 'NodeStageVolume') === 1);
  world.write({ ...NO_POD, 'next.yaml': ofGroup('next', 2_000) });
  await untilSettled(world);
  const publishes = sent(world, 'NodePublishVolume', NodePublishVolumeRequest);
  const stages = sent(world, 'NodeStageVolume', NodeStageVolumeRequest);
  assert.deepEqual(publishes.at(-1)?.volumeCapability, stages.at(-1)?.volumeCapability);
});

test('A-056, A-064: what a driver has staged as it could do less is staged anew as it can do more', async () => {
  const world: AgentWorld = await agentWorld(
    PLAIN,
    heldToCapability(() => world),
  );
  await until('staged', () => count(world, 'NodeStageVolume') === 1);
  const nodeCapabilities = [STAGE_UNSTAGE_VOLUME, SINGLE_NODE_MULTI_WRITER];
  await world.replaceDriver({ nodeCapabilities });
  await untilSettled(world);
  const publishes = sent(world, 'NodePublishVolume', NodePublishVolumeRequest);
  const stages = sent(world, 'NodeStageVolume', NodeStageVolumeRequest);
  assert.deepEqual(publishes.at(-1)?.volumeCapability, stages.at(-1)?.volumeCapability);
});

test('A-055, A-058: a volume whose wish turns from files to a device is unstaged where it was staged', async () => {
  const before = await agentWorld(PLAIN);
  await untilSettled(before);
  before.write({
    'volume.yaml': volumeYaml('pv-data', { spec: 'volumeMode: Block' }),
    'claim.yaml': claimYaml('data', '{volumeName: pv-data, volumeMode: Block}'),
    'pod.yaml': withDevices(WEB),
    'more.yaml': withDevices(podYaml('more', { data: claimSource('data') })),
  });
  const placeOf = (world: AgentWorld, pod: string) =>
    world.status().pods.find(({ name }) => name === pod)?.volumes[0];
  await until('the second pod waits', () => placeOf(before, 'more')?.reason !== null);
  const world = await before.restart();
  await until('it waits still', () => placeOf(world, 'more')?.reason?.code === 'volume-in-use');
  assert.match(
    placeOf(world, 'more')?.reason?.message ?? '',
    /stands with volumeMode Filesystem, and volumeMode Block is wanted: delete the pods that use it first/,
  );
  const [volume] = world.status().volumes;
  assert.deepEqual([volume?.mode, volume?.changed], ['Filesystem', ['mode']]);
  assert.equal(placeOf(world, 'web')?.state, 'mounted');
  assert.deepEqual(world.asked(), ['NodeStageVolume', 'NodePublishVolume']);
  world.write({});
  await until('down', () => world.agent.view().reconciler.actual().size === 0);
  const [stage] = sent(world, 'NodeStageVolume', NodeStageVolumeRequest);
  const [unstage] = sent(world, 'NodeUnstageVolume', NodeUnstageVolumeRequest);
  assert.equal(unstage?.stagingTargetPath, stage?.stagingTargetPath);
});
