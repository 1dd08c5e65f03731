/** A disk of a target: found or logged in to, mounted once, bound into pods; the session ended behind the last one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { below, type DeviceNumber } from '../../../mount/host.ts';
import type { IscsiLogin, IscsiWay } from '../../../mount/block-devices.ts';
import type { IscsiVolumeSpec } from '../../../plugins/iscsi/iscsi-traits.ts';
import { NO_SECRETS } from '../../../plugins/plugin.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { pluginContract } from '../../contract/plugin.ts';
import { fail, ok } from '../../../mount/failure.ts';
import { value } from '../../value.ts';
import { accept } from '../accept.ts';
import { layout, POD, worldOf } from '../local-world.ts';
import type { MemoryHost } from '../memory-host.ts';
import {
  IQN,
  iscsiCall,
  iscsiPlugin,
  iscsiVolume,
  nodeOf,
  OTHER_PORTAL,
  PORTAL,
  stageAndPublish,
  stageOf,
  targetHost,
  wholeLadder,
} from './iscsi-world.ts';

const WAY: IscsiWay = { iqn: IQN, portal: PORTAL, iface: 'default' };

pluginContract('iscsi', () => ladderWorld());
pluginContract('iscsi, read-only', () => ladderWorld(iscsiVolume({ readOnly: true }), true));

function ladderWorld(spec: IscsiVolumeSpec = iscsiVolume(), readOnly = false) {
  const call = iscsiCall(spec);
  const world = worldOf(
    { ...call, publication: { ...call.publication, readOnly } },
    (host) => wholeLadder(iscsiPlugin(host)),
    (on, target) => [on.names(target), on.optionsAt(target)],
    targetHost(),
  );
  const { host, describe } = world;
  const sessions = () => host.initiator.read().map(({ number: _, ...session }) => JSON.stringify(session));
  return { ...world, describe: () => [...describe(), ...sessions()] };
}

function sessionsOn(host: MemoryHost): readonly string[] {
  return host.initiator.sessions().map(({ by, portal }) => `${by} ${portal}`);
}

async function refusal(host: MemoryHost, spec = iscsiVolume()): Promise<readonly unknown[]> {
  const result = await iscsiPlugin(host).stage(iscsiCall(spec));
  assert.ok(!result.ok);
  return [result.failure.code, result.failure.effect, result.failure.blocker];
}

test('a pod has the disk where the kubelet would have it, and the session is gone behind it', async () => {
  const host = targetHost();
  const plugin = iscsiPlugin(host);
  const call = await stageAndPublish(plugin, iscsiCall());
  const stage = `${layout.plugins}/kubernetes.io/iscsi/iface-default/${PORTAL}-${IQN}-lun-1`;
  const target = `${layout.podDirectory(POD)}/volumes/kubernetes.io~iscsi/data`;
  const table = value(await host.readMountTable(layout.root));
  assert.equal(table.at(stageOf(iscsiVolume()))[0]?.target, stage);
  assert.equal(table.at(stageOf(iscsiVolume()))[0]?.source, nodeOf(1));
  assert.equal(layout.target(call.spec, call.publication), target);
  accept(await host.makeDirectory(below(layout.target(call.spec, call.publication), 'made'), 0o700));
  assert.deepEqual(host.names(stage), ['made']);
  assert.deepEqual(sessionsOn(host), [`agent ${PORTAL}`]);
  accept(await plugin.unpublish(call));
  accept(await plugin.unstage(call));
  assert.deepEqual(sessionsOn(host), []);
  assert.deepEqual(host.names(layout.sessionNotes), []);
});

test('what a kubelet has staged comes down, with the paper of it that lies under the mount', async () => {
  const stageWith = async (name: string, content: string) => {
    const host = targetHost();
    const stage = stageOf(iscsiVolume());
    host.plant(`${stage}/${name}`, { kind: 'file', content });
    host.initiator.begin(WAY, 'admin');
    const call = iscsiCall();
    accept(await iscsiPlugin(host).stage(call));
    accept(
      await host.writeFile(below(stage, 'iscsi.json'), new Uint8Array(), { mode: 0o600, durable: false }),
    );
    return { host, stage, down: await iscsiPlugin(host).unstage(call) };
  };
  const paper = JSON.stringify({ VolName: 'data', Portals: [PORTAL], Iqn: IQN, Lun: '1', Iface: 'default' });
  const { host, stage, down } = await stageWith('iscsi.json', paper);
  accept(down);
  assert.deepEqual(host.names(below(layout.iscsiStages, 'iface-default')), []);
  accept(await iscsiPlugin(host).stage(iscsiCall()));
  assert.deepEqual(host.names(stage), ['iscsi.json'], 'what a pod has called so is in the volume');
  for (const [name, content] of [
    ['iscsi.json', 'a note'],
    ['note', paper],
  ] as const) {
    const other = await stageWith(name, content);
    assert.ok(!other.down.ok);
    assert.deepEqual(other.host.names(other.stage), [name], 'anything else is somebody else’s');
  }
});

test('INV-9: a blank disk is formatted, and what is not blank is not', async () => {
  const blank = targetHost({ kind: 'blank' });
  accept(await iscsiPlugin(blank).stage(iscsiCall(iscsiVolume({ fsType: 'xfs' }))));
  assert.equal(value(await blank.readMountTable(layout.root)).at(stageOf(iscsiVolume()))[0]?.fsType, 'xfs');
  assert.equal((await refusal(targetHost({ kind: 'data' })))[0], 'device-content');
});

test('the session that another volume of the target has stays until that one is down, too', async () => {
  const host = targetHost();
  const plugin = iscsiPlugin(host);
  const [first, second] = [iscsiCall(), iscsiCall(iscsiVolume({ lun: 2 }))];
  accept(await plugin.stage(first));
  accept(await plugin.stage(second));
  assert.deepEqual(sessionsOn(host), [`agent ${PORTAL}`], 'one for both');
  accept(await plugin.unstage(first));
  assert.deepEqual(sessionsOn(host), [`agent ${PORTAL}`]);
  accept(await plugin.unstage(second));
  assert.deepEqual(sessionsOn(host), []);
});

test('a session that somebody else has made is used, and never ended', async () => {
  const host = targetHost();
  host.initiator.begin(WAY, 'admin');
  const call = await stageAndPublish(iscsiPlugin(host), iscsiCall());
  accept(await iscsiPlugin(host).unpublish(call));
  accept(await iscsiPlugin(host).unstage(call));
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
  assert.deepEqual(host.initiator.logins, []);
});

test('a session that somebody else makes in the moment before the login is his', async () => {
  const host = targetHost();
  host.onEffect(() => {
    const isNoted = host.names(layout.sessionNotes).some((name) => !name.startsWith('.'));
    if (isNoted && host.initiator.find(WAY) === undefined) host.initiator.begin(WAY, 'admin');
  });
  accept(await iscsiPlugin(host).stage(iscsiCall()));
  accept(await iscsiPlugin(host).unstage(iscsiCall()));
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
});

test('there is no log-out while somebody on this machine has a disk of the session', async () => {
  const host = targetHost();
  const plugin = iscsiPlugin(host);
  accept(await plugin.stage(iscsiCall()));
  const device = value(await host.deviceOf(nodeOf(2))) as DeviceNumber;
  host.devices.open(device, 'pid 7 (dd)');
  const result = await plugin.unstage(iscsiCall());
  assert.deepEqual(!result.ok && [result.failure.code, result.failure.blocker], [
    'device-in-use',
    'pid 7 (dd)',
  ]);
  assert.deepEqual(sessionsOn(host), [`agent ${PORTAL}`]);
  host.devices.close(device, 'pid 7 (dd)');
  accept(await plugin.unstage(iscsiCall()));
  assert.deepEqual(sessionsOn(host), []);
});

test('a portal that says no, or nothing, is told, and whoever logs in by hand then is left alone', async () => {
  const host = targetHost();
  host.initiator.moods.set(PORTAL, 'refuses');
  assert.deepEqual(await refusal(host), ['target-refused', 'unknown', PORTAL]);
  host.initiator.moods.set(PORTAL, 'silent');
  assert.deepEqual(await refusal(host), ['target-unreachable', 'unknown', PORTAL]);
  assert.deepEqual(host.names(layout.sessionNotes), []);
  host.initiator.begin(WAY, 'admin');
  accept(await iscsiPlugin(host).stage(iscsiCall()));
  accept(await iscsiPlugin(host).unstage(iscsiCall()));
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
});

test('one of two portals is enough; both sessions are ended', async () => {
  const spec = iscsiVolume({ portals: [OTHER_PORTAL] });
  const host = targetHost();
  host.initiator.moods.set(PORTAL, 'silent');
  accept(await iscsiPlugin(host).stage(iscsiCall(spec)));
  assert.deepEqual(sessionsOn(host), [`agent ${OTHER_PORTAL}`]);
  host.initiator.moods.clear();
  accept(await iscsiPlugin(host).stage(iscsiCall(spec)));
  assert.deepEqual(sessionsOn(host), [`agent ${OTHER_PORTAL}`, `agent ${PORTAL}`]);
  accept(await iscsiPlugin(host).unstage(iscsiCall(spec)));
  assert.deepEqual(sessionsOn(host), []);
});

test('the device that joins the ways is taken, and taken away before the log-out', async () => {
  const spec = iscsiVolume({ portals: [OTHER_PORTAL] });
  const host = targetHost();
  host.initiator.begin(WAY, 'admin');
  const node = '/dev/dm-0' as ReturnType<typeof nodeOf>;
  const device = host.plantDevice(node, { kind: 'file-system', type: 'ext4' });
  host.initiator.join(IQN, 1, { node, device });
  accept(await iscsiPlugin(host).stage(iscsiCall(spec)));
  assert.equal(value(await host.readMountTable(layout.root)).at(stageOf(spec))[0]?.source, node);
  host.initiator.join(IQN, 1, { node, device });
  accept(await iscsiPlugin(host).stage(iscsiCall(spec)));
  accept(await iscsiPlugin(host).unstage(iscsiCall(spec)));
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
  assert.equal(host.initiator.hasMap(node), false);
});

test('a disk that has not come is told, and one that is another device now is not taken for it', async () => {
  const host = targetHost();
  assert.deepEqual(await refusal(host, iscsiVolume({ lun: 7 })), ['path-missing', 'unknown', PORTAL]);
  accept(await iscsiPlugin(host).stage(iscsiCall()));
  const session = host.initiator.find(WAY);
  assert.ok(session !== undefined);
  const device = host.plantDevice('/dev/other', { kind: 'file-system', type: 'ext4' });
  session.disks = [{ lun: 1, node: '/dev/other' as ReturnType<typeof nodeOf>, device }];
  assert.equal((await refusal(host))[0], 'device-changed');
  session.disks = [{ lun: 1, node: nodeOf(1), device }];
  accept(await host.unmount(stageOf(iscsiVolume())));
  assert.equal((await refusal(host))[0], 'device-changed', 'its node is of another device');
});

test('a disk that is mounted by one of its ways is mounted by no other, whatever became of its stage', async () => {
  const spec = iscsiVolume({ portals: [OTHER_PORTAL] });
  const host = targetHost();
  const plugin = iscsiPlugin(host);
  const other = { iqn: IQN, portal: OTHER_PORTAL, iface: 'default' };
  const node = '/dev/other-way' as ReturnType<typeof nodeOf>;
  const device = host.plantDevice(node, { kind: 'file-system', type: 'ext4' });
  const session = host.initiator.begin(other, 'agent');
  session.disks = [{ lun: 1, node, device }];
  host.initiator.moods.set(PORTAL, 'silent');
  const call = await stageAndPublish(plugin, iscsiCall(spec));
  // Somebody unmounts the stage; its pod has the disk still, and the first way is there again.
  accept(await host.unmount(stageOf(spec)));
  host.initiator.moods.clear();
  accept(await plugin.stage(call));
  const stageNow = async () => value(await host.readMountTable(layout.root)).at(stageOf(spec))[0]?.source;
  assert.equal(await stageNow(), node);
  accept(await host.unmount(stageOf(spec)));
  session.isLoggedIn = false;
  assert.deepEqual(await refusal(host, spec), ['device-in-use', 'unknown', device]);
  assert.equal(await stageNow(), undefined);
  accept(await plugin.unpublish(call));
  accept(await plugin.stage(call));
  assert.equal(await stageNow(), nodeOf(1));
});

test('a session that waits for its portal is none to ask for a disk', async () => {
  const host = targetHost();
  host.initiator.begin(WAY, 'admin').isLoggedIn = false;
  assert.deepEqual(await refusal(host), ['target-unreachable', 'unknown', PORTAL]);
});

test('a session that somebody makes anew after ending ours is his', async () => {
  const host = targetHost();
  const plugin = iscsiPlugin(host);
  const call = await stageAndPublish(plugin, iscsiCall());
  const [ours] = host.initiator.sessions();
  assert.ok(ours);
  accept(await plugin.unpublish(call));
  accept(await host.unmount(stageOf(iscsiVolume())));
  host.initiator.end(ours);
  host.initiator.begin(WAY, 'admin');
  accept(await plugin.unstage(call));
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
  assert.deepEqual(host.names(layout.sessionNotes), []);
});

test('a session that somebody begins while our login is refused is his, and stays', async () => {
  const host = targetHost();
  host.initiator.moods.set(PORTAL, 'refuses');
  const logIn = host.logInToIscsi;
  const meanwhile = Object.assign(host, {
    async logInToIscsi(login: IscsiLogin) {
      const answer = await logIn(login);
      host.initiator.begin(WAY, 'admin');
      return answer;
    },
  });
  assert.deepEqual(await refusal(meanwhile), ['target-refused', 'unknown', PORTAL]);
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
  assert.deepEqual(host.names(layout.sessionNotes), []);
});

/** The first login is lost, with its record in the database; the next ones are refused. */
function hostWithLostLogin() {
  const host = targetHost();
  const { logInToIscsi, logOutOfIscsi } = host;
  const records = new Set<string>();
  const lost = Object.assign(host, {
    async logInToIscsi(login: IscsiLogin) {
      if (records.size > 0) return logInToIscsi(login);
      records.add(login.portal);
      const failure = { code: 'target-unreachable', message: 'no answer', effect: 'unknown' } as const;
      return fail({ ...failure, blocker: login.portal });
    },
    logOutOfIscsi(way: IscsiWay) {
      records.delete(way.portal);
      return logOutOfIscsi(way);
    },
  });
  host.initiator.moods.set(PORTAL, 'silent');
  return { host: lost, records };
}

test('the record of a login that was lost is forgotten, though the next login was refused before its own', async () => {
  const { host, records } = hostWithLostLogin();
  assert.deepEqual(await refusal(host), ['target-unreachable', 'unknown', PORTAL]);
  assert.deepEqual([...records], [PORTAL]);
  assert.deepEqual(await refusal(host), ['target-unreachable', 'unknown', PORTAL]);
  accept(await iscsiPlugin(host).unstage(iscsiCall()));
  assert.deepEqual([...records], []);
  assert.deepEqual(host.names(layout.sessionNotes), []);
});

test('a session that comes of a lost login while the next one is refused is ended behind its volume', async () => {
  const { host } = hostWithLostLogin();
  assert.deepEqual(await refusal(host), ['target-unreachable', 'unknown', PORTAL]);
  const { logInToIscsi } = host;
  const late = Object.assign(host, {
    async logInToIscsi(login: IscsiLogin) {
      const answer = await logInToIscsi(login);
      host.initiator.begin(WAY, 'agent');
      return answer;
    },
  });
  assert.deepEqual(await refusal(late), ['target-unreachable', 'unknown', PORTAL]);
  accept(await iscsiPlugin(host).stage(iscsiCall()));
  accept(await iscsiPlugin(host).unstage(iscsiCall()));
  assert.deepEqual(sessionsOn(host), []);
  assert.deepEqual(host.names(layout.sessionNotes), []);
});

test('a session of another boot is not ours, whatever is written down of it', async () => {
  const host = targetHost();
  accept(await iscsiPlugin(host).stage(iscsiCall()));
  host.reboot();
  host.initiator.begin(WAY, 'admin');
  const after = Object.assign(host, { bootId: 'another' });
  accept(await iscsiPlugin(after).unstage(iscsiCall()));
  assert.deepEqual(sessionsOn(host), [`admin ${PORTAL}`]);
  assert.deepEqual(host.names(layout.sessionNotes), []);
});

test('CHAP: what the secret has goes to the portal, and nowhere else', async () => {
  const host = targetHost();
  const spec = iscsiVolume({ chap: { discovery: true, session: true } });
  const keys = (group: string) => ({
    [`${group}.username`]: 'me',
    [`${group}.password`]: 'precious',
    [`${group}.username_in`]: '',
  });
  const data = { ...keys('discovery.sendtargets.auth'), ...keys('node.session.auth') };
  const call = { ...iscsiCall(spec), secrets: { ...NO_SECRETS, stage: new Sensitive(data) } };
  accept(await iscsiPlugin(host).stage(call));
  const [login] = host.initiator.logins;
  assert.deepEqual(login?.session, [
    ['node.session.auth.authmethod', 'CHAP'],
    ['node.session.auth.username', 'me'],
    ['node.session.auth.password', 'precious'],
  ]);
  assert.deepEqual(
    login?.discovery.map(([name]) => name.split('.').at(-1)),
    ['authmethod', 'username', 'password'],
  );
  assert.ok(!host.describe(layout.root).some((line) => line.includes('precious')));
});

test('without the mount that it was staged by, nothing is published', async () => {
  const host = targetHost();
  const result = await iscsiPlugin(host).publish(iscsiCall());
  assert.equal(!result.ok && result.failure.code, 'staged-not-mounted');
});

test('DR-11: what an error has made read-only since is not published to who writes', async () => {
  const host = targetHost();
  const plugin = iscsiPlugin(host);
  const call = iscsiCall();
  const { stagedMount } = value(await plugin.stage(call));
  const { lookUpMount } = host;
  host.lookUpMount = async (path) => {
    const seen = await lookUpMount(path);
    return seen.ok && seen.value.mounted ? ok({ ...seen.value, readOnly: true, turnedReadOnly: true }) : seen;
  };
  const publish = (readOnly: boolean) =>
    plugin.publish({
      ...call,
      facts: { ...call.facts, stagedMount },
      publication: { ...call.publication, readOnly },
    });
  const refused = await publish(false);
  assert.deepEqual(!refused.ok && [refused.failure.code, refused.failure.death], [
    'file-system-dead',
    'read-only',
  ]);
  accept(await publish(true));
});
