/** Another program that keeps a place busy. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

/** Node calls what is to come after a test in the order in which it was asked for, and no more once one has failed. */
const holders = new WeakMap<TestContext, ChildProcess[]>();

/** Settles when it has said its first word, and so has what it was to open; it ends with the test at the latest. */
export async function holder(t: TestContext, command: string, ...argv: string[]): Promise<ChildProcess> {
  const child = spawn(command, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  holders.set(t, [...(holders.get(t) ?? []), child]);
  await once(child.stdout, 'data');
  return child;
}

/** Settles when it is gone; at once when it was. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** Those of this test, before what they hold is unmounted and removed. */
export async function endHolders(t: TestContext): Promise<void> {
  await Promise.all((holders.get(t) ?? []).map(end));
}
