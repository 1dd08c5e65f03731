/**
 * NFS volumes on the real kernel, as far as one without an NFS client goes: mount(8) runs a stand-in of mount.nfs(8),
 * whose share is here the file system of a test, whose mood is set here. Whether a real server is mounted so is no
 * business of this file.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { mountsBelow, readMounts } from '../demo/machine.ts';
import { until } from '../until.ts';
import { type FuseMount, mountFuse } from '../hostile/fuse-server.ts';
import { inPrivateNamespace } from './namespace.ts';
import { onRealNode, type RealNode } from './real-node.ts';
import { layNfs, NFS_SOURCE, type StandInNfs } from './stand-in-nfs.ts';

type Status = Awaited<ReturnType<RealNode['untilMounted']>>;

/** `NFS_SILENT_SECONDS=600` is a server that is away for ten minutes. */
const SILENT_SECONDS = Number(process.env['NFS_SILENT_SECONDS'] ?? 3);

const skip = inPrivateNamespace();
let standIn: StandInNfs | undefined;
let fuse: FuseMount | undefined;

before(async () => {
  if (skip !== false) return;
  standIn = layNfs();
  fuse = await mountFuse(standIn.share, NFS_SOURCE);
});

after(async () => {
  await fuse?.kill();
  if (standIn !== undefined) execFileSync('umount', ['--lazy', standIn.share]);
  standIn?.remove();
});

function nfs(): StandInNfs {
  return standIn ?? assert.fail('no stand-in of mount.nfs was laid');
}

const calls = (): readonly (readonly string[])[] => nfs().calls();

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
        [NFS_SOURCE, web],
        [NFS_SOURCE, db],
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
    nfs().setSilent(true);
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
      nfs().setSilent(false);
      await fuse?.set({ kind: 'serve' });
    }
    await node.untilMounted(LATE.length);
    for (const name of LATE) node.remove(name);
    await node.untilEmpty();
  }),
);

const LOCAL = `apiVersion: v1
kind: PersistentVolume
metadata: { name: near }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteOnce]
  claimRef: { namespace: default, name: near }
  local: { path: PATH }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: near, namespace: default }
spec: { volumeName: near, accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`;

test('what is bound of a file system comes down while its server is silent, too', { skip }, () =>
  onRealNode(async (node) => {
    node.settings.statistics_interval_ms = 0;
    writeFileSync(join(nfs().share, 'part'), '');
    node.put('near', LOCAL.replace('PATH', nfs().share));
    node.put('bind', podYaml('bind', 'persistentVolumeClaim: { claimName: near }'));
    node.put('part', nfsPod('part').replace('mountPath: /data', 'mountPath: /data, subPath: part'));
    await node.startAgent();
    await node.untilMounted(2);
    await fuse?.set({ kind: 'hang' });
    try {
      for (const name of ['bind', 'part']) node.remove(name);
      await node.untilEmpty();
      assert.deepEqual(mountsBelow(join(node.root, 'pods')), []);
    } finally {
      await fuse?.set({ kind: 'serve' });
    }
  }),
);

/** Where each thread of the agent sleeps in the kernel, or that it sleeps where no signal wakes it. */
function sleepsOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const directory = `/proc/${pid}/task/${thread}`;
    const state = /\) (\S)/.exec(readFileSync(`${directory}/stat`, 'utf8'))?.[1] ?? '';
    return `${state} ${readFileSync(`${directory}/wchan`, 'utf8')}`;
  });
}

/** Among what a thread sleeps in: uninterruptible, or in a file system that has a server. */
const STUCK = /^D |fuse|request_wait|nfs|rpc_/;

test(
  `a server that is silent for ${SILENT_SECONDS} s stops nobody but who has it: pods come and go, no thread waits`,
  { skip },
  (t) =>
    onRealNode(async (node) => {
      node.settings.statistics_interval_ms = 0;
      node.put('web', nfsPod('web'));
      await node.startAgent();
      await node.untilMounted(1);
      const [mounted] = readMounts().entries.filter(({ target }) => target === targetOf(node, 'web'));
      await fuse?.set({ kind: 'hang' });
      nfs().setSilent(true);
      // Who does ask is seen to wait, or the looks below would prove nothing.
      const asking = spawn('stat', [targetOf(node, 'web')], { stdio: 'ignore' });
      const asked = once(asking, 'exit');
      const { pid = 0 } = asking;
      await until('whoever asks to wait', () => sleepsOf(pid).some((one) => STUCK.test(one)));
      const began = performance.now();
      let rounds = 0;
      let looks = 0;
      try {
        node.put('late', nfsPod('late'));
        while (performance.now() - began < SILENT_SECONDS * 1_000 || rounds < 2) {
          rounds += 1;
          const name = `other-${rounds}`;
          node.put(name, podYaml(name, 'emptyDir: { medium: Memory }'));
          await node.until(`${name} to be set up`, ({ pods }) =>
            pods.some((one) => one.name === name && one.ready),
          );
          looks += 1;
          assert.deepEqual(
            sleepsOf(node.agentPid()).filter((one) => STUCK.test(one)),
            [],
          );
          node.remove(name);
          await node.until(`${name} to go`, ({ pods }) => pods.every((one) => one.name !== name));
        }
        t.diagnostic(`${rounds} pods came and went, ${looks} looks at the threads of the agent`);
        const still = readMounts().entries.filter(({ target }) => target === targetOf(node, 'web'));
        assert.deepEqual(
          still.map(({ mountId }) => mountId),
          [mounted?.mountId],
          'whose server is silent keeps its mount',
        );
      } finally {
        nfs().setSilent(false);
        await fuse?.set({ kind: 'serve' });
      }
      await asked;
      await node.untilMounted(2);
      for (const name of ['web', 'late']) node.remove(name);
      await node.untilEmpty();
      assert.deepEqual(mountsBelow(join(node.root, 'pods')), []);
    }),
);

test(
  'an agent that is killed in a mount.nfs(8) that goes on leaves nothing that only a person can clear',
  { skip },
  () =>
    onRealNode(async (node) => {
      const earlier = calls().length;
      nfs().setSilent(true);
      node.put('web', nfsPod('web'));
      await node.startAgent();
      await until('mount.nfs(8) to be called', () => calls().length === earlier + 1);
      await node.killAgent();
      await node.startAgent();
      await until('it to be called again', () => calls().length === earlier + 2);
      nfs().setSilent(false);
      await node.untilMounted(1);
      node.remove('web');
      await node.untilEmpty();
      assert.deepEqual(mountsBelow(join(node.root, 'pods')), []);
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
