/**
 * A real target (tgt) and the real open-iscsi, whose database, daemon and sysfs the stand-in of test/real only plays:
 * asked and entered with CHAP, formatted, mounted, kept through kill -9, and logged out of behind the last volume.
 */
import assert from 'node:assert/strict';
import { podWith } from '../interop/manifests.ts';
import { ROOT, type VmNode } from './vm-node.ts';

const IQN = 'iqn.2026-11.example:store';
const PORTAL = '127.0.0.1:3260';
const OTHER_PORTAL = '127.0.0.2:3260';
const ASKING = { user: 'asker', password: 'asking-precious-1' };
const ENTERING = { user: 'guest', password: 'entering-precious-2' };
/** Two disks, and an account for the question and one for the session. */
const START = `set -e; systemctl start tgt iscsid
for lun in 1 2; do truncate --size 64M /srv/lun$lun; done
tgtadm --lld iscsi --mode target --op new --tid 1 -T ${IQN}
for lun in 1 2; do
  tgtadm --lld iscsi --mode logicalunit --op new --tid 1 --lun $lun -b /srv/lun$lun
done
tgtadm --lld iscsi --mode target --op bind --tid 1 -I ALL
for account in ${ASKING.user}:${ASKING.password} ${ENTERING.user}:${ENTERING.password}; do
  tgtadm --lld iscsi --mode account --op new --user "\${account%%:*}" --password "\${account#*:}"
done
tgtadm --lld iscsi --mode account --op bind --user ${ASKING.user}
tgtadm --lld iscsi --mode account --op bind --tid 1 --user ${ENTERING.user}`;
const END = 'systemctl stop iscsid.socket iscsid tgt; rm /srv/lun1 /srv/lun2';
/** What a login leaves behind while it is there: sessions, disks, records and notes. */
const TRACES = `ls -d /sys/class/iscsi_session/session* /dev/disk/by-path/ip-* 2> /dev/null
for database in /etc/iscsi /var/lib/iscsi; do
  find $database/nodes $database/send_targets -mindepth 1 2> /dev/null
done
find ${ROOT}/mooring/sessions -type f 2> /dev/null; true`;
const SESSIONS = 'ls /sys/class/iscsi_session 2> /dev/null; true';

const secret = (password: string): string => `apiVersion: v1
kind: Secret
metadata: { name: chap, namespace: default }
stringData:
  discovery.sendtargets.auth.username: ${ASKING.user}
  discovery.sendtargets.auth.password: ${ASKING.password}
  node.session.auth.username: ${ENTERING.user}
  node.session.auth.password: ${password}
`;

const source = (lun: number, more = ''): string =>
  `iscsi: { targetPortal: 127.0.0.1, iqn: '${IQN}', lun: ${lun}, fsType: ext4, ${more}` +
  'chapAuthDiscovery: true, chapAuthSession: true, secretRef: { name: chap } }';

const placeOf = (pod: string): string => `${ROOT}/pods/${pod}-1/volumes/kubernetes.io~iscsi/data`;
const stageOf = (lun: number): string =>
  `${ROOT}/plugins/kubernetes.io/iscsi/iface-default/${PORTAL}-${IQN}-lun-${lun}`;

const put = (node: VmNode, name: string, volume: string): Promise<void> =>
  node.put(name, podWith(name, `${name}-1`, volume));

/** Mount id, device and place of each mount of a disk. */
async function identities(node: VmNode): Promise<readonly string[]> {
  const lines = (await node.mounts()).map((line) => line.split(' '));
  return lines.map(([id, , device, , place]) => `${id} ${device} ${place}`).sort();
}

export async function tellOfIscsiTarget(node: VmNode): Promise<void> {
  await node.must(START);
  await tellsOfRefusal(node);
  await isMountedOnce(node);
  await isFoundAfterKills(node);
  await isLeftByTheLast(node);
  await hasSeveralPortals(node);
  await leavesSessionsOfOthers(node);
  await node.remove('chap');
  await node.untilEmpty();
  await node.must(END);
}

async function tellsOfRefusal(node: VmNode): Promise<void> {
  await node.put('chap', secret('somebody-elses'));
  await put(node, 'web', source(1));
  await node.untilStatus('a refusal to be told', ({ pods, volumes }) =>
    [...pods.flatMap((pod) => pod.volumes), ...volumes].some(
      ({ reason }) => reason?.code === 'target-refused',
    ),
  );
  assert.equal(await node.must(SESSIONS), '');
  await node.put('chap', secret(ENTERING.password));
  await node.untilReady(1);
  await node.remove('web');
  await node.untilEmpty();
}

async function isMountedOnce(node: VmNode): Promise<void> {
  await put(node, 'web', source(1));
  await put(node, 'db', source(1));
  await node.untilReady(2);
  const [web, db] = [placeOf('web'), placeOf('db')];
  await node.must(`printf precious > ${web}/note; sync ${web}/note`);
  assert.equal(await node.must(`cat ${db}/note`), 'precious');
  const mounts = (await node.mounts()).map((line) => line.split(' '));
  assert.deepEqual(mounts.map(([, , , , place]) => place).sort(), [stageOf(1), web, db].sort());
  assert.equal(new Set(mounts.map(([, , device]) => device)).size, 1, 'one device');
  assert.match(await node.must(SESSIONS), /^session\d+\n$/);
  // What has the passwords is for root alone, and no word of them is anywhere else.
  const records =
    'find /etc/iscsi /var/lib/iscsi -type f -perm /077 -exec grep -l precious {} + 2> /dev/null; true';
  assert.equal(await node.must(records), '');
  const shown = 'journalctl -o cat -u mooring -u iscsid; mooring status -o json; mooring explain web';
  const told = `${shown}; grep -ra . ${ROOT}/mooring`;
  assert.equal((await node.run(`{ ${told}; } | grep -e ${ASKING.password} -e ${ENTERING.password}`)).out, '');
}

async function isFoundAfterKills(node: VmNode): Promise<void> {
  const before = await identities(node);
  const session = await node.must(SESSIONS);
  await node.must('systemctl kill -s KILL --kill-whom=main mooring');
  await node.until('systemctl show -P NRestarts mooring', /^[1-9]/m);
  await node.untilReady(2);
  assert.deepEqual(await identities(node), before, 'the same mounts');
  assert.equal(await node.must(SESSIONS), session, 'and the same session');
}

async function isLeftByTheLast(node: VmNode): Promise<void> {
  const session = await node.must(SESSIONS);
  await put(node, 'two', source(2));
  await node.untilReady(3);
  await node.remove('web', 'db');
  await node.untilReady(1);
  assert.equal(await node.must(SESSIONS), session, 'another disk of the target is in use');
  await node.remove('two');
  await node.untilEmpty();
  assert.equal(await node.must(TRACES), '', 'logged out, and nothing is left of it');

  // Killed on the way up, at a moment that nobody chose, and not wanted any more when the next agent comes.
  await put(node, 'web', source(1));
  await node.until(SESSIONS, /session/);
  await node.must('systemctl kill -s KILL --kill-whom=main mooring');
  await node.remove('web');
  await node.untilEmpty();
  assert.equal(await node.must(TRACES), '', 'whatever the killed agent had begun');
}

async function hasSeveralPortals(node: VmNode): Promise<void> {
  await put(node, 'web', source(1, `portals: [${OTHER_PORTAL}], `));
  await node.untilReady(1);
  assert.equal(await node.must(`cat ${placeOf('web')}/note`), 'precious', 'never formatted again');
  assert.match(await node.must(SESSIONS), /^session\d+\nsession\d+\n$/, 'a way through each portal');
  await node.remove('web');
  await node.untilEmpty();
  assert.equal(await node.must(TRACES), '', 'logged out of both');
}

async function leavesSessionsOfOthers(node: VmNode): Promise<void> {
  const words = `iscsiadm -m node -T ${IQN} -p ${PORTAL}`;
  const auth = 'node.session.auth';
  await node.must(`set -e; ${words} -o new
for setting in authmethod:CHAP username:${ENTERING.user} password:${ENTERING.password}; do
  ${words} -o update -n "${auth}.\${setting%%:*}" -v "\${setting#*:}"
done
${words} --login`);
  const session = await node.must(SESSIONS);
  assert.match(session, /session/);
  await put(node, 'web', source(1));
  await node.untilReady(1);
  assert.equal(await node.must(`cat ${placeOf('web')}/note`), 'precious');
  await node.remove('web');
  await node.untilEmpty();
  assert.equal(await node.must(SESSIONS), session, 'who has begun it ends it');
  await node.must(`${words} --logout && ${words} -o delete`);
  assert.equal(await node.must(TRACES), '');
}
