/** A program of any kind as a process of its own: bound to our life, spoken to by lines, ended by its id. */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import type { ChildProcess, Ending } from '../demo/child-process.ts';

export interface Program extends ChildProcess {
  write(line: string): void;
  /** Everything said so far on both outputs. */
  said(): string;
  /** What came on the standard output alone: a report, without what is said of a wait. */
  printed(): string;
  /** The first line for which `holds`, of those said from now on or before. Rejects when the program ends first. */
  line(what: string, holds: (line: string) => boolean): Promise<string>;
}

const PATIENCE_MS = 120_000;
const LINE_MS = 300_000;

export function startProgram(name: string, argv: readonly string[], log: string): Program {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...argv], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    cwd: '/',
  });
  let text = '';
  let printed = '';
  let over = false;
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of [...listeners]) listener();
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      text += chunk;
      if (stream === child.stdout) printed += chunk;
      appendFileSync(log, chunk);
      tell();
    });
  }
  // Written to after its end: the end itself is what is reported.
  child.stdin.on('error', () => undefined);
  const ended = new Promise<Ending>((resolve) => {
    const settle = (code: number | null, signal: string | null): void => {
      over = true;
      resolve({ code, signal });
      tell();
    };
    child.once('error', () => settle(127, null));
    child.once('close', settle);
  });
  return {
    name,
    pid: child.pid ?? -1,
    ended,
    running: () => !over,
    said: () => text,
    printed: () => printed,
    write: (line) => void child.stdin.write(`${line}\n`),
    line(what, holds) {
      return new Promise((resolve, reject) => {
        const finish = (act: () => void): void => {
          clearTimeout(timer);
          listeners.delete(look);
          act();
        };
        const look = (): void => {
          const found = text.split('\n').slice(0, -1).find(holds);
          if (found !== undefined) finish(() => resolve(found));
          else if (over)
            finish(() => reject(new Error(`${name} ended without ${what}:\n${text.slice(-2_000)}`)));
        };
        const timer = setTimeout(
          () =>
            finish(() => reject(new Error(`${name}: no ${what} in ${LINE_MS} ms:\n${text.slice(-2_000)}`))),
          LINE_MS,
        );
        listeners.add(look);
        look();
      });
    },
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
