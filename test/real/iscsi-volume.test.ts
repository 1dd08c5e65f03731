/** iSCSI volumes on the real kernel, as far as one without iSCSI goes: with a stand-in of iscsiadm(8). */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readMounts } from '../demo/machine.ts';
import { inPrivateProcesses } from './namespace.ts';
import { onRealNode, type RealNode } from './real-node.ts';
import { IQN, layIscsi, PASSWORD, type StandInIscsi, type StandInTarget } from './stand-in-iscsi.ts';

type Status = Awaited<ReturnType<RealNode['untilMounted']>>;

const skip = inPrivateProcesses();
const PORTAL = '10.0.0.1:3260';

let iscsi: StandInIscsi | undefined;
let standIn: StandInTarget | undefined;

before(() => {
  if (skip !== false) return;
  iscsi = layIscsi();
  standIn = iscsi.target(1);
});

after(() => iscsi?.remove());

function store(): StandInTarget {
  return standIn ?? assert.fail('there is no target');
}

const isLoggedIn = (): boolean => existsSync(store().session);
const logins = (): number =>
  store()
    .calls()
    .filter((line) => line.endsWith('--login')).length;

function secretYaml(password = PASSWORD): string {
  return `apiVersion: v1
kind: Secret
metadata: { name: chap, namespace: default }
stringData: { node.session.auth.username: me, node.session.auth.password: ${password} }
`;
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

const CHAP = 'chapAuthSession: true, secretRef: { name: chap }';
const iscsiPod = (name: string, portal = '10.0.0.1'): string =>
  podYaml(name, `iscsi: { targetPortal: ${portal}, iqn: '${IQN}', lun: 1, ${CHAP} }`);

const targetOf = ({ root }: RealNode, pod: string): string =>
  join(root, `pods/${pod}-1/volumes/kubernetes.io~iscsi/data`);

test(
  'a blank disk is formatted, mounted once and bound, found again after kill -9, and logged out from',
  { skip },
  () =>
    onRealNode(async (node) => {
      node.put('chap', secretYaml());
      node.put('web', iscsiPod('web'));
      node.put('db', iscsiPod('db'));
      await node.startAgent();
      await node.untilMounted(2);
      const [web, db] = [targetOf(node, 'web'), targetOf(node, 'db')];
      const stage = join(node.root, `plugins/kubernetes.io/iscsi/iface-default/${PORTAL}-${IQN}-lun-1`);
      const loop = store().device();
      const places = () => readMounts().entries.filter(({ target }) => [stage, web, db].includes(target));
      assert.deepEqual(
        new Set(places().map(({ source, fsType }) => `${source} ${fsType}`)),
        new Set([`${loop} ext4`]),
      );
      assert.equal(places().length, 3);
      writeFileSync(join(web, 'note'), 'precious');
      assert.equal(readFileSync(join(db, 'note'), 'utf8'), 'precious');
      assert.equal(logins(), 1);
      assert.ok(
        !store()
          .calls()
          .some((line) => line.includes(PASSWORD)),
        'no command line has the password',
      );

      const ids = places().map(({ mountId }) => mountId);
      await node.untilRecorded();
      await node.killAgent();
      await node.startAgent();
      await node.untilMounted(2);
      assert.deepEqual(
        places().map(({ mountId }) => mountId),
        ids,
      );
      assert.equal(logins(), 1);

      node.remove('web');
      await node.until('one has gone', ({ pods }) => pods.length === 1);
      assert.ok(isLoggedIn() && !existsSync(web));
      node.remove('db');
      await node.untilEmpty();
      assert.ok(!isLoggedIn() && !existsSync(store().record) && !existsSync(stage));
      node.put('db', iscsiPod('db'));
      await node.untilMounted(1);
      assert.equal(readFileSync(join(db, 'note'), 'utf8'), 'precious', 'never formatted again');
      node.remove('db');
      await node.untilEmpty();
    }),
);

test(
  'an agent that is killed in the middle of a login leaves nothing that the next one does not find',
  { skip },
  () =>
    onRealNode(async (node) => {
      node.put('chap', secretYaml());
      node.put('web', iscsiPod('web'));
      await node.startAgent();
      while (!isLoggedIn()) await new Promise((resolve) => setImmediate(resolve));
      await node.killAgent();
      node.remove('web');
      await node.startAgent();
      await node.untilEmpty();
      assert.ok(!isLoggedIn() && !existsSync(store().record));
    }),
);

test('a portal that is silent holds up no other pod', { skip }, () =>
  onRealNode(async (node) => {
    store().setSilent(true);
    try {
      node.put('chap', secretYaml());
      node.put('web', iscsiPod('web'));
      await node.startAgent();
      const isAtWork = ({ running }: Status['volumes'][number]) =>
        running.some(({ phase }) => phase === 'running');
      await node.until('the login goes on', ({ volumes }) => volumes.some(isAtWork));
      node.put('other', podYaml('other', 'emptyDir: { medium: Memory }'));
      await node.until('another pod is set up', ({ pods }) =>
        pods.some(({ name, ready }) => name === 'other' && ready),
      );
    } finally {
      store().setSilent(false);
    }
    await node.untilMounted(2);
    for (const name of ['web', 'other']) node.remove(name);
    await node.untilEmpty();
  }),
);

test('a wrong password is told as a refusal of the target, and nothing is left of it', { skip }, () =>
  onRealNode(async (node) => {
    node.put('chap', secretYaml('something-else'));
    node.put('web', iscsiPod('web'));
    await node.startAgent();
    const reasonIn = ({ pods, volumes }: Status) => pods[0]?.volumes[0]?.reason ?? volumes[0]?.reason;
    const status = await node.until('it is told', (one) => reasonIn(one)?.code === 'target-refused');
    assert.equal(reasonIn(status)?.blocker, PORTAL);
    assert.ok(!existsSync(store().record));
    node.remove('web');
    await node.untilEmpty();
  }),
);

test('the records that an administrator has of a portal, and of what it offered him, are his', { skip }, () =>
  onRealNode(async (node) => {
    const other = iscsi?.target(2) ?? assert.fail('there is no second target');
    const records = other.discover();
    const read = () => records.map((path) => existsSync(path) && readFileSync(path, 'utf8'));
    const before = read();
    node.put('chap', secretYaml());
    node.put('web', iscsiPod('web', other.address));
    await node.startAgent();
    await node.untilMounted(1);
    assert.deepEqual(read(), before);
    node.remove('web');
    await node.untilEmpty();
    assert.deepEqual(read(), before);
    assert.ok(!existsSync(other.session) && !existsSync(other.record), 'ours have gone');
  }),
);
