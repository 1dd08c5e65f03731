/**
 * iSCSI volumes on the real kernel, as far as one without iSCSI goes: a stand-in of iscsiadm(8) notes how it is called,
 * keeps records as the real one does, and makes of a session a loop device and the entries of sysfs that Linux has.
 * Whether a real target lets anybody in is no business of this file.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readMounts } from '../demo/machine.ts';
import { inPrivateProcesses } from './namespace.ts';
import { onRealNode, type RealNode } from './real-node.ts';

type Status = Awaited<ReturnType<RealNode['untilMounted']>>;

const skip = inPrivateProcesses();
const HELPERS = '/sbin';
const SCRATCH = '/tmp';
const SYSFS = '/sys/class';
const IQN = 'iqn.2026-11.example:store';
const PORTAL = '10.0.0.1:3260';
const PASSWORD = 'precious-123456';
const SESSION = `${SYSFS}/iscsi_session/session7`;
const NODE_RECORD = `/etc/iscsi/nodes/${IQN}/10.0.0.1,3260`;

const standIn = (directory: string): string => `#!/bin/sh
printf '%s\\n' "$*" >> ${directory}/calls
question=/etc/iscsi/send_targets/10.0.0.1,3260
new() { mkdir -p "\${1%/*}" && printf '# BEGIN RECORD\\n# END RECORD\\n' > "$1"; }
case "$*" in
*discoverydb*'-o new') new $question/st_config ;;
*--discover) while [ -e ${directory}/silent ]; do sleep 0.05; done; echo '${PORTAL},1 ${IQN}' ;;
*discoverydb*'-o delete') rm -r $question ;;
*'-o new') new ${NODE_RECORD} ;;
*'-o delete') [ -e ${NODE_RECORD} ] || exit 21; [ ! -e ${SESSION} ] || exit 15; rm ${NODE_RECORD} ;;
*--login)
  [ ! -e ${SESSION} ] || exit 15
  grep -qx 'node.session.auth.password = ${PASSWORD}' ${NODE_RECORD} || exit 24
  disk=$(losetup --find --show ${directory}/disk) || exit 9
  echo "$disk" > ${directory}/loop
  made=${SYSFS}/made; block=$made/device/target0:0:0/0:0:0:1/block/\${disk#/dev/}
  connection=${SYSFS}/iscsi_connection/connection7:0
  mkdir -p $block $connection ${SYSFS}/iscsi_session
  echo 10.0.0.1 > $connection/persistent_address; echo 3260 > $connection/persistent_port
  echo ${IQN} > $made/targetname; echo default > $made/ifacename; echo LOGGED_IN > $made/state
  cat /sys/block/\${disk#/dev/}/dev > $block/dev
  mv $made ${SESSION} ;;
*'-r 7 --logout')
  grep -q "^$(cat ${directory}/loop) " /proc/self/mounts && exit 9
  rm -r ${SESSION} && losetup --detach "$(cat ${directory}/loop)" ;;
*) echo "not as iscsiadm is called: $*" >&2; exit 7 ;;
esac
`;

let directory = '';
const mounted: string[] = [];

function mountOver(target: string, type: string, ...options: readonly string[]): void {
  execFileSync('mount', ['-t', type, ...options, 'iscsi-test', target]);
  mounted.unshift(target);
}

function overlay(target: string, name: string): string {
  const [upper = '', work = ''] = ['upper', 'work'].map((part) => join(directory, `${name}-${part}`));
  for (const one of [upper, work]) mkdirSync(one);
  mountOver(target, 'overlay', '-o', `lowerdir=${target},upperdir=${upper},workdir=${work}`);
  return upper;
}

before(() => {
  if (skip !== false) return;
  directory = execFileSync('mktemp', ['-d', `${SCRATCH}/mooring-iscsi-XXXXXX`], { encoding: 'utf8' }).trim();
  // The upper layer of an overlay is on no overlay.
  mountOver(directory, 'tmpfs');
  execFileSync('truncate', ['--size', '32M', join(directory, 'disk')]);
  overlay('/etc', 'etc');
  const helpers = realpathSync(HELPERS);
  overlay(helpers, 'helpers');
  writeFileSync(join(helpers, 'iscsiadm'), standIn(directory));
  chmodSync(join(helpers, 'iscsiadm'), 0o755);
  mountOver(SYSFS, 'tmpfs');
});

after(() => {
  if (skip !== false) return;
  // A test that failed may have left its session.
  if (existsSync(SESSION))
    execFileSync('losetup', ['--detach', readFileSync(join(directory, 'loop'), 'utf8').trim()]);
  for (const target of mounted) execFileSync('umount', ['--lazy', target]);
  rmSync(directory, { recursive: true, force: true });
});

/** How iscsiadm(8) was called, a line each. */
function calls(): readonly string[] {
  const file = join(directory, 'calls');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

const logins = (): number => calls().filter((line) => line.endsWith('--login')).length;

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
const iscsiPod = (name: string): string =>
  podYaml(name, `iscsi: { targetPortal: 10.0.0.1, iqn: '${IQN}', lun: 1, ${CHAP} }`);

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
      const loop = readFileSync(join(directory, 'loop'), 'utf8').trim();
      const places = () => readMounts().entries.filter(({ target }) => [stage, web, db].includes(target));
      assert.deepEqual(
        new Set(places().map(({ source, fsType }) => `${source} ${fsType}`)),
        new Set([`${loop} ext4`]),
      );
      assert.equal(places().length, 3);
      writeFileSync(join(web, 'note'), 'precious');
      assert.equal(readFileSync(join(db, 'note'), 'utf8'), 'precious');
      assert.equal(logins(), 1);
      assert.ok(!calls().some((line) => line.includes(PASSWORD)), 'no command line has the password');

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
      assert.ok(existsSync(SESSION) && !existsSync(web));
      node.remove('db');
      await node.untilEmpty();
      assert.ok(!existsSync(SESSION) && !existsSync(NODE_RECORD) && !existsSync(stage));
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
      while (!existsSync(SESSION)) await new Promise((resolve) => setImmediate(resolve));
      await node.killAgent();
      node.remove('web');
      await node.startAgent();
      await node.untilEmpty();
      assert.ok(!existsSync(SESSION) && !existsSync(NODE_RECORD));
    }),
);

test('a portal that is silent holds up no other pod', { skip }, () =>
  onRealNode(async (node) => {
    writeFileSync(join(directory, 'silent'), '');
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
      rmSync(join(directory, 'silent'));
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
    assert.ok(!existsSync(NODE_RECORD));
    node.remove('web');
    await node.untilEmpty();
  }),
);
