/** Another program that keeps a place busy. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

/** Settles when it has said its first word, and so has what it was to open; it ends with the test at the latest. */
export async function holder(t: TestContext, command: string, ...argv: string[]): Promise<ChildProcess> {
  const child = spawn(command, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

/** Settles when it is gone. */
export async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
