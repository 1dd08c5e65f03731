/** A process that stands for a container: it works in a place of a volume, until somebody ends it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { readOrNothing } from '../demo/machine.ts';
import { until } from '../until.ts';

export interface Container {
  readonly pid: number;
  end(): Promise<void>;
}

const WRITE_MS = 2;

/** It has the place open, and does nothing. */
export function startHolder(place: string): Promise<Container> {
  return start(place, ['sleep', '3600']);
}

/** It writes who it is, with a number, as long as it lives, refused or not. Settles when it has begun. */
export async function startWriter(place: string, who: string): Promise<Container> {
  const script = `n=0; while :; do n=$((n+1)); echo "${who} $n" >> log; sleep ${WRITE_MS / 1_000}; done`;
  const writer = await start(place, ['sh', '-c', script]);
  try {
    await until(`${who} writes`, () => logIn(place).includes(`${who} 3\n`));
    return writer;
  } catch (error) {
    await writer.end();
    throw error;
  }
}

/** What all writers have written there so far. */
export function logIn(place: string): string {
  return readOrNothing(join(place, 'log')) ?? '';
}

/** It ends with this process, however that ends. */
async function start(place: string, argv: readonly string[]): Promise<Container> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...argv], { cwd: place, stdio: 'ignore' });
  await once(child, 'spawn');
  return {
    pid: child.pid ?? -1,
    async end() {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** The first line of each run of one writer, in order: a writer that comes twice has written after another one. */
export function turnsIn(log: string): readonly string[] {
  const turns: string[] = [];
  for (const line of log.split('\n').filter((one) => /^\S+ \d+$/.test(one))) {
    const who = line.slice(0, line.indexOf(' '));
    if (turns.at(-1) !== who) turns.push(who);
  }
  return turns;
}
