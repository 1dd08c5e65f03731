import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, unlinkSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import type { Result } from '../../../mount/failure.ts';
import { below } from '../../../mount/host.ts';
import type { ToolRequest } from '../../../mount/tool.ts';
import {
  createToolBroker,
  type ToolBroker,
  type ToolBrokerOptions,
} from '../../../mount/agent-side/tool-broker.ts';
import { BROKER_COMMAND } from '../../real/broker-command.ts';
import { scratchDirectory } from '../scratch.ts';
import { until } from '../../until.ts';
import { signalProcess } from '../../signal.ts';

function toolBroker(t: TestContext, start: Partial<ToolBrokerOptions> = {}): ToolBroker {
  const made = createToolBroker({ command: BROKER_COMMAND, ...start });
  t.after(() => made.close());
  return made;
}

const run = (tool: string, ...argv: string[]): ToolRequest => ({ tool, argv, deadlineMs: 20_000 });
const verdict = (result: Result<unknown>): unknown =>
  result.ok ? 'ok' : [result.failure.code, result.failure.effect];

test('several tools run at the same time in one broker, each with its own answer', async (t) => {
  const tools = toolBroker(t);
  await tools.run(run('true'));
  const meeting = scratchDirectory(t);
  const together = `until [ "$(ls ${meeting} | wc -l)" = 8 ]; do sleep 0.05; done`;
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      tools.run(run('sh', '-c', `touch ${meeting}/${n}; ${together}; exit ${n}`)),
    ),
  );
  assert.deepEqual(
    answers.map((answer) => answer.ok && answer.value.exitCode),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
  assert.equal(tools.pids().length, 1);
});

test('what goes first waits for no turn, and takes none from those that wait', async (t) => {
  const tools = toolBroker(t, { runningMax: 1 });
  const reason = below(scratchDirectory(t), 'reason-to-run');
  writeFileSync(reason, '');
  const until = `while [ -e ${reason} ]; do sleep 0.05; done`;
  const ended: string[] = [];
  const note = (name: string) => () => void ended.push(name);
  const running = tools.run(run('sh', '-c', until)).then(note('running'));
  const waiting = tools.run(run('true')).then(note('waiting'));
  assert.deepEqual(verdict(await tools.runFirst(run('true'))), 'ok');
  assert.deepEqual(ended, []);
  unlinkSync(reason);
  await Promise.all([running, waiting]);
  assert.deepEqual(ended, ['running', 'waiting']);
});

test('a broker with nothing to do ends, not while a tool runs, and the next tool has another one', async (t) => {
  const tools = toolBroker(t, { idleMsMax: 1 });
  assert.deepEqual(verdict(await tools.run(run('true'))), 'ok');
  const [pid = 0] = tools.pids();
  await until(`${pid} is gone`, () => !existsSync(`/proc/${pid}`));
  await until('the broker has ended', () => tools.pids().length === 0);
  assert.deepEqual(verdict(await tools.run(run('sh', '-c', 'sleep 0.2'))), 'ok');
  assert.deepEqual(verdict(await tools.run(run('true'))), 'ok');
  assert.notEqual(tools.pids()[0], pid);
});

test('when the broker dies, its call settles when the tool has ended, and others go on at once', async (t) => {
  const tools = toolBroker(t);
  await tools.run(run('true'));
  const [pid = 0] = tools.pids();
  let settled = false;
  const reason = below(scratchDirectory(t), 'reason-to-run');
  writeFileSync(reason, '');
  const orphan = tools.run(run('sh', '-c', `while [ -e ${reason} ]; do sleep 0.05; done`)).then((answer) => {
    settled = true;
    return answer;
  });
  await tools.run(run('true'));
  signalProcess(pid, 'SIGKILL');
  await until(`${pid} is gone`, () => !existsSync(`/proc/${pid}`));
  assert.deepEqual(verdict(await tools.run(run('true'))), 'ok');
  assert.equal(settled, false);
  unlinkSync(reason);
  assert.deepEqual(verdict(await orphan), ['broker-lost', 'unknown']);
});

test('a tool whose broker has died is ended at its deadline with all that it started', async (t) => {
  const tools = toolBroker(t);
  await tools.run(run('true'));
  const [broker = 0] = tools.pids();
  const scratch = scratchDirectory(t);
  const [reason, begun] = [below(scratch, 'reason-to-run'), below(scratch, 'begun')];
  writeFileSync(reason, '');
  const loop = `while [ -e ${reason} ]; do sleep 0.05; done`;
  const script = `(${loop}) & touch ${begun}; ${loop}`;
  let answer: unknown;
  const orphan = tools
    .run({ ...run('sh', '-c', script), deadlineMs: 15_000 })
    .then((result) => (answer = verdict(result)));
  await until('the tool runs', () => existsSync(begun));
  // What the broker says of the next one comes after what it has said of this one: which process it is.
  await tools.run(run('true'));
  signalProcess(broker, 'SIGKILL');
  try {
    await until('the orphan has ended', () => answer !== undefined);
  } finally {
    unlinkSync(reason);
  }
  assert.deepEqual(await orphan, ['broker-lost', 'unknown']);
});

test('when the broker dies, a tool that ends is answered while another one of it runs on', async (t) => {
  const tools = toolBroker(t);
  await tools.run(run('true'));
  const [pid = 0] = tools.pids();
  const scratch = scratchDirectory(t);
  const reasons = ['long', 'short'].map((name) => below(scratch, name));
  const answers: unknown[] = [];
  const orphans = reasons.map(async (reason, index) => {
    writeFileSync(reason, '');
    const loop = `while [ -e ${reason} ]; do sleep 0.05; done`;
    answers[index] = verdict(await tools.run({ ...run('sh', '-c', loop), deadlineMs: 3_600_000 }));
  });
  // What the broker says of the next one comes after what it has said of these: which processes they are.
  await tools.run(run('true'));
  signalProcess(pid, 'SIGKILL');
  const [long, short] = reasons;
  assert.ok(long !== undefined && short !== undefined);
  try {
    unlinkSync(short);
    await until('the short one is answered', () => answers[1]);
    assert.deepEqual([answers[0], answers[1]], [undefined, ['broker-lost', 'unknown']]);
  } finally {
    unlinkSync(long);
  }
  await Promise.all(orphans);
  assert.deepEqual(answers[0], ['broker-lost', 'unknown']);
});

test('a broker that takes no request any more is given up, and the next tool has another one', async (t) => {
  const tools = toolBroker(t, { silentMsMax: 1_000 });
  await tools.run(run('true'));
  const [pid = 0] = tools.pids();
  signalProcess(pid, 'SIGSTOP');
  t.after(() => existsSync(`/proc/${pid}`) && signalProcess(pid, 'SIGKILL'));
  let answer: unknown;
  void tools.run(run('true')).then((result) => (answer = verdict(result)));
  await until('the request is answered', () => answer !== undefined);
  assert.deepEqual(answer, ['broker-lost', 'unknown']);
  assert.deepEqual(verdict(await tools.run(run('true'))), 'ok');
  assert.notDeepEqual(tools.pids(), [pid]);
});

test('a broker with a tool that runs is not given up, however long it has nothing to say', async (t) => {
  const tools = toolBroker(t, { silentMsMax: 1_000 });
  await tools.run(run('true'));
  assert.deepEqual(verdict(await tools.run(run('sleep', '3'))), 'ok');
});

test('a broker that is gone is not named while a tool of it runs on: anybody may have its number', async (t) => {
  const tools = toolBroker(t);
  await tools.run(run('true'));
  const [pid = 0] = tools.pids();
  const reason = below(scratchDirectory(t), 'reason-to-run');
  writeFileSync(reason, '');
  const orphan = tools.run(run('sh', '-c', `while [ -e ${reason} ]; do sleep 0.05; done`));
  await tools.run(run('true'));
  signalProcess(pid, 'SIGKILL');
  await until(`${pid} is gone`, () => !existsSync(`/proc/${pid}`));
  assert.deepEqual(tools.pids(), []);
  unlinkSync(reason);
  assert.deepEqual(verdict(await orphan), ['broker-lost', 'unknown']);
});

test('a broker that cannot start is told to the caller, with no effect', async (t) => {
  const tools = toolBroker(t, { command: ['/nonexistent/node'] });
  assert.deepEqual(verdict(await tools.run(run('true'))), ['broker-lost', 'none']);
});

test('after closing no tool is run, and the broker is gone', async (t) => {
  const tools = toolBroker(t);
  await tools.run(run('true'));
  await tools.close();
  await until('the broker is gone', () => tools.pids().length === 0);
  assert.deepEqual(verdict(await tools.run(run('true'))), ['broker-lost', 'none']);
});

test('a tool is brought to its end by a broker that has something to say when its agent has gone', async (t) => {
  const scratch = scratchDirectory(t);
  const [begun, told, done] = ['begun', 'told', 'done'].map((name) => below(scratch, name));
  // The writer is called back before the error of the stream is heard; what is set down a turn later was survived.
  const tell = `import { writeFileSync } from 'node:fs';
    const survived = () => setImmediate(() => writeFileSync('${told}', ''));
    process.on('disconnect', () => process.stderr.write('late', survived));`;
  const [node = '', ...rest] = BROKER_COMMAND;
  const hook = `data:text/javascript,${encodeURIComponent(tell)}`;
  const broker = spawn(node, ['--import', hook, ...rest, 'tool'], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', 'ignore', 'ignore'],
    serialization: 'advanced',
  });
  t.after(() => broker.kill('SIGKILL'));
  const ended = once(broker, 'exit');
  await once(broker, 'message');
  const wait = `while kill -0 ${broker.pid} && ! [ -e ${told} ]; do sleep 0.05; done`;
  const script = `touch ${begun}; ${wait}; echo said && touch ${done}`;
  broker.send({ kind: 'tool', id: 1, request: run('sh', '-c', script) });
  await until('the tool runs', () => begun !== undefined && existsSync(begun));
  broker.stderr?.destroy();
  broker.disconnect();
  assert.deepEqual(await ended, [0, null]);
  assert.ok(done !== undefined && existsSync(done));
});
