/** The agent's bundle as a subject: a manifest is renamed, the log is its book, the status' long poll its gate. */
import { mkdirSync } from 'node:fs';
import type { StatusDocument } from '../../../agent/status/status-document.ts';
import { readStatus, waitForStatus } from '../../demo/agent-status.ts';
import { nowMs } from '../clock.ts';
import { type BenchPod, bystanders } from '../pods.ts';
import { createWorld, type World } from '../world.ts';
import { podName, type Subject, type Told } from './subject.ts';

const DEADLINE_MS = 300_000;

export interface MooringOptions {
  readonly directory: string;
  readonly driver: string;
  readonly interrupted: AbortSignal;
  /** Pods without volumes: with fewer of them than of the others a drain waits as a mass removal does. */
  readonly bystanders: number;
}

export async function startMooring(options: MooringOptions): Promise<Subject> {
  const { directory, driver, interrupted } = options;
  mkdirSync(directory, { mode: 0o700 });
  const world = await createWorld({ directory, interrupted, driver });
  world.put('bystanders', bystanders(options.bystanders))();
  await world.untilIdle();
  return {
    name: 'mooring',
    root: world.root,
    pid: world.agentPid,
    up: (pods, gate) => up(world, pods, gate),
    down: (pods) => down(world, pods),
    async restart() {
      await world.killAgent();
      const startMs = nowMs();
      await world.startAgent();
      await waitForStatus(world.socket, isTold, {
        what: 'a restarted agent that tells of all pods again',
        deadlineMs: DEADLINE_MS,
        signal: interrupted,
      });
      const toldMs = nowMs();
      await world.untilIdle();
      return toldMs - startMs;
    },
    close: () => world.close(),
  };
}

/** Whether work goes on is not asked: the kubelet's book does not tell that either. */
function isTold({ summary, agent }: StatusDocument): boolean {
  return agent.complete && summary.podsReady === summary.podsWanted;
}

async function up(world: World, pods: readonly BenchPod[], gate: boolean): Promise<Told> {
  const { log } = world;
  log.forget();
  const show = world.put(
    'pods',
    pods.flatMap(({ objects }) => objects),
  );
  const opened = new Map<string, number>();
  // Asked once before the clock begins, so that the long poll already waits when the manifest comes.
  const { revision } = await readStatus(world.socket);
  const startMs = nowMs();
  const gates = gate ? untilOpened(world, pods.map(podName), revision, startMs, opened) : undefined;
  show();
  const published = await log.until(
    'volume published',
    pods.flatMap(({ publications }) => publications),
  );
  await gates;
  const last = (pod: BenchPod): number =>
    Math.max(...pod.publications.map((one) => published.get(one) ?? Number.NaN)) - startMs;
  return { book: new Map(pods.map((pod) => [podName(pod), last(pod)])), gate: opened };
}

/** Notes when the status first says that a pod is ready. */
async function untilOpened(
  { socket, interrupted }: World,
  names: readonly string[],
  revision: string,
  startMs: number,
  opened: Map<string, number>,
): Promise<void> {
  for (let after = revision; names.some((name) => !opened.has(name)); ) {
    interrupted.throwIfAborted();
    if (nowMs() - startMs > DEADLINE_MS) throw new Error('the status does not tell that the pods are ready');
    const status = await readStatus(socket, after);
    const atMs = nowMs() - startMs;
    for (const { name, ready } of status.pods)
      if (ready && names.includes(name) && !opened.has(name)) opened.set(name, atMs);
    after = status.revision;
  }
}

async function down(world: World, pods: readonly BenchPod[]): Promise<number> {
  const { log } = world;
  const startMs = nowMs();
  world.remove('pods');
  const unpublished = await log.until(
    'volume unpublished',
    pods.flatMap(({ publications }) => publications),
  );
  const unstaged = await log.until(
    'volume unstaged',
    pods.flatMap(({ csiVolumes }) => csiVolumes),
  );
  const endMs = Math.max(...unpublished.values(), ...unstaged.values());
  await world.untilIdle();
  return endMs - startMs;
}
