/**
 * NFS volumes on the real kernel, as far as one without an NFS client goes: mount(8) runs a stand-in of mount.nfs(8),
 * which notes how it was called and binds the file system of a test, whose mood is set here. Whether a real server is
 * mounted so is no business of this file.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { mountsBelow, readMounts } from '../demo/machine.ts';
import { type FuseMount, mountFuse } from '../hostile/fuse-server.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, type RealNode } from './real-node.ts';

type Status = Awaited<ReturnType<RealNode['untilMounted']>>;

const skip = inPrivateNamespace();
/** Where mount(8) looks for its helpers. */
const HELPERS = '/sbin';
const SCRATCH = '/tmp';
const SOURCE = 'store.example:/share';

/** The helpers of this namespace, and one more. */
function layHelper(directory: string): string {
  const [upper, work, share, calls] = ['upper', 'work', 'share', 'calls'].map((name) =>
    join(directory, name),
  );
  assert.ok(upper !== undefined && work !== undefined && share !== undefined && calls !== undefined);
  for (const one of [upper, work, share]) mkdirSync(one);
  writeFileSync(
    join(upper, 'mount.nfs'),
    `#!/bin/sh
printf '%s\\n' "$@" END >> ${calls}
while [ -e ${directory}/silent ]; do sleep 0.05; done
case "$1" in ${SOURCE}) exec mount --bind ${share} "$2" ;; *) echo "mount.nfs: access denied" >&2; exit 32 ;; esac
`,
  );
  chmodSync(join(upper, 'mount.nfs'), 0o755);
  const lower = realpathSync(HELPERS);
  execFileSync('mount', [
    '-t',
    'overlay',
    '-o',
    `lowerdir=${lower},upperdir=${upper},workdir=${work}`,
    'helpers',
    lower,
  ]);
  return share;
}

let directory = '';
let share = '';
let fuse: FuseMount | undefined;

before(async () => {
  if (skip !== false) return;
  directory = execFileSync('mktemp', ['-d', `${SCRATCH}/mooring-nfs-XXXXXX`], { encoding: 'utf8' }).trim();
  // The upper layer of an overlay is on no overlay.
  execFileSync('mount', ['-t', 'tmpfs', 'nfs-test', directory]);
  share = layHelper(directory);
  fuse = await mountFuse(share, SOURCE);
});

after(async () => {
  if (skip !== false) return;
  await fuse?.kill();
  for (const target of [share, realpathSync(HELPERS), directory]) execFileSync('umount', ['--lazy', target]);
  rmSync(directory, { recursive: true, force: true });
});

/** How mount.nfs(8) was called, a line each. */
function calls(): readonly (readonly string[])[] {
  const file = join(directory, 'calls');
  if (!existsSync(file)) return [];
  const texts = readFileSync(file, 'utf8').split('END\n').slice(0, -1);
  return texts.map((text) => text.trimEnd().split('\n'));
}

function podYaml(name: string, volume: string): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: default, uid: ${name}-1 }
spec:
  containers: [{ name: main, image: none, volumeMounts: [{ name: data, mountPath: /data }] }]
  volumes: [{ name: data, ${volume} }]
`;
}

const nfsPod = (name: string, path = '/share', readOnly = false): string =>
  podYaml(name, `nfs: { server: store.example, path: ${path}, readOnly: ${readOnly} }`);

const targetOf = ({ root }: RealNode, pod: string, name = 'data'): string =>
  join(root, `pods/${pod}-1/volumes/kubernetes.io~nfs`, name);

const VOLUME = `apiVersion: v1
kind: PersistentVolume
metadata: { name: share }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteMany]
  mountOptions: [nfsvers=4.2, noatime]
  claimRef: { namespace: default, name: share }
  nfs: { server: store.example, path: /share/ }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: share, namespace: default }
spec: { volumeName: share, accessModes: [ReadWriteMany], resources: { requests: { storage: 1Gi } } }
`;

test('each pod has a mount of its own, made with its options, and proven after kill -9', { skip }, () =>
  onRealNode(async (node) => {
    const earlier = calls().length;
    node.put('share', VOLUME);
    node.put('web', podYaml('web', 'persistentVolumeClaim: { claimName: share, readOnly: true }'));
    node.put('db', nfsPod('db'));
    await node.startAgent();
    await node.untilMounted(2);
    const [web, db] = [targetOf(node, 'web', 'share'), targetOf(node, 'db')];
    const made = calls()
      .slice(earlier)
      .sort((a, b) => Number(a[1] === db) - Number(b[1] === db));
    // As mount(8) calls a helper: source, target, and what it says of its own (-o rw).
    assert.deepEqual(
      made.map(([source, target]) => [source, target]),
      [
        [SOURCE, web],
        [SOURCE, db],
      ],
    );
    const options = made.map((argv) => (argv[argv.indexOf('-o') + 1] ?? '').split(','));
    assert.deepEqual(
      ['nfsvers=4.2', 'noatime', 'ro'].filter((one) => options[0]?.includes(one) !== true),
      [],
    );
    assert.ok(!options[1]?.includes('ro'));
    const mounts = () => readMounts().entries.filter(({ target }) => target === web || target === db);
    const before = mounts().map(({ mountId }) => mountId);
    assert.equal(before.length, 2);
    await node.untilRecorded();
    await node.killAgent();
    await node.startAgent();
    await node.untilMounted(2);
    assert.deepEqual(
      mounts().map(({ mountId }) => mountId),
      before,
    );
    assert.equal(calls().length, earlier + 2);
    for (const name of ['web', 'db']) node.remove(name);
    await node.untilEmpty();
    assert.deepEqual(mountsBelow(join(node.root, 'pods')), []);
  }),
);

/** More than tools run at one time. */
const LATE = Array.from({ length: 12 }, (_, index) => `late-${index}`);

test('a server that is silent holds up no other pod, and what is mounted of it comes down', { skip }, () =>
  onRealNode(async (node) => {
    // The broker of a question would hold the mount: below NFS it is killed after 10 s, below FUSE it cannot be.
    node.settings.statistics_interval_ms = 0;
    node.put('web', nfsPod('web'));
    await node.startAgent();
    await node.untilMounted(1);
    await fuse?.set({ kind: 'hang' });
    writeFileSync(join(directory, 'silent'), '');
    try {
      for (const name of LATE) node.put(name, nfsPod(name));
      const isAtWork = ({ running }: Status['volumes'][number]) =>
        running.some(({ phase }) => phase === 'running');
      const isBegun = ({ volumes }: Status) => volumes.filter(isAtWork).length === LATE.length;
      await node.until('all of them are being mounted', isBegun);
      node.put('other', podYaml('other', 'emptyDir: { medium: Memory }'));
      const isThere = (status: Awaited<ReturnType<typeof node.untilMounted>>, pod: string) =>
        status.pods.some((one) => one.name === pod && one.ready);
      const during = await node.until('another pod is set up', (status) => isThere(status, 'other'));
      assert.deepEqual(
        during.pods.filter(({ name, ready }) => ready && LATE.includes(name)),
        [],
      );
      node.remove('web');
      node.remove('other');
      await node.until('both have gone', ({ pods }) => pods.every(({ name }) => LATE.includes(name)));
      assert.ok(!existsSync(targetOf(node, 'web')));
    } finally {
      rmSync(join(directory, 'silent'));
      await fuse?.set({ kind: 'serve' });
    }
    await node.untilMounted(LATE.length);
    for (const name of LATE) node.remove(name);
    await node.untilEmpty();
  }),
);

test('what the server refuses is told in its words, with its name', { skip }, () =>
  onRealNode(async (node) => {
    node.put('web', nfsPod('web', '/secret'));
    await node.startAgent();
    const reasonIn = (one: Status) => one.pods[0]?.volumes[0]?.reason;
    const status = await node.until('it is told', (one) => reasonIn(one)?.code === 'mount-failed');
    assert.match(reasonIn(status)?.message ?? '', /access denied/);
    assert.equal(reasonIn(status)?.blocker, 'store.example:/secret');
    node.remove('web');
    await node.untilEmpty();
  }),
);
