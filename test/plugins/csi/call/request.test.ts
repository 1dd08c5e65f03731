import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { done, fail } from '../../../../mount/failure.ts';
import { below } from '../../../../mount/host.ts';
import {
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
} from '../../../../plugins/csi/wire/generated/csi.ts';
import { GrpcStatus } from '../../../../plugins/csi/wire/grpc-service.ts';
import { TOKENS_KEY } from '../../../../plugins/csi/call/service-account-tokens.ts';
import { NO_SECRETS } from '../../../../plugins/plugin.ts';
import { Sensitive } from '../../../../plugins/secret/sensitive.ts';
import { type CsiVolumeSpec, csiVolumeId, inlineVolumeHandle } from '../../../../plugins/volume.ts';
import { accept, refuse } from '../answers.ts';
import { call, layoutOf, sent, SPEC, targetOf, tree, UIDS, UNSTAGED, up, world } from '../csi-world.ts';
import { CAPABILITY, DRIVER, refusing } from '../scripted-driver.ts';

const UID = UIDS[0] ?? assert.fail();
const INLINE_HANDLE = inlineVolumeHandle(UID, 'scratch');
const INLINE: CsiVolumeSpec = {
  ...SPEC,
  id: csiVolumeId(DRIVER, INLINE_HANDLE),
  volumeHandle: INLINE_HANDLE,
  specName: 'scratch',
  mountOptions: [],
  lifecycle: 'Ephemeral',
};

const publishes = (made: Awaited<ReturnType<typeof world>>) =>
  sent(made, 'NodePublishVolume', NodePublishVolumeRequest);

// Inline volumes.

test('KV-C11: an inline volume is never attached or staged, whatever the driver can do', async () => {
  const made = await world({ controllerCapabilities: [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME] });
  assert.deepEqual(made.plugin.needs(INLINE), { attach: false, stage: false, expand: false });
  made.instance = undefined;
  assert.equal(made.plugin.needs(INLINE), undefined);
});

test('KV-C11, KV-C6: an inline volume is published without staging, and with pod info called ephemeral', async () => {
  const made = await world();
  for (const podInfoOnMount of [true, false]) {
    accept(await made.plugin.publish(call({ spec: { ...INLINE, podInfoOnMount }, facts: UNSTAGED })));
    accept(await made.plugin.unpublish(call({ spec: INLINE, facts: UNSTAGED })));
  }
  const [told, untold] = publishes(made);
  assert.deepEqual([told?.volumeId, told?.stagingTargetPath], [INLINE_HANDLE, '']);
  assert.equal(told?.volumeContext['csi.storage.k8s.io/ephemeral'], 'true');
  assert.equal(told?.volumeCapability?.accessMode?.mode, 1);
  assert.deepEqual(untold?.volumeContext, { color: 'blue', size: '1' });
  assert.deepEqual(made.host.called.includes('NodeStageVolume'), false);
});

test('9.3: vol_data.json says that an inline volume is ephemeral', async () => {
  const made = await world();
  accept(await made.plugin.publish(call({ spec: INLINE, facts: UNSTAGED })));
  const directory = layoutOf(made).volumeDirectory(INLINE, call().publication);
  const data = JSON.parse(readFileSync(below(directory, 'vol_data.json'), 'utf8'));
  assert.equal(data.volumeLifecycleMode, 'Ephemeral');
});

test('KV-H11: a driver that does not stage has no staging directory', async () => {
  const made = await world({ nodeCapabilities: [] });
  accept(await made.plugin.publish(call({ facts: UNSTAGED })));
  assert.ok(!existsSync(layoutOf(made).deviceDirectory(DRIVER, SPEC.volumeHandle)));
  accept(await made.plugin.unpublish(call({ facts: UNSTAGED })));
  accept(await made.plugin.unstage(call({ facts: UNSTAGED })));
  assert.deepEqual(
    tree(made).filter((name) => name.startsWith('plugins')),
    [],
  );
});

// Service account tokens.

const TOKEN = 'eyJhbGciOi.c4nary-of-the-pod.c2lnbmVk';
const TOKENS = JSON.stringify({ vault: { token: TOKEN, expirationTimestamp: '2026-01-01T00:00:00Z' } });

test('KV-C7: service account tokens go into the volume context, or where it was asked into the secrets', async () => {
  const made = await world();
  const tokens = new Sensitive(TOKENS);
  const secrets = { ...NO_SECRETS, publish: new Sensitive({ user: 'me' }) };
  for (const tokensInSecrets of [false, true])
    accept(
      await made.plugin.publish(
        call({ spec: { ...SPEC, tokensInSecrets }, facts: UNSTAGED, tokens, secrets }),
      ),
    );
  const [inContext, inSecrets] = publishes(made);
  assert.equal(inContext?.volumeContext[TOKENS_KEY], TOKENS);
  assert.deepEqual(inContext?.secrets, { user: 'me' });
  assert.equal(inSecrets?.volumeContext[TOKENS_KEY], undefined);
  assert.deepEqual(inSecrets?.secrets, { user: 'me', [TOKENS_KEY]: TOKENS });
});

test('KV-H12: neither pod info nor tokens are left in what the pods of a volume share', async () => {
  const made = await world();
  const spec: CsiVolumeSpec = { ...SPEC, podInfoOnMount: true };
  const secrets = { ...NO_SECRETS, publish: new Sensitive({ user: 'me' }) };
  const before = structuredClone([spec, secrets.publish.reveal()]);
  accept(await made.plugin.publish(call({ spec, secrets, tokens: new Sensitive(TOKENS), facts: UNSTAGED })));
  accept(
    await made.plugin.publish(
      call({ spec: { ...spec, tokensInSecrets: true }, secrets, pod: 1, facts: UNSTAGED }),
    ),
  );
  assert.deepEqual([spec, secrets.publish.reveal()], before);
  assert.equal(publishes(made)[1]?.secrets[TOKENS_KEY], undefined);
});

test('KV-C7: tokens of many audiences are the driver’s wish, and not held against the size of its map', async () => {
  const made = await world();
  const tokens = new Sensitive(JSON.stringify({ a: { token: 'x'.repeat(6_000) } }));
  accept(await made.plugin.publish(call({ tokens, facts: UNSTAGED })));
  accept(
    await made.plugin.publish(call({ tokens, facts: UNSTAGED, spec: { ...SPEC, tokensInSecrets: true } })),
  );
});

test('A-038: no token is in a failure, whether the driver shows it alone or with all that was sent', async () => {
  const made = await world();
  for (const shown of [TOKEN, TOKENS, Buffer.from(TOKEN).toString('base64'), JSON.stringify(TOKENS)]) {
    made.plan.before = (method) => {
      if (method === 'NodePublishVolume') throw new GrpcStatus(13, `login with ${shown} failed`);
    };
    const failed = await made.plugin.publish(call({ tokens: new Sensitive(TOKENS), facts: UNSTAGED }));
    assert.ok(!failed.ok);
    assert.ok(!/c4nary/.test(JSON.stringify(failed)), failed.failure.message);
    assert.ok(!failed.failure.message.includes(Buffer.from(TOKEN).toString('base64')));
  }
});

// SELinux.

test('KV-E4: an SELinux label is a mount flag of stage and publish, in quotes, and remembered on disk', async () => {
  const made = await world();
  const label = 'system_u:object_r:container_file_t:s0:c1,c2';
  await up(made, { spec: { ...SPEC, seLinuxContext: label } });
  const flags = ['noatime', `context="${label}"`];
  const [stage] = sent(made, 'NodeStageVolume', NodeStageVolumeRequest);
  for (const request of [stage, publishes(made)[0]]) {
    const access = request?.volumeCapability?.accessType;
    assert.deepEqual(access?.$case === 'mount' && access.value.mountFlags, flags);
  }
  const layout = layoutOf(made);
  for (const directory of [
    layout.deviceDirectory(DRIVER, SPEC.volumeHandle),
    layout.volumeDirectory(SPEC, call().publication),
  ]) {
    const data = JSON.parse(readFileSync(below(directory, 'vol_data.json'), 'utf8'));
    assert.equal(data.seLinuxMountContext, label);
  }
});

// The pod's group.

const FS_GROUP = { gid: 2000, changePolicy: 'Always' } as const;

/** A publication of a pod that has a group, and who asked for which change of ownership. */
async function grouped(nodeCapabilities: readonly number[]) {
  const made = await world({ nodeCapabilities: [CAPABILITY.node.STAGE_UNSTAGE_VOLUME, ...nodeCapabilities] });
  const walked: { path: string; gid: number }[] = [];
  made.host.changeOwnership = async ({ path, gid }) => {
    walked.push({ path, gid });
    return { ok: true, value: { seen: 1, changed: 1, refused: 0 } };
  };
  const publication = { ...call().publication, fsGroup: FS_GROUP };
  return { made, walked, changes: { publication, fsGroup: FS_GROUP } };
}

const groupIn = (request: NodePublishVolumeRequest | NodeStageVolumeRequest | undefined) => {
  const access = request?.volumeCapability?.accessType;
  return access?.$case === 'mount' ? access.value.volumeMountGroup : undefined;
};

test('A-022, KV-C13: a driver with VOLUME_MOUNT_GROUP is told the group, and nobody walks the volume', async () => {
  const { made, walked, changes } = await grouped([CAPABILITY.node.VOLUME_MOUNT_GROUP]);
  await up(made, changes);
  const [stage] = sent(made, 'NodeStageVolume', NodeStageVolumeRequest);
  assert.deepEqual([groupIn(stage), groupIn(publishes(made)[0])], ['2000', '2000']);
  assert.deepEqual(walked, []);
});

test('A-022, KV-C14: any other driver is told nothing, and what it published is walked', async () => {
  const { made, walked, changes } = await grouped([]);
  await up(made, changes);
  const [stage] = sent(made, 'NodeStageVolume', NodeStageVolumeRequest);
  assert.deepEqual([groupIn(stage), groupIn(publishes(made)[0])], ['', '']);
  assert.deepEqual(walked, [{ path: targetOf(made), gid: 2000 }]);
});

test('KV-G7: a volume whose group could not be set is published, perhaps, and must be taken down', async () => {
  const { made, changes } = await grouped([]);
  made.host.changeOwnership = async () => fail({ code: 'input-output', message: 'no', effect: 'none' });
  accept(await made.plugin.stage(call(changes)));
  assert.deepEqual(refuse(await made.plugin.publish(call(changes))), {
    code: 'input-output',
    effect: 'unknown',
  });
  assert.ok(made.host.mounts.has(targetOf(made)));
  made.host.changeOwnership = async () => fail({ code: 'no-longer-wanted', message: '', effect: 'unknown' });
  const ended = await made.plugin.publish(call(changes));
  assert.deepEqual(refuse(ended), { code: 'no-longer-wanted', effect: 'unknown' });
});

test('KV-H1: a publish that ends without a verdict leaves the volume uncertain, never forgotten', async () => {
  const made = await world({}, { deadlineMs: 500 });
  await up(made);
  for (const status of [1, 4, 8, 10, 14]) {
    made.plan.before = refusing('NodePublishVolume', status);
    assert.equal(refuse(await made.plugin.publish(call())).effect, 'unknown', `status ${status}`);
  }
  made.plan.before = () => new Promise(() => {});
  assert.equal(refuse(await made.plugin.publish(call())).effect, 'unknown');
  assert.ok(existsSync(targetOf(made)));
});

test('KV-H7: vol_data.json is replaced as a whole, never written in place', async () => {
  const made = await world();
  const written: { path: string; bytes: number }[] = [];
  made.host.writeFile = async (path, content) => {
    written.push({ path, bytes: content.byteLength });
    return done;
  };
  await up(made);
  assert.equal(written.filter(({ path }) => path.endsWith('/vol_data.json')).length, written.length);
  assert.ok(written.every(({ bytes }) => bytes > 20));
  assert.equal(written.length, 2, 'Host.writeFile renames; one call for each of the two');
});

// Quarantine on the wire.

/** Bytes behind what the generated code would have sent. */
const EXTRA = { none: [], force: [0x18, 1], fence: [0x20, 1] } as const;

test('B-5: `force` and `fence` go out only in quarantine and to a driver that was named for it', async () => {
  const controllerCapabilities = [CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME, 14];
  const nodeCapabilities = [CAPABILITY.node.STAGE_UNSTAGE_VOLUME, 7];
  for (const [optedIn, force] of [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ] as const) {
    const forceFields = (driver: string): boolean => optedIn && driver === DRIVER;
    const made = await world({ controllerCapabilities, nodeCapabilities }, optedIn ? { forceFields } : {});
    await up(made, { force });
    accept(await made.plugin.unpublish(call({ force })));
    accept(await made.plugin.unstage(call({ force })));
    accept(await made.plugin.detach(call({ force })));
    const tails = Object.fromEntries(
      made.host.requests.map(({ method, bytes }) => [method, [...bytes.subarray(-2)]]),
    );
    const isForced = optedIn && force;
    const [unpublish] = sent(made, 'NodeUnpublishVolume', NodeUnpublishVolumeRequest);
    assert.deepEqual([unpublish?.volumeId, unpublish?.targetPath], [SPEC.volumeHandle, targetOf(made)]);
    for (const method of ['NodeUnpublishVolume', 'NodeUnstageVolume'])
      assert.equal(isTail(tails[method], EXTRA.force), isForced, method);
    assert.equal(isTail(tails['ControllerUnpublishVolume'], EXTRA.fence), isForced);
    for (const method of ['NodePublishVolume', 'NodeStageVolume'])
      assert.ok(!isTail(tails[method], EXTRA.force) && !isTail(tails[method], EXTRA.fence), method);
  }
});

function isTail(bytes: readonly number[] | undefined, tail: readonly number[]): boolean {
  return bytes?.join() === tail.join();
}

test('a quarantined volume is clean only when nobody uses its devices, and everybody was looked at', async () => {
  const made = await world();
  const verify = () => made.plugin.verifyClean?.(['8:0', '8:16'] as never) ?? assert.fail();
  accept(await verify());
  made.host.findDeviceUsers = async (device) => ({
    ok: true,
    value: device === '8:16' ? Array.from({ length: 32 }, (_, pid) => `pid ${pid} (${'x'.repeat(60)})`) : [],
  });
  const used = await verify();
  assert.deepEqual(refuse(used), { code: 'device-in-use', effect: 'none' });
  assert.ok(!used.ok && used.failure.message.includes('8:16') && used.failure.message.length <= 1_024);
  assert.ok(used.failure.blocker?.startsWith('pid 0'));
  made.host.findDeviceUsers = async () => fail({ code: 'permission-denied', message: '', effect: 'none' });
  assert.equal(refuse(await verify()).code, 'permission-denied');
});

test('A-007, A-010: what a driver can do, and that it is well, is not asked for each mount', async () => {
  const made = await world();
  for (let times = 0; times < 100; times += 1) accept(await made.plugin.publish(call({ facts: UNSTAGED })));
  assert.ok(made.host.called.every((method) => method === 'NodePublishVolume'));
});
