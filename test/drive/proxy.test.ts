import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { createFaults, FAULT_CLASSES } from '../../agent/drive/fault-class.ts';
import { createChance } from '../../agent/drive/chance.ts';
import { CLOCK } from '../../agent/drive/rig/machine.ts';
import { type CallProxy, type Injection, startProxy } from '../../agent/drive/proxy/proxy.ts';
import type { SocketIdentity } from '../../mount/remote-call.ts';
import {
  IdentityService,
  NodePublishVolumeRequest,
  NodeService,
  NodeUnpublishVolumeRequest,
} from '../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote, type GrpcRemote, serveGrpc } from '../../plugins/csi/wire/grpc.ts';
import { type GrpcServer, GrpcStatus } from '../../plugins/csi/wire/grpc-service.ts';

const SECRET = 'tell-nobody';
const MOUNT_FLAG = 'password=in-a-flag';
const INTERNAL = 13;
const UNAVAILABLE = 14;
const DEADLINE_MS = 30_000;

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'mooring-proxy-')));
const behind = join(directory, 'driver.sock');
const front = join(directory, 'proxy.sock');
const reached: string[] = [];
let remote: GrpcRemote;
let driver: GrpcServer;
let proxy: CallProxy;
let injection: Injection | undefined;

async function startDriver(): Promise<GrpcServer> {
  return serveGrpc(behind, [
    {
      definition: NodeService,
      implementation: {
        nodePublishVolume: async ({ secrets, targetPath }) => {
          reached.push(targetPath);
          if (targetPath === '/fails') throw new GrpcStatus(INTERNAL, `login with ${secrets['key']} failed`);
          return {};
        },
        nodeGetInfo: async () => ({ nodeId: 'n1', maxVolumesPerNode: 3n, accessibleTopology: undefined }),
        nodeUnpublishVolume: async ({ targetPath }) => {
          reached.push(targetPath);
          return {};
        },
      },
    },
  ]);
}

before(async () => {
  remote = createGrpcRemote();
  driver = await startDriver();
  proxy = await startProxy({
    listen: front,
    driver: behind,
    remote: remote.call,
    clock: CLOCK,
    deadlineMs: DEADLINE_MS,
    inject: () => injection,
  });
});

after(async () => {
  await proxy.close();
  await driver.close();
  remote.close();
  rmSync(directory, { recursive: true });
});

beforeEach(() => {
  injection = undefined;
  reached.length = 0;
});

const socket = { path: front, inode: 1 } as SocketIdentity;

function publish(targetPath: string) {
  const request = NodePublishVolumeRequest.fromPartial({
    volumeId: 'v1',
    targetPath,
    secrets: { key: SECRET },
    volumeCapability: {
      accessType: { $case: 'mount', value: { mountFlags: [MOUNT_FLAG] } },
      accessMode: { mode: 1 },
    },
  });
  return remote.call({ socket, method: NodeService.nodePublishVolume, request, deadlineMs: DEADLINE_MS });
}

test('a call goes through unchanged, and so does its answer', async () => {
  const info = await remote.call({
    socket,
    method: NodeService.nodeGetInfo,
    request: {},
    deadlineMs: DEADLINE_MS,
  });
  assert.ok(info.kind === 'ok');
  assert.equal(info.reply.maxVolumesPerNode, 3n);
  assert.equal(proxy.calls.at(-1)?.reply?.nodeId, 'n1');
});

test('A-021, A-038: what is recorded holds neither secrets nor mount flags, the driver gets both', async () => {
  const failed = await publish('/fails');
  assert.ok(failed.kind === 'status' && failed.message.includes(SECRET), 'the driver saw the secret');
  const call = proxy.calls.at(-1);
  const text = JSON.stringify(proxy.calls, (_key, value) => (typeof value === 'bigint' ? `${value}` : value));
  assert.ok(!text.includes(SECRET) && !text.includes(MOUNT_FLAG), text);
  assert.deepEqual(call?.request.secrets, { key: '[redacted]' });
  assert.equal(call?.secretInMessage, true);
  assert.equal(call?.code, INTERNAL);
});

test('a straggling call is answered at once, and reaches the driver when its time has come', async () => {
  let release = (): void => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  const answered = new Promise<number>((passedOn) => {
    injection = { kind: 'straggle', code: UNAVAILABLE, until, passedOn };
  });
  const answer = await publish('/late');
  assert.ok(answer.kind === 'status' && answer.status === UNAVAILABLE);
  assert.deepEqual([reached, proxy.calls.at(-1)?.reachedDriver], [[], false]);
  release();
  assert.equal(await answered, 0);
  assert.equal(reached.length, 1);
});

test('a refused call never reaches the driver', async () => {
  injection = { kind: 'refuse', code: UNAVAILABLE };
  const answer = await publish('/refused');
  assert.ok(answer.kind === 'status' && answer.status === UNAVAILABLE);
  assert.deepEqual(reached, []);
  assert.equal(proxy.calls.at(-1)?.reachedDriver, false);
});

test('a lost answer: the effect happened, and nobody heard', async () => {
  injection = { kind: 'lose', code: 4 };
  const answer = await publish('/lost');
  assert.ok(answer.kind === 'status' && answer.status === 4);
  assert.deepEqual(reached, ['/lost']);
  assert.equal(proxy.calls.at(-1)?.injected, 'answer lost, code 4');
});

test('a delayed call arrives late', async () => {
  injection = { kind: 'delay', delayMs: 120 };
  const startMs = CLOCK.nowMs();
  assert.equal((await publish('/late')).kind, 'ok');
  assert.ok(CLOCK.nowMs() - startMs >= 119);
});

test('fields that CSI does not have go through and are counted', async () => {
  const method = {
    ...NodeService.nodeUnpublishVolume,
    // Field 3, a bool: the `force` of a draft that was never released.
    requestSerialize: (request: NodeUnpublishVolumeRequest) =>
      Buffer.concat([NodeService.nodeUnpublishVolume.requestSerialize(request), Buffer.from([0x18, 0x01])]),
  };
  const request = NodeUnpublishVolumeRequest.fromPartial({ volumeId: 'v1', targetPath: '/forced' });
  await remote.call({ socket, method, request, deadlineMs: DEADLINE_MS });
  assert.deepEqual(reached, ['/forced']);
  assert.equal(proxy.calls.at(-1)?.unknownBytes, 2);
});

test('a method the driver does not have is UNIMPLEMENTED in front of it as well', async () => {
  const probe = await remote.call({
    socket,
    method: IdentityService.probe,
    request: {},
    deadlineMs: DEADLINE_MS,
  });
  assert.ok(probe.kind === 'status' && probe.status === 12);
});

test('a driver that is not there is UNAVAILABLE, and found again when it comes back', async () => {
  await driver.close();
  const gone = await publish('/gone');
  assert.ok(gone.kind === 'status' && gone.status === UNAVAILABLE);
  driver = await startDriver();
  const tries: string[] = [];
  for (let count = 0; count < 50 && tries.at(-1) !== 'ok'; count += 1) {
    tries.push((await publish('/back')).kind);
    if (tries.at(-1) !== 'ok') await new Promise<void>((resolve) => void CLOCK.timer(20, resolve));
  }
  assert.equal(tries.at(-1), 'ok');
});

test('the same seed chooses the same faults', () => {
  for (const fault of FAULT_CLASSES) {
    const [first, second] = [7, 7].map((seed) => {
      const faults = createFaults(fault, createChance(seed));
      const methods = [
        'NodeStageVolume',
        'NodeStageVolume',
        'NodeStageVolume',
        'NodePublishVolume',
        'NodeGetInfo',
      ];
      return methods.map((method) => faults.inject({ method, request: {} }));
    });
    assert.deepEqual(first, second);
    assert.equal(first?.[2], undefined, 'two tries at most are harmed');
    assert.equal(first?.[4], undefined, 'what changes nothing is left in peace');
    assert.ok(first?.[0] !== undefined);
  }
});
