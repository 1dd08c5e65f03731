/**
 * A real NFS server, and one that falls silent: its packets are dropped, so nobody is told that it is gone. What is
 * asked of the kernel's own NFS client nobody can ask of the stand-in of test/real/nfs-volume.test.ts.
 */
import assert from 'node:assert/strict';
import { documents, podWith } from '../interop/manifests.ts';
import { claimed, ROOT, targetOf, type VmNode } from './vm-node.ts';

/** How long it is silent, at least. The long form: ten minutes. */
const SILENT_MS = Number(process.env['NFS_SILENT_SECONDS'] ?? '120') * 1_000;
const SERVER = '127.0.0.1';
const SHARE = '/srv/share';
const SOURCE = `nfs: { server: ${SERVER}, path: ${SHARE} }`;
const READER = `nfs: { server: ${SERVER}, path: ${SHARE}, readOnly: true }`;

/** Waits of NFS of two minutes after a start are too long for a test. */
const START = `set -e; mkdir -p ${SHARE}; echo '${SHARE} ${SERVER}(rw,no_root_squash,no_subtree_check)' > /etc/exports
mkdir -p /etc/nfs.conf.d; printf '[nfsd]\\ngrace-time=10\\nlease-time=10\\n' > /etc/nfs.conf.d/test.conf
systemctl start nfs-server`;
const SILENCE = `nft -f - <<'RULES'
table inet silence {
  chain input {
    type filter hook input priority 0;
    tcp dport 2049 drop
  }
}
RULES`;
const SPEECH = 'nft delete table inet silence';

const VOLUME = `apiVersion: v1
kind: PersistentVolume
metadata: { name: share }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteMany]
  mountOptions: [nfsvers=4.2, noatime]
  claimRef: { namespace: default, name: share }
  ${SOURCE}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: share, namespace: default }
spec: { volumeName: share, accessModes: [ReadWriteMany], resources: { requests: { storage: 1Gi } } }
`;

const placeOf = (pod: string, name = 'data'): string =>
  `${ROOT}/pods/${pod}-1/volumes/kubernetes.io~nfs/${name}`;

const put = (node: VmNode, name: string, source: string): Promise<void> =>
  node.put(name, podWith(name, `${name}-1`, source));

/** By mount id, of everything below the pods. */
async function identities(node: VmNode): Promise<readonly string[]> {
  return (await node.mounts()).map((line) => line.split(' ').slice(0, 5).join(' ')).sort();
}

/**
 * Tasks of the agent and of the brokers it works with that sleep so that nothing wakes them. The one that asks how full
 * a silent volume is, and what runs mount(8) and umount(8), are given up for that.
 */
const STUCK = `agent=$(systemctl show -P MainPID mooring)
for stat in /proc/$agent/task/*/stat $(for child in $(pgrep -P $agent); do echo /proc/$child/task/*/stat; done); do
  sed -n 's/^\\([0-9]*\\) (\\(.*\\)) D .*/\\1 \\2/p' $stat 2> /dev/null
done; true`;

/** At some moment: who has just asked how full a volume is sleeps for 10 s, and who cannot be woken sleeps on. */
const NOBODY = /^$/;

export async function tellOfNfsServer(node: VmNode): Promise<void> {
  await node.must(START);
  await node.put('share', VOLUME);
  await put(node, 'web', claimed('share'));
  await put(node, 'reader', READER);
  await put(node, 'spare', SOURCE);
  await node.untilReady(3);
  const web = placeOf('web', 'share');
  await node.must(`printf precious > ${web}/note`);
  assert.equal(await node.must(`cat ${SHARE}/note ${placeOf('reader')}/note`), 'preciousprecious');
  assert.match((await node.run(`touch ${placeOf('reader')}/more`)).out, /Read-only file system/);
  const options = (await node.mounts()).find((line) => line.split(' ')[4] === web) ?? '';
  assert.match(options, /,noatime.* - nfs4 127\.0\.0\.1:\/srv\/share .*vers=4\.2/);

  // A pod that runs: it writes, and one day it waits in the kernel for its server.
  await node.must(
    `systemd-run --quiet --unit=writer sh -c 'while true; do echo x >> ${web}/beats; sleep 0.2; done'`,
  );
  await node.until(`cat ${web}/beats | wc -l`, /^[1-9]/);
  const before = await identities(node);
  await node.must(SILENCE);
  const silentUntil = performance.now() + SILENT_MS;
  try {
    await whileSilent(node, before);
    const left = silentUntil - performance.now();
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    await node.until(STUCK, NOBODY);
  } finally {
    await node.must(SPEECH);
  }
  await node.untilReady(2);
  const count = Number(await node.must(`cat ${web}/beats | wc -l`));
  await node.until(`test $(cat ${web}/beats | wc -l) -gt ${count} && echo more`, /more/);
  await node.must(`systemctl stop writer; cat ${placeOf('late')}/note`);
  await node.remove('web', 'late', 'share');
  await node.untilEmpty();
  await node.must('systemctl stop nfs-server');
}

async function whileSilent(node: VmNode, before: readonly string[]): Promise<void> {
  // What the kernel still shows is proven without a word to the server.
  await node.must('systemctl kill -s KILL --kill-whom=main mooring');
  await node.until('systemctl show -P NRestarts mooring', /^[1-9]/m);
  await node.untilReady(3);
  assert.deepEqual(await identities(node), before, 'the same mounts');

  // A pod that comes waits, and pods of other volumes come and go meanwhile.
  await put(node, 'late', SOURCE);
  await node.put('other', documents(await node.create('other', '16Mi', { fsType: 'ext4' }), otherPod()));
  await node.untilStatus('another pod to be ready', ({ pods }) =>
    pods.some(({ name, ready }) => name === 'other' && ready),
  );
  await node.must(`echo more > ${targetOf('other-1', 'other')}/note`);
  await node.until(STUCK, NOBODY);
  await node.remove('other', 'reader', 'spare');
  await node.untilStatus('those that nobody uses to be gone', ({ pods }) =>
    pods.every(({ name }) => name === 'web' || name === 'late'),
  );
  await node.until(STUCK, NOBODY);
  const { pods } = await node.status();
  assert.equal(pods.find(({ name }) => name === 'late')?.ready, false);
}

function otherPod(): string {
  return `${podWith('other', 'other-1', claimed('other'))}    - { name: scratch, emptyDir: { medium: Memory } }\n`;
}
