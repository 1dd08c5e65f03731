/** The command line of a node's agent, beside this process: the driver's judge is in here, and must not be held up. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { RealNode } from './real-node.ts';

export async function mooring(
  { scratch }: RealNode,
  ...given: readonly string[]
): Promise<{ readonly status: number | null; readonly stdout: string }> {
  const words = [join(scratch, 'mooring.mjs'), ...given, '--socket', join(scratch, 'agent.sock')];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  const [status] = await once(child, 'close');
  return { status: status as number | null, stdout };
}
