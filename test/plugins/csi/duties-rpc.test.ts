/** Duties of an orchestrator (docs/CSI.md) that hold for every call it makes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import fc from 'fast-check';
import {
  type RecordedCall,
  redactedRequest,
  type RequestFields,
} from '../../../agent/drive/oracle/recorded-call.ts';
import { FAILURE_RETRY, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, MountIdentity } from '../../../mount/host.ts';
import type { DriverInstance } from '../../../plugins/csi/driver/driver.ts';
import {
  ControllerPublishVolumeRequest,
  ControllerUnpublishVolumeRequest,
  NodeExpandVolumeRequest,
  NodePublishVolumeRequest,
  NodeService,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { type GrpcServer, GrpcStatus } from '../../../plugins/csi/wire/grpc-service.ts';
import {
  notifyRegistrar,
  questionDriver,
  readAnnouncement,
} from '../../../plugins/csi/driver/registration.ts';
import { findSocket } from '../../../plugins/csi/driver/socket-trust.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { type ExpandCall, NO_SECRETS, type PublicationCall } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { type AccessMode, bytesFrom, type CsiVolumeSpec, csiVolumeId } from '../../../plugins/volume.ts';
import { judge } from '../../drive/judge.ts';
import { accept, refuse } from './answers.ts';
import { call, introduce, SPEC, stagingOf, targetOf, up, type World, world } from './csi-world.ts';
import { ALL_METHODS, type Answer, calledMethods, serveAll } from './duties-driver.ts';
import { CAPABILITY, DRIVER } from './scripted-driver.ts';
import { inRoot } from './socket-host.ts';

const servers: GrpcServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const EVERYTHING = {
  nodeCapabilities: [1, 2, 3, 4, 5, 6, 7, 8],
  controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME],
};
const ATTACHED = { attach: true, stage: true, expand: true };
const FACTS = { needs: ATTACHED, publishContext: {}, stagedMount: undefined };

/** A plugin that knows a driver which can do everything; behind its socket there is now another one. */
async function answeringWorld(answer: Answer): Promise<World> {
  const made = await world(EVERYTHING);
  const socket = inRoot(made.host, 'driver', 'answering.sock');
  servers.push(await serveAll(socket, answer));
  const found = accept(await findSocket(made.host, socket, undefined));
  assert.ok(made.instance);
  made.instance = { ...made.instance, endpoint: found.identity };
  return made;
}

const growth = (changes: Partial<PublicationCall> = {}): ExpandCall => ({
  ...call(changes),
  publication: call(changes).publication,
  toBytes: bytesFrom(2_000),
});

/** What a volume that was published before has at its target. */
const AT_TARGET: MountIdentity = { mountId: 1, device: '7:1' };

/** Each thing the agent ever does with a driver, once. */
function everyUse(
  made: World,
  changes: Partial<PublicationCall>,
): readonly (() => Promise<Result<unknown>>)[] {
  const { plugin, host } = made;
  assert.ok(made.instance !== undefined && plugin.expand !== undefined && plugin.statistics !== undefined);
  const { endpoint } = made.instance;
  const about = call({ facts: FACTS, ...changes });
  const named = { name: DRIVER, registrationSocket: undefined, life: '1 of 0' };
  return [
    () => plugin.attach(about),
    () => plugin.stage(about),
    () => plugin.publish(about),
    () => plugin.expand?.(growth({ facts: FACTS, ...changes })) ?? assert.fail(),
    () => plugin.statistics?.({ ...about, mount: AT_TARGET, stillThere: () => true }) ?? assert.fail(),
    () => plugin.storageHealth(DRIVER),
    () => plugin.unpublish(about),
    () => plugin.unstage(about),
    () => plugin.detach(about),
    () => questionDriver(host, endpoint, named),
    () => readAnnouncement(host, endpoint),
    () => notifyRegistrar(host, endpoint, undefined),
  ];
}

/** Identity and capabilities as they should be, so that the question after them is asked, too. */
const INTRODUCTION: Readonly<Record<string, unknown>> = {
  GetPluginInfo: { name: DRIVER, vendorVersion: '1', manifest: {} },
  Probe: { ready: undefined },
  GetPluginCapabilities: { capabilities: [{ type: { $case: 'service', value: { type: 1 } } }] },
  NodeGetInfo: { nodeId: 'node-1', maxVolumesPerNode: 0n, accessibleTopology: undefined },
  NodeGetCapabilities: { capabilities: [] },
  ControllerGetCapabilities: { capabilities: [] },
};

const HEALTH = 'NodeGetVolumeHealth';
const UNIMPLEMENTED = 12;

test('A-034: every code, known or not, from every method the agent calls is a failure that is named', async () => {
  const methods = calledMethods().map(({ name }) => name);
  assert.ok(methods.length >= 18, methods.join());
  for (const code of [...Array(17).keys(), 17, 99, 4_000_000]) {
    const refusing = new Set<string>();
    const made = await answeringWorld((method) => {
      if (!refusing.has(method) && method in INTRODUCTION) return INTRODUCTION[method];
      const isPassed = method === HEALTH && refusing.has(HEALTH);
      throw new GrpcStatus(isPassed ? UNIMPLEMENTED : code, 'this is why');
    });
    // A question that was not answered is not followed by the next one, so that is asked in a round of its own.
    // All but the handshake at once; of the handshake one after the other, because it ends with the first refusal.
    for (const refused of [undefined, HEALTH, ...Object.keys(INTRODUCTION)]) {
      refusing.clear();
      if (refused !== undefined) refusing.add(refused);
      made.host.mounts.set(targetOf(made), AT_TARGET);
      made.host.mounts.set(stagingOf(made), { mountId: 2, device: '7:1' });
      for (const use of everyUse(made, {})) {
        const answered = await use();
        if (answered.ok) continue;
        assert.ok(answered.failure.code in FAILURE_RETRY, answered.failure.code);
        assert.ok(answered.failure.message !== '' && Buffer.byteLength(answered.failure.message) <= 1_024);
      }
    }
    const asked = new Set(made.host.called);
    assert.deepEqual(
      methods.filter((name) => !asked.has(name)),
      [],
      'each of them was asked',
    );
  }
});

test('A-034: no code but OK makes a climb succeed, and none makes a mount that is there count as down', async () => {
  for (const code of [...Array(17).keys(), 99]) {
    const made = await answeringWorld(() => {
      throw new GrpcStatus(code, 'no');
    });
    made.host.mounts.set(targetOf(made), AT_TARGET);
    made.host.mounts.set(stagingOf(made), { mountId: 2, device: '7:1' });
    const about = call({ facts: FACTS });
    for (const verb of ['attach', 'stage', 'publish', 'unpublish', 'unstage'] as const)
      assert.ok(!(await made.plugin[verb](about)).ok, `${verb} answered with ${code}`);
    assert.equal(made.host.mounts.size, 2);
  }
});

test('A-036: the details of a status are ignored, its message is shown', async () => {
  const made = await world();
  const server = new Server();
  const { nodePublishVolume } = NodeService;
  server.addService(
    { nodePublishVolume },
    {
      nodePublishVolume: (_: unknown, callback: (error: object) => void) => {
        const metadata = new Metadata();
        metadata.set('grpc-status-details-bin', Buffer.from('c4nary-details'));
        metadata.set('x-more', 'c4nary-header');
        callback({ code: 9, details: 'the message', metadata });
      },
    },
  );
  const socket = inRoot(made.host, 'driver', 'details.sock');
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  assert.ok(made.instance);
  made.instance = {
    ...made.instance,
    endpoint: accept(await findSocket(made.host, socket, undefined)).identity,
  };
  const refused = await made.plugin.publish(call());
  server.forceShutdown();
  assert.equal(refuse(refused).code, 'driver-precondition');
  assert.match(JSON.stringify(refused), /the message/);
  assert.doesNotMatch(JSON.stringify(refused), /c4nary|YzRuYXJ5/);
});

const CANARY = 's3cret-c4nary';
const ALL_SECRETS = Object.fromEntries(
  Object.keys(NO_SECRETS).map((name) => [name, new Sensitive({ [`key-${name}`]: CANARY })]),
) as unknown as typeof NO_SECRETS;

test('A-038: of each message that has secrets, those the agent sends show none, whatever the answer', async () => {
  const withSecrets = calledMethods().filter(({ empty }) => 'secrets' in empty);
  const sent = withSecrets.map(({ name }) => name).sort();
  assert.deepEqual(sent, [
    'ControllerPublishVolume',
    'ControllerUnpublishVolume',
    'NodeExpandVolume',
    'NodeGetStorageHealth',
    'NodePublishVolume',
    'NodeStageVolume',
  ]);
  const forms = [CANARY, Buffer.from(CANARY).toString('base64'), Buffer.from(CANARY).toString('hex')];
  for (let code = 1; code <= 17; code += 1) {
    const made = await answeringWorld((method) => {
      if (method in INTRODUCTION) return INTRODUCTION[method];
      throw new GrpcStatus(code, `${forms.join(' ')} said ${method}`);
    });
    const tokens = new Sensitive(JSON.stringify({ vault: { token: CANARY } }));
    made.here.push({ spec: SPEC, secrets: ALL_SECRETS, facts: {} });
    for (const use of everyUse(made, { secrets: ALL_SECRETS, tokens })) {
      const shown = JSON.stringify(await use());
      // What it is asked before it is let in was asked by nobody who has a volume.
      if (/said (?:GetInfo|Notify)/.test(shown)) continue;
      for (const form of forms) assert.ok(!shown.includes(form), shown);
    }
    const carried = made.host.requests.filter(({ bytes }) => bytes.includes(CANARY));
    const carriers = new Set(carried.map(({ method }) => method));
    for (const method of carriers) assert.ok(sent.includes(method), method);
    assert.ok(carriers.has('NodeStageVolume') && carriers.has('NodePublishVolume') && carriers.size >= 5);
  }
});

test('A-038: whatever message of CSI has secrets, what the recorder of `mooring drive` keeps has none', () => {
  const having = ALL_METHODS.filter(({ empty }) => 'secrets' in empty);
  assert.ok(having.length >= 14, having.map(({ name }) => name).join());
  for (const { name, empty } of having) {
    const kept = JSON.stringify(
      redactedRequest({ ...empty, secrets: { word: CANARY } } as RequestFields),
      bigint,
    );
    assert.doesNotMatch(kept, /c4nary/, name);
    assert.match(kept, /redacted/, name);
  }
});

function bigint(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

test('A-038: every secret field that the specification marks has the name by which it is taken out', () => {
  const proto = readFileSync(
    fileURLToPath(new URL('../../../plugins/csi/proto/csi.proto', import.meta.url)),
    'utf8',
  );
  const marked = proto.split(';').filter((field) => /csi_secret\)\s*=\s*true/.test(field));
  const named = proto.split(';').filter((field) => /map<string, string>\s+secrets\s*=/.test(field));
  assert.equal(named.length, 22, 'CSI 1.13 has so many');
  for (const field of marked) assert.match(field, /map<string, string>\s+secrets\s*=/);
});

test('A-021: of a mount option no value is in what is said about a refused call', async () => {
  const mountOptions = ['noatime', 'password=p4ss', 'cruid=c4nary-one', 'uid=1000', 'c=0123456789'];
  const spec: CsiVolumeSpec = { ...SPEC, mountOptions };
  const made = await answeringWorld(() => {
    throw new GrpcStatus(
      13,
      `mount -o ${mountOptions.join(',')} failed: c4nary-one is nobody, p4ss is wrong`,
    );
  });
  for (const verb of ['stage', 'publish'] as const) {
    const refused = await made.plugin[verb](call({ spec, facts: FACTS }));
    assert.ok(!refused.ok);
    assert.doesNotMatch(refused.failure.message, /p4ss|c4nary|0123456789|1000/);
    assert.match(refused.failure.message, /noatime.*failed: .* is nobody/);
  }
});

test('A-030, A-076: whatever is asked at random, no driver has two calls of one volume open', async () => {
  const open = new Map<string, number>();
  let most = 0;
  let overlapped = 0;
  let asked = 0;
  const made = await answeringWorld(async (method, { volumeId }) => {
    if (volumeId === undefined) return { backendHealth: [] };
    const now = (open.get(volumeId) ?? 0) + 1;
    open.set(volumeId, now);
    most = Math.max(most, now);
    overlapped = Math.max(overlapped, [...open.values()].filter((one) => one > 0).length);
    asked += 1;
    await new Promise((resolve) => setTimeout(resolve, 1 + ((asked * 7) % 5)));
    open.set(volumeId, now - 1);
    if (asked % 5 === 0) throw new GrpcStatus(asked % 17, method);
    return method === 'NodeGetVolumeHealth' ? { volumeHealth: undefined } : { usage: [], capacityBytes: 0n };
  });
  const specs = ['x', 'y', 'z'].map((volumeHandle) => ({
    ...SPEC,
    volumeHandle,
    id: csiVolumeId(DRIVER, volumeHandle),
  }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(2), fc.nat(8), fc.nat(3)), { minLength: 10, maxLength: 40 }),
      async (uses) => {
        const results = uses.map(([volume, verb, pod]) => {
          const spec = specs[volume] ?? SPEC;
          return everyUse(made, call({ spec, pod, facts: FACTS }))[verb]?.() ?? assert.fail();
        });
        for (const answered of await Promise.all(results)) assert.ok('ok' in answered);
      },
    ),
    { numRuns: 8 },
  );
  assert.equal(most, 1);
  assert.ok(overlapped > 1, 'volumes do not wait for each other');
});

const CODECS: Readonly<Record<string, { decode(bytes: Buffer): object }>> = {
  ControllerPublishVolume: ControllerPublishVolumeRequest,
  ControllerUnpublishVolume: ControllerUnpublishVolumeRequest,
  NodeStageVolume: NodeStageVolumeRequest,
  NodePublishVolume: NodePublishVolumeRequest,
  NodeExpandVolume: NodeExpandVolumeRequest,
  NodeUnpublishVolume: NodeUnpublishVolumeRequest,
  NodeUnstageVolume: NodeUnstageVolumeRequest,
};

function recordingOf({ host }: World): readonly RecordedCall[] {
  return host.requests.map(({ method, bytes }, index) => {
    const request = (CODECS[method] ?? assert.fail(method)).decode(bytes) as RequestFields;
    const reply = method === 'ControllerPublishVolume' ? { publishContext: { device: 'sdb' } } : {};
    return {
      method,
      request,
      unknownBytes: 0,
      startMs: index * 2,
      endMs: index * 2 + 1,
      code: 0,
      message: '',
      reply,
      secretInMessage: false,
      injected: undefined,
      reachedDriver: true,
    };
  });
}

const MODES: readonly AccessMode[] = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];
const STRINGS = fc.dictionary(fc.string({ minLength: 1, maxLength: 20 }), fc.string({ maxLength: 30 }), {
  maxKeys: 5,
  noNullPrototype: true,
});

test('A-015, A-016, A-019, A-020, A-060, A-064: no wish makes a request without what CSI requires', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        fsType: fc.constantFrom('', 'ext4', 'xfs'),
        accessModes: fc.subarray([...MODES]),
        readOnly: fc.boolean(),
        podInfoOnMount: fc.boolean(),
        volumeAttributes: STRINGS,
        mountOptions: fc.array(fc.constantFrom('ro', 'noatime', 'uid=5')),
        attach: fc.boolean(),
        stage: fc.boolean(),
        multiWriter: fc.boolean(),
        controllerMultiWriter: fc.boolean(),
      }),
      async ({ attach, stage, multiWriter, controllerMultiWriter, ...rest }) => {
        const made = await world({
          nodeCapabilities: [3, ...(stage ? [1] : []), ...(multiWriter ? [5] : [])],
          controllerCapabilities: attach ? [2, ...(controllerMultiWriter ? [13] : [])] : [],
          publishContext: { device: 'sdb' },
        });
        const spec: CsiVolumeSpec = { ...SPEC, ...rest };
        const needs = made.plugin.needs(spec) ?? assert.fail();
        const facts = { needs, publishContext: undefined, stagedMount: undefined };
        const attached = attach ? accept(await made.plugin.attach(call({ spec, facts }))) : undefined;
        const standing = call({ spec, facts: { ...facts, publishContext: attached?.publishContext } });
        if (stage) accept(await made.plugin.stage(standing));
        accept(await made.plugin.publish(standing));
        accept((await made.plugin.expand?.(growth(standing))) ?? assert.fail());
        accept(await made.plugin.unpublish(standing));
        accept(await made.plugin.unstage(standing));
        accept(await made.plugin.detach(standing));
        const { nodeCapabilities, controllerCapabilities, nodeId }: DriverInstance =
          made.instance ?? assert.fail();
        const nature = {
          services: new Set([1]),
          node: nodeCapabilities,
          controller: controllerCapabilities ?? new Set<number>(),
          nodeId,
          starting: false,
        };
        const violations = judge(recordingOf(made), { nature }).filter(({ duty }) => duty !== 'A-014');
        assert.deepEqual(violations, []);
        await made.server.close();
      },
    ),
    { numRuns: 40 },
  );
});

test('A-013: a publish context of more than 4 KiB is a broken answer, and the volume perhaps attached', async () => {
  const made = await world({ ...EVERYTHING, publishContext: { key: 'x'.repeat(4_093) } });
  accept(await made.plugin.attach(call()));
  made.plan.publishContext = { key: 'x'.repeat(4_094) };
  assert.deepEqual(refuse(await made.plugin.attach(call())), {
    code: 'driver-answer-invalid',
    effect: 'unknown',
  });
});

test('A-012, A-014: the paths are those of the kubelet below a root as long as its own', () => {
  const { path } = { path: '/var/lib/mooring' as AbsolutePath };
  assert.equal(path.length, '/var/lib/kubelet'.length);
  const kubelet = createLayout('/var/lib/kubelet' as AbsolutePath);
  const ours = createLayout(path);
  assert.equal(ours.stagingPath(SPEC).length, kubelet.stagingPath(SPEC).length);
  const { publication } = call();
  assert.equal(ours.target(SPEC, publication).length, kubelet.target(SPEC, publication).length);
  assert.ok(ours.target(SPEC, publication).length < 128);
  const long = { ...SPEC, volumeHandle: 'h'.repeat(2_048) };
  assert.equal(
    ours.stagingPath(long).length,
    ours.stagingPath(SPEC).length,
    'a long handle makes no longer path',
  );
});

test('A-065: each place that was tried is unpublished, and once more for as long as that fails', async () => {
  const made = await world();
  await up(made);
  made.plan.before = () => {
    throw new GrpcStatus(4, 'slow');
  };
  for (let times = 0; times < 3; times += 1) {
    assert.deepEqual(refuse(await made.plugin.unpublish(call())), {
      code: 'driver-deadline',
      effect: 'unknown',
    });
  }
  made.plan.before = () => undefined;
  accept(await made.plugin.unpublish(call()));
  const targets = made.host.requests
    .filter(({ method }) => method === 'NodeUnpublishVolume')
    .map(({ bytes }) => NodeUnpublishVolumeRequest.decode(bytes).targetPath);
  assert.deepEqual(targets, Array(4).fill(targetOf(made)));
  await introduce(made);
});
