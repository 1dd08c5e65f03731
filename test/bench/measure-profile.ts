/** `--cpu-prof DIR`: profiles of the agent while 110 pods x 4 volumes are set up and drained, for Chrome's tools. */
import { existsSync, mkdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { NODE_PODS } from './measure-node.ts';
import { benchPod, bystanders } from './pods.ts';
import { createWorld, NOOP, type World } from './world.ts';
import { signalProcess } from '../signal.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const AGENT = join(ROOT, 'agent/main.ts');
const TOP = 10;
/** A file that does not come within this is the agent's end. */
const PATIENCE_MS = 60_000;

/** Runs in the agent: SIGUSR2 begins a profile, and the next one writes it down. */
const MONITOR = `
import { Session } from 'node:inspector';
import { renameSync, writeFileSync } from 'node:fs';
if (process.argv[2] === 'agent') {
  const file = process.env.MOORING_BENCH_PROFILE;
  const session = new Session();
  session.connect();
  let running = false;
  const say = (text) => { writeFileSync(file + '.new', text); renameSync(file + '.new', file); };
  process.on('SIGUSR2', () => {
    running = !running;
    if (running) session.post('Profiler.enable', () => session.post('Profiler.start', () => say('begun')));
    else session.post('Profiler.stop', (error, answer) => say(JSON.stringify(answer.profile)));
  });
}`;

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export interface Expensive {
  readonly name: string;
  readonly ms: number;
  /** The share of all the time in which the agent's thread did something. */
  readonly share: number;
}

export interface ProfiledPhase {
  readonly phase: 'set-up' | 'drain';
  readonly file: string;
  readonly busyMs: number;
  readonly top: readonly Expensive[];
}

export interface ProfileOptions {
  readonly scratch: string;
  /** Where the profiles go; made when it is not there. */
  readonly into: string;
  readonly interrupted: AbortSignal;
}

/** The agent runs from its sources: in the bundle no function has its name. */
export async function measureProfiles({
  scratch,
  into,
  interrupted,
}: ProfileOptions): Promise<readonly ProfiledPhase[]> {
  mkdirSync(into, { recursive: true });
  const directory = join(scratch, 'profile');
  mkdirSync(directory, { mode: 0o700 });
  const monitor = join(directory, 'monitor.mjs');
  writeFileSync(monitor, MONITOR);
  const signalled = join(directory, 'profile.json');
  process.env['MOORING_BENCH_PROFILE'] = signalled;
  const agentArgv = [...process.execArgv, '--import', pathToFileURL(monitor).href, AGENT];
  const world = await createWorld({ directory, interrupted, agentArgv });
  try {
    return await profiled(world, signalled, into);
  } finally {
    await world.close();
  }
}

async function profiled(world: World, signalled: string, into: string): Promise<readonly ProfiledPhase[]> {
  const { log } = world;
  world.put('bystanders', bystanders(2 * NODE_PODS))();
  await world.untilIdle();
  const podsOf = (name: string) =>
    Array.from({ length: NODE_PODS }, (_, index) =>
      benchPod({
        name: `${name}-${index}`,
        driver: NOOP,
        csiVolumes: 1,
        others: ['secret', 'configMap', 'emptyDir'],
      }),
    );
  const run = async (name: string, around: typeof profile): Promise<readonly ProfiledPhase[]> => {
    const pods = podsOf(name);
    const publications = pods.flatMap((pod) => pod.publications);
    log.forget();
    const show = world.put(
      'pods',
      pods.flatMap(({ objects }) => objects),
    );
    const up = await around('set-up', async () => {
      show();
      await log.until('volume published', publications);
    });
    await world.untilIdle();
    const down = await around('drain', async () => {
      world.remove('pods');
      await log.until('volume unpublished', publications);
      await log.until(
        'volume unstaged',
        pods.flatMap(({ csiVolumes }) => csiVolumes),
      );
    });
    await world.untilIdle();
    return [up, down];
  };
  const profile = async (phase: ProfiledPhase['phase'], act: () => Promise<void>): Promise<ProfiledPhase> => {
    await signal(world.agentPid(), signalled);
    await act();
    const text = await signal(world.agentPid(), signalled);
    const file = join(into, `${phase}.cpuprofile`);
    writeFileSync(file, text);
    return { phase, file, ...expensiveOf(JSON.parse(text) as Profile) };
  };
  // What runs for the first time is compiled, and that would be most of the profile.
  await run('warm', async (phase, act) => {
    await act();
    return { phase, file: '', busyMs: 0, top: [] };
  });
  return run('full', profile);
}

/** Sends SIGUSR2 and waits for what the agent writes then. */
async function signal(pid: number, file: string): Promise<string> {
  rmSync(file, { force: true });
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      watcher.close();
      clearTimeout(timer);
      act();
    };
    const timer = setTimeout(
      () => settle(() => reject(new Error('the agent wrote no profile'))),
      PATIENCE_MS,
    );
    const watcher = watch(dirname(file), () => {
      if (existsSync(file)) settle(() => resolve(readFileSync(file, 'utf8')));
    });
    signalProcess(pid, 'SIGUSR2');
  });
}

const NOTHING = new Set(['(idle)', '(root)', '(program)']);

/**
 * Time of each function itself, without those it calls; what has the same name in the same file is added up. It is the
 * time that passed: where others want the processor, a call that wakes one of them has its time, too. Pure.
 */
export function expensiveOf({ nodes, samples, timeDeltas }: Profile): {
  readonly busyMs: number;
  readonly top: readonly Expensive[];
} {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const spent = new Map<string, number>();
  samples.forEach((id, index) => {
    const name = names.get(id) ?? '';
    if (!NOTHING.has(name)) spent.set(name, (spent.get(name) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1_000);
  });
  const busyMs = [...spent.values()].reduce((sum, ms) => sum + ms, 0);
  const top = [...spent]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, TOP)
    .map(([name, ms]) => ({ name, ms, share: ms / busyMs }));
  return { busyMs, top };
}

function nameOf({ functionName, url }: ProfileNode['callFrame']): string {
  if (url === '') return functionName;
  const place = url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : url;
  return `${functionName === '' ? '(anonymous)' : functionName} ${place}`;
}

export function profileTable(phases: readonly ProfiledPhase[]): string {
  return phases
    .map(({ phase, file, busyMs, top }) => {
      const lines = top.map(
        ({ name, ms, share }) =>
          `${ms.toFixed(1).padStart(9)} ms ${(share * 100).toFixed(1).padStart(5)} %  ${name}`,
      );
      return [`${phase}: ${busyMs.toFixed(0)} ms of the agent's own time (${file})`, ...lines].join('\n');
    })
    .join('\n\n');
}
