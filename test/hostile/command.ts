/** Commands of the hostile world: each in a process that is given up, never waited for, when the kernel keeps it. */
import { spawn } from 'node:child_process';

export interface Ran {
  /** Null: it was given up. */
  readonly code: number | null;
  readonly output: string;
}

const PATIENCE_MS = 20_000;

/** Settles within the patience, whatever the command does. `descriptor` is its file descriptor 3. */
export function run(argv: readonly string[], descriptor?: number, patienceMs = PATIENCE_MS): Promise<Ran> {
  const [command = '', ...rest] = argv;
  const stdio = ['ignore', 'pipe', 'pipe', ...(descriptor === undefined ? [] : [descriptor])] as const;
  const child = spawn(command, rest, { stdio: [...stdio], cwd: '/' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8');
    stream?.on('data', (text: string) => {
      output += text;
    });
  }
  return new Promise((resolve) => {
    const settle = (code: number | null): void => {
      clearTimeout(timer);
      resolve({ code, output: output.trim() });
    };
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      child.unref();
      settle(null);
    }, patienceMs);
    child.once('error', () => settle(127));
    child.once('close', settle);
  });
}

/** Rejects with the command's own words when it fails. */
export async function must(argv: readonly string[]): Promise<string> {
  const { code, output } = await run(argv);
  if (code !== 0) throw new Error(`${argv.join(' ')}: ${code ?? 'given up'}: ${output}`);
  return output;
}
