import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type AbsolutePath, below } from '../../../mount/host.ts';
import {
  instanceLockHolder,
  takeInstanceLock,
  waitForHelpers,
} from '../../../mount/process/instance-lock.ts';
import { runTool } from '../../../mount/tool.ts';
import { value } from '../../value.ts';
import { lockWaiter } from '../lock-waiter.ts';
import { scratchDirectory } from '../scratch.ts';
import { until } from '../../until.ts';

const AGENT = fileURLToPath(new URL('../agent-that-dies.ts', import.meta.url));

/** An ended process that nobody has waited for yet is no longer alive. */
function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
}

/** They are on their way out: their descriptors are closed a moment before they are gone. */
async function gone(pids: readonly number[]): Promise<void> {
  await until(`${pids.join(', ')} are gone`, () => !pids.some(isAlive));
}

async function startAgent(
  t: TestContext,
  lock: AbsolutePath,
  seconds: number,
): Promise<[ChildProcess, number[]]> {
  const agent = spawn(process.execPath, ['--import', 'tsx', AGENT, lock, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => agent.kill('SIGKILL'));
  const [line] = await once(createInterface(agent.stdout), 'line');
  return [agent, JSON.parse(String(line)) as number[]];
}

test('INV-35: of two agents on one root the second is told who is there', async (t) => {
  const path = below(scratchDirectory(t), 'lock');
  const lock = value(await takeInstanceLock(path));
  const second = await takeInstanceLock(path);
  assert.ok(!second.ok);
  assert.deepEqual(
    [second.failure.code, second.failure.effect, second.failure.blocker],
    ['already-running', 'none', `pid ${process.pid}`],
  );
  assert.equal(readFileSync(path, 'utf8'), `${process.pid}\n`);
  lock.release();
  value(await takeInstanceLock(path)).release();
});

test('a lock that a killed agent had, and something that it was about to start has yet, is waited for', async (t) => {
  const path = below(scratchDirectory(t), 'lock');
  const before = value(await takeInstanceLock(path));
  const taking = takeInstanceLock(path);
  await Promise.race([taking, lockWaiter()]);
  before.release();
  value(await taking).release();
});

test('what is at the place of the lock and cannot be read is told, and thrown to nobody', async (t) => {
  const path = below(scratchDirectory(t), 'lock');
  mkdirSync(path);
  const holder = await instanceLockHolder(path);
  assert.deepEqual(holder.ok ? 'ok' : [holder.failure.code, holder.failure.effect], [
    'path-wrong-kind',
    'none',
  ]);
});

test('the instance lock is not inherited by what the agent starts', async (t) => {
  const path = below(scratchDirectory(t), 'lock');
  const lock = value(await takeInstanceLock(path));
  const child = spawn('sleep', ['30'], { stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  lock.release();
  value(await takeInstanceLock(path)).release();
});

test('a lock without its directory is a missing path', async (t) => {
  const taken = await takeInstanceLock(below(scratchDirectory(t), 'x', 'lock'));
  assert.equal(taken.ok ? 'ok' : taken.failure.code, 'path-missing');
});

test('with no helper left there is nothing to wait for, and our own helpers do not exclude each other', async (t) => {
  const path = below(scratchDirectory(t), 'helpers.lock');
  const lock = value(await waitForHelpers(path));
  t.after(() => lock.release());
  assert.equal(lock.lingering, false);
  const held = await runTool({
    tool: 'flock',
    argv: ['--exclusive', '--nonblock', path, 'true'],
    deadlineMs: 5_000,
  });
  assert.equal(value(held).exitCode, 1);
});

test('a killed agent leaves no broker, and its running tool is waited for', async (t) => {
  const path = below(scratchDirectory(t), 'helpers.lock');
  const [agent, pids] = await startAgent(t, path, 0.5);
  assert.equal(pids.length, 2);
  const ended = once(agent, 'exit');
  agent.kill('SIGKILL');
  await ended;
  const lock = value(await waitForHelpers(path));
  t.after(() => lock.release());
  assert.equal(lock.lingering, false);
  await gone(pids);
});

test('a helper that does not end is reported, and the wait is bounded', async (t) => {
  const path = below(scratchDirectory(t), 'helpers.lock');
  const [agent, pids] = await startAgent(t, path, 7);
  agent.kill('SIGKILL');
  const lock = value(await waitForHelpers(path));
  t.after(() => lock.release());
  assert.equal(lock.lingering, true);
  await gone(pids);
});
