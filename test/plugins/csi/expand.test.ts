import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeExpandVolumeRequest } from '../../../plugins/csi/wire/generated/csi.ts';
import { GrpcStatus } from '../../../plugins/csi/wire/grpc-service.ts';
import { type ExpandCall, NO_SECRETS } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { bytesFrom } from '../../../plugins/volume.ts';
import { accept, refuse } from './answers.ts';
import { BLOCK_SPEC, createBlockWorld } from './block-world.ts';
import {
  call,
  HANDLE,
  introduce,
  sent,
  SPEC,
  STAGED,
  stagingOf,
  targetOf,
  UNSTAGED,
  up,
  world,
} from './csi-world.ts';
import { CAPABILITY, refusing } from './scripted-driver.ts';

/** More than a JavaScript number holds exactly. */
const SIZE = 9_007_199_254_740_993n;

function growth(changes: Partial<ExpandCall> = {}): ExpandCall {
  return { ...call(), publication: undefined, mount: undefined, toBytes: bytesFrom(SIZE), ...changes };
}

async function expand(made: Awaited<ReturnType<typeof world>>, changes: Partial<ExpandCall> = {}) {
  assert.ok(made.plugin.expand);
  return made.plugin.expand(growth(changes));
}

test('A-069: a volume can be grown when the driver has EXPAND_VOLUME, and never one written inline', async () => {
  const made = await world({ nodeCapabilities: [CAPABILITY.node.EXPAND_VOLUME] });
  assert.equal(made.plugin.needs(SPEC)?.expand, true);
  assert.equal(made.plugin.needs({ ...SPEC, lifecycle: 'Ephemeral' })?.expand, false);
  made.plan.nodeCapabilities = [];
  await introduce(made);
  assert.equal(made.plugin.needs(SPEC)?.expand, false);
});

test('A-070, A-018: staged, it is grown at its staging path, by an int64 and with its secret', async () => {
  const made = await world();
  await up(made);
  const secrets = { ...NO_SECRETS, expand: new Sensitive({ token: 's-expand' }) };
  accept(await expand(made, { secrets }));
  assert.deepEqual(sent(made, 'NodeExpandVolume', NodeExpandVolumeRequest), [
    {
      volumeId: HANDLE,
      volumePath: stagingOf(made),
      capacityRange: { requiredBytes: SIZE, limitBytes: 0n },
      stagingTargetPath: stagingOf(made),
      volumeCapability: {
        accessType: {
          $case: 'mount',
          value: { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '' },
        },
        accessMode: { mode: 1 },
      },
      secrets: { token: 's-expand' },
    },
  ]);
});

test('A-069: published, it is grown where a pod has it; unstaged, it gets no staging path', async () => {
  const made = await world({ nodeCapabilities: [CAPABILITY.node.EXPAND_VOLUME] });
  accept(await made.plugin.publish(call({ facts: UNSTAGED })));
  const { publication } = call();
  accept(await expand(made, { facts: UNSTAGED, publication }));
  accept(await expand(made, { facts: STAGED, publication }));
  assert.deepEqual(
    sent(made, 'NodeExpandVolume', NodeExpandVolumeRequest).map((one) => [
      one.volumePath,
      one.stagingTargetPath,
    ]),
    [
      [targetOf(made), ''],
      [targetOf(made), stagingOf(made)],
    ],
  );
});

test('A-070: a block volume is grown as a block volume, at the path of its device', async () => {
  const made = createBlockWorld();
  const { publication } = made.call();
  const answered = await made.plugin().expand?.({ ...made.call(), publication, toBytes: bytesFrom(20) });
  assert.ok(answered !== undefined);
  accept(answered);
  const request = made.called[0]?.request as NodeExpandVolumeRequest;
  assert.equal(request.volumePath, made.layout.blockPublication(publication).published);
  assert.equal(request.stagingTargetPath, made.layout.stagingPath(BLOCK_SPEC));
  assert.deepEqual(request.volumeCapability?.accessType, { $case: 'block', value: {} });
});

test('A-070: what the driver says of the size is not asked', async () => {
  const made = await world();
  for (const capacityBytes of [0n, SIZE + 7n, -1n]) {
    made.plan.capacityBytes = capacityBytes;
    assert.equal(accept(await expand(made)), undefined);
  }
});

for (const [status, code, effect] of [
  [9, 'expand-in-use', 'none'],
  [3, 'expand-infeasible', 'none'],
  [5, 'expand-infeasible', 'none'],
  [11, 'expand-infeasible', 'none'],
  [12, 'driver-unimplemented', 'none'],
  [4, 'driver-deadline', 'unknown'],
  [10, 'driver-busy', 'unknown'],
  [13, 'driver-failed', 'unknown'],
  [14, 'driver-unreachable', 'unknown'],
] as const) {
  test(`A-071, KV-F5: an expansion answered with ${status} is ${code}`, async () => {
    const made = await world({ before: refusing('NodeExpandVolume', status) });
    assert.deepEqual(refuse(await expand(made)), { code, effect });
    assert.equal(made.host.called.length, 1, 'one call');
  });
}

test('KV-H1: an expansion that ran out of time is no verdict on the size', async () => {
  const made = await world({}, { deadlineMs: 30 });
  made.plan.before = () => new Promise(() => {});
  assert.deepEqual(refuse(await expand(made)), { code: 'driver-deadline', effect: 'unknown' });
});

test('A-030: a volume is grown with no other call beside it, even where publishing may overlap', async () => {
  let now = 0;
  let most = 0;
  const before = async () => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((resolve) => setTimeout(resolve, 10));
    now -= 1;
  };
  const made = await world({ before }, { parallel: true });
  const results = [expand(made), made.plugin.publish(call()), expand(made)];
  for (const result of await Promise.all<{ ok: boolean }>(results)) assert.ok(result.ok);
  assert.equal(most, 1);
});

test('2.11, A-038: an expansion no longer wanted is not asked for; its secret is not shown', async () => {
  const canary = 'c4nary-in-the-coal-mine';
  const made = await world();
  made.plan.before = () => {
    throw new GrpcStatus(13, `resize2fs --key ${canary}`);
  };
  const secrets = { ...NO_SECRETS, expand: new Sensitive({ key: canary }) };
  assert.ok(!JSON.stringify(await expand(made, { secrets })).includes(canary));
  made.host.called.splice(0);
  assert.equal(refuse(await expand(made, { stillWanted: () => false })).code, 'no-longer-wanted');
  assert.deepEqual(made.host.called, []);
});
