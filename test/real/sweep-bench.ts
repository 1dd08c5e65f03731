/** A state root, a real driver behind its judge, and real agent processes to kill, for the crash sweeps. */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
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

/** What an agent says; see agent-process.ts. */
interface Said {
  readonly name?: string;
  readonly settled?: boolean;
  /** An agent that settled had no volume to bring about. */
  readonly empty?: boolean;
  readonly armed?: boolean;
  /** What one that is ended because it has not settled says last. */
  readonly waitsFor?: object;
}

interface SweepAgent {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly lines: AsyncIterator<string>;
  readonly exited: Promise<unknown[]>;
}

export interface SweepBench {
  readonly root: string;
  readonly driver: JudgedDriver;
  /** What is in the manifests beside the wish. */
  volumes(yaml: string): void;
  wish(manifest: string | undefined): void;
  /** Runs an agent until it settles or its crash point kills it; an agent that settled is killed then. */
  run(point: CrashPoint, effect: number): Promise<AgentRun>;
  /** Starts an agent that nothing kills; when it has settled it goes on. */
  startAndGoOn(): Promise<void>;
  /** Kills the agent that goes on, if there is one. */
  stop(): Promise<void>;
  /** Changes the wish under the agent that goes on, until that has settled, or its crash point killed it. */
  change(manifest: string | undefined, point: CrashPoint, effect: number): Promise<AgentRun>;
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
  let live: SweepAgent | undefined;

  function put(name: string, text: string): void {
    writeFileSync(join(scratch, 'new.yaml'), text);
    renameSync(join(scratch, 'new.yaml'), join(manifests, name));
  }

  function start(point: CrashPoint, effect: number): SweepAgent {
    const argv = [agentBundle, root, manifests, point, String(effect), brokerBundle];
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, ...argv], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    // Written to after its end: the end itself is what is reported.
    child.stdin.on('error', () => undefined);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    live = { child, lines, exited: once(child, 'exit') };
    return live;
  }

  /** Until the agent has settled, as it is wanted, or is gone. */
  async function outcome(agent: SweepAgent, isWanted: (said: Said) => boolean): Promise<AgentRun> {
    const effects: string[] = [];
    let waitsFor: object | undefined;
    const overdue = setTimeout(() => agent.child.kill('SIGTERM'), SETTLE_MS_MAX);
    try {
      for (let said = await next(agent); said !== undefined; said = await next(agent)) {
        if (said.name !== undefined) effects.push(said.name);
        waitsFor = said.waitsFor;
        if (said.settled === true && isWanted(said)) return { effects, ended: 'settled' };
      }
    } finally {
      clearTimeout(overdue);
    }
    const signal = await end();
    if (signal === 'SIGKILL') return { effects, ended: 'killed' };
    const last = `after effect ${effects.length} (${effects.at(-1)})`;
    const why = JSON.stringify(waitsFor);
    throw new Error(`the agent ended by itself or never settled: ${signal}, ${last}; it waits for ${why}`);
  }

  /** Kills the agent if there is one; what ended it. */
  async function end(): Promise<unknown> {
    if (live === undefined) return undefined;
    const { child, exited } = live;
    live = undefined;
    child.kill('SIGKILL');
    const [code, signal] = await exited;
    driver.agentIsGone();
    return signal ?? code;
  }

  const bench: SweepBench = {
    root,
    driver,
    volumes: (yaml) => put('volumes.yaml', yaml),
    wish(manifest) {
      if (manifest === undefined) rmSync(join(manifests, 'pod.yaml'), { force: true });
      else put('pod.yaml', manifest);
    },
    async run(point, effect) {
      await end();
      const agent = start(point, effect);
      const run = await outcome(agent, () => true);
      await end();
      return run;
    },
    async startAndGoOn() {
      await end();
      await outcome(start('before', 0), () => true);
    },
    async stop() {
      await end();
    },
    async change(manifest, point, effect) {
      const agent = live ?? assert.fail('there is no agent that has settled');
      agent.child.stdin.write(`${JSON.stringify({ point, effect })}\n`);
      for (let said = await next(agent); said?.armed !== true; said = await next(agent))
        assert.ok(said !== undefined, 'the agent ended by itself before it was told what to do');
      bench.wish(manifest);
      return outcome(agent, ({ empty }) => empty === (manifest === undefined));
    },
    async close() {
      await end();
      await driver.close();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
  return bench;
}

/** The next line that the agent says; undefined when it has ended. */
async function next({ lines }: SweepAgent): Promise<Said | undefined> {
  const line = await lines.next();
  return line.done === true ? undefined : (JSON.parse(line.value) as Said);
}
