/** A part of the product as a process of its own: started, watched, ended by its id. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { findTool } from './machine.ts';

export interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface ChildProcess {
  readonly name: string;
  readonly pid: number;
  /** Never rejects. */
  readonly ended: Promise<Ending>;
  running(): boolean;
  /** Sends the signal and waits for the end; SIGKILL after `patienceMs`. */
  end(signal: NodeJS.Signals, patienceMs?: number): Promise<Ending>;
}

export interface ChildProcessOptions {
  readonly name: string;
  readonly argv: readonly string[];
  /** Its standard output and error go to the end of this file; or each line of both to the function. */
  readonly log: string | ((line: string) => void);
  readonly ipc?: (message: unknown) => void;
}

const PATIENCE_MS = 120_000;

/**
 * In a session of its own, so that Ctrl-C reaches only us and we end things in order; and bound to our life by
 * PR_SET_PDEATHSIG, so that it does not outlive us.
 */
export function startProcess({
  name,
  argv,
  log,
  ipc,
}: ChildProcessOptions): ChildProcess & { send(message: object): void } {
  const file = typeof log === 'string' ? openSync(log, 'a') : undefined;
  const output = file ?? 'pipe';
  const child = spawn(findTool('setpriv') ?? 'setpriv', ['--pdeathsig', 'KILL', process.execPath, ...argv], {
    stdio: ['ignore', output, output, ...(ipc === undefined ? [] : (['ipc'] as const))],
    detached: true,
    cwd: '/',
  });
  if (file !== undefined) closeSync(file);
  if (typeof log === 'function') for (const stream of [child.stdout, child.stderr]) readLines(stream, log);
  if (ipc !== undefined) child.on('message', ipc);
  let over = false;
  const ended = new Promise<Ending>((resolve) => {
    const settle = (code: number | null, signal: string | null): void => {
      over = true;
      resolve({ code, signal });
    };
    child.once('error', () => settle(127, null));
    child.once('exit', settle);
  });
  return {
    name,
    pid: child.pid ?? -1,
    ended,
    running: () => !over,
    send: (message) => void child.send(message),
    async end(signal, patienceMs = PATIENCE_MS) {
      if (over) return ended;
      child.kill(signal);
      const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
      const ending = await ended;
      clearTimeout(timer);
      return ending;
    },
  };
}

function readLines(stream: NodeJS.ReadableStream | null, line: (text: string) => void): void {
  let rest = '';
  stream?.setEncoding('utf8');
  stream?.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const one of lines) line(one);
  });
}

/** Runs one command of the product to its end. */
export async function runCommand(
  argv: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const lines: string[] = [];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => lines.push(chunk.toString('utf8')));
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('close', resolve);
  });
  return { code, output: lines.join('') };
}
