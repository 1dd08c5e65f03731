/** One round of one subject: the figures that both subjects have, each a number. */
import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_PODS } from '../measure-node.ts';
import { type BenchPod, benchPod } from '../pods.ts';
import { residentMb, treeCpuMs, treeMb } from '../process-cost.ts';
import { percentile } from '../statistics.ts';
import { NOOP } from '../world.ts';
import { checkMounted, checkUnmounted, type Subject, type Told } from './subject.ts';

export const FIGURE_IDS = [
  'one.book.p50',
  'one.book.p99',
  'one.gate.p50',
  'one.down.p50',
  'secret.book.p50',
  'hundred.book.p50',
  'hundred.book.p99',
  'node.up',
  'node.up.cpu',
  'node.down',
  'node.down.cpu',
  'restart',
  'memory.process',
  'memory.tree',
  'idle.cpu',
] as const;
export type FigureId = (typeof FIGURE_IDS)[number];
export type Round = Readonly<Record<FigureId, number>>;

export interface Extent {
  /** How often one pod is set up and taken down. */
  readonly singles: number;
  readonly idleSeconds: number;
}

export const MANY = 100;
/** So many pods before anything counts: what runs for the first time is slower than what was compiled. */
const WARM_UPS = 3;
/** Until what goes on after a set-up has ended; the kubelet's loops never do. */
const SETTLE_MS = 3_000;

export async function measureRound(
  subject: Subject,
  { singles, idleSeconds }: Extent,
  interrupted: AbortSignal,
): Promise<Round> {
  const one = await repeated(subject, singles, (index) =>
    benchPod({ name: `one-${index}`, driver: NOOP, csiVolumes: 1, others: [] }),
  );
  const secret = await repeated(subject, singles, (index) =>
    benchPod({ name: `quiet-${index}`, driver: NOOP, csiVolumes: 0, others: ['secret'] }),
  );
  const hundred = await upAndDown(subject, podsOf('hundred', MANY, []), false);
  const node = await measureNode(subject, idleSeconds, interrupted);
  return {
    'one.book.p50': percentile(one.book, 50),
    'one.book.p99': percentile(one.book, 99),
    'one.gate.p50': percentile(one.gate, 50),
    'one.down.p50': percentile(one.down, 50),
    'secret.book.p50': percentile(secret.book, 50),
    'hundred.book.p50': percentile([...hundred.book.values()], 50),
    'hundred.book.p99': percentile([...hundred.book.values()], 99),
    ...node,
  };
}

function podsOf(name: string, count: number, others: Parameters<typeof benchPod>[0]['others']): BenchPod[] {
  return Array.from({ length: count }, (_, index) =>
    benchPod({ name: `${name}-${index}`, driver: NOOP, csiVolumes: 1, others }),
  );
}

async function upAndDown(
  subject: Subject,
  pods: readonly BenchPod[],
  gate: boolean,
): Promise<Told & { readonly downMs: number }> {
  const told = await subject.up(pods, gate);
  checkMounted(subject, pods);
  const downMs = await subject.down(pods);
  checkUnmounted(subject);
  return { ...told, downMs };
}

async function repeated(
  subject: Subject,
  times: number,
  podOf: (index: number) => BenchPod,
): Promise<{ readonly book: number[]; readonly gate: number[]; readonly down: number[] }> {
  const all = { book: [] as number[], gate: [] as number[], down: [] as number[] };
  for (let index = 0; index < WARM_UPS + times; index += 1) {
    const { book, gate, downMs } = await upAndDown(subject, [podOf(index)], true);
    if (index < WARM_UPS) continue;
    all.book.push(...book.values());
    all.gate.push(...gate.values());
    all.down.push(downMs);
  }
  return all;
}

/** 110 pods with four volumes each: set up, left alone, restarted, drained. */
async function measureNode(subject: Subject, idleSeconds: number, interrupted: AbortSignal) {
  const pods = podsOf('full', NODE_PODS, ['secret', 'configMap', 'emptyDir']);
  const cpu = (): number => treeCpuMs(subject.pid());
  const beforeUp = cpu();
  const { book } = await subject.up(pods, false);
  const upCpu = cpu() - beforeUp;
  checkMounted(subject, pods);
  await sleep(SETTLE_MS, undefined, { signal: interrupted });
  const memory = { process: residentMb(subject.pid()), tree: treeMb(subject.pid()) };
  const beforeIdle = cpu();
  await sleep(idleSeconds * 1_000, undefined, { signal: interrupted });
  const idleCpu = cpu() - beforeIdle;
  const restart = await subject.restart(pods);
  checkMounted(subject, pods);
  await sleep(SETTLE_MS, undefined, { signal: interrupted });
  const beforeDown = cpu();
  const down = await subject.down(pods);
  const downCpu = cpu() - beforeDown;
  checkUnmounted(subject);
  return {
    'node.up': Math.max(...book.values()),
    'node.up.cpu': upCpu,
    'node.down': down,
    'node.down.cpu': downCpu,
    restart,
    'memory.process': memory.process,
    'memory.tree': memory.tree,
    'idle.cpu': idleCpu,
  };
}
