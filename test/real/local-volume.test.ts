/** Local volumes on the real kernel: a disk that an administrator mounted, in several pods, across kill -9. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountsBelow, readMounts, unmountAll, unmountByHand } from '../demo/machine.ts';
import { inPrivateNamespace } from './namespace.ts';
import { NODE, onRealNode, type RealNode } from './real-node.ts';

const skip = inPrivateNamespace();
const DISK_BYTES = 16 * 1024 * 1024;
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

interface Wish {
  readonly name: string;
  readonly path: string;
  readonly options?: readonly string[];
  readonly node?: string;
}

function volumeYaml({ name, path, options = [], node = NODE }: Wish): string {
  return `apiVersion: v1
kind: PersistentVolume
metadata: { name: ${name} }
spec:
  capacity: { storage: 16Mi }
  accessModes: [ReadWriteOnce]
  mountOptions: ${JSON.stringify(options)}
  claimRef: { namespace: default, name: ${name} }
  local: { path: ${JSON.stringify(path)} }
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{ key: kubernetes.io/hostname, operator: In, values: [${node}] }]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}, namespace: default }
spec: { volumeName: ${name}, accessModes: [ReadWriteOnce], resources: { requests: { storage: 16Mi } } }
`;
}

function podYaml(name: string, claim: string, { readOnly = false, gid = 2_000 } = {}): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: default, uid: ${name}-1 }
spec:
  securityContext: { fsGroup: ${gid} }
  containers:
    - name: main
      image: none
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: data, mountPath: /part, subPath: part }
  volumes:
    - { name: data, persistentVolumeClaim: { claimName: ${claim}, readOnly: ${readOnly} } }
`;
}

const targetOf = ({ root }: RealNode, pod: string, claim: string): string =>
  join(root, `pods/${pod}-1/volumes/kubernetes.io~local-volume`, claim);

function mountAt(target: string) {
  const [only, ...more] = readMounts().entries.filter((one) => one.target === target);
  assert.deepEqual(more, [], 'nothing stacks');
  return only;
}

/** A disk of its own, with a file and a directory on it, for as long as the test takes. */
async function withDisk(node: RealNode, tell: (disk: string) => Promise<void>): Promise<void> {
  const [file, disk] = [join(node.scratch, 'disk.img'), join(node.scratch, 'disk')];
  writeFileSync(file, '');
  truncateSync(file, DISK_BYTES);
  execFileSync('mkfs.ext4', ['-q', file]);
  mkdirSync(disk);
  execFileSync('mount', ['-o', 'loop', file, disk]);
  try {
    mkdirSync(join(disk, 'part'));
    writeFileSync(join(disk, 'part/note'), 'precious');
    await tell(disk);
    assert.equal(readFileSync(join(disk, 'part/note'), 'utf8'), 'precious');
  } finally {
    execFileSync('umount', [disk]);
  }
}

test(
  'a disk of the machine is bound into its pods, with their flags, and is proven after kill -9',
  { skip },
  () =>
    onRealNode((node) =>
      withDisk(node, async (disk) => {
        node.put('disk', volumeYaml({ name: 'disk', path: disk, options: ['noatime', 'nosuid'] }));
        node.put('web', podYaml('web', 'disk'));
        await node.startAgent();
        await node.untilMounted(1);
        node.put('reader', podYaml('reader', 'disk', { readOnly: true, gid: 3_000 }));
        await node.untilMounted(2);
        const [web, reader] = [targetOf(node, 'web', 'disk'), targetOf(node, 'reader', 'disk')];
        assert.equal(mountAt(web)?.device, mountAt(disk)?.device);
        assert.equal(readFileSync(join(reader, 'part/note'), 'utf8'), 'precious');
        const flagsAt = (target: string) =>
          ['ro', 'noatime', 'nosuid'].filter((one) => mountAt(target)?.options.includes(one));
        assert.deepEqual(
          [flagsAt(web), flagsAt(reader)],
          [
            ['noatime', 'nosuid'],
            ['ro', 'noatime', 'nosuid'],
          ],
        );
        assert.throws(() => writeFileSync(join(reader, 'part/other'), ''), { code: 'EROFS' });
        assert.equal(statSync(join(disk, 'part/note')).gid, 2_000, 'the group of the first one');
        const part = join(node.root, 'pods/web-1/volume-subpaths/disk/main/1');
        assert.equal(readFileSync(join(part, 'note'), 'utf8'), 'precious');

        await node.untilRecorded();
        const mountId = mountAt(web)?.mountId;
        await node.killAgent();
        node.remove('reader');
        await node.startAgent();
        await node.until('the reader to be gone', ({ pods }) => pods.length === 1);
        await node.untilMounted(1);
        assert.equal(mountAt(web)?.mountId, mountId, 'it was proven, not made anew');
        assert.equal(mountAt(reader), undefined);

        node.remove('web');
        await node.untilEmpty();
        assert.deepEqual(mountsBelow(node.root), []);
        assert.ok(mountAt(disk) !== undefined, 'the disk itself stays');
      }),
    ),
);

test(
  'what is not there yet, and what is of another node, is told; the first comes when it is there',
  { skip },
  () =>
    onRealNode(async (node) => {
      const path = join(node.scratch, 'later');
      const data = volumeYaml({ name: 'later', path });
      node.put('volumes', `${data}---\n${volumeYaml({ name: 'other', path, node: 'elsewhere' })}`);
      node.put('web', podYaml('web', 'later'));
      node.put('db', podYaml('db', 'other'));
      await node.startAgent();
      const codeOf = (name: string) => (status: Parameters<Parameters<RealNode['until']>[1]>[0]) =>
        status.pods.find((pod) => pod.name === name)?.volumes[0]?.reason?.code;
      await node.until('the path to be missed', (status) => codeOf('web')(status) === 'path-missing');
      await node.until('the node to be wrong', (status) => codeOf('db')(status) === 'wrong-topology');
      mkdirSync(join(path, 'part'), { recursive: true });
      await node.until('the first one', ({ pods }) =>
        pods.some(({ volumes }) => volumes[0]?.state === 'mounted'),
      );
      node.remove('web');
      node.remove('db');
      await node.untilEmpty();
      rmdirSync(join(path, 'part'));
      rmdirSync(path);
    }),
);

test(
  'while a pod has a disk, the next one does not get the bare directory that somebody leaves of it',
  { skip },
  () =>
    onRealNode((node) =>
      withDisk(node, async (disk) => {
        const outer = join(node.scratch, 'outer');
        mkdirSync(outer);
        execFileSync('mount', ['--bind', disk, outer]);
        node.put('disk', volumeYaml({ name: 'disk', path: outer }));
        node.put('web', podYaml('web', 'disk'));
        await node.startAgent();
        await node.untilMounted(1);
        unmountByHand(outer);
        node.put('next', podYaml('next', 'disk'));
        const told = await node.until('the second pod to be refused, or served', ({ pods }) => {
          const [data] = pods.find(({ name }) => name === 'next')?.volumes ?? [];
          return data?.state === 'mounted' || data?.reason?.code === 'volume-in-use';
        });
        assert.equal(mountAt(targetOf(node, 'next', 'disk')), undefined);
        assert.equal(told.pods.length, 2);
        assert.deepEqual(readdirSync(outer), [], 'nothing is made on the disk of the node');
        execFileSync('mount', ['--bind', disk, outer]);
        await node.untilMounted(2);
        for (const name of ['web', 'next']) node.remove(name);
        await node.untilEmpty();
        unmountByHand(outer);
      }),
    ),
);

/** As after a reboot, in which the disk at `lost` was not mounted: the kernel names another boot. */
async function rebooted(node: RealNode, lost: string, tell: () => Promise<void>): Promise<void> {
  await node.killAgent();
  await unmountAll([...mountsBelow(node.root)].reverse());
  execFileSync('umount', [lost]);
  const file = join(node.scratch, 'boot');
  writeFileSync(file, '5f1cd0de-0000-4000-8000-000000000002\n');
  execFileSync('mount', ['--bind', file, BOOT_ID]);
  try {
    await node.startAgent();
    await tell();
  } finally {
    execFileSync('umount', [BOOT_ID]);
  }
}

for (const [what, part] of [
  ['disk', '.'],
  ['part of a disk', 'part'],
] as const)
  test(
    `after a reboot a pod waits for the ${what} that is not mounted yet, and never gets the bare directory`,
    { skip },
    () =>
      onRealNode((node) =>
        withDisk(node, async (disk) => {
          const outer = join(node.scratch, 'outer');
          mkdirSync(outer);
          const bind = () => execFileSync('mount', ['--bind', join(disk, part), outer]);
          bind();
          node.put('disk', volumeYaml({ name: 'disk', path: outer }));
          node.put('web', podYaml('web', 'disk'));
          await node.startAgent();
          await node.untilMounted(1);
          await node.untilRecorded();
          await rebooted(node, outer, async () => {
            await node.until('the pod to wait, or to be served', ({ pods }) => {
              const [data] = pods.flatMap(({ volumes }) => volumes);
              return data?.state === 'mounted' || data?.reason?.code === 'disk-not-mounted';
            });
            assert.equal(mountAt(targetOf(node, 'web', 'disk')), undefined);
            assert.deepEqual(readdirSync(outer), [], 'nothing is made on the disk of the node');
            bind();
            await node.untilMounted(1);
            assert.equal(mountAt(targetOf(node, 'web', 'disk'))?.device, mountAt(disk)?.device);
            node.remove('web');
            await node.untilEmpty();
            unmountByHand(outer);
            node.put('web', podYaml('web', 'disk'));
            await node.untilMounted(1);
            assert.deepEqual(readdirSync(outer), ['part'], 'without a pod nothing of before counts');
            node.remove('web');
            await node.untilEmpty();
          });
        }),
      ),
  );
