/** What is left of a node's volumes after a reboot and after a power cut; nobody helps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documents, podWith } from '../interop/manifests.ts';
import { claimed, onVmNode, ROOT, targetOf, type VmNode } from './vm-node.ts';

const SHELF = `${ROOT}/pods/web-1/volumes/kubernetes.io~empty-dir`;
const WEB = targetOf('web-1', 'data');

/** A pod with a file system of the driver, a memory and a disk emptyDir. */
async function putWeb(node: VmNode): Promise<void> {
  const memory = '    - { name: memory, emptyDir: { medium: Memory, sizeLimit: 1Mi } }\n';
  const more = `${memory}    - { name: disk, emptyDir: {} }\n`;
  const pod = `${podWith('web', 'web-1', claimed('data'))}${more}`;
  const mounts = ['data', 'memory', 'disk'].map((name) => `{ name: ${name}, mountPath: /${name} }`);
  const volume = await node.create('data', '64Mi', { fsType: 'ext4' });
  await node.put(
    'web',
    documents(volume, pod.replace(/volumeMounts: .*/, `volumeMounts: [${mounts.join(', ')}]`)),
  );
}

async function putRaw(node: VmNode): Promise<string> {
  const volume = await node.create('raw', '4Mi', { mode: 'Block' });
  await node.put('raw', documents(volume, podWith('raw', 'raw-1', claimed('raw'), 'volumeDevices')));
  return `${ROOT}/pods/raw-1/volumeDevices/kubernetes.io~csi/raw`;
}

/** Where something is mounted, and what sort. The numbers of loop devices change. */
async function placesOf(node: VmNode): Promise<readonly string[]> {
  const lines = (await node.mounts()).map((line) => line.split(' '));
  return lines.map((fields) => `${fields[4]} ${fields[fields.indexOf('-') + 1]}`).sort();
}

test('after a reboot everything is there again by itself, with its data, and nothing is stale', (t) =>
  onVmNode(t, async (node) => {
    await putWeb(node);
    const raw = await putRaw(node);
    await node.untilReady(2);
    await node.must(`for d in ${WEB} ${SHELF}/memory ${SHELF}/disk; do printf precious > $d/note; done`);
    await node.must(`printf precious | dd of=${raw} conv=notrunc`);
    const places = await placesOf(node);
    assert.equal(places.length, 5, places.join('\n'));
    await node.reboot();
    await node.untilReady(2);
    assert.deepEqual(await placesOf(node), places);
    assert.equal(await node.must(`cat ${WEB}/note ${SHELF}/disk/note`), 'preciousprecious');
    assert.equal(await node.must(`head -c 8 ${raw}`), 'precious');
    assert.equal(await node.must(`ls -A ${SHELF}/memory`), '', 'memory does not outlive the boot');
    assert.equal(await node.must('systemctl show -P NRestarts mooring mooring-loopfile | tr -d "\\n"'), '00');
    await node.remove('web', 'raw');
  }));

const LATER = ['one', 'two', 'three', 'four'] as const;

/** Each says something when it has come: a new pod has a directory; the next life's first mount; and its third one. */
const mountsAtLeast = (count: number): string =>
  `test $(grep -c -F ' ${ROOT}/' /proc/1/mountinfo) -ge ${count} && echo so`;
const MOMENTS = [`ls ${ROOT}/pods | grep -x -e one-1 -e two-1`, mountsAtLeast(1), mountsAtLeast(3)];

async function putLater(node: VmNode): Promise<void> {
  const volumes: string[] = [];
  for (const name of LATER) volumes.push(await node.create(name, '32Mi', { fsType: 'ext4' }));
  const pods = LATER.map((name) => podWith(name, `${name}-1`, claimed(name)));
  await node.put('later', documents(...volumes, ...pods));
}

test('after a power cut, pods that stood or were on their way are ready, and what was synced is there', (t) =>
  onVmNode(t, async (node) => {
    await putWeb(node);
    const raw = await putRaw(node);
    await node.untilReady(2);
    await node.must(
      `printf precious > ${WEB}/note; sync ${WEB}/note; printf precious | dd of=${raw} conv=notrunc,fsync`,
    );
    await node.must(`printf lost > ${WEB}/late`);
    await putLater(node);
    for (const moment of MOMENTS) {
      await node.until(moment, /./);
      await node.powerCut();
      await node.powerOn();
    }
    const status = await node.untilReady(2 + LATER.length);
    assert.deepEqual(status.unreadableRecords, []);
    assert.equal(await node.must(`cat ${WEB}/note; head -c 8 ${raw}`), 'preciousprecious');
    for (const name of LATER) {
      const target = targetOf(`${name}-1`, name);
      const mounted = (await placesOf(node)).filter((place) => place === `${target} ext4`);
      assert.equal(mounted.length, 1, name);
      await node.must(`printf more > ${target}/note; sync ${target}/note`);
    }
    await node.remove('web', 'raw', 'later');
  }));
