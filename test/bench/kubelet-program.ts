/** The program of test/interop/bench-kubelet over a root of its own: one JSON line per command, one per answer. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow, runToEnd } from '../demo/machine.ts';
import { type Program, startProgram } from '../interop/program.ts';
import { nowMs } from './clock.ts';
import { NOOP, startGoDriver } from './world.ts';

/** Milliseconds: of a clock of the command's own by uid of the pod, or of `nowMs` by its name. */
export interface KubeletAnswer {
  readonly book?: Readonly<Record<string, number>>;
  readonly gate?: Readonly<Record<string, number>>;
  readonly at?: Readonly<Record<string, number>>;
  readonly error?: string;
}

export interface KubeletPrograms {
  readonly 'bench-kubelet': string;
  readonly 'bench-driver': string;
}

export interface KubeletProgram {
  readonly root: string;
  pid(): number;
  /** Rejects when the program says that it could not. */
  ask(command: object): Promise<KubeletAnswer>;
  /** SIGKILL and a new life, which has not registered its driver yet. The answer: when it began, by `nowMs`. */
  restart(): Promise<number>;
  /** Ends both and unmounts everything below the root. */
  close(): Promise<void>;
}

/** Settles when the driver of the bench is registered. */
export async function startKubeletProgram(
  directory: string,
  programs: KubeletPrograms,
  further: readonly string[] = [],
): Promise<KubeletProgram> {
  const root = join(directory, 'root');
  for (const one of [`plugins/${NOOP}`, 'plugins_registry', 'pods'])
    mkdirSync(join(root, one), { recursive: true, mode: 0o750 });
  const driver = startGoDriver(programs['bench-driver'], root, join(directory, 'driver.log'));
  const flags = ['--root', root, '--driver', NOOP, '--log', join(directory, 'klog.log'), ...further];
  const start = (): Program =>
    startProgram('bench-kubelet', [programs['bench-kubelet'], ...flags], join(directory, 'kubelet.log'));
  let program = start();
  let asked = 0;
  await program.line('a registered driver', (line) => line.includes('"done":"registered"'));
  return {
    root,
    pid: () => program.pid,
    async ask(command) {
      asked += 1;
      const id = asked;
      program.write(JSON.stringify({ id, ...command }));
      const line = await program.line('an answer', (one) => one.startsWith(`{"id":${id},`));
      const answer = JSON.parse(line) as KubeletAnswer;
      if (answer.error !== undefined) throw new Error(`bench-kubelet: ${answer.error}`);
      return answer;
    },
    async restart() {
      await program.end('SIGKILL');
      const startMs = nowMs();
      program = start();
      return startMs;
    },
    async close() {
      for (const one of [program, driver]) await one.end('SIGKILL');
      // The root is no mount: what is below goes one by one, deepest first.
      for (const { target } of [...mountsBelow(root)].reverse())
        await runToEnd('umount', ['--lazy', '--', target]);
    },
  };
}
