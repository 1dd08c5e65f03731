/**
 * What one meets in the place of a volume that is not mounted there, as after a reboot or when somebody has unmounted
 * it: a directory in which root neither can make anything (DL-15). iSCSI and NFS by stand-ins of their tools.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readMounts } from '../demo/machine.ts';
import { until } from '../until.ts';
import { inPrivateProcesses } from './namespace.ts';
import { onRealNode, type RealNode } from './real-node.ts';
import { IQN, layIscsi, PASSWORD, type StandInIscsi, type StandInTarget } from './stand-in-iscsi.ts';
import { layNfs, NFS_PATH, NFS_SERVER, type StandInNfs } from './stand-in-nfs.ts';

const skip = inPrivateProcesses();

let iscsi: StandInIscsi | undefined;
let nfs: StandInNfs | undefined;
let target: StandInTarget | undefined;

before(() => {
  if (skip !== false) return;
  iscsi = layIscsi();
  nfs = layNfs();
  target = iscsi.target(1);
});

after(() => {
  nfs?.remove();
  iscsi?.remove();
});

const volumeYaml = (name: string, path: string): string => `apiVersion: v1
kind: PersistentVolume
metadata: { name: ${name} }
spec: { accessModes: [ReadWriteOnce], claimRef: { namespace: default, name: ${name} }, local: { path: ${path} } }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}, namespace: default }
spec: { volumeName: ${name}, accessModes: [ReadWriteOnce] }
`;

const podYaml = (address: string): string => `apiVersion: v1
kind: Secret
metadata: { name: chap, namespace: default }
stringData: { node.session.auth.username: me, node.session.auth.password: ${PASSWORD} }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { color: blue }
---
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: web-1 }
spec:
  containers:
    - name: main
      image: none
      volumeMounts:
        - { name: memory, mountPath: /memory }
        - { name: share, mountPath: /share }
        - { name: remote, mountPath: /remote }
        - { name: directory, mountPath: /directory }
        - { name: disk, mountPath: /disk }
        - { name: scratch, mountPath: /part, subPath: part }
        - { name: settings, mountPath: /color, subPath: color }
  volumes:
    - { name: memory, emptyDir: { medium: Memory } }
    - { name: share, nfs: { server: ${NFS_SERVER}, path: ${NFS_PATH} } }
    - name: remote
      iscsi: { targetPortal: ${address}, iqn: "${IQN}", lun: 1, chapAuthSession: true, secretRef: { name: chap } }
    - { name: directory, persistentVolumeClaim: { claimName: directory } }
    - { name: disk, persistentVolumeClaim: { claimName: disk } }
    - { name: scratch, emptyDir: {} }
    - { name: settings, configMap: { name: settings } }
`;

const VOLUMES = 7;
const PLACES: readonly string[] = [
  'volumes/kubernetes.io~empty-dir/memory',
  'volumes/kubernetes.io~nfs/share',
  'volumes/kubernetes.io~iscsi/remote',
  'volumes/kubernetes.io~local-volume/directory',
  'volumes/kubernetes.io~local-volume/disk',
  'volume-subpaths/scratch/main/5',
];

/** A part that is a file. */
const FILE = 'volume-subpaths/settings/main/6';

const placesOf = ({ root }: RealNode): readonly string[] =>
  PLACES.map((one) => join(root, 'pods/web-1', one));

const isMounted = (path: string): boolean => readMounts().entries.some((one) => one.target === path);

/** Nothing can be made there, and nothing is. */
function assertProtected(places: readonly string[], when: string): void {
  for (const place of places) {
    assert.ok(existsSync(place) && !isMounted(place), `${place} is bare ${when}`);
    for (const make of [
      () => writeFileSync(join(place, 'note'), 'lost'),
      () => mkdirSync(join(place, 'sub')),
    ])
      assert.throws(make, { code: 'EPERM' }, `${place} ${when}`);
    assert.deepEqual(readdirSync(place), []);
  }
}

/** What is there cannot be written to; nor is it what the disk of the node could be filled by. */
function assertFileProtected(file: string, when: string): void {
  assert.ok(existsSync(file) && !isMounted(file), `${file} is bare ${when}`);
  for (const flag of ['r', 'w', 'a', 'r+'])
    assert.throws(() => openSync(file, flag), { code: 'ENXIO' }, when);
  assert.equal(statSync(file).size, 0);
}

/** The shortest that the configuration allows. */
const RESYNC_MS = 1_000;

test(
  'DL-15: nobody writes through a mount point to the disk of the node, whatever kind is to be there',
  { skip },
  (context) =>
    onRealNode(async (node) => {
      if (spawnSync('chattr', ['+i', node.root]).status !== 0)
        return context.skip('this file system has no flag that makes a directory immutable');
      execFileSync('chattr', ['-i', node.root]);
      node.settings.resync_ms = RESYNC_MS;
      node.settings.immutable_mount_points = true;
      const [directory, image] = [join(node.scratch, 'directory'), join(node.scratch, 'disk.img')];
      mkdirSync(directory);
      execFileSync('truncate', ['--size', '32M', image]);
      const disk = execFileSync('losetup', ['--find', '--show', image], { encoding: 'utf8' }).trim();
      try {
        node.put('volumes', `${volumeYaml('directory', directory)}---\n${volumeYaml('disk', disk)}`);
        node.put('web', podYaml(target?.address ?? assert.fail('no stand-in of iscsiadm was laid')));
        await node.startAgent();
        await node.untilMounted(VOLUMES);
        const places = placesOf(node);
        const file = join(node.root, 'pods/web-1', FILE);
        assert.equal(readFileSync(file, 'utf8'), 'blue');
        assert.deepEqual(
          places.filter((one) => !isMounted(one)),
          [],
        );
        for (const place of places) writeFileSync(join(place, 'note'), 'precious');

        await node.untilRecorded();
        await node.killAgent();
        execFileSync('umount', [...places, file]);
        assertProtected(places, 'with no agent');
        assertFileProtected(file, 'with no agent');
        await node.startAgent();
        await until('all to be mounted again', () => places.every(isMounted));
        await node.untilMounted(VOLUMES);
        for (const place of places) writeFileSync(join(place, 'note'), 'precious');
        assert.equal(readFileSync(file, 'utf8'), 'blue');

        node.remove('web');
        await node.untilEmpty();
        assert.ok(!existsSync(join(node.root, 'pods/web-1')), 'what was protected is taken away');
      } finally {
        execFileSync('losetup', ['--detach', disk]);
      }
    }),
);
