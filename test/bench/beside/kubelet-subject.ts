/** The program of test/interop/bench-kubelet as a subject: one JSON line per command, one per answer. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow, runToEnd } from '../../demo/machine.ts';
import { type Program, startProgram } from '../../interop/program.ts';
import { nowMs } from '../clock.ts';
import type { BenchPod } from '../pods.ts';
import { NOOP, startGoDriver } from '../world.ts';
import { podName, type Subject, type Told } from './subject.ts';

interface Answer {
  readonly book?: Readonly<Record<string, number>>;
  readonly gate?: Readonly<Record<string, number>>;
  readonly error?: string;
}

export interface KubeletPrograms {
  readonly 'bench-kubelet': string;
  readonly 'bench-driver': string;
}

export async function startKubelet(directory: string, programs: KubeletPrograms): Promise<Subject> {
  const root = join(directory, 'root');
  for (const one of [`plugins/${NOOP}`, 'plugins_registry', 'pods'])
    mkdirSync(join(root, one), { recursive: true, mode: 0o750 });
  const driver = startGoDriver(programs['bench-driver'], root, join(directory, 'driver.log'));
  const flags = ['--root', root, '--driver', NOOP, '--log', join(directory, 'klog.log')];
  const start = (): Program =>
    startProgram('bench-kubelet', [programs['bench-kubelet'], ...flags], join(directory, 'kubelet.log'));
  let program = start();
  let asked = 0;

  async function ask(command: object): Promise<Answer> {
    asked += 1;
    const id = asked;
    program.write(JSON.stringify({ id, ...command }));
    const line = await program.line('an answer', (one) => one.startsWith(`{"id":${id},`));
    const answer = JSON.parse(line) as Answer;
    if (answer.error !== undefined) throw new Error(`bench-kubelet: ${answer.error}`);
    return answer;
  }

  async function up(pods: readonly BenchPod[]): Promise<Told> {
    const { book = {}, gate = {} } = await ask({ do: 'up', objects: pods.flatMap(({ objects }) => objects) });
    return { book: new Map(Object.entries(book)), gate: new Map(Object.entries(gate)) };
  }

  const untilRegistered = (): Promise<string> =>
    program.line('a registered driver', (line) => line.includes('"done":"registered"'));

  await untilRegistered();
  return {
    name: 'kubelet',
    root,
    pid: () => program.pid,
    up,
    async down(pods) {
      const { book = {} } = await ask({ do: 'down', pods: pods.map(podName) });
      return Math.max(...Object.values(book));
    },
    async restart(pods) {
      await program.end('SIGKILL');
      const startMs = nowMs();
      program = start();
      const { book, gate } = await up(pods);
      const answeredMs = nowMs() - startMs;
      // The answer waits for the gates; the book, which is asked for, was complete before.
      return answeredMs - Math.max(0, Math.max(...gate.values()) - Math.max(...book.values()));
    },
    async close() {
      for (const one of [program, driver]) await one.end('SIGKILL');
      // The root is no mount: what is below goes one by one, deepest first.
      for (const { target } of [...mountsBelow(root)].reverse())
        await runToEnd('umount', ['--lazy', '--', target]);
    },
  };
}
