/**
 * The CSI mock driver of the Kubernetes end-to-end tests, on release 1.9 of the specification's code, under the real
 * agent. Judged by the mount table, by files, by what the driver itself wrote down, and by the witness in front of it.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountsBelow, readOrNothing, unmountByHand } from '../demo/machine.ts';
import { assertLegal, ladderCalls, ladderNames, readCalls } from './call-record.ts';
import { goPrograms } from './go-program.ts';
import { csiDriver, documents, pod, volumeAndClaim } from './manifests.ts';
import { DRIVER, isMounted, OTHER_UID, reasonsOf, startMock, targetOf, UID, VOLUME } from './mock.ts';
import { inWorld } from './world.ts';
import { signalProcess } from '../signal.ts';

const { skip, files } = goPrograms('mock-driver', 'registrar');
const withHands = { files, kind: 'with-hands' } as const;

test('registers, mounts, survives a restart of the agent, and comes down in order', { skip }, () =>
  inWorld(async (world) => {
    const agent = await world.startAgent();
    const { record, state } = await startMock(world, withHands);
    world.putManifest('web.yaml', documents(volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
    await world.untilReady('web');
    const target = targetOf(world, UID, VOLUME.name);
    assert.ok(isMounted(target));
    writeFileSync(join(target, 'greeting'), 'ahoy');
    assert.equal(readFileSync(join(state, '1/greeting'), 'utf8'), 'ahoy');
    assert.deepEqual(ladderNames(readCalls(record)), ['NodeStageVolume', 'NodePublishVolume']);

    await agent.end('SIGKILL');
    await world.startAgent();
    await world.untilSettled('web');
    // It leaves no mount where it stages, so the table cannot prove it and the agent asks again, as the kubelet
    // does after its restart; and what it had not written down yet when it was killed. Once, with the same arguments.
    const climbed = ladderCalls(readCalls(record));
    const repeated = climbed.slice(2);
    assert.deepEqual(repeated, climbed.slice(0, 2).slice(0, repeated.length));
    assert.equal(mountsBelow(target).length, 1);
    assert.equal(readFileSync(join(target, 'greeting'), 'utf8'), 'ahoy');

    world.removeManifest('web.yaml');
    await world.untilEmpty();
    const calls = readCalls(record);
    assertLegal(calls, { attach: false });
    // Killed between an answer and its note, what may come late is given back once more when its time is over.
    const down = ladderNames(calls).slice(climbed.length);
    assert.deepEqual(down.slice(0, 2), ['NodeUnpublishVolume', 'NodeUnstageVolume']);
    assert.deepEqual(down.slice(2), down.slice(0, down.length - 2));
    assert.ok(down.length <= 4, down.join());
    assert.deepEqual(mountsBelow(world.root), []);
    assert.ok(!existsSync(join(world.pods, UID)), 'the pod directory is gone');
    assert.equal(readFileSync(join(state, '1/greeting'), 'utf8'), 'ahoy', 'the data is not');
  }),
);

test('is attached first and detached last, and its publish context reaches stage and publish', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const { record } = await startMock(world, { ...withHands, flags: ['--attach'] });
    const object = csiDriver(DRIVER, 'attachRequired: true', 'podInfoOnMount: false');
    world.putManifest('web.yaml', documents(object, volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
    await world.untilReady('web');
    // Without `device` in the publish context the mock driver refuses both.
    const climbed = ladderCalls(readCalls(record));
    assert.deepEqual(
      climbed.map(({ begin }) => begin),
      ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'],
    );
    for (const call of climbed.slice(1)) {
      assert.deepEqual(call.publishContext, { device: '/dev/mock', readonly: 'false' });
    }
    world.removeManifest('web.yaml');
    await world.untilEmpty();
    const calls = readCalls(record);
    assertLegal(calls, { attach: true });
    assert.deepEqual(ladderNames(calls).slice(3), [
      'NodeUnpublishVolume',
      'NodeUnstageVolume',
      'ControllerUnpublishVolume',
    ]);
  }),
);

test('is staged once and published to each pod that shares the volume', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const { record } = await startMock(world, withHands);
    const shared = { ...VOLUME, accessMode: 'ReadWriteMany' };
    world.putManifest('volume.yaml', volumeAndClaim(shared));
    world.putManifest('one.yaml', pod('one', UID, VOLUME.name));
    world.putManifest('two.yaml', pod('two', OTHER_UID, VOLUME.name));
    await world.untilReady('one');
    await world.untilReady('two');
    writeFileSync(join(targetOf(world, UID, VOLUME.name), 'note'), 'seen by both');
    assert.equal(readFileSync(join(targetOf(world, OTHER_UID, VOLUME.name), 'note'), 'utf8'), 'seen by both');
    world.removeManifest('one.yaml');
    await world.until('the first pod to be gone', ({ pods }) => pods.every(({ name }) => name !== 'one'));
    assert.ok(isMounted(targetOf(world, OTHER_UID, VOLUME.name)));
    assert.ok(!ladderNames(readCalls(record)).includes('NodeUnstageVolume'));
    world.removeManifest('two.yaml');
    await world.untilEmpty();
    assertLegal(readCalls(record), { attach: false });
    const names = ladderNames(readCalls(record));
    assert.equal(names.filter((name) => name === 'NodeStageVolume').length, 1);
    assert.equal(names.filter((name) => name === 'NodePublishVolume').length, 2);
  }),
);

test('a read-only claim is published read-only and cannot be written to', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const { record } = await startMock(world, withHands);
    const shared = { ...VOLUME, accessMode: 'ReadOnlyMany' };
    world.putManifest('web.yaml', documents(volumeAndClaim(shared), pod('web', UID, VOLUME.name, true)));
    await world.untilReady('web');
    assert.equal(ladderCalls(readCalls(record)).at(-1)?.readOnly, true);
    assert.throws(() => writeFileSync(join(targetOf(world, UID, VOLUME.name), 'note'), 'no'), {
      code: 'EROFS',
    });
    world.removeManifest('web.yaml');
    await world.untilEmpty();
  }),
);

test(
  'secrets of the volume reach the calls they are for; no value of one is in a log or a record',
  { skip },
  () =>
    inWorld(async (world) => {
      await world.startAgent();
      const value = 'hunter2-interop';
      const { record } = await startMock(world, { ...withHands, rules: { canaries: [value] } });
      const secret = `apiVersion: v1\nkind: Secret\nmetadata: { name: keys }\nstringData: { secretKey: ${value} }\n`;
      const csi = [
        'nodeStageSecretRef: { name: keys, namespace: default }',
        'nodePublishSecretRef: { name: keys, namespace: default }',
      ];
      world.putManifest(
        'web.yaml',
        documents(secret, volumeAndClaim({ ...VOLUME, csi }), pod('web', UID, VOLUME.name)),
      );
      await world.untilReady('web');
      for (const call of ladderCalls(readCalls(record)))
        assert.deepEqual(call.secretKeys, ['secretKey'], call.begin);
      const records = join(world.root, 'mooring/records');
      const files = readdirSync(records).map((name) => join(records, name));
      assert.ok(files.length > 0);
      for (const file of files) assert.ok(!readOrNothing(file)?.includes(value), `${file} holds the secret`);
      world.removeManifest('web.yaml');
      await world.untilEmpty();
      assert.ok(!readOrNothing(world.logOf('agent'))?.includes(value), 'the log holds the secret');
    }),
);

test(
  'as it comes it publishes without mounting: the agent names that, and never calls the pod ready',
  { skip },
  () =>
    inWorld(async (world) => {
      await world.startAgent();
      await startMock(world, { files, kind: 'as-it-comes' });
      world.putManifest('web.yaml', documents(volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
      const status = await world.until('the lie to be named', ({ pods }) =>
        reasonsOf(pods).includes('published-not-mounted'),
      );
      assert.equal(status.summary.podsReady, 0);
      assert.equal(status.pods[0]?.volumes[0]?.reason?.blocker, DRIVER);
      world.removeManifest('web.yaml');
      await world.untilEmpty();
      assert.ok(!existsSync(join(world.pods, UID)));
    }),
);

test('restarted, it forgets its mounts and says they are gone: held and named until they are', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const mock = await startMock(world, withHands);
    world.putManifest('web.yaml', documents(volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
    await world.untilReady('web');
    const target = targetOf(world, UID, VOLUME.name);
    writeFileSync(join(target, 'precious'), 'data');
    await mock.restart();
    await world.untilReady('web');
    assert.ok(isMounted(target), 'the death of a driver takes no mount away');

    world.removeManifest('web.yaml');
    const status = await world.until('the lie to be named', ({ pods }) =>
      reasonsOf(pods).includes('unpublished-still-mounted'),
    );
    assert.match(status.pods[0]?.volumes[0]?.reason?.message ?? '', /still mounted/);
    assert.ok(isMounted(target));
    assert.equal(
      readFileSync(join(mock.state, '1/precious'), 'utf8'),
      'data',
      'nothing was deleted through the mount',
    );
    assert.ok(
      !ladderNames(readCalls(mock.record)).includes('NodeUnstageVolume'),
      'not unstaged below a publication',
    );
    unmountByHand(target);
    await world.untilEmpty();
    assertLegal(readCalls(mock.record), { attach: false });
  }),
);

test('a driver that hangs while the pod goes is waited for, and then called', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const mock = await startMock(world, withHands);
    world.putManifest('web.yaml', documents(volumeAndClaim(VOLUME), pod('web', UID, VOLUME.name)));
    await world.untilReady('web');
    signalProcess(mock.driver.pid, 'SIGSTOP');
    world.removeManifest('web.yaml');
    await world.until('the call to be under way', ({ summary }) => summary.operationsRunning > 0);
    assert.ok(isMounted(targetOf(world, UID, VOLUME.name)));
    signalProcess(mock.driver.pid, 'SIGCONT');
    await world.untilEmpty();
    assertLegal(readCalls(mock.record), { attach: false });
  }),
);

test('a driver that was killed and started again on the same socket serves the next pod', { skip }, () =>
  inWorld(async (world) => {
    await world.startAgent();
    const mock = await startMock(world, withHands);
    const second = { ...VOLUME, handle: '2', name: 'mock-two' };
    world.putManifest('volumes.yaml', documents(volumeAndClaim(VOLUME), volumeAndClaim(second)));
    world.putManifest('one.yaml', pod('one', UID, VOLUME.name));
    await world.untilReady('one');
    const { mountId } = mountsBelow(targetOf(world, UID, VOLUME.name))[0] ?? {};
    await mock.restart();
    world.putManifest('two.yaml', pod('two', OTHER_UID, second.name));
    await world.untilReady('two');
    assert.ok(isMounted(targetOf(world, OTHER_UID, second.name)));
    assert.equal(
      mountsBelow(targetOf(world, UID, VOLUME.name))[0]?.mountId,
      mountId,
      'the first pod saw nothing',
    );
    world.removeManifest('two.yaml');
    await world.until('the second pod to be gone', ({ pods }) => pods.length === 1);
    // The first mount is one this driver has forgotten (see above); a person takes it away.
    world.removeManifest('one.yaml');
    await world.until('the first one to be held', ({ pods }) =>
      reasonsOf(pods).includes('unpublished-still-mounted'),
    );
    unmountByHand(targetOf(world, UID, VOLUME.name));
    await world.untilEmpty();
    assertLegal(readCalls(mock.record), { attach: false });
  }),
);
