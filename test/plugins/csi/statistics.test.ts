import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, MountIdentity } from '../../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../../mount/remote-call.ts';
import type { KnownVolume } from '../../../plugins/csi/call/hidden-words.ts';
import type { SecretMemory } from '../../../plugins/csi/call/secret-memory.ts';
import { createCallLanes } from '../../../plugins/csi/call/volume-call-queue.ts';
import type { DriverInstance } from '../../../plugins/csi/driver/driver.ts';
import {
  NodeGetStorageHealthResponse,
  NodeGetVolumeHealthRequest,
  NodeGetVolumeHealthResponse,
  NodeGetVolumeStatsRequest,
  NodeGetVolumeStatsResponse,
  VolumeUsage_Unit as Unit,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { createStatistics, QUESTION_DEADLINE_MS } from '../../../plugins/csi/statistics.ts';
import { methodName } from '../../../plugins/csi/wire/status.ts';
import { createLayout } from '../../../plugins/layout/layout.ts';
import { NO_SECRETS, type StatisticsCall, type VolumeStatistics } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import {
  type CsiVolumeSpec,
  parsePodUid,
  publicationKey,
  type PublicationSpec,
} from '../../../plugins/volume.ts';
import { csiSpec } from '../csi-spec.ts';
import { accept } from './answers.ts';

const DRIVER = 'driver.test';
const HANDLE = 'vol/1';
const layout = createLayout('/var/lib/mooring' as AbsolutePath);
const SPEC = csiSpec(DRIVER, HANDLE, 'pv-1');
const uid = parsePodUid('0b4f8c1e-2222-4333-8444-55556666000a') ?? assert.fail();
const PUBLICATION: PublicationSpec = {
  key: publicationKey(uid, 'pv-1'),
  pod: { uid, name: 'web', namespace: 'shop', serviceAccount: 'seller' },
  specName: 'pv-1',
  readOnly: false,
  origin: 'web.yaml',
};
const TARGET = layout.target(SPEC, PUBLICATION);
const STAGING = layout.stagingPath(SPEC);
const BLOCK: CsiVolumeSpec = { ...SPEC, mode: 'Block' };

const MOUNT: MountIdentity = { mountId: 7, device: '0:7' };

const STAGES = 1;
const STATS = 2;
const CONDITION = 4;
const HEALTH = 7;
const STORAGE = 8;

type Answer = Uint8Array | { readonly status: number; readonly message?: string } | 'hangs';

interface Sent {
  readonly method: string;
  readonly bytes: Buffer;
  readonly deadlineMs: number;
}

const WELL_KNOWN = { of: () => [new Sensitive({ option: 'hunter22' })], knows: () => true };

/** A driver behind a wire: requests and answers are bytes; a hung call takes all of its deadline. */
function world(
  capabilities: readonly number[],
  answers: Readonly<Record<string, Answer>>,
  memory: Pick<SecretMemory, 'of' | 'knows'> = WELL_KNOWN,
  here: readonly KnownVolume[] = [],
) {
  const sent: Sent[] = [];
  const places = [TARGET, STAGING, layout.mountPoint(BLOCK, PUBLICATION)];
  const mounted = new Map<string, number>(places.map((path) => [path, MOUNT.mountId]));
  const suspected: string[] = [];
  const lanes = createCallLanes();
  const looks = hangingLooks();
  let nowMs = 0;
  const instance: DriverInstance = {
    name: DRIVER,
    endpoint: { path: '/run/csi.sock' as AbsolutePath, inode: 1 },
    life: '1 of 0',
    registrationSocket: undefined,
    vendorVersion: '1',
    nodeId: 'n',
    volumesMax: 0,
    topology: {},
    nodeCapabilities: new Set(capabilities),
    controllerCapabilities: undefined,
    registeredAtMs: 0,
  };
  let registered: DriverInstance | undefined = instance;
  const statistics = createStatistics({
    host: {
      nowMs: () => nowMs,
      mountIdOf: async (path) => {
        looks.told();
        if (looks.hang) await looks.ended;
        return ok(mounted.get(path));
      },
      async call<Request, Reply>(call: RemoteCall<Request, Reply>): Promise<RemoteReply<Reply>> {
        const method = methodName(call.method.path);
        const bytes = call.method.requestSerialize(call.request);
        sent.push({ method, bytes, deadlineMs: call.deadlineMs });
        await null;
        const answer = answers[method] ?? { status: 12 };
        if (answer === 'hangs') {
          nowMs += call.deadlineMs;
          return { kind: 'broken', because: 'deadline', message: 'no answer' };
        }
        if (!(answer instanceof Uint8Array))
          return { kind: 'status', status: answer.status, message: answer.message ?? '' };
        return { kind: 'ok', reply: call.method.responseDeserialize(Buffer.from(answer)) };
      },
    },
    layout,
    drivers: { get: () => registered, suspect: (name) => suspected.push(name) },
    lanes,
    memory,
    volumesOf: () => here,
  });
  return {
    sent,
    mounted,
    suspected,
    lanes,
    looks,
    statistics,
    now: () => nowMs,
    leave: () => {
      registered = undefined;
    },
  };
}

function hangingLooks() {
  let told = () => {};
  let end = () => {};
  const begun = new Promise<void>((resolve) => (told = resolve));
  const ended = new Promise<void>((resolve) => (end = resolve));
  return { hang: false, begun, ended, told: () => told(), end: () => end() };
}

function call(changes: Partial<StatisticsCall> = {}, stage = true): StatisticsCall {
  const needs = { attach: false, stage, expand: false };
  return {
    spec: SPEC,
    facts: { needs, publishContext: undefined, stagedMount: MOUNT },
    publication: PUBLICATION,
    mount: MOUNT,
    stillThere: () => true,
    secrets: NO_SECRETS,
    ...changes,
  };
}

function refuse(result: Result<unknown>): Failure {
  assert.ok(!result.ok);
  return result.failure;
}

function numbers(result: Result<VolumeStatistics | 'busy'>): VolumeStatistics {
  const value = accept(result);
  assert.ok(value !== 'busy');
  return value;
}

const usage = (unit: number, total: bigint, used = 0n, available = 0n) => ({
  unit: unit as never,
  total,
  used,
  available,
});

function stats(
  usages: readonly ReturnType<typeof usage>[],
  volumeCondition?: { abnormal: boolean; message: string },
): Uint8Array {
  return NodeGetVolumeStatsResponse.encode({ usage: [...usages], volumeCondition }).finish();
}

function health(volumeId: string, ...statuses: readonly (readonly [number, string, string])[]): Uint8Array {
  const healthStatuses = statuses.map(([status, reason, message]) => ({
    status: status as never,
    reason,
    message,
  }));
  return NodeGetVolumeHealthResponse.encode({ volumeHealth: { volumeId, healthStatuses } }).finish();
}

const GOOD = stats([usage(Unit.BYTES, 100n, 40n, 60n), usage(Unit.INODES, 10n, 4n, 6n)]);

test('A-068: a driver without GET_VOLUME_STATS is not asked', async () => {
  const { statistics, sent } = world([1], { NodeGetVolumeStats: GOOD });
  const nothing = { bytes: undefined, inodes: undefined, health: undefined };
  assert.deepEqual(numbers(await statistics.statistics(call())), nothing);
  assert.deepEqual(sent, []);
});

test('A-068: stats carry volume id, the path in the pod and the staging path; units are told apart', async () => {
  const { statistics, sent } = world([STATS], { NodeGetVolumeStats: GOOD });
  assert.deepEqual(numbers(await statistics.statistics(call())), {
    bytes: { total: '100', used: '40', available: '60' },
    inodes: { total: '10', used: '4', available: '6' },
    health: undefined,
  });
  assert.deepEqual(
    sent.map(({ bytes }) => NodeGetVolumeStatsRequest.decode(bytes)),
    [{ volumeId: HANDLE, volumePath: TARGET, stagingTargetPath: STAGING }],
  );
});

test('A-068: a volume that is not staged has no staging path; one that is only staged is asked there', async () => {
  const { statistics, sent } = world([STATS], { NodeGetVolumeStats: GOOD });
  await statistics.statistics(call({}, false));
  await statistics.statistics(call({ publication: undefined }));
  assert.deepEqual(
    sent.map(({ bytes }) => NodeGetVolumeStatsRequest.decode(bytes)),
    [
      { volumeId: HANDLE, volumePath: TARGET, stagingTargetPath: '' },
      { volumeId: HANDLE, volumePath: STAGING, stagingTargetPath: STAGING },
    ],
  );
});

test('A-068: a volume that was found on disk has a staging path when its driver stages', async () => {
  const { statistics, sent } = world([STATS, STAGES], { NodeGetVolumeStats: GOOD });
  await statistics.statistics(call({}, false));
  await statistics.statistics(call({ spec: { ...SPEC, lifecycle: 'Ephemeral' } }, false));
  assert.deepEqual(
    sent.map(({ bytes }) => NodeGetVolumeStatsRequest.decode(bytes).stagingTargetPath),
    [STAGING, ''],
  );
});

test('A-068: of a block volume the published device is asked, and what is not said is not known', async () => {
  const { statistics, sent } = world([STATS], { NodeGetVolumeStats: stats([usage(Unit.BYTES, 4_096n)]) });
  assert.deepEqual(numbers(await statistics.statistics(call({ spec: BLOCK }))).bytes, {
    total: '4096',
    used: undefined,
    available: undefined,
  });
  const [request] = sent.map(({ bytes }) => NodeGetVolumeStatsRequest.decode(bytes));
  assert.equal(request?.volumePath, layout.blockPublication(PUBLICATION).published);
});

test('A-068: a full volume has nothing available; a file system without inodes says nothing of them', async () => {
  const full = stats([usage(Unit.BYTES, 100n, 100n, 0n), usage(Unit.INODES, 0n), usage(Unit.UNKNOWN, 9n)]);
  const { statistics } = world([STATS], { NodeGetVolumeStats: full });
  assert.deepEqual(numbers(await statistics.statistics(call())), {
    bytes: { total: '100', used: '100', available: '0' },
    inodes: undefined,
    health: undefined,
  });
});

test('A-068: a negative number is a broken answer', async () => {
  const { statistics } = world([STATS], { NodeGetVolumeStats: stats([usage(Unit.BYTES, 100n, -1n)]) });
  assert.equal(refuse(await statistics.statistics(call())).code, 'driver-answer-invalid');
});

test('numbers above 2^53 are exact', async () => {
  const total = 2n ** 62n + 1n;
  const { statistics } = world([STATS], { NodeGetVolumeStats: stats([usage(Unit.BYTES, total, 1n)]) });
  assert.equal(numbers(await statistics.statistics(call())).bytes?.total, total.toString());
});

test('numbers are not asked where nothing is mounted: they would be those of the node’s own disk', async () => {
  const { statistics, sent, mounted } = world([STATS], { NodeGetVolumeStats: GOOD });
  mounted.delete(TARGET);
  assert.equal(numbers(await statistics.statistics(call())).bytes, undefined);
  assert.deepEqual(sent, []);
});

test('MT-15: numbers are asked only of the mount that was proven: another one’s are not the volume’s', async () => {
  const { statistics, sent, mounted } = world([STATS], { NodeGetVolumeStats: GOOD });
  const strangerId = MOUNT.mountId + 1;
  mounted.set(TARGET, strangerId);
  mounted.set(STAGING, strangerId);
  assert.equal(numbers(await statistics.statistics(call())).bytes, undefined);
  assert.equal(numbers(await statistics.statistics(call({ publication: undefined }))).bytes, undefined);
  assert.deepEqual(sent, []);
});

test('numbers are not asked of what was found mounted and is not proven yet', async () => {
  const { statistics, sent } = world([STATS], { NodeGetVolumeStats: GOOD });
  for (const publication of [PUBLICATION, undefined]) {
    const unproven = call({ publication, mount: undefined });
    assert.equal(numbers(await statistics.statistics(unproven)).bytes, undefined);
  }
  assert.deepEqual(sent, []);
});

test('A-024, A-074: the 1.12 condition is shown as abnormal, only of a driver with that capability', async () => {
  const ill = stats([], { abnormal: true, message: 'disk\u001b is old' });
  const old = world([CONDITION], { NodeGetVolumeStats: ill });
  assert.deepEqual(numbers(await old.statistics.statistics(call())).health, [
    { status: 'abnormal', reason: '', message: 'disk\\u001b is old' },
  ]);
  const well = world([STATS, CONDITION], {
    NodeGetVolumeStats: stats([], { abnormal: false, message: 'fine' }),
  });
  assert.deepEqual(numbers(await well.statistics.statistics(call())).health, []);
  const without = world([STATS], { NodeGetVolumeStats: ill });
  assert.equal(numbers(await without.statistics.statistics(call())).health, undefined);
});

test('A-011, A-075: health in 1.13: empty is healthy, types of later versions are shown by number', async () => {
  const well = world([HEALTH], { NodeGetVolumeHealth: health(HANDLE) });
  assert.deepEqual(numbers(await well.statistics.statistics(call())).health, []);
  const none = world([HEALTH], { NodeGetVolumeHealth: new Uint8Array() });
  assert.deepEqual(numbers(await none.statistics.statistics(call())).health, []);
  const ill = world([HEALTH], {
    NodeGetVolumeHealth: health(
      HANDLE,
      [1, 'Rebuilding', 'one leg is gone'],
      [2, 'PathLost', ''],
      [3, 'BadBlocks', ''],
      [0, 'Odd', ''],
      [9, 'New', ''],
      [1, 'Rebuilding', 'said twice'],
    ),
  });
  assert.deepEqual(
    numbers(await ill.statistics.statistics(call())).health?.map(
      ({ status, reason }) => `${status} ${reason}`,
    ),
    [
      'degraded Rebuilding',
      'inaccessible PathLost',
      'data-loss BadBlocks',
      'unknown(0) Odd',
      'unknown(9) New',
    ],
  );
  const again = numbers(await ill.statistics.statistics(call()));
  assert.equal(again.health?.[0]?.message, 'one leg is gone');
  assert.deepEqual(NodeGetVolumeHealthRequest.decode(ill.sent[0]?.bytes ?? assert.fail()), {
    volumeId: HANDLE,
    volumePublishPath: TARGET,
    stagingTargetPath: STAGING,
  });
});

test('A-075: a volume that is stuck in stage or publish is asked for its health, not for its numbers', async () => {
  const { statistics, sent, mounted } = world([STATS, HEALTH], {
    NodeGetVolumeStats: GOOD,
    NodeGetVolumeHealth: health(HANDLE, [2, 'NoPath', 'the array does not answer']),
  });
  mounted.clear();
  assert.equal(numbers(await statistics.statistics(call())).health?.[0]?.status, 'inaccessible');
  assert.equal(numbers(await statistics.statistics(call({ publication: undefined }))).health?.length, 1);
  assert.deepEqual(
    sent.map(({ method, bytes }) => [method, NodeGetVolumeHealthRequest.decode(bytes).volumePublishPath]),
    [
      ['NodeGetVolumeHealth', TARGET],
      ['NodeGetVolumeHealth', ''],
    ],
  );
});

test('A-075: an answer about another volume is a broken answer', async () => {
  const { statistics } = world([HEALTH], { NodeGetVolumeHealth: health('vol/2', [1, 'Slow', '']) });
  assert.equal(refuse(await statistics.statistics(call())).code, 'driver-answer-invalid');
});

test('one answer failing does not lose the other: ill volumes often have no numbers', async () => {
  const ill = world([STATS, HEALTH], {
    NodeGetVolumeStats: { status: 13, message: 'statfs: EIO' },
    NodeGetVolumeHealth: health(HANDLE, [2, 'NoPath', '']),
  });
  const { bytes, health: said } = numbers(await ill.statistics.statistics(call()));
  assert.deepEqual([bytes, said?.length], [undefined, 1]);
  const mute = world([STATS, HEALTH], { NodeGetVolumeStats: GOOD, NodeGetVolumeHealth: { status: 13 } });
  const answer = numbers(await mute.statistics.statistics(call()));
  assert.deepEqual([answer.bytes?.total, answer.health], ['100', undefined]);
  const well = world([STATS, HEALTH], {
    NodeGetVolumeStats: { status: 13 },
    NodeGetVolumeHealth: health(HANDLE),
  });
  assert.equal(refuse(await well.statistics.statistics(call())).code, 'driver-failed');
});

test('A-024: a driver that does not implement the health it announced is one without', async () => {
  const { statistics } = world([HEALTH], { NodeGetVolumeHealth: { status: 12 } });
  assert.equal(numbers(await statistics.statistics(call())).health, undefined);
});

test('A-076: while a call of the volume is open the answer is busy, and no question goes out', async () => {
  const { statistics, sent, lanes } = world([STATS, HEALTH], { NodeGetVolumeStats: GOOD });
  let end = () => {};
  const stage = lanes.run(SPEC.id, 'alone', () => new Promise<void>((resolve) => (end = resolve)));
  assert.equal(accept(await statistics.statistics(call())), 'busy');
  assert.deepEqual(sent, []);
  end();
  await stage;
  assert.equal(lanes.size(), 0);
});

test('A-030: health and stats of one volume follow one another, and an unpublish waits for the open one', async () => {
  const { statistics, sent, lanes } = world([STATS, HEALTH], {
    NodeGetVolumeStats: GOOD,
    NodeGetVolumeHealth: health(HANDLE),
  });
  const asked = statistics.statistics(call());
  const order: string[] = [];
  const unpublish = lanes.run(SPEC.id, 'alone', async () => {
    order.push(...sent.map(({ method }) => method), 'unpublish');
    await asked;
  });
  await Promise.all([asked, unpublish]);
  assert.deepEqual(order, ['NodeGetVolumeHealth', 'unpublish']);
  assert.equal(numbers(await asked).bytes, undefined);
  assert.equal(numbers(await statistics.statistics(call())).bytes?.total, '100');
  assert.deepEqual(
    sent.map(({ method }) => method),
    ['NodeGetVolumeHealth', 'NodeGetVolumeHealth', 'NodeGetVolumeStats'],
  );
});

test('while our own look at the mount hangs, a call that changes the volume has its turn', async () => {
  const made = world([STATS], { NodeGetVolumeStats: GOOD });
  const { statistics, lanes, sent, looks } = made;
  looks.hang = true;
  const asked = statistics.statistics(call());
  await looks.begun;
  assert.equal(await lanes.run(SPEC.id, 'alone', async () => 'published'), 'published');
  looks.end();
  await asked;
  assert.deepEqual(
    sent.map(({ method }) => method),
    ['NodeGetVolumeStats'],
  );
});

test('what was taken down while it was looked at has no numbers', async () => {
  const { statistics, sent } = world([STATS], { NodeGetVolumeStats: GOOD });
  const answer = numbers(await statistics.statistics(call({ stillThere: () => false })));
  assert.equal(answer.bytes, undefined);
  assert.deepEqual(sent, []);
});

test('A-076: a driver that hangs gets no second question, and keeps an unmount waiting no longer', async () => {
  const { statistics, sent, lanes, now } = world([STATS, HEALTH], {
    NodeGetVolumeStats: 'hangs',
    NodeGetVolumeHealth: 'hangs',
  });
  const asked = statistics.statistics(call());
  const unpublishedAtMs = await lanes.run(SPEC.id, 'alone', async () => now());
  assert.ok(unpublishedAtMs <= QUESTION_DEADLINE_MS);
  assert.deepEqual(
    sent.map(({ method }) => method),
    ['NodeGetVolumeHealth'],
  );
  assert.equal(refuse(await asked).code, 'driver-deadline');
});

test('a driver that is gone is said to be, and one that is unreachable is looked at again', async () => {
  const gone = world([STATS], {});
  gone.leave();
  assert.equal(refuse(await gone.statistics.statistics(call())).code, 'driver-not-registered');
  const dead = world([STATS], { NodeGetVolumeStats: { status: 14 } });
  await dead.statistics.statistics(call());
  assert.deepEqual(dead.suspected, [DRIVER]);
});

test('A-021: secrets of mount options are taken out of what a driver says', async () => {
  const { statistics } = world([STATS], {
    NodeGetVolumeStats: { status: 13, message: 'df: //server -o pass=hunter22' },
  });
  const { message } = refuse(await statistics.statistics(call()));
  assert.doesNotMatch(message, /hunter22/);
});

test('A-021: a secret in what a driver says of the health of a volume is taken out', async () => {
  const { statistics } = world([HEALTH], {
    NodeGetVolumeHealth: health(HANDLE, [2, 'NoPath', 'login hunter22 was refused']),
  });
  const { health: said } = numbers(await statistics.statistics(call()));
  assert.equal(said?.[0]?.message, 'login [redacted] was refused');
});

test('A-021: of a volume that has secrets, and of which nothing is known, no word on its health is shown', async () => {
  const { statistics } = world(
    [HEALTH],
    { NodeGetVolumeHealth: health(HANDLE, [2, 'NoPath', 'login hunter22 was refused']) },
    { of: () => [], knows: () => false },
  );
  const secrets = { ...NO_SECRETS, stage: new Sensitive({ word: 'rotated-since' }) };
  const { health: said } = numbers(await statistics.statistics(call({ secrets })));
  assert.equal(said?.[0]?.status, 'inaccessible');
  assert.match(said?.[0]?.message ?? '', /^\(not shown: /);
});

test('A-021: nor is one on a volume that stands since an earlier life, whatever was done to it in this', async () => {
  const { statistics } = world([STATS, CONDITION], {
    NodeGetVolumeStats: NodeGetVolumeStatsResponse.encode({
      usage: [],
      volumeCondition: { abnormal: true, message: 'login with first-w0rd was refused' },
    }).finish(),
  });
  const secrets = { ...NO_SECRETS, tokens: true as const };
  const facts = { ...call().facts, isInherited: true as const };
  const { health: said } = numbers(await statistics.statistics(call({ secrets, facts })));
  assert.match(said?.[0]?.message ?? '', /^\(not shown: /);
});

test('storage health: only with the capability; its two types in words', async () => {
  const without = world([STATS], {});
  assert.equal(accept(await without.statistics.storageHealth(DRIVER)), undefined);
  const entry = (status: number, reason: string) => ({
    status: status as never,
    reason,
    message: '',
    volumeCapability: undefined,
  });
  const backendHealth = [entry(1, 'Rebalancing'), entry(2, 'NoRoute'), entry(5, 'New')];
  const ill = world([STORAGE], {
    NodeGetStorageHealth: NodeGetStorageHealthResponse.encode({ backendHealth }).finish(),
  });
  assert.deepEqual(
    accept(await ill.statistics.storageHealth(DRIVER))?.map(({ status }) => status),
    ['storage-degraded', 'storage-unreachable', 'unknown(5)'],
  );
});

test('A-021: storage health tells no secret of any volume, each reason once, and reads no endless list', async () => {
  const entries = Array.from({ length: 10_000 }, (_, at) => ({
    status: 1 as never,
    reason: `Login${'ab'[at % 2]}secret`,
    message: 'hunter22 was refused',
    volumeCapability: undefined,
  }));
  const answers = {
    NodeGetStorageHealth: NodeGetStorageHealthResponse.encode({ backendHealth: entries }).finish(),
  };
  const stage = new Sensitive({ one: 'asecret', other: 'bsecret' });
  const known: KnownVolume = { spec: SPEC, secrets: { ...NO_SECRETS, stage }, facts: {} };
  const { statistics } = world([STORAGE], answers, WELL_KNOWN, [known]);
  assert.deepEqual(accept(await statistics.storageHealth(DRIVER)), [
    { status: 'storage-degraded', reason: 'Login[redacted]', message: '[redacted] was refused' },
  ]);
  const inherited = world([STORAGE], answers, WELL_KNOWN, [{ ...known, facts: { isInherited: true } }]);
  const [said] = accept(await inherited.statistics.storageHealth(DRIVER)) ?? [];
  assert.match(`${said?.reason} ${said?.message}`, /^\(not shown: .* \(not shown: /);
});
