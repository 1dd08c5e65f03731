/** Which tools a login and a log-out run, in which order, and what none of them is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTurns } from '../../../mount/process/turns.ts';
import { createIscsi } from '../../../mount/agent-side/tools/iscsi-effects.ts';
import type { IscsiRecord, QuestionOwner } from '../../../mount/broker/device/iscsi-record.ts';
import { done, ok } from '../../../mount/failure.ts';
import type { IscsiLogin, IscsiSession } from '../../../mount/block-devices.ts';
import type { ToolReport, ToolRequest } from '../../../mount/tool.ts';
import { value } from '../../value.ts';

const IQN = 'iqn.2026-11.example:disk';
const PASSWORD = 'precious';
const LOGIN: IscsiLogin = {
  iqn: IQN,
  portal: '10.0.0.1:3260',
  iface: 'default',
  discovery: [['discovery.sendtargets.auth.password', PASSWORD]],
  session: [['node.session.auth.password', PASSWORD]],
};
const SESSION: IscsiSession = { ...LOGIN, number: 7, isLoggedIn: true, disks: [] };

/** Exit codes by a word of the command line; all else succeeds. */
function world(
  exits: Readonly<Record<string, number>> = {},
  offered = `10.0.0.1:3260,1 ${IQN}\n`,
  owners: readonly QuestionOwner[] = ['nobody', 'ours'],
) {
  const looks = [...owners];
  const said: string[] = [];
  const records: IscsiRecord[] = [];
  let sessions: readonly IscsiSession[] = [];
  const iscsi = createIscsi({
    inTurn: createTurns(),
    readSessions: async () => ok(sessions),
    ownerOfQuestion: async () => ok(looks.shift() ?? 'nobody'),
    async writeRecord(record) {
      records.push(record);
      said.push(`write ${record.folder.join('/')}`);
      return done;
    },
    async runTool({ tool, argv }: ToolRequest) {
      const line = [tool, ...argv].join(' ');
      said.push(line);
      const word = Object.keys(exits).find((one) => line.includes(one));
      const exitCode = word === undefined ? 0 : exits[word];
      if (exitCode === 0 && line.endsWith('--logout')) sessions = [];
      const report = { exitCode, signal: undefined, deadlinePassed: false, stderr: '' };
      return ok({ ...report, stdout: line.includes('--discover') ? offered : '' } as ToolReport);
    },
  });
  const begin = (session: IscsiSession): void => {
    sessions = [session];
  };
  return { iscsi, said, records, begin };
}

test('a login asks the portal, writes its record and logs in; no command line has a secret', async () => {
  const { iscsi, said, records } = world();
  assert.equal(value(await iscsi.logInToIscsi(LOGIN)), 'made');
  const question = 'iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260';
  const node = `iscsiadm -m node -T ${IQN} -p 10.0.0.1:3260 -I default`;
  assert.deepEqual(said, [
    `${question} -I default -o new`,
    'write send_targets',
    `${question} -I default -o nonpersistent --discover`,
    `${question} -o delete`,
    `${node} -o delete`,
    `${node} -o new`,
    `write nodes/${IQN}`,
    `${node} --login`,
  ]);
  assert.ok(!said.join().includes(PASSWORD));
  assert.deepEqual(
    records.map(({ settings }) => settings.at(-1)?.[1]),
    [PASSWORD, PASSWORD],
  );
});

test('a record that somebody has of his own question stays, and the login tells what the portal offers', async () => {
  const theirs = world({}, '', ['somebody']);
  assert.equal(value(await theirs.iscsi.logInToIscsi(LOGIN)), 'made');
  assert.ok(
    !theirs.said.join().includes('discoverydb') && theirs.said.some((line) => line.endsWith('--login')),
  );
  const meanwhile = world({}, undefined, ['nobody', 'somebody']);
  assert.equal(value(await meanwhile.iscsi.logInToIscsi(LOGIN)), 'made');
  assert.ok(!meanwhile.said.some((line) => line.includes('discoverydb') && line.endsWith('-o delete')));
});

test('what goes wrong is told by its code, and whether a session may come of it', async () => {
  const failureOf = async (...parts: Parameters<typeof world>) => {
    const { iscsi, said } = world(...parts);
    const answer = await iscsi.logInToIscsi(LOGIN);
    assert.ok(
      said.some((line) => line.includes('discoverydb') && line.endsWith('-o delete')),
      'nothing is kept',
    );
    return answer.ok ? answer.value : [answer.failure.code, answer.failure.effect];
  };
  assert.deepEqual(await failureOf({ '--discover': 4 }), ['target-unreachable', 'none']);
  assert.deepEqual(await failureOf({ '--discover': 24 }), ['target-refused', 'none']);
  assert.deepEqual(await failureOf({}, 'x iqn.2026-11.example:other\n'), ['target-refused', 'none']);
  assert.deepEqual(await failureOf({ '--login': 24 }), ['target-refused', 'none']);
  assert.deepEqual(await failureOf({ '--login': 8 }), ['target-unreachable', 'none']);
  // Without the daemon, nobody knows what became of its login.
  assert.deepEqual(await failureOf({ '--login': 18 }), ['input-output', 'unknown']);
  assert.equal(await failureOf({ '--login': 15 }), 'found');
  assert.equal(await failureOf({ '-I default -o delete': 15 }), 'found');
});

test('a login that is refused takes its record away and ends no session; before it none is touched', async () => {
  const node = `iscsiadm -m node -T ${IQN} -p 10.0.0.1:3260 -I default`;
  const afterNew = async (exits: Parameters<typeof world>[0]) => {
    const { iscsi, said, begin } = world(exits);
    begin(SESSION);
    await iscsi.logInToIscsi(LOGIN);
    return said.filter((line) => !line.includes('discoverydb')).filter((line) => line.startsWith('iscsiadm'));
  };
  const [forgotten, made, login] = [`${node} -o delete`, `${node} -o new`, `${node} --login`];
  assert.deepEqual(await afterNew({ '--login': 24 }), [forgotten, made, login, forgotten]);
  assert.deepEqual(await afterNew({ '--discover': 4 }), []);
});

test('a log-out ends the session by its number and forgets the record, and believes the kernel alone', async () => {
  const { iscsi, said, begin } = world();
  begin(SESSION);
  value(await iscsi.logOutOfIscsi(LOGIN));
  assert.deepEqual(said, [
    'iscsiadm -m session -r 7 --logout',
    `iscsiadm -m node -T ${IQN} -p 10.0.0.1:3260 -I default -o delete`,
  ]);
  const none = world({ '-o delete': 21 });
  none.begin({ ...SESSION, portal: '10.0.0.2:3260' });
  value(await none.iscsi.logOutOfIscsi(LOGIN));
  assert.equal(none.said.length, 1, 'the session of another portal stays');
  const lying = world({ '--logout': 9 });
  lying.begin(SESSION);
  const answer = await lying.iscsi.logOutOfIscsi(LOGIN);
  assert.deepEqual(!answer.ok && answer.failure.effect, 'unknown');
});
