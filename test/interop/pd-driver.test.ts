/**
 * A storage driver as it runs in the field: its own program, with its own mkfs, mount and resize, on devices that its
 * own controller attaches. Judged by the mount table, the bytes on the disks, the calls to the cloud, and the witness.
 */
import assert from 'node:assert/strict';
import {
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { ControllerExpandVolumeRequest, ControllerService } from '../../plugins/csi/wire/generated/csi.ts';
import { createGrpcRemote } from '../../plugins/csi/wire/grpc.ts';
import { parseAbsolutePath } from '../../mount/host.ts';
import { loopDevicesBelow, mountsBelow, readMounts, runToEnd } from '../demo/machine.ts';
import { goPrograms } from './go-program.ts';
import { documents, pod, podWith } from './manifests.ts';
import { readMetrics } from './metrics.ts';
import { isMounted, reasonsOf, targetOf } from './mock.ts';
import { diskAndClaim, inCloud, OBJECT, OTHER_UID, type Pd, UID } from './pd.ts';
import { type Disk, GIB } from './pd-cloud.ts';
import { asInGooglesCloud, giveBytes, plugIn, plugOut } from './pd-machine.ts';
import { inWorld, type World } from './world.ts';

const { skip: obstacle, files } = goPrograms('pd-driver', 'registrar');
const skip = asInGooglesCloud(obstacle);
const CALL_MS = 30_000;

/** What is mounted where the volume is staged for all its pods. */
function stagesOf({ root }: World) {
  return mountsBelow(join(root, 'plugins')).filter(({ target }) => basename(target) === 'globalmount');
}

/** `major:minor` of the loop device a disk is attached as. */
function numbersOf({ attached }: Disk): string {
  assert.ok(attached !== undefined, 'attached');
  return readFileSync(`/sys/block/${basename(attached.device)}/dev`, 'utf8').trim();
}

/** Nothing of the volumes is left: no mount, no device, no directory of a pod, no attachment. */
function assertGone(world: World, { cloud }: Pd, ...changes: readonly string[]): void {
  assert.deepEqual(mountsBelow(world.root), []);
  assert.deepEqual(loopDevicesBelow(world.scratch), []);
  for (const uid of [UID, OTHER_UID]) assert.ok(!existsSync(join(world.pods, uid)), `directory of ${uid}`);
  assert.deepEqual(cloud.changes, changes);
}

/** Takes the pods of these manifests away, and waits until nothing of them is left to be done. */
async function takeDown(world: World, ...names: readonly string[]): Promise<void> {
  for (const name of names) world.removeManifest(`${name}.yaml`);
  await world.untilEmpty();
}

/**
 * As the external resizer does, which Mooring is not: the controller of the driver grows the disk. Behind the witness,
 * because nobody tells Mooring when it calls, so Mooring cannot keep its statistics apart from it.
 */
async function growDisk({ cloud, witness }: Pd, name: string, gib: number): Promise<void> {
  const path = parseAbsolutePath(witness.behind);
  assert.ok(path !== undefined);
  const remote = createGrpcRemote();
  try {
    const request = ControllerExpandVolumeRequest.fromPartial({
      volumeId: cloud.handleOf(name),
      capacityRange: { requiredBytes: BigInt(gib * GIB), limitBytes: 0n },
    });
    const socket = { path, inode: statSync(path).ino };
    const method = ControllerService.controllerExpandVolume;
    const answer = await remote.call({ socket, method, request, deadlineMs: CALL_MS });
    assert.ok(answer.kind === 'ok', answer.kind);
    assert.equal(answer.reply.nodeExpansionRequired, true);
  } finally {
    remote.close();
  }
}

test('the machine tells who used a disk that was pulled out', { skip }, () =>
  inWorld(async ({ scratch }) => {
    const image = join(scratch, 'x.img');
    await giveBytes(image, GIB);
    const device = await plugIn('x', image, false);
    await runToEnd('mkfs.ext4', ['-q', device]);
    const target = join(scratch, 'mnt');
    mkdirSync(target);
    await runToEnd('mount', [device, target]);
    assert.match((await plugOut('x', device)) ?? '', /was mounted$/);
    await runToEnd('umount', [target]);
    const again = await plugIn('x', image, false);
    const descriptor = openSync(again, 'r');
    assert.match((await plugOut('x', again, 0)) ?? '', new RegExp(`was open, by ${process.pid} `));
    closeSync(descriptor);
    assert.equal(await plugOut('x', await plugIn('x', image, true)), undefined);
  }),
);

test('a disk is attached, formatted, mounted and written; taken down, it keeps the data', { skip }, () =>
  inCloud(files, async (world, pd) => {
    const disk = await pd.cloud.createDisk('one');
    const manifest = documents(OBJECT, diskAndClaim(pd.cloud, 'one'), pod('web', UID, 'one'));
    const target = targetOf(world, UID, 'one');
    for (const round of ['first', 'second']) {
      world.putManifest('web.yaml', manifest);
      await world.untilReady('web');
      const [stage, ...more] = stagesOf(world);
      assert.deepEqual(more, []);
      const mounts = readMounts().entries.filter((one) => one.target === target);
      for (const mount of [stage, ...mounts]) {
        assert.equal(mount?.device, numbersOf(disk));
        assert.equal(mount?.fsType, 'ext4');
      }
      assert.equal(mounts.length, 1);
      if (round === 'first') writeFileSync(join(target, 'greeting'), 'ahoy');
      assert.equal(readFileSync(join(target, 'greeting'), 'utf8'), 'ahoy');
      await takeDown(world, 'web');
    }
    assertGone(world, pd, 'attachDisk one', 'detachDisk one', 'attachDisk one', 'detachDisk one');
  }),
);

test('xfs: the driver grows it while it is mounted, and the statistics say so', { skip }, () =>
  inCloud(
    files,
    async (world, pd) => {
      await pd.cloud.createDisk('one');
      const facts = { fsType: 'xfs' };
      world.putManifest('volume.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one', facts)));
      world.putManifest('web.yaml', pod('web', UID, 'one'));
      await world.untilReady('web');
      const target = targetOf(world, UID, 'one');
      assert.equal(mountsBelow(target)[0]?.fsType, 'xfs');
      writeFileSync(join(target, 'greeting'), 'ahoy');
      const { mountId } = mountsBelow(target)[0] ?? {};
      const bytesOf = (): number => {
        const { blocks, bsize } = statfsSync(target);
        return blocks * bsize;
      };
      const before = bytesOf();
      assert.ok(before > 0.9 * GIB && before < GIB, `${before}`);

      await growDisk(pd, 'one', 2);
      assert.equal(bytesOf(), before, 'the device has grown, the file system has not');
      world.putManifest(
        'volume.yaml',
        documents(OBJECT, diskAndClaim(pd.cloud, 'one', { ...facts, capacity: '2Gi' })),
      );
      const { volumes } = await world.until('the new size to be seen', ({ volumes: [volume] }) => {
        return volume?.size.current === `${2 * GIB}` && volume.expansion.state === 'none';
      });
      assert.equal(volumes[0]?.size.wanted, `${2 * GIB}`);
      const after = bytesOf();
      assert.ok(after > 1.9 * GIB && after < 2 * GIB, `${after}`);
      assert.equal(mountsBelow(target)[0]?.mountId, mountId, 'nothing was mounted anew');
      assert.equal(readFileSync(join(target, 'greeting'), 'utf8'), 'ahoy');

      await world.until('the statistics to have grown', ({ volumes: [volume] }) => {
        return volume?.statistics?.bytes?.total === `${after}`;
      });
      const line = `kubelet_volume_stats_capacity_bytes{namespace="default",persistentvolumeclaim="one"} ${after}`;
      assert.ok((await readMetrics(world.socket)).split('\n').includes(line));
      await takeDown(world, 'web');
      assertGone(world, pd, 'attachDisk one', 'resize one', 'detachDisk one');
    },
    { config: ['statistics_interval_ms: 1000'] },
  ),
);

test('a disk that grew while nobody used it is grown by the driver when it is mounted', { skip }, () =>
  inCloud(files, async (world, pd) => {
    await pd.cloud.createDisk('one');
    const manifest = (capacity: string): string =>
      documents(OBJECT, diskAndClaim(pd.cloud, 'one', { fsType: 'xfs', capacity }), pod('web', UID, 'one'));
    world.putManifest('web.yaml', manifest('1Gi'));
    await world.untilReady('web');
    const target = targetOf(world, UID, 'one');
    writeFileSync(join(target, 'greeting'), 'ahoy');
    await takeDown(world, 'web');
    await growDisk(pd, 'one', 3);
    world.putManifest('web.yaml', manifest('3Gi'));
    await world.untilReady('web');
    const { blocks, bsize } = statfsSync(target);
    assert.ok(blocks * bsize > 2.9 * GIB, `${blocks * bsize}`);
    assert.equal(readFileSync(join(target, 'greeting'), 'utf8'), 'ahoy');
    await takeDown(world, 'web');
    assertGone(
      world,
      pd,
      ...['attachDisk one', 'detachDisk one', 'resize one', 'attachDisk one', 'detachDisk one'],
    );
  }),
);

test('what the driver cannot grow is named, and costs the pod nothing', { skip }, () =>
  inCloud(
    files,
    async (world, pd) => {
      await pd.cloud.createDisk('one');
      world.putManifest('volume.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one')));
      world.putManifest('web.yaml', pod('web', UID, 'one'));
      await world.untilReady('web');
      const target = targetOf(world, UID, 'one');
      await growDisk(pd, 'one', 2);
      world.putManifest('volume.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one', { capacity: '2Gi' })));
      const status = await world.until('the failure to be named', ({ volumes: [volume] }) => {
        const { state, message } = volume?.expansion ?? {};
        return state === 'pending' && /NodeExpandVolume: INTERNAL.*resize2fs/.test(message ?? '');
      });
      assert.equal(status.summary.podsReady, 1);
      writeFileSync(join(target, 'greeting'), 'ahoy');
      await takeDown(world, 'web');
      assertGone(world, pd, 'attachDisk one', 'resize one', 'detachDisk one');
    },
    // What resize2fs needs to grow an ext4 that is mounted.
    { through: ['setpriv', '--bounding-set', '-sys_resource', '--'] },
  ),
);

test('a block volume is the disk itself: written through the pod, read on the disk', { skip }, () =>
  inCloud(
    files,
    async (world, pd) => {
      const disk = await pd.cloud.createDisk('raw');
      const claim = 'persistentVolumeClaim: { claimName: raw }';
      const manifest = documents(
        OBJECT,
        diskAndClaim(pd.cloud, 'raw', { mode: 'Block' }),
        podWith('web', UID, claim, 'volumeDevices'),
      );
      for (const text of ['raw bytes', 'other ones']) {
        world.putManifest('web.yaml', manifest);
        await world.untilReady('web');
        const link = join(world.pods, UID, 'volumeDevices/kubernetes.io~csi/raw');
        assert.ok(lstatSync(link).isSymbolicLink());
        assert.ok(statSync(link).isBlockDevice());
        const [major, minor] = numbersOf(disk).split(':').map(Number);
        assert.equal(statSync(link).rdev, ((major ?? 0) << 8) | (minor ?? 0), 'the disk, and no copy of it');
        await world.until('its size to be seen', ({ volumes: [volume] }) => {
          return volume?.statistics?.bytes?.total === `${GIB}`;
        });
        writeFileSync(link, text, { flag: 'r+', flush: true });
        await takeDown(world, 'web');
        assert.equal(readStart(disk.image, text.length), text);
      }
      assertGone(world, pd, 'attachDisk raw', 'detachDisk raw', 'attachDisk raw', 'detachDisk raw');
    },
    { config: ['statistics_interval_ms: 1000'] },
  ),
);

function readStart(file: string, bytes: number): string {
  const descriptor = openSync(file, 'r');
  try {
    const start = Buffer.alloc(bytes);
    readSync(descriptor, start);
    return start.toString();
  } finally {
    closeSync(descriptor);
  }
}

test('two pods of the node share a disk, one of them read-only: one stage, two publications', { skip }, () =>
  inCloud(files, async (world, pd) => {
    await pd.cloud.createDisk('one');
    world.putManifest('volume.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one')));
    world.putManifest('one.yaml', pod('one', UID, 'one'));
    world.putManifest('two.yaml', pod('two', OTHER_UID, 'one', true));
    await world.untilReady('one');
    await world.untilReady('two');
    assert.equal(stagesOf(world).length, 1);
    const [writer, reader] = [targetOf(world, UID, 'one'), targetOf(world, OTHER_UID, 'one')];
    writeFileSync(join(writer, 'note'), 'seen by both');
    assert.equal(readFileSync(join(reader, 'note'), 'utf8'), 'seen by both');
    assert.throws(() => writeFileSync(join(reader, 'note'), 'no'), { code: 'EROFS' });
    world.removeManifest('one.yaml');
    await world.until('the writer to be gone', ({ pods }) => pods.every(({ name }) => name !== 'one'));
    assert.ok(isMounted(reader));
    assert.equal(stagesOf(world).length, 1, 'staged as long as one pod has it');
    await takeDown(world, 'two');
    assertGone(world, pd, 'attachDisk one', 'detachDisk one');
  }),
);

test('ReadOnlyMany: attached read-only, staged read-only, and nobody can write to it', { skip }, () =>
  inCloud(files, async (world, pd) => {
    const disk = await pd.cloud.createDisk('one');
    world.putManifest('web.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one'), pod('web', UID, 'one')));
    await world.untilReady('web');
    const target = targetOf(world, UID, 'one');
    writeFileSync(join(target, 'book'), 'read me');
    await takeDown(world, 'web');

    pd.witness.excuse({
      duty: 'A-032',
      text: /^Node(Stage|Publish)Volume \S+: arguments changed though the wish did not/,
      because: 'the second wish is another one: read-only',
    });
    const facts = { accessMode: 'ReadOnlyMany', csi: ['readOnly: true'] };
    world.putManifest('volume.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one', facts)));
    world.putManifest('one.yaml', pod('one', UID, 'one', true));
    world.putManifest('two.yaml', pod('two', OTHER_UID, 'one', true));
    await world.untilReady('one');
    await world.untilReady('two');
    assert.equal(disk.attached?.mode, 'READ_ONLY');
    assert.ok(stagesOf(world).every(({ superOptions }) => superOptions.includes('ro')));
    for (const uid of [UID, OTHER_UID]) {
      const book = join(targetOf(world, uid, 'one'), 'book');
      assert.equal(readFileSync(book, 'utf8'), 'read me');
      assert.throws(() => writeFileSync(book, 'no'), { code: 'EROFS' });
    }
    await takeDown(world, 'one', 'two');
    assertGone(world, pd, 'attachDisk one', 'detachDisk one', 'attachDisk one', 'detachDisk one');
  }),
);

test('several disks at once: each pod gets its own', { skip }, () =>
  inCloud(files, async (world, pd) => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const uidOf = (name: string): string => UID.replaceAll('1', name);
    for (const name of names) await pd.cloud.createDisk(name);
    world.putManifest(
      'volumes.yaml',
      documents(OBJECT, ...names.map((name) => diskAndClaim(pd.cloud, name))),
    );
    for (const name of names) world.putManifest(`${name}.yaml`, pod(name, uidOf(name), name));
    await Promise.all(names.map((name) => world.untilReady(name)));
    for (const name of names) {
      const disk = pd.cloud.disks.get(name);
      assert.ok(disk !== undefined);
      assert.equal(mountsBelow(targetOf(world, uidOf(name), name))[0]?.device, numbersOf(disk));
    }
    assert.equal(stagesOf(world).length, names.length);
    await takeDown(world, ...names);
    const changes = ['attachDisk', 'detachDisk'].flatMap((what) => names.map((name) => `${what} ${name}`));
    assert.deepEqual(pd.cloud.changes.toSorted(), changes);
    assertGone(world, pd, ...pd.cloud.changes);
  }),
);

test('a disk that is not there is named, and when it comes the pod gets it', { skip }, () =>
  inCloud(files, async (world, pd) => {
    world.putManifest('web.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'late'), pod('web', UID, 'late')));
    await world.until('the disk to be missed', ({ pods }) => reasonsOf(pods).includes('driver-not-found'));
    await pd.cloud.createDisk('late');
    await world.untilReady('web');
    await takeDown(world, 'web');
    assertGone(world, pd, 'attachDisk late', 'detachDisk late');
  }),
);

test("fsGroup is Mooring's to apply, because the driver has no VOLUME_MOUNT_GROUP", { skip }, () =>
  inCloud(files, async (world, pd) => {
    await pd.cloud.createDisk('one');
    const asGroup = (group: number): string =>
      pod('web', UID, 'one').replace('spec:\n', `spec:\n  securityContext: { fsGroup: ${group} }\n`);
    world.putManifest('volume.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one', { fsType: 'ext4' })));
    world.putManifest('web.yaml', asGroup(4_242));
    await world.untilReady('web');
    const target = targetOf(world, UID, 'one');
    assert.equal(statSync(target).gid, 4_242);
    mkdirSync(join(target, 'deep'));
    writeFileSync(join(target, 'deep/file'), 'mine');
    chownSync(join(target, 'deep/file'), 0, 0);
    await takeDown(world, 'web');
    world.putManifest('web.yaml', asGroup(777));
    await world.untilReady('web');
    for (const path of [target, join(target, 'deep'), join(target, 'deep/file')])
      assert.equal(statSync(path).gid, 777, path);
    assert.equal(statSync(join(target, 'deep/file')).mode & 0o060, 0o060);
    await takeDown(world, 'web');
    assertGone(world, pd, 'attachDisk one', 'detachDisk one', 'attachDisk one', 'detachDisk one');
  }),
);

test(
  'the driver killed: its mounts stay, and when it is back it serves the next pod and takes all down',
  { skip },
  () =>
    inCloud(files, async (world, pd) => {
      for (const name of ['one', 'two']) await pd.cloud.createDisk(name);
      const volumes = ['one', 'two'].map((name) => diskAndClaim(pd.cloud, name));
      world.putManifest('volumes.yaml', documents(OBJECT, ...volumes));
      world.putManifest('one.yaml', pod('one', UID, 'one'));
      await world.untilReady('one');
      const target = targetOf(world, UID, 'one');
      const { mountId } = mountsBelow(target)[0] ?? {};
      await pd.kill();
      writeFileSync(join(target, 'greeting'), 'ahoy');
      world.putManifest('two.yaml', pod('two', OTHER_UID, 'two'));
      await world.until('the second pod to wait', ({ pods }) =>
        pods.some(({ name, ready }) => name === 'two' && !ready),
      );
      await pd.start();
      await world.untilReady('two');
      assert.equal(mountsBelow(target)[0]?.mountId, mountId, 'the first pod saw nothing');
      assert.equal(readFileSync(join(target, 'greeting'), 'utf8'), 'ahoy');
      await takeDown(world, 'one', 'two');
      assert.deepEqual(pd.cloud.changes.toSorted(), [
        'attachDisk one',
        'attachDisk two',
        'detachDisk one',
        'detachDisk two',
      ]);
      assertGone(world, pd, ...pd.cloud.changes);
    }),
);

test('the driver killed while it formats: the disk is formatted anew, mounted and usable', { skip }, () =>
  inCloud(files, async (world, pd) => {
    await pd.cloud.createDisk('one');
    world.putManifest('web.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one'), pod('web', UID, 'one')));
    await pd.driver.line('its mkfs', (line) => line.includes('attempting to format'));
    await pd.kill();
    assert.deepEqual(mountsBelow(world.root), []);
    await pd.start();
    await world.untilReady('web');
    const target = targetOf(world, UID, 'one');
    assert.equal(mountsBelow(target).length, 1);
    writeFileSync(join(target, 'greeting'), 'ahoy');
    await takeDown(world, 'web');
    assertGone(world, pd, 'attachDisk one', 'detachDisk one');
  }),
);

for (const method of ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume']) {
  test(`the agent killed while ${method} is under way: the next one goes on from there`, { skip }, () =>
    inCloud(files, async (world, pd) => {
      await pd.cloud.createDisk('one');
      const arrived = pd.witness.arrival(method);
      world.putManifest('web.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one'), pod('web', UID, 'one')));
      await arrived;
      await pd.agent.end('SIGKILL');
      await world.startAgent();
      await world.untilSettled('web');
      const target = targetOf(world, UID, 'one');
      assert.equal(mountsBelow(target).length, 1);
      assert.equal(stagesOf(world).length, 1);
      writeFileSync(join(target, 'greeting'), 'ahoy');
      await takeDown(world, 'web');
      assertGone(world, pd, 'attachDisk one', 'detachDisk one');
    }),
  );
}

for (const method of ['NodeUnpublishVolume', 'NodeUnstageVolume', 'ControllerUnpublishVolume']) {
  test(`the agent killed while ${method} is under way: the next one takes down the rest`, { skip }, () =>
    inCloud(files, async (world, pd) => {
      await pd.cloud.createDisk('one');
      world.putManifest('web.yaml', documents(OBJECT, diskAndClaim(pd.cloud, 'one'), pod('web', UID, 'one')));
      await world.untilReady('web');
      const arrived = pd.witness.arrival(method);
      world.removeManifest('web.yaml');
      await arrived;
      await pd.agent.end('SIGKILL');
      await world.startAgent();
      await world.untilEmpty();
      assertGone(world, pd, 'attachDisk one', 'detachDisk one');
    }),
  );
}
