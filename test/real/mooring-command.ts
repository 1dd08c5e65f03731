/** The command line of a node's agent, beside this process: the driver's judge is in here, and must not be held up. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { RealNode } from './real-node.ts';

export interface MooringCommand {
  /** What it said so far. */
  said(): string;
  /** It has said something. */
  readonly begun: Promise<unknown>;
  /** With its exit status. */
  readonly ended: Promise<number | null>;
}

export function beginMooring({ scratch }: RealNode, ...given: readonly string[]): MooringCommand {
  const words = [join(scratch, 'mooring.mjs'), ...given, '--socket', join(scratch, 'agent.sock')];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  return {
    said: () => said,
    begun: once(child.stdout, 'data'),
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
}

export async function mooring(
  node: RealNode,
  ...given: readonly string[]
): Promise<{ readonly status: number | null; readonly stdout: string }> {
  const { said, ended } = beginMooring(node, ...given);
  const status = await ended;
  return { status, stdout: said() };
}
