/** Volumes on a kernel and under a systemd of their own: what a test may not do on this machine's kernel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quarantineDocument } from '../../agent/status/quarantine-document.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { documents, podWith } from '../interop/manifests.ts';
import { claimed, onVmNode, POOL, ROOT, targetOf, type VmNode } from './vm-node.ts';

const MEBIBYTE = 1024 * 1024;
/** mkfs.xfs makes nothing smaller than 300 MB. */
const GROWN = [
  { name: 'ext4', fsType: 'ext4', size: '64Mi', later: '192Mi' },
  { name: 'xfs', fsType: 'xfs', size: '320Mi', later: '448Mi' },
] as const;

interface FileSystem {
  readonly bytes: number;
  /** The mount id in mountinfo: another mount in the same place has another. */
  readonly mountId: string;
  readonly data: string;
}

async function fileSystemAt(node: VmNode, target: string): Promise<FileSystem> {
  const said = await node.must(`stat -f -c '%S %b' ${target}; sha256sum < ${target}/data`);
  const [size = '', data = ''] = said.split('\n');
  const [blockBytes = 0, blocks = 0] = size.split(' ').map(Number);
  const found = (await node.mounts()).filter((line) => line.split(' ')[4] === target);
  assert.equal(found.length, 1, `mounts on ${target}`);
  return { bytes: blockBytes * blocks, mountId: found[0]?.split(' ')[0] ?? '', data };
}

test('a file system grows under its pod, mounted as it is, when its PersistentVolume does', (t) =>
  onVmNode(t, async (node) => {
    const manifests = new Map<string, string>();
    for (const { name, fsType, size } of GROWN) {
      const volume = await node.create(name, size, { fsType });
      manifests.set(name, documents(volume, podWith(name, `${name}-1`, claimed(name))));
      await node.put(name, manifests.get(name) ?? '');
    }
    await node.untilReady(GROWN.length);
    const before = new Map<string, FileSystem>();
    for (const { name } of GROWN) {
      const target = targetOf(`${name}-1`, name);
      await node.must(`dd if=/dev/urandom of=${target}/data bs=1M count=8 conv=fsync`);
      before.set(name, await fileSystemAt(node, target));
    }
    for (const { name, size, later } of GROWN) {
      await node.must(`mooring-loopfile grow --pool ${POOL} --name ${name} --size ${later}`);
      const manifest = manifests.get(name) ?? '';
      await node.put(name, manifest.replaceAll(`storage: ${size}`, `storage: ${later}`));
    }
    await node.untilStatus('both to be as large as wanted', ({ volumes }) => {
      return GROWN.every(({ name, later }) => {
        const bytes = String(Number.parseInt(later, 10) * MEBIBYTE);
        const { size, expansion } = volumes.find((one) => one.name === name) ?? {};
        return size?.wanted === bytes && size.current === bytes && expansion?.state === 'none';
      });
    });
    for (const { name } of GROWN) {
      const target = targetOf(`${name}-1`, name);
      const [was, is] = [before.get(name), await fileSystemAt(node, target)];
      assert.ok(is.bytes > (was?.bytes ?? 0) + 100 * MEBIBYTE, `${name}: ${was?.bytes}, now ${is.bytes}`);
      assert.deepEqual({ ...is, bytes: was?.bytes }, was, 'the same mount with the same data');
      await node.must(`fallocate -l ${100 * MEBIBYTE} ${target}/more`);
    }
    assert.match(await node.must('dmesg'), /EXT4-fs \(loop\d+\): resized filesystem/);
    await node.remove(...GROWN.map(({ name }) => name));
  }));

const RAW = { name: 'raw', pod: 'raw-1' } as const;
const DROP_INS = '/run/systemd/system/mooring.service.d';

async function restartWith(node: VmNode, directive: string): Promise<void> {
  const write = `mkdir -p ${DROP_INS}; printf '[Service]\\n${directive}\\n' > ${DROP_INS}/test.conf`;
  await node.must(`${write}; systemctl daemon-reload; systemctl restart mooring`);
}

test('the shipped units let a pod have a block device, and a device policy would not', (t) =>
  onVmNode(t, async (node) => {
    const volume = await node.create(RAW.name, '4Mi', { mode: 'Block' });
    const manifest = documents(volume, podWith(RAW.name, RAW.pod, claimed(RAW.name), 'volumeDevices'));
    await node.put(RAW.name, manifest);
    const { pods } = await node.untilReady(1);
    const link = pods[0]?.volumes[0]?.path ?? '';
    assert.match(link, /\/volumeDevices\/kubernetes\.io~csi\/raw$/);
    assert.match(await node.must(`test -L ${link}; stat -L -c %F ${link}`), /^block special file$/m);
    // The driver's over the pool, and ours, read-only, over the device that the pod has.
    const loops = await node.must('losetup --list --noheadings --raw -O RO,BACK-FILE');
    const image = /^0 (\S+mooring-loopfile\/\S+\/data\.img)$/m.exec(loops)?.[1];
    assert.match(loops, /^1 \S+\/volumeDevices\/raw\/dev\/raw-1$/m);
    await node.must(`printf precious | dd of=${link} conv=notrunc,fsync`);
    assert.equal(await node.must(`head -c 8 ${link}`), 'precious');
    assert.equal(await node.must(`head -c 8 ${image}`), 'precious');
    await node.remove(RAW.name);
    await node.untilEmpty();
    assert.equal(await node.must(`find ${ROOT} -type b -o -type l`), '');

    // ProtectClock= brings a policy with systemd before 252.7: its pull request 25075.
    await restartWith(node, 'DevicePolicy=closed');
    await node.put(RAW.name, manifest);
    await node.untilStatus('the refusal to be told', ({ pods: [pod] }) => {
      const reason = pod?.volumes[0]?.reason;
      return reason?.operation === 'publish' && reason.message.includes('losetup');
    });
    assert.equal((await node.run(`test -e ${link}`)).code, 1, 'no pod gets what cannot be held');
    await restartWith(node, '');
    await node.untilReady(1);
    assert.equal(await node.must(`head -c 8 ${link}`), 'precious');
    await node.remove(RAW.name);
  }));

/** What is unmounted for everybody stays there, as in a container; or goes there, too, as in a service. */
const ALONE = 'unshare --mount --propagation private';
const FOLLOWING = 'unshare --mount --propagation slave';

/** A process that has a file of the volume open, in a namespace of its own. */
async function startUser(node: VmNode, namespace: string, file: string): Promise<string> {
  await node.must(`systemd-run --quiet --unit=user ${namespace} sh -c 'exec sleep infinity 3< ${file}'`);
  const pid = (await node.must('systemctl show -P MainPID user')).trim();
  await node.until(`cat /proc/${pid}/comm`, /^sleep$/m);
  return pid;
}

/** As `mooring quarantine list` would. */
function blockersOf(status: StatusDocument): string {
  const [volume] = quarantineDocument(status).volumes;
  return (volume?.obstacles ?? []).map(({ reason }) => `${reason.code}: ${reason.blocker}`).join('\n');
}

test('in quarantine a volume names who still has it in a namespace of its own, and leaves when nobody has', (t) =>
  onVmNode(t, async (node) => {
    const volume = await node.create('data', '32Mi', { fsType: 'ext4' });
    await node.put('data', documents(volume, podWith('data', 'data-1', claimed('data'))));
    await node.untilReady(1);
    const target = targetOf('data-1', 'data');
    await node.must(`printf precious > ${target}/note`);
    const pid = await startUser(node, ALONE, `${target}/note`);
    await node.must('mooring quarantine add data');
    // systemd-udevd looks into the device, too, for a moment.
    const held = await node.untilStatus('the user to be named alone', (status) => {
      return blockersOf(status) === `device-in-use: pid ${pid} (sleep)`;
    });
    assert.equal(held.volumes[0]?.quarantine?.verified, false);
    assert.deepEqual(await node.mounts(), [], 'here it is down');
    assert.match(await node.must('mooring quarantine list'), new RegExp(`pid ${pid} \\(sleep\\)`));
    await node.must('systemctl stop user');
    const clean = await node.untilReady(1);
    assert.equal(clean.volumes[0]?.quarantine, null);
    await node.until('journalctl -o cat -u mooring', /"event":"volume proven clean"/);
    assert.equal(await node.must(`cat ${target}/note`), 'precious');

    // Not systemd-udevd, whose namespace has the mount as well.
    const next = await startUser(node, FOLLOWING, `${target}/note`);
    const named = `driver-precondition: pid ${next} (sleep) in its own mount namespace`;
    await node.must('mooring quarantine add data');
    await node.untilStatus('the next user to be named alone', (status) => blockersOf(status) === named);
    await node.must('mooring quarantine clear data --yes');
    await node.untilReady(1);
    assert.equal(await node.must(`cat ${target}/note`), 'precious');
    await node.must('systemctl stop user');
    await node.remove('data');
  }));
