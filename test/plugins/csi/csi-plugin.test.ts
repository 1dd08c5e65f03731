import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { done, FAILURE_RETRY, fail, ok, type Result } from '../../../mount/failure.ts';
import {
  ControllerPublishVolumeRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { GrpcStatus } from '../../../plugins/csi/wire/grpc-service.ts';
import { sha256Hex } from '../../../plugins/layout/layout.ts';
import { NO_SECRETS } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { type CsiVolumeSpec, csiVolumeId } from '../../../plugins/volume.ts';
import { accept, refuse } from './answers.ts';
import {
  call,
  HANDLE,
  introduce,
  layoutOf,
  sent,
  SPEC,
  STAGED,
  stagingOf,
  targetOf,
  tree,
  UIDS,
  UNSTAGED,
  up,
  world,
} from './csi-world.ts';
import { CAPABILITY, DRIVER, refusing, script, serveDriver } from './scripted-driver.ts';
import { inRoot } from './socket-host.ts';
import { until } from '../../until.ts';

test('A-054, A-060: a staged mount costs two RPCs, and taking it down two that leave nothing behind', async () => {
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  assert.deepEqual(stagedMount, made.host.mounts.get(stagingOf(made)));
  const { mount } = accept(await made.plugin.publish(call({ facts: { ...STAGED, stagedMount } })));
  assert.deepEqual(mount, made.host.mounts.get(targetOf(made)));
  assert.deepEqual(made.host.called, ['NodeStageVolume', 'NodePublishVolume']);
  accept(await made.plugin.unpublish(call()));
  accept(await made.plugin.unstage(call()));
  assert.deepEqual(made.host.called.slice(2), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
  const kept = [
    'plugins',
    'plugins/kubernetes.io',
    'plugins/kubernetes.io/csi',
    `plugins/kubernetes.io/csi/${DRIVER}`,
    'pods',
  ];
  assert.deepEqual(tree(made), kept);
  assert.equal(made.host.mounts.size, 0);
});

test('MT-15: what is not as it was expected is left as it is, and the driver is not asked', async () => {
  const made = await world();
  const before = tree(made);
  const strange = [{ path: stagingOf(made), mountId: 4_711, within: 1 }];
  const isLeft = (result: Result<unknown>): void => {
    const { isUnexpected, effect } = result.ok ? {} : { ...result.failure };
    assert.deepEqual([isUnexpected, effect, made.host.called, tree(made)], [true, 'none', [], before]);
  };
  isLeft(await made.plugin.stage(call({ expectedAll: strange })));
  isLeft(await made.plugin.publish(call({ facts: UNSTAGED, expectedAll: strange })));
});

test('what is as it was expected is set up, and the directory is not looked at once more', async () => {
  const made = await world();
  const expected = async (path: ReturnType<typeof stagingOf>) => [
    { path, ...accept(await made.host.mountPlaceOf(path)) },
  ];
  const { stagedMount } = accept(
    await made.plugin.stage(call({ expectedAll: await expected(stagingOf(made)) })),
  );
  assert.deepEqual(stagedMount, made.host.mounts.get(stagingOf(made)));
  const expectedAll = await expected(targetOf(made));
  const { mount } = accept(
    await made.plugin.publish(call({ facts: { ...STAGED, stagedMount }, expectedAll })),
  );
  assert.deepEqual(mount, made.host.mounts.get(targetOf(made)));
});

test("9.3: directories and vol_data.json are the kubelet's, key by key", async () => {
  const made = await world();
  await up(made);
  const device = join(made.host.root, 'plugins/kubernetes.io/csi', DRIVER, sha256Hex(HANDLE));
  const pod = join(made.host.root, 'pods', UIDS[0] ?? '', 'volumes/kubernetes.io~csi/pv-1');
  assert.equal(stagingOf(made), join(device, 'globalmount'));
  assert.equal(targetOf(made), join(pod, 'mount'));
  assert.deepEqual(JSON.parse(readFileSync(join(device, 'vol_data.json'), 'utf8')), {
    driverName: DRIVER,
    volumeHandle: HANDLE,
  });
  assert.deepEqual(JSON.parse(readFileSync(join(pod, 'vol_data.json'), 'utf8')), {
    attachmentID: `csi-${sha256Hex(`${HANDLE}${DRIVER}node-a`)}`,
    driverName: DRIVER,
    nodeName: 'node-a',
    specVolID: 'pv-1',
    volumeHandle: HANDLE,
    volumeLifecycleMode: 'Persistent',
  });
  for (const path of [device, join(device, 'globalmount'), pod])
    assert.equal(statSync(path).mode & 0o777, 0o750);
});

test('A-019, A-020, A-055, KV-C6: what the driver is given when it attaches, stages and publishes', async () => {
  const made = await world({
    controllerCapabilities: [
      CAPABILITY.controller.PUBLISH_UNPUBLISH_VOLUME,
      CAPABILITY.controller.PUBLISH_READONLY,
    ],
    publishContext: { device: 'sdb' },
  });
  const spec: CsiVolumeSpec = { ...SPEC, podInfoOnMount: true, readOnly: true };
  const secret = (value: string) => new Sensitive({ token: value });
  const secrets = {
    ...NO_SECRETS,
    controllerPublish: secret('s-attach'),
    stage: secret('s-stage'),
    publish: secret('s-publish'),
  };
  const facts = { ...STAGED, needs: { attach: true, stage: true, expand: false } };
  const publication = { ...call().publication, readOnly: true };
  const { publishContext } = accept(await made.plugin.attach(call({ spec, secrets, facts })));
  await up(made, { spec, secrets, publication, facts: { ...facts, publishContext } });
  const volumeCapability = {
    accessType: { $case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '' } },
    accessMode: { mode: 1 },
  };
  const volumeContext = { color: 'blue', size: '1' };
  assert.deepEqual(sent(made, 'ControllerPublishVolume', ControllerPublishVolumeRequest), [
    {
      volumeId: HANDLE,
      nodeId: 'node-1',
      volumeCapability,
      readonly: true,
      secrets: { token: 's-attach' },
      volumeContext,
    },
  ]);
  const common = {
    volumeId: HANDLE,
    publishContext: { device: 'sdb' },
    stagingTargetPath: stagingOf(made),
    volumeCapability,
  };
  assert.deepEqual(sent(made, 'NodeStageVolume', NodeStageVolumeRequest), [
    { ...common, secrets: { token: 's-stage' }, volumeContext },
  ]);
  assert.deepEqual(sent(made, 'NodePublishVolume', NodePublishVolumeRequest), [
    {
      ...common,
      targetPath: targetOf(made),
      readonly: true,
      secrets: { token: 's-publish' },
      volumeContext: {
        ...volumeContext,
        'csi.storage.k8s.io/pod.name': 'web',
        'csi.storage.k8s.io/pod.namespace': 'shop',
        'csi.storage.k8s.io/pod.uid': UIDS[0],
        'csi.storage.k8s.io/serviceAccount.name': 'seller',
        'csi.storage.k8s.io/ephemeral': 'false',
      },
    },
  ]);
  assert.deepEqual(
    spec.volumeAttributes,
    SPEC.volumeAttributes,
    "the volume's own attributes are not written to",
  );
});

test('A-020, A-023: each field only with its capability: publish context, readonly, staging path', async () => {
  const made = await world({
    nodeCapabilities: [],
    controllerCapabilities: [2],
    publishContext: { device: 'sdb' },
  });
  const facts = { ...UNSTAGED, publishContext: { device: 'sdb' } };
  accept(await made.plugin.attach(call({ spec: { ...SPEC, readOnly: true } })));
  accept(await made.plugin.publish(call({ facts })));
  assert.equal(sent(made, 'ControllerPublishVolume', ControllerPublishVolumeRequest)[0]?.readonly, false);
  const [publish] = sent(made, 'NodePublishVolume', NodePublishVolumeRequest);
  assert.deepEqual([publish?.publishContext, publish?.stagingTargetPath], [{}, '']);
});

test("the ladder is known from the driver's capabilities, and not at all while it is not registered", async () => {
  const made = await world({ controllerCapabilities: [2] });
  assert.deepEqual(made.plugin.needs(SPEC), {
    attach: true,
    node: 'node-1',
    stage: true,
    expand: false,
    tellsGroup: false,
  });
  assert.deepEqual(made.plugin.needs({ ...SPEC, attachRequired: false }), {
    attach: false,
    node: undefined,
    stage: true,
    expand: false,
    tellsGroup: false,
  });
  made.plan.nodeCapabilities = [];
  made.plan.controllerCapabilities = undefined;
  await introduce(made);
  assert.deepEqual(made.plugin.needs(SPEC), {
    attach: false,
    node: undefined,
    stage: false,
    expand: false,
    tellsGroup: false,
  });
  made.instance = undefined;
  assert.equal(made.plugin.needs(SPEC), undefined);
});

test('KV-C18: without its driver every verb waits, and makes nothing', async () => {
  const made = await world();
  made.instance = undefined;
  for (const verb of ['attach', 'detach', 'stage', 'unstage', 'publish', 'unpublish'] as const) {
    assert.deepEqual(refuse(await made.plugin[verb](call())), {
      code: 'driver-not-registered',
      effect: 'none',
    });
  }
  assert.deepEqual(tree(made), []);
});

test('A-039, DR-16: teardown goes by what was done at setup, not by what the driver can do today', async () => {
  const made = await world();
  await up(made);
  made.plan.nodeCapabilities = [];
  await introduce(made);
  made.host.called.splice(0);
  accept(await made.plugin.unpublish(call()));
  accept(await made.plugin.unstage(call()));
  assert.deepEqual(made.host.called, ['NodeUnpublishVolume', 'NodeUnstageVolume']);
  accept(await made.plugin.unstage(call({ facts: UNSTAGED })));
  assert.equal(made.host.called.length, 2, 'what was not staged is not unstaged (KV-C2)');
});

/** Staged, and its driver came back without STAGE_UNSTAGE_VOLUME; what is unmounted by us is noted. */
async function comesBackWithoutStaging() {
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  assert.ok(stagedMount);
  made.plan.nodeCapabilities = [];
  await introduce(made);
  made.plan.before = refusing('NodeUnstageVolume', 12);
  const unmounted: string[] = [];
  made.host.unmount = async (path) => {
    unmounted.push(path);
    made.host.mounts.delete(path);
    return done;
  };
  const unstage = () => made.plugin.unstage(call({ facts: { ...STAGED, stagedMount } }));
  return { made, stagedMount, unmounted, unstage };
}

test('DR-16: what its driver has staged and cannot unstage any more is unmounted for it', async () => {
  const { made, unmounted, unstage } = await comesBackWithoutStaging();
  accept(await unstage());
  assert.deepEqual(unmounted, [stagingOf(made)]);
  assert.ok(tree(made).every((name) => !/globalmount|vol_data/.test(name)));
  accept(await unstage());
  assert.equal(unmounted.length, 1);
});

test('DR-16: only what is surely that mount is unmounted for a driver, and nothing that is in use', async () => {
  const left = { code: 'unstaged-still-mounted', effect: 'unknown' };
  const { made, stagedMount, unmounted, unstage } = await comesBackWithoutStaging();
  // The driver may have it mounted for itself, and bound to the staging path.
  made.host.mounts.set('/elsewhere', { ...stagedMount, mountId: stagedMount.mountId + 1_000 });
  assert.deepEqual(refuse(await unstage()), left);
  made.host.mounts.delete('/elsewhere');
  made.host.mounts.set(stagingOf(made), { ...stagedMount, mountId: stagedMount.mountId + 1_000 });
  assert.deepEqual(refuse(await unstage()), left);
  assert.deepEqual(refuse(await made.plugin.unstage(call())), left, 'nothing is known of what was staged');
  made.host.mounts.set(stagingOf(made), stagedMount);
  made.plan.before = refusing('NodeUnstageVolume', 9);
  assert.equal(refuse(await unstage()).code, 'driver-precondition');
  made.plan.before = refusing('NodeUnstageVolume', 12);
  made.plan.nodeCapabilities = [CAPABILITY.node.STAGE_UNSTAGE_VOLUME];
  await introduce(made);
  assert.equal(refuse(await unstage()).code, 'driver-unimplemented', 'it may yet unstage');
  made.plan.nodeCapabilities = [];
  await introduce(made);
  assert.deepEqual(unmounted, []);
  made.host.unmount = async () => fail({ code: 'unmount-failed', message: 'busy', effect: 'none' });
  assert.deepEqual(refuse(await unstage()), left);
  assert.ok(made.host.mounts.has(stagingOf(made)));
});

test('A-008, DR-16: what was attached by a call is detached by one, whatever the driver can do today', async () => {
  const made = await world({ controllerCapabilities: [2] });
  accept(await made.plugin.attach(call()));
  const comesBackWith = async (controllerCapabilities: number[] | undefined): Promise<void> => {
    made.plan.controllerCapabilities = controllerCapabilities;
    await introduce(made);
    made.host.called.splice(0);
  };
  const attached = call({ facts: { ...STAGED, attachedNode: 'node-1' } });
  await comesBackWith(undefined);
  assert.deepEqual(refuse(await made.plugin.detach(attached)), {
    code: 'driver-unimplemented',
    effect: 'none',
  });
  accept(await made.plugin.detach(call()));
  assert.deepEqual(made.host.called, [], 'nor is it, where no call of ours has attached it');
  await comesBackWith([]);
  accept(await made.plugin.detach(attached));
  assert.deepEqual(made.host.called, ['ControllerUnpublishVolume']);
  // Who says that nothing is ever attached has settled it.
  made.plan.before = refusing('ControllerUnpublishVolume', 12);
  accept(await made.plugin.detach(attached));
  await comesBackWith([2]);
  assert.equal(refuse(await made.plugin.detach(attached)).code, 'driver-unimplemented');
});

test('a driver that stages without mounting is believed, because that is legal', async () => {
  const made = await world({ lies: true });
  assert.deepEqual(accept(await made.plugin.stage(call())), { stagedMount: undefined });
});

test('DR-12: a stage that says OK where a mount has just gone away is not staged', async () => {
  const gone = { code: 'staged-not-mounted', effect: 'unknown' };
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  // An unstage that was given up takes effect between the answer and our look.
  made.plan.after = (method) => {
    if (method === 'NodeStageVolume') made.host.mounts.clear();
  };
  assert.deepEqual(refuse(await made.plugin.stage(call())), gone);
  // Or it came before, and the driver believes that it is staged.
  made.plan.lies = true;
  assert.deepEqual(refuse(await made.plugin.stage(call({ facts: { ...STAGED, stagedMount } }))), gone);
  made.plan.lies = false;
  made.plan.after = () => undefined;
  assert.notEqual(accept(await made.plugin.stage(call())).stagedMount, undefined);
});

test('DR-12: what a stage has missed is missed until it is there, also after an unstage', async () => {
  const gone = { code: 'staged-not-mounted', effect: 'unknown' };
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  made.host.mounts.clear();
  made.plan.lies = true;
  assert.deepEqual(refuse(await made.plugin.stage(call({ facts: { ...STAGED, stagedMount } }))), gone);
  // Down, nothing is known any more of the mount that there was, and a pod would write to the node's own disk.
  accept(await made.plugin.unstage(call({ facts: { ...STAGED, stagedMount } })));
  assert.deepEqual(refuse(await made.plugin.stage(call())), gone);
  made.plan.lies = false;
  assert.notEqual(accept(await made.plugin.stage(call())).stagedMount, undefined);
});

test('DR-03: a publish that says OK and mounted nothing is not published, perhaps', async () => {
  const made = await world({ lies: true });
  assert.deepEqual(refuse(await made.plugin.publish(call())), {
    code: 'published-not-mounted',
    effect: 'unknown',
  });
  made.plan.lies = false;
  accept(await made.plugin.publish(call()));
});

test('DR-10, KV-H8: an unpublish and an unstage that say OK and leave the mount are not done', async () => {
  const made = await world();
  await up(made);
  const before = tree(made);
  made.plan.lies = true;
  const unpublished = await made.plugin.unpublish(call());
  assert.deepEqual(refuse(unpublished), { code: 'unpublished-still-mounted', effect: 'unknown' });
  assert.equal(!unpublished.ok && unpublished.failure.heldAt, targetOf(made));
  assert.deepEqual(refuse(await made.plugin.unstage(call())), {
    code: 'unstaged-still-mounted',
    effect: 'unknown',
  });
  assert.deepEqual(tree(made), before);
});

test('a driver that ends a publication and leaves it is told apart from one that refuses to end it', async () => {
  const made = await world({ before: refusing('NodeUnpublishVolume', 13) });
  await up(made);
  const ended = async () => {
    const unpublished = await made.plugin.unpublish(call());
    return unpublished.ok ? assert.fail('it is mounted') : unpublished.failure.ended;
  };
  assert.equal(await ended(), undefined);
  made.plan.before = refusing('NodeUnpublishVolume', 5);
  assert.equal(await ended(), true);
  made.plan.before = () => undefined;
  made.plan.lies = true;
  assert.equal(await ended(), true);
});

test('DR-04: an error after the mount was made is not "nothing happened"', async () => {
  const made = await world({ after: refusing('NodePublishVolume', 3) });
  accept(await made.plugin.stage(call()));
  assert.deepEqual(refuse(await made.plugin.publish(call())), { code: 'driver-refused', effect: 'unknown' });
  assert.ok(made.host.mounts.has(targetOf(made)));
});

test('DR-08: a refused publish that took the living mount away did not leave things as they were', async () => {
  const made = await world();
  await up(made);
  made.plan.before = (method) => {
    made.host.mounts.delete(targetOf(made));
    refusing('NodePublishVolume', 9)(method);
  };
  assert.deepEqual(refuse(await made.plugin.publish(call())), {
    code: 'driver-precondition',
    effect: 'unknown',
  });
});

test('DR-07: a refused publish of what is published already leaves all as it was', async () => {
  const made = await world();
  await up(made);
  const before = { tree: tree(made), mounts: new Map(made.host.mounts) };
  made.plan.before = refusing('NodePublishVolume', 9);
  assert.deepEqual(refuse(await made.plugin.publish(call())), {
    code: 'driver-precondition',
    effect: 'none',
  });
  assert.deepEqual({ tree: tree(made), mounts: made.host.mounts }, before);
});

test('GR-03: a refused first stage or publish leaves nothing behind', async () => {
  const made = await world({ before: refusing('NodeStageVolume', 3) });
  assert.deepEqual(refuse(await made.plugin.stage(call())), { code: 'driver-refused', effect: 'none' });
  made.plan.before = refusing('NodePublishVolume', 3);
  assert.deepEqual(refuse(await made.plugin.publish(call({ facts: UNSTAGED }))), {
    code: 'driver-refused',
    effect: 'none',
  });
  assert.ok(
    tree(made).every((name) => !/globalmount|vol_data|pv-1/.test(name)),
    tree(made).join(' '),
  );
});

test('A-032, GR-02, INV-40: an uncertain stage keeps its directories, and is repeated byte by byte', async () => {
  const made = await world({ before: refusing('NodeStageVolume', 10) });
  const shuffled: CsiVolumeSpec = { ...SPEC, volumeAttributes: { color: 'blue', size: '1' } };
  assert.deepEqual(refuse(await made.plugin.stage(call())), { code: 'driver-busy', effect: 'unknown' });
  assert.ok(existsSync(stagingOf(made)));
  made.plan.before = () => undefined;
  accept(await made.plugin.stage(call({ spec: shuffled })));
  const [first, second] = made.host.requests;
  assert.deepEqual(first, second);
});

test('A-065, GR-05: NOT_FOUND from unpublish and unstage is success only if the kernel says so', async () => {
  const made = await world();
  await up(made);
  made.plan.before = (method) => {
    if (method.startsWith('NodeUn')) throw new GrpcStatus(5, 'unknown volume');
  };
  assert.deepEqual(refuse(await made.plugin.unpublish(call())), {
    code: 'unpublished-still-mounted',
    effect: 'unknown',
  });
  assert.deepEqual(refuse(await made.plugin.unstage(call())), {
    code: 'unstaged-still-mounted',
    effect: 'unknown',
  });
  made.host.mounts.clear();
  accept(await made.plugin.unpublish(call()));
  accept(await made.plugin.unstage(call()));
  assert.ok(tree(made).every((name) => !/globalmount|vol_data|pv-1/.test(name)));
});

test('A-088: NOT_FOUND from a detach proves nothing', async () => {
  const made = await world({ controllerCapabilities: [2], before: refusing('ControllerUnpublishVolume', 5) });
  assert.deepEqual(refuse(await made.plugin.detach(call())), { code: 'driver-not-found', effect: 'unknown' });
});

test('A-087: a detach never goes out without a node id', async () => {
  const made = await world({ controllerCapabilities: [2] });
  assert.ok(made.instance);
  made.instance = { ...made.instance, nodeId: '' };
  assert.equal(refuse(await made.plugin.detach(call())).code, 'spec-invalid');
  assert.deepEqual(made.host.called, []);
});

test('A-066, DR-09: a target that the driver left as a directory or as an empty file goes away', async () => {
  const made = await world();
  for (const leave of ['nothing', 'directory', 'file']) {
    await up(made);
    made.plan.after = (method) => {
      if (method !== 'NodeUnpublishVolume' || leave === 'nothing') return;
      if (leave === 'directory') mkdirSync(targetOf(made));
      else writeFileSync(targetOf(made), '');
    };
    accept(await made.plugin.unpublish(call()));
    assert.ok(!existsSync(join(made.host.root, 'pods', UIDS[0] ?? '')), leave);
  }
});

test('A-066, INV-8: data left under the target is never removed', async () => {
  const made = await world();
  await up(made);
  made.plan.after = (method) => {
    if (method !== 'NodeUnpublishVolume') return;
    mkdirSync(targetOf(made), { recursive: true });
    writeFileSync(join(targetOf(made), 'data'), 'precious');
  };
  assert.deepEqual(refuse(await made.plugin.unpublish(call())), {
    code: 'directory-not-empty',
    effect: 'unknown',
  });
  assert.equal(readFileSync(join(targetOf(made), 'data'), 'utf8'), 'precious');
  rmSync(targetOf(made), { recursive: true });
  made.plan.after = () => undefined;
  accept(await made.plugin.unpublish(call()));
});

test('A-061: an empty directory left at the target is taken away before the driver makes its own', async () => {
  const made = await world();
  mkdirSync(targetOf(made), { recursive: true });
  accept(await made.plugin.publish(call({ facts: UNSTAGED })));
  made.host.mounts.clear();
  writeFileSync(join(targetOf(made), 'data'), 'precious');
  const refused = await made.plugin.publish(call({ facts: UNSTAGED }));
  assert.deepEqual(refuse(refused), { code: 'directory-not-empty', effect: 'none' });
});

test('DR-12: a staged mount that went away or became another device is not published', async () => {
  const made = await world();
  const { stagedMount } = accept(await made.plugin.stage(call()));
  const facts = { ...STAGED, stagedMount };
  made.host.plantMount(stagingOf(made));
  assert.deepEqual(refuse(await made.plugin.publish(call({ facts }))), {
    code: 'device-changed',
    effect: 'none',
  });
  made.host.mounts.clear();
  assert.deepEqual(refuse(await made.plugin.publish(call({ facts }))), {
    code: 'staged-not-mounted',
    effect: 'none',
  });
  assert.ok(!made.host.called.includes('NodePublishVolume'));
});

test('DR-01, DR-02: a deadline and a lost driver are uncertain, and the lost one is looked for', async () => {
  const made = await world({}, { deadlineMs: 500 });
  made.plan.before = () => new Promise(() => {});
  assert.deepEqual(refuse(await made.plugin.stage(call())), { code: 'driver-deadline', effect: 'unknown' });
  assert.deepEqual(made.suspected, []);
  await made.server.close();
  assert.deepEqual(refuse(await made.plugin.stage(call())), {
    code: 'driver-unreachable',
    effect: 'unknown',
  });
  assert.deepEqual(made.suspected, [DRIVER]);
});

/** A driver that says how many of its calls overlapped most, and holds its calls while `gate` is closed. */
function counting() {
  const seen = { now: 0, most: 0 };
  let open: () => void = () => {};
  let gate: Promise<void> | undefined;
  const before = async () => {
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
    await (gate ?? new Promise((resolve) => setTimeout(resolve, 10)));
    seen.now -= 1;
  };
  return {
    seen,
    before,
    close: () => {
      gate = new Promise((resolve) => {
        open = resolve;
      });
    },
    open: () => {
      open();
      gate = undefined;
    },
  };
}

test('A-030: one call in flight per volume, whatever is asked at once; other volumes do not wait', async () => {
  const driver = counting();
  const { seen, before } = driver;
  const made = await world({ before });
  const calls = UIDS.map((_, pod) => call({ pod }));
  for (const result of await Promise.all(calls.map((one) => made.plugin.publish(one)))) accept(result);
  assert.equal(seen.most, 1);
  assert.equal(made.host.mounts.size, 4);
  for (const result of await Promise.all(calls.map((one) => made.plugin.unpublish(one)))) accept(result);
  assert.equal(seen.most, 1);
  const others = ['x', 'y', 'z'].map((volumeHandle) => ({
    ...SPEC,
    volumeHandle,
    id: csiVolumeId(DRIVER, volumeHandle),
  }));
  driver.close();
  const staged = Promise.all(others.map((spec) => made.plugin.stage(call({ spec }))));
  await until('three are in the driver at once', () => seen.now === 3);
  driver.open();
  for (const result of await staged) accept(result);
});

test('D-17: with the option, publish and unpublish of different targets overlap', async () => {
  const { seen, before, close, open } = counting();
  const made = await world({ before }, { parallel: true });
  const calls = UIDS.map((_, pod) => call({ pod }));
  close();
  const published = Promise.all(calls.map((one) => made.plugin.publish(one)));
  await until('four are published at once', () => seen.now === 4);
  open();
  for (const result of await published) accept(result);
  close();
  const unpublished = Promise.all(calls.map((one) => made.plugin.unpublish(one)));
  await until('four are unpublished at once', () => seen.now === 4);
  open();
  for (const result of await unpublished) accept(result);
});

test('A-031, DR-22: on ABORTED the option falls back to one at a time, and all get there', async () => {
  const { seen, before, close, open } = counting();
  let overlapping = 0;
  const made = await world(
    {
      before: async () => {
        if (seen.now > 0) {
          overlapping += 1;
          throw new GrpcStatus(10, 'operation pending');
        }
        await before();
      },
    },
    { parallel: true },
  );
  const publish = (pod: number) => made.plugin.publish(call({ pod }));
  close();
  const first = [publish(0), publish(1)];
  await until('two overlapped', () => overlapping === 1);
  const later = [publish(2), publish(3)];
  const isPrepared = (pod: number) =>
    existsSync(layoutOf(made).volumeDirectory(SPEC, call({ pod }).publication));
  await until('two more have come', () => isPrepared(2) && isPrepared(3));
  // From there to the lane it is a few steps, which nobody can see: without this the lane may be empty too early.
  await new Promise((resolve) => setTimeout(resolve, 200));
  open();
  for (const result of await Promise.all([...first, ...later])) accept(result);
  assert.equal(overlapping, 1, 'those that came later did not try to overlap again');
  assert.equal(made.host.called.length, 5);
  assert.equal(made.host.mounts.size, 4);
});

test('A-031: ABORTED to a call that had the volume to itself is not asked again at once (seed 246968976)', async () => {
  const made = await world({ before: refusing('NodeUnpublishVolume', 10) }, { parallel: true });
  accept(await made.plugin.publish(call()));
  made.host.called.splice(0);
  assert.equal(refuse(await made.plugin.unpublish(call())).code, 'driver-busy');
  assert.deepEqual(made.host.called, ['NodeUnpublishVolume']);
});

test('2.11: a call that waited its turn asks again, and one no longer wanted leaves nothing', async () => {
  let letGo: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const made = await world();
  made.plan.before = () => held;
  let wanted = true;
  const first = made.plugin.publish(call());
  const second = made.plugin.publish(call({ pod: 1, stillWanted: () => wanted }));
  const third = made.plugin.unpublish(call({ pod: 2, stillWanted: () => wanted }));
  wanted = false;
  letGo();
  accept(await first);
  assert.deepEqual(refuse(await second), { code: 'no-longer-wanted', effect: 'none' });
  assert.deepEqual(refuse(await third), { code: 'no-longer-wanted', effect: 'none' });
  assert.deepEqual(made.host.called, ['NodePublishVolume']);
  assert.ok(!existsSync(layoutOf(made).volumeDirectory(SPEC, call({ pod: 1 }).publication)));
});

const SIZES: readonly (readonly [string, Partial<CsiVolumeSpec>, boolean])[] = [
  ['A-012: a handle of 2048 bytes', { volumeHandle: 'ä'.repeat(1024) }, true],
  ['A-012: a handle of 2049 bytes', { volumeHandle: `${'ä'.repeat(1024)}a` }, false],
  ['A-015: no handle', { volumeHandle: '' }, false],
  ['A-016: no fsType', { fsType: '' }, true],
  ['A-013: attributes of 4096 bytes', { volumeAttributes: { key: 'x'.repeat(4_093) } }, true],
  ['A-013: attributes of 4097 bytes', { volumeAttributes: { key: 'x'.repeat(4_094) } }, false],
  ['A-014: mount options of 4096 bytes', { mountOptions: ['a'.repeat(2_048), 'b'.repeat(2_048)] }, true],
  ['A-014: mount options of 4097 bytes', { mountOptions: ['a'.repeat(2_048), 'b'.repeat(2_049)] }, false],
];

for (const [what, changes, fits] of SIZES) {
  test(`${what} is ${fits ? 'sent' : 'refused before the call, and leaves nothing'}`, async () => {
    const made = await world();
    const staged = await made.plugin.stage(call({ spec: { ...SPEC, ...changes } }));
    if (fits) {
      accept(staged);
      return;
    }
    assert.deepEqual(refuse(staged), { code: 'spec-invalid', effect: 'none' });
    assert.deepEqual(made.host.called, []);
    assert.ok(tree(made).every((name) => !name.includes('globalmount')));
  });
}

test('A-037: a secret key with a slash is refused, and shown nowhere', async () => {
  const made = await world();
  const secrets = { ...NO_SECRETS, stage: new Sensitive({ 'c4nary/key': 'v' }) };
  const staged = await made.plugin.stage(call({ secrets }));
  assert.equal(refuse(staged).code, 'spec-invalid');
  assert.ok(!JSON.stringify(staged).includes('c4nary'));
});

test('A-013, A-037: which secret is too large, or has a wrong key, is told by the field that names it', async () => {
  const made = await world({ controllerCapabilities: [2] });
  const fields = {
    attach: ['controllerPublish', 'controllerPublishSecretRef'],
    stage: ['stage', 'nodeStageSecretRef'],
    publish: ['publish', 'nodePublishSecretRef'],
  } as const;
  for (const verb of ['attach', 'stage', 'publish'] as const) {
    const [name, field] = fields[verb];
    const given = (data: Record<string, string>) => ({ ...NO_SECRETS, [name]: new Sensitive(data) });
    const large = await made.plugin[verb](call({ secrets: given({ key: 'x'.repeat(1_048_577) }) }));
    const sentence = `the secret of ${field} has 1048577 bytes; a Secret has 1048576 at most`;
    assert.match(JSON.stringify(large), new RegExp(sentence));
    const odd = await made.plugin[verb](call({ secrets: given({ 'a/b': 'x' }) }));
    assert.match(JSON.stringify(odd), new RegExp(`a key of the secret of ${field} holds`));
  }
});

test('A-013: a secret is sent as large as a Secret may be: certificates and keys have more than 4 KiB', async () => {
  const made = await world();
  const secret = { 'tls.crt': 'c'.repeat(4_096), 'tls.key': 'k'.repeat(1_048_576 - 4_096) };
  accept(await made.plugin.stage(call({ secrets: { ...NO_SECRETS, stage: new Sensitive(secret) } })));
  assert.deepEqual(sent(made, 'NodeStageVolume', NodeStageVolumeRequest)[0]?.secrets, secret);
});

test('A-012: what was set up comes down whatever its size', async () => {
  const made = await world();
  const spec = { ...SPEC, volumeHandle: 'x'.repeat(300) };
  accept(await made.plugin.unpublish(call({ spec })));
  assert.equal(sent(made, 'NodeUnpublishVolume', NodeUnpublishVolumeRequest)[0]?.volumeId.length, 300);
});

test('A-021, A-034, A-036, A-038, INV-25: no answer brings a secret or secret option into a failure', async () => {
  const canary = 'c4nary-in-the-coal-mine';
  const secrets = {
    ...NO_SECRETS,
    controllerPublish: new Sensitive({ a: canary }),
    stage: new Sensitive({ a: canary }),
    publish: new Sensitive({ a: canary }),
  };
  const spec: CsiVolumeSpec = { ...SPEC, mountOptions: ['noatime', 'password=option-c4nary'] };
  const made = await world({ controllerCapabilities: [2] });
  for (let code = 1; code <= 17; code += 1) {
    made.plan.before = () => {
      throw new GrpcStatus(
        code,
        `mount -o noatime,password=option-c4nary,${canary} ${Buffer.from(canary).toString('base64')}`,
      );
    };
    for (const verb of ['attach', 'detach', 'stage', 'publish'] as const) {
      const shown = JSON.stringify(await made.plugin[verb](call({ spec, secrets })));
      assert.ok(!shown.includes('c4nary'), shown);
      assert.ok(!shown.includes(Buffer.from(canary).toString('base64')));
    }
  }
});

test('A-038, A-039: no call tells a secret of another call of its volume, on the way down neither', async () => {
  const names = ['controllerPublish', 'stage', 'publish', 'expand'] as const;
  const secrets = Object.fromEntries(names.map((name) => [name, new Sensitive({ a: `c4nary-of-${name}` })]));
  const made = await world({ controllerCapabilities: [2] });
  made.plan.before = () => {
    throw new GrpcStatus(13, `mount -o ${names.map((name) => `c4nary-of-${name}`).join()}: busy`);
  };
  for (const verb of ['attach', 'stage', 'publish', 'unpublish', 'unstage', 'detach'] as const) {
    const shown = JSON.stringify(await made.plugin[verb](call({ secrets: { ...NO_SECRETS, ...secrets } })));
    assert.match(shown, /\[redacted\].*busy/, verb);
    assert.ok(!shown.includes('c4nary'), `${verb}: ${shown}`);
  }
});

test('DR-02: a node that stays registered while a driver is replaced calls the new one', async () => {
  const made = await world();
  accept(await made.plugin.stage(call()));
  const old = made.server;
  const again = await serveDriver(made.host, inRoot(made.host, 'driver', 'csi.sock'), script());
  await introduce(made);
  await old.close();
  accept(await made.plugin.publish(call()));
  await again.close();
});

test('A-033, A-056, A-065: what never said OK may be there, and is undone by its negation', async () => {
  const made = await world({}, { deadlineMs: 500 });
  made.plan.before = (method) =>
    method === 'NodeStageVolume' || method === 'NodePublishVolume' ? new Promise(() => {}) : undefined;
  assert.equal(refuse(await made.plugin.stage(call())).effect, 'unknown');
  assert.equal(refuse(await made.plugin.publish(call())).effect, 'unknown');
  accept(await made.plugin.unpublish(call()));
  accept(await made.plugin.unstage(call()));
  assert.deepEqual(made.host.called.slice(2), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
  assert.ok(tree(made).every((name) => !/globalmount|vol_data|pv-1/.test(name)));
});

test('A-035: UNIMPLEMENTED is one call, and what time alone does not mend', async () => {
  const made = await world({ before: refusing('NodePublishVolume', 12) });
  const { code } = refuse(await made.plugin.publish(call({ facts: UNSTAGED })));
  assert.deepEqual([code, FAILURE_RETRY['driver-unimplemented']], ['driver-unimplemented', 'on-change']);
  assert.deepEqual(made.host.called, ['NodePublishVolume']);
});

test('A-039: taking down sends no secret, and needs none', async () => {
  const made = await world();
  const secrets = {
    ...NO_SECRETS,
    stage: new Sensitive({ a: 'c4nary' }),
    publish: new Sensitive({ a: 'c4nary' }),
  };
  await up(made, { secrets });
  made.host.requests.splice(0);
  accept(await made.plugin.unpublish(call({ secrets })));
  accept(await made.plugin.unstage(call({ secrets })));
  assert.ok(made.host.requests.every(({ bytes }) => !bytes.includes('c4nary')));
  await up(made, { secrets });
  accept(await made.plugin.unpublish(call()));
  accept(await made.plugin.unstage(call()));
});

test('KV-C14, k/k#69699: a volume is the group’s when it was published, and no refresh walks again', async () => {
  const made = await world();
  accept(await made.plugin.stage(call()));
  const fsGroup = { gid: 2_000, changePolicy: 'Always' } as const;
  const publication = { ...call().publication, fsGroup };
  accept(await made.plugin.publish(call({ publication, fsGroup })));
  accept(await made.plugin.publish(call({ publication, fsGroup, refresh: true })));
  assert.deepEqual(made.host.walks, [`2000 ${targetOf(made)}`]);
  assert.equal(made.host.requests.filter(({ method }) => method.endsWith('NodePublishVolume')).length, 2);
  accept(await made.plugin.publish(call({ publication, fsGroup })));
  assert.equal(made.host.walks.length, 2, 'a place that is not known to be whole is walked again');
});

test('a republish without the mount that the pod had makes one, and that is walked (seed 406214358)', async () => {
  const made = await world();
  accept(await made.plugin.stage(call()));
  const fsGroup = { gid: 2_000, changePolicy: 'Always' } as const;
  const publication = { ...call().publication, fsGroup };
  const { mount } = accept(await made.plugin.publish(call({ publication, fsGroup })));
  made.host.mounts.delete(targetOf(made));
  const again = accept(await made.plugin.publish(call({ publication, fsGroup, mount, refresh: true })));
  assert.notEqual(again.mount?.mountId, mount?.mountId);
  assert.deepEqual(made.host.walks, [`2000 ${targetOf(made)}`, `2000 ${targetOf(made)}`]);
});

test('KV-C14: what was mounted read-only, as it is to be, is not given to a group, and is published', async () => {
  const made = await world();
  const spec: CsiVolumeSpec = { ...SPEC, mountOptions: ['ro'] };
  const fsGroup = { gid: 2_000, changePolicy: 'Always' } as const;
  const publication = { ...call().publication, fsGroup };
  const { lookUpMount } = made.host;
  made.host.lookUpMount = async (path) => {
    const seen = await lookUpMount(path);
    return seen.ok && seen.value.mounted ? ok({ ...seen.value, readOnly: true }) : seen;
  };
  accept(await made.plugin.stage(call({ spec, fsGroup })));
  const { mount } = accept(await made.plugin.publish(call({ spec, publication, fsGroup })));
  assert.equal(mount?.readOnly, true);
  assert.deepEqual(made.host.walks, []);
});

test('what a driver has mounted is gone before the walk: it is lost, and what it bares is not walked', async () => {
  const made = await world();
  accept(await made.plugin.stage(call()));
  const fsGroup = { gid: 2_000, changePolicy: 'Always' } as const;
  const { changeOwnership } = made.host;
  made.host.changeOwnership = (request) => {
    made.host.mounts.delete(targetOf(made));
    return changeOwnership(request);
  };
  const publication = { ...call().publication, fsGroup };
  const published = await made.plugin.publish(call({ publication, fsGroup }));
  assert.deepEqual(refuse(published), { code: 'mount-lost', effect: 'unknown' });
  assert.deepEqual(made.host.walks, []);
});

test('k/k#122342: a teardown that the driver refuses says where it is held, for somebody to look by whom', async () => {
  const made = await world();
  await up(made);
  made.plan.before = refusing('NodeUnpublishVolume', 13);
  const unpublished = await made.plugin.unpublish(call());
  assert.deepEqual(refuse(unpublished), { code: 'driver-failed', effect: 'unknown' });
  assert.equal(!unpublished.ok && unpublished.failure.heldAt, targetOf(made));
});
