/** `--growth`: what a pod of four volumes costs on a node of ten pods and on one of a thousand. */
import { nowMs } from './clock.ts';
import { benchPod, bystanders } from './pods.ts';
import { treeCpuMs } from './process-cost.ts';
import { NOOP, type World } from './world.ts';

const STEPS = [10, 30, 100, 300, 1_000] as const;
const SHORT_STEPS = [10, 100] as const;
const PODS_PER_FILE = 50;
/** What runs for the first time is slower than what was compiled. */
const WARM_UP_PODS = 30;

interface Way {
  readonly ms: number;
  readonly cpuMs: number;
}

export interface Growth {
  readonly pods: number;
  readonly volumes: number;
  readonly up: Way;
  readonly down: Way;
}

export async function measureGrowth(
  world: World,
  short: boolean,
  progress: (what: string) => void,
): Promise<readonly Growth[]> {
  const steps = short ? SHORT_STEPS : STEPS;
  world.put('bystanders', bystanders(2 * Math.max(...steps)))();
  await world.untilIdle();
  await upAndDown(world, 'warm', WARM_UP_PODS);
  const grown: Growth[] = [];
  for (const pods of steps) {
    progress(`${pods} pods x 4 volumes`);
    grown.push(await upAndDown(world, `of${pods}`, pods));
  }
  return grown;
}

async function upAndDown(world: World, name: string, count: number): Promise<Growth> {
  const { log } = world;
  const pods = Array.from({ length: count }, (_, index) =>
    benchPod({
      name: `${name}-${index}`,
      driver: NOOP,
      csiVolumes: 1,
      others: ['secret', 'configMap', 'emptyDir'],
    }),
  );
  const publications = pods.flatMap((pod) => pod.publications);
  const files = Array.from({ length: Math.ceil(count / PODS_PER_FILE) }, (_, index) => `${name}-${index}`);
  log.forget();
  const shows = files.map((file, index) => {
    const part = pods.slice(index * PODS_PER_FILE, (index + 1) * PODS_PER_FILE);
    return world.put(
      file,
      part.flatMap(({ objects }) => objects),
    );
  });
  const up = await timed(world, async () => {
    for (const show of shows) show();
    return [await log.until('volume published', publications)];
  });
  const down = await timed(world, async () => {
    for (const file of files) world.remove(file);
    const volumes = pods.flatMap(({ csiVolumes }) => csiVolumes);
    return [await log.until('volume unpublished', publications), await log.until('volume unstaged', volumes)];
  });
  return { pods: count, volumes: publications.length, up, down };
}

async function timed(world: World, act: () => Promise<readonly ReadonlyMap<string, number>[]>): Promise<Way> {
  const cpuBefore = treeCpuMs(world.agentPid());
  const startMs = nowMs();
  const told = await act();
  const endMs = told.reduce((last, one) => Math.max(last, ...one.values()), 0);
  const cpuMs = treeCpuMs(world.agentPid()) - cpuBefore;
  await world.untilIdle();
  return { ms: endMs - startMs, cpuMs };
}

/** Each step per pod, and how many times the first step's that is. Pure. */
export function growthTable(grown: readonly Growth[]): string {
  const ways = [
    ['set up', ({ up }: Growth) => up.ms],
    ['  CPU', ({ up }: Growth) => up.cpuMs],
    ['drained', ({ down }: Growth) => down.ms],
    ['  CPU', ({ down }: Growth) => down.cpuMs],
  ] as const;
  const head = ['ms per pod (times the first)'.padEnd(30), ...grown.map(({ pods }) => cell(`${pods} pods`))];
  const lines = ways.map(([title, of]) => {
    const perPod = grown.map((one) => of(one) / one.pods);
    const first = perPod[0] ?? Number.NaN;
    return [title.padEnd(30), ...perPod.map((ms) => cell(`${ms.toFixed(1)} (${(ms / first).toFixed(2)})`))];
  });
  return [head, ...lines].map((one) => one.join('').trimEnd()).join('\n');
}

function cell(text: string): string {
  return text.padStart(16);
}
