/** How long the agent's loop stands still, at most, while hostile manifests lie beside good ones. */
import { existsSync, mkdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { hostileManifests } from '../agent/hostile-manifests.ts';
import { untilHealthy, waitForStatus } from '../demo/agent-status.ts';
import { AGENT_BUNDLE } from '../demo/bundles.ts';
import { type ChildProcess, startProcess } from '../demo/child-process.ts';
import { nowMs } from './clock.ts';
import { residentMb } from './process-cost.ts';
import { signalProcess } from '../signal.ts';

export interface LoopStop {
  readonly hostile: number;
  readonly hostileBytes: number;
  readonly good: number;
  /** From the start of the agent until every good pod has what it wants. */
  readonly goodSeconds: number;
  /** From the start until every hostile file was judged, or the last look. */
  readonly judgedSeconds: number;
  /** The longest time between two turns of the agent's loop, with modules loaded, and its own CPU time in one turn. */
  readonly longestMs: number;
  readonly longestCpuMs: number;
  readonly agentMb: number;
}

const DEADLINE_MS = 900_000;

/** Runs in the agent: SIGUSR2 writes down what was measured and begins anew. */
const MONITOR = `
import { renameSync, writeFileSync } from 'node:fs';
if (process.argv[2] === 'agent') {
  const file = process.env.MOORING_BENCH_LOOP_FILE;
  let last = performance.now(), cpu = process.cpuUsage(), longestMs = 0, longestCpuMs = 0;
  setInterval(() => {
    const now = performance.now(), used = process.cpuUsage(cpu);
    longestMs = Math.max(longestMs, now - last);
    longestCpuMs = Math.max(longestCpuMs, (used.user + used.system) / 1000);
    last = now; cpu = process.cpuUsage();
  }, 1).unref();
  process.on('SIGUSR2', () => {
    writeFileSync(file + '.new', JSON.stringify({ longestMs, longestCpuMs })); renameSync(file + '.new', file);
    longestMs = longestCpuMs = 0; last = performance.now(); cpu = process.cpuUsage();
  });
}`;

export interface LoopStopParts {
  readonly directory: string;
  readonly hostile: number;
  readonly hostileBytes: number;
  readonly good: number;
  readonly interrupted: AbortSignal;
}

/** An agent of its own, started upon the directory as it is. */
export async function measureLoopStop(parts: LoopStopParts): Promise<LoopStop> {
  const { directory, hostile, hostileBytes, good, interrupted } = parts;
  const root = join(directory, 'root');
  const manifests = join(directory, 'manifests');
  const socket = join(directory, 'agent.sock');
  for (const one of [root, manifests]) mkdirSync(one, { recursive: true, mode: 0o750 });
  for (const [name, text] of hostileManifests(hostile, hostileBytes))
    writeFileSync(join(manifests, `a-${name}`), text);
  for (let index = 0; index < good; index += 1)
    writeFileSync(join(manifests, `z-good-${index}.yaml`), goodPod(index));
  const configFile = join(directory, 'config.yaml');
  writeFileSync(configFile, JSON.stringify({ root, socket, manifests, allow_private_mount_namespace: true }));
  const monitor = join(directory, 'monitor.mjs');
  writeFileSync(monitor, MONITOR);
  const loopFile = join(directory, 'loop.json');
  process.env['MOORING_BENCH_LOOP_FILE'] = loopFile;
  const startMs = nowMs();
  const measuring: { agent?: ChildProcess } = {};
  const line = (text: string): void => {
    if (text.includes('"agent starting"') && measuring.agent !== undefined)
      signalProcess(measuring.agent.pid, 'SIGUSR2');
  };
  const argv = ['--import', pathToFileURL(monitor).href, AGENT_BUNDLE, 'agent', '--config', configFile];
  const agent = startProcess({ name: 'agent', argv: [...argv, '--log-format', 'json'], log: line });
  measuring.agent = agent;
  try {
    await untilHealthy(socket, agent, interrupted);
    const until = (what: string, holds: Parameters<typeof waitForStatus>[1]) =>
      waitForStatus(socket, holds, { what, deadlineMs: DEADLINE_MS, signal: interrupted });
    await until('the good pods', ({ summary }) => summary.podsReady >= good);
    const goodSeconds = (nowMs() - startMs) / 1_000;
    await until('all files to be judged', ({ agent: { complete } }) => complete);
    const judgedSeconds = (nowMs() - startMs) / 1_000;
    rmSync(loopFile, { force: true });
    const { longestMs, longestCpuMs } = await new Promise<LoopStop>((resolve) => {
      const watcher = watch(directory, () => {
        if (!existsSync(loopFile)) return;
        watcher.close();
        resolve(JSON.parse(readFileSync(loopFile, 'utf8')) as LoopStop);
      });
      signalProcess(agent.pid, 'SIGUSR2');
    });
    const agentMb = residentMb(agent.pid);
    return { hostile, hostileBytes, good, goodSeconds, judgedSeconds, longestMs, longestCpuMs, agentMb };
  } finally {
    await agent.end('SIGKILL');
  }
}

function goodPod(index: number): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: good-${index}, uid: good-${index} }
spec:
  containers: [{ name: main, volumeMounts: [{ name: tmp, mountPath: /tmp }] }]
  volumes: [{ name: tmp, emptyDir: {} }]
`;
}
