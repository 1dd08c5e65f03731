import assert from 'node:assert/strict';
import { ChildProcess } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createBrokerPool } from '../../../mount/agent-side/broker-pool.ts';
import { type BrokerProcess, startBroker } from '../../../mount/agent-side/broker-process.ts';
import { createToolBroker } from '../../../mount/agent-side/tool-broker.ts';
import type { AbsolutePath } from '../../../mount/host.ts';
import { scratchDirectory } from '../scratch.ts';
import { until } from '../../until.ts';
import { withDescriptors } from '../with-descriptors.ts';

/** What happened to a broker that could not be started. */
async function beginning(command: readonly string[]): Promise<readonly string[]> {
  const seen: string[] = [];
  await new Promise<void>((resolve) => {
    const broker: BrokerProcess = startBroker(
      'path',
      { command, onLastWords: (words) => seen.push(words) },
      {
        onReady: () => seen.push('ready'),
        onSettled: () => seen.push('settled'),
        onDeath: () => seen.push('death'),
        onEnded: () => {
          seen.push(`ended ${broker.pid}`);
          resolve();
        },
      },
    );
    broker.keepAgentAlive(true);
    broker.send({ kind: 'tool', id: 1, request: { tool: 'true', argv: [], deadlineMs: 1_000 } });
    broker.disconnect();
    broker.kill();
  });
  return seen;
}

const NEVER_STARTED = ['death', 'ended undefined'];

/**
 * Nobody is to be killed where nothing was started. Node.js takes what lies in its memory for the id of such a child,
 * and each third time that was 0: a signal would end the tests and the gate around them. So none is really sent here.
 */
function withoutSignals(t: TestContext): { readonly sent: () => number } {
  const kill = t.mock.method(ChildProcess.prototype, 'kill', () => false);
  return { sent: () => kill.mock.callCount() };
}

test('a broker for which there is no descriptor ends at once, and nothing else does', async (t) => {
  const signals = withoutSignals(t);
  assert.deepEqual(await withDescriptors(0, () => beginning([process.execPath, 'broker'])), NEVER_STARTED);
  assert.equal(signals.sent(), 0);
});

test('one for which there are too few is not started, and none of them is lost', async (t) => {
  const signals = withoutSignals(t);
  const open = (): number => readdirSync('/proc/self/fd').length;
  for (let left = 0; left <= 14; left += 1) {
    const before = open();
    // What is started, where there are enough, is told that it is not wanted and ends.
    await withDescriptors(left, () => beginning([process.execPath, '--eval', 'process.exit(0)']));
    await until(`all of ${left} are closed`, () => open() === before);
  }
  assert.ok(signals.sent() <= 14);
});

test('so does one whose program is nowhere, which is told later', async (t) => {
  const signals = withoutSignals(t);
  assert.deepEqual(await beginning(['/nonexistent/node', 'broker']), NEVER_STARTED);
  assert.equal(signals.sent(), 0);
});

test('so does one that the kernel refuses to run', async (t) => {
  const signals = withoutSignals(t);
  const program = join(scratchDirectory(t), 'node');
  symlinkSync('node', program);
  assert.deepEqual(await beginning([program, 'broker']), NEVER_STARTED);
  assert.equal(signals.sent(), 0);
});

test('who calls where no broker can be started is told so, and has changed nothing', async (t) => {
  const program = join(scratchDirectory(t), 'node');
  symlinkSync('node', program);
  const paths = createBrokerPool({
    command: [program, 'broker'],
    deadlineMs: 20_000,
    removeTreeDeadlineMs: 20_000,
  });
  const tools = createToolBroker({ command: [program, 'broker'] });
  t.after(() => Promise.all([paths.close(), tools.close()]));
  const answers = await Promise.all([
    paths.call('inspect', { path: '/' as AbsolutePath }),
    tools.run({ tool: 'true', argv: [], deadlineMs: 20_000 }),
  ]);
  assert.deepEqual(
    answers.map((one) => (one.ok ? 'ok' : [one.failure.code, one.failure.effect])),
    [
      ['broker-lost', 'none'],
      ['broker-lost', 'none'],
    ],
  );
});

test('of what a broker said as it died the end is told, once', async () => {
  const program =
    "process.stderr.write('x'.repeat(100_000) + '\\nError: it broke\\n', () => process.exit(1))";
  const words = await new Promise<string>((resolve) => {
    const command = [process.execPath, '--eval', program];
    const events = { onReady: () => {}, onSettled: () => {}, onEnded: () => {} };
    startBroker('path', { command, onLastWords: resolve }, events).keepAgentAlive(true);
  });
  assert.equal(words, `${'x'.repeat(1_007)}\nError: it broke\n`);
});
