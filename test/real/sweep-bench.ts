/** A state root, a real driver behind its judge, and real agent processes to kill, for the crash sweeps. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bundle } from './bundle.ts';
import type { CrashPoint } from './crashing-host.ts';
import { type JudgedDriver, startJudgedDriver } from './judged-driver.ts';

const NODE = 'sweep-node';
const SETTLE_MS_MAX = 300_000;

export interface AgentRun {
  /** Effects begun, by name, in order. */
  readonly effects: readonly string[];
  readonly ended: 'settled' | 'killed';
}

export interface SweepBench {
  readonly root: string;
  readonly driver: JudgedDriver;
  /** What is in the manifests beside the wish. */
  volumes(yaml: string): void;
  wish(manifest: string | undefined): void;
  /** Runs an agent until it settles or its crash point kills it; an agent that settled is killed then. */
  run(point: CrashPoint, effect: number): Promise<AgentRun>;
  close(): Promise<void>;
}

/** `steadyWish`: the manifests only come and go. */
export async function createSweepBench(label: string, steadyWish: boolean): Promise<SweepBench> {
  const scratch = mkdtempSync(join(tmpdir(), `mooring-sweep-${label}-`));
  const root = join(scratch, 'r');
  const manifests = join(scratch, 'm');
  for (const path of [root, manifests]) mkdirSync(path, { mode: 0o750 });
  const agentBundle = await bundle(scratch, 'test/real/agent-process.ts', 'agent.mjs');
  const brokerBundle = await bundle(scratch, 'test/broker-main.ts', 'broker.mjs');
  const program = await bundle(scratch, 'plugins/loopfile/main.ts', 'driver.mjs');
  const driver = await startJudgedDriver({ program, scratch, root, nodeName: NODE, steadyWish });
  const live = new Set<ChildProcess>();

  function put(name: string, text: string): void {
    writeFileSync(join(scratch, 'new.yaml'), text);
    renameSync(join(scratch, 'new.yaml'), join(manifests, name));
  }

  return {
    root,
    driver,
    volumes: (yaml) => put('volumes.yaml', yaml),
    wish(manifest) {
      if (manifest === undefined) rmSync(join(manifests, 'pod.yaml'), { force: true });
      else put('pod.yaml', manifest);
    },
    async run(point, effect) {
      const argv = [agentBundle, root, manifests, point, String(effect), brokerBundle];
      const child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, ...argv], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      live.add(child);
      const exited = once(child, 'exit');
      const effects: string[] = [];
      let ended: AgentRun['ended'] = 'killed';
      const overdue = setTimeout(() => child.kill('SIGTERM'), SETTLE_MS_MAX);
      for await (const line of createInterface({ input: child.stdout })) {
        const said = JSON.parse(line) as { effect?: number; name?: string; settled?: boolean };
        if (said.name !== undefined) effects.push(said.name);
        if (said.settled !== true) continue;
        ended = 'settled';
        child.kill('SIGKILL');
      }
      const [code, signal] = await exited;
      clearTimeout(overdue);
      live.delete(child);
      driver.agentIsGone();
      if (signal !== 'SIGKILL') {
        const last = `after effect ${effects.length} (${effects.at(-1)})`;
        throw new Error(`the agent ended by itself or never settled: ${signal ?? code}, ${last}`);
      }
      return { effects, ended };
    },
    async close() {
      for (const child of live) child.kill('SIGKILL');
      await driver.close();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}
