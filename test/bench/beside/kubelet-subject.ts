/** The kubelet's volume manager as a subject: its API is in memory, and has what `up` gives it. */
import { nowMs } from '../clock.ts';
import { type KubeletPrograms, startKubeletProgram } from '../kubelet-program.ts';
import type { BenchPod } from '../pods.ts';
import { podName, type Subject, type Told } from './subject.ts';

export async function startKubelet(directory: string, programs: KubeletPrograms): Promise<Subject> {
  const program = await startKubeletProgram(directory, programs);
  const { root, pid, ask, close } = program;

  async function up(pods: readonly BenchPod[]): Promise<Told> {
    const { book = {}, gate = {} } = await ask({ do: 'up', objects: pods.flatMap(({ objects }) => objects) });
    return { book: new Map(Object.entries(book)), gate: new Map(Object.entries(gate)) };
  }

  return {
    ...{ name: 'kubelet', root, pid, up, close },
    async down(pods) {
      const { book = {} } = await ask({ do: 'down', pods: pods.map(podName) });
      return Math.max(...Object.values(book));
    },
    async restart(pods) {
      const startMs = await program.restart();
      const { book, gate } = await up(pods);
      const answeredMs = nowMs() - startMs;
      // The answer waits for the gates; the book, which is asked for, was complete before.
      return answeredMs - Math.max(0, Math.max(...gate.values()) - Math.max(...book.values()));
    },
  };
}
