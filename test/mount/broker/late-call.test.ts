/** What an agent that is gone has asked for last: another one may be at work by then. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { below } from '../../../mount/host.ts';
import { BROKER_COMMAND } from '../../real/broker-command.ts';
import { signalProcess } from '../../signal.ts';
import { until } from '../../until.ts';
import { scratchDirectory } from '../scratch.ts';

/** Says the pid of its broker; has it asked when it is told what; ends by being killed. argv: kind, broker command. */
const AGENT = `
  import { spawn } from 'node:child_process';
  import { createInterface } from 'node:readline';
  const [kind, node, ...rest] = process.argv.slice(1);
  const stdio = ['ignore', 'ignore', 'inherit', 'ipc', 'ignore', 'ignore'];
  const broker = spawn(node, [...rest, kind], { stdio, serialization: 'advanced' });
  broker.once('message', () => console.log(broker.pid));
  createInterface(process.stdin).on('line', (line) => broker.send(JSON.parse(line), () => console.log('sent')));
`;

/** The broker of an agent that was killed, which has yet to read what it was asked for, goes on until it has ended. */
async function askAndDie(t: TestContext, kind: 'path' | 'tool', message: object): Promise<void> {
  const agent = spawn(process.execPath, ['--input-type=module', '-e', AGENT, kind, ...BROKER_COMMAND], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: agent.stdout })[Symbol.asyncIterator]();
  const broker = Number((await lines.next()).value);
  t.after(() => existsSync(`/proc/${broker}`) && signalProcess(broker, 'SIGKILL'));
  signalProcess(broker, 'SIGSTOP');
  agent.stdin.write(`${JSON.stringify(message)}\n`);
  assert.equal((await lines.next()).value, 'sent');
  const ended = once(agent, 'exit');
  agent.kill('SIGKILL');
  await ended;
  signalProcess(broker, 'SIGCONT');
  await until('the broker has ended', () => !existsSync(`/proc/${broker}`));
}

test('what an agent that was killed has asked a path broker for last is not done any more', async (t) => {
  const path = below(scratchDirectory(t), 'late');
  await askAndDie(t, 'path', {
    kind: 'path',
    id: 1,
    call: { kind: 'makeDirectory', args: { path, mode: 0o750 } },
  });
  assert.ok(!existsSync(path), 'nothing was made');
});

test('a tool that an agent that was killed has asked for last does not run any more', async (t) => {
  const path = below(scratchDirectory(t), 'late');
  const request = { tool: 'touch', argv: [path], deadlineMs: 60_000 };
  await askAndDie(t, 'tool', { kind: 'tool', id: 1, request });
  assert.ok(!existsSync(path), 'it has not run');
});
