/** A state root, a real driver process and real agent processes to kill, for the crash sweep. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import type { CrashPoint } from './crashing-host.ts';

const DRIVER = 'loopfile.mooring.dev';
const SETTLE_MS_MAX = 30_000;
/** Bundled CommonJS dependencies call require; an ES module has none. */
const BANNER =
  "import { createRequire as mooringRequire } from 'node:module'; const require = mooringRequire(import.meta.url);";

export interface AgentRun {
  /** Effects begun, by name, in order. */
  readonly effects: readonly string[];
  readonly ended: 'settled' | 'killed';
}

export interface SweepBench {
  readonly root: string;
  readonly pool: string;
  wish(manifest: string | undefined): void;
  /** Runs an agent until it settles or its crash point kills it; an agent that settled is killed then. */
  run(point: CrashPoint, effect: number): Promise<AgentRun>;
  close(): Promise<void>;
}

async function bundle(directory: string, entry: string, name: string): Promise<string> {
  const outfile = join(directory, name);
  const entryPoints = [new URL(`../../${entry}`, import.meta.url).pathname];
  await build({
    entryPoints,
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: BANNER },
    logLevel: 'error',
  });
  return outfile;
}

export async function createSweepBench(label: string): Promise<SweepBench> {
  const scratch = mkdtempSync(join(tmpdir(), `mooring-sweep-${label}-`));
  const [root, pool, manifests] = ['r', 'p', 'm'].map((name) => join(scratch, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [root, pool, manifests, join(root, 'plugins', DRIVER), join(root, 'plugins_registry')]) {
    mkdirSync(path, { recursive: true, mode: 0o750 });
  }
  const agentBundle = await bundle(scratch, 'test/real/agent-process.ts', 'agent.mjs');
  const brokerBundle = await bundle(scratch, 'mount/broker-main.ts', 'broker.mjs');
  const driverBundle = await bundle(scratch, 'plugins/loopfile/main.ts', 'driver.mjs');
  const create = ['create', '--pool', pool, '--name', 'data', '--size', '32Mi', '--yaml'];
  const volumeYaml = execFileSync(process.execPath, [driverBundle, ...create], { encoding: 'utf8' });
  const driver = spawn(
    process.execPath,
    [
      driverBundle,
      '--pool',
      pool,
      '--endpoint',
      `unix://${root}/plugins/${DRIVER}/csi.sock`,
      '--registry',
      join(root, 'plugins_registry'),
      '--node-id',
      'sweep-node',
    ],
    { stdio: ['ignore', 'ignore', process.env['SWEEP_LOG'] === '1' ? 'inherit' : 'ignore'] },
  );
  writeFileSync(join(manifests, 'volume.yaml'), volumeYaml);
  const live = new Set<ChildProcess>([driver]);

  return {
    root,
    pool,
    wish(manifest) {
      const path = join(manifests, 'pod.yaml');
      if (manifest === undefined) {
        rmSync(path, { force: true });
        return;
      }
      writeFileSync(join(scratch, 'pod.new'), manifest);
      renameSync(join(scratch, 'pod.new'), path);
    },
    async run(point, effect) {
      const child = spawn(
        process.execPath,
        [agentBundle, root, manifests, point, String(effect), brokerBundle],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      );
      live.add(child);
      const exited = new Promise<void>((resolve) => child.on('exit', () => resolve()));
      const effects: string[] = [];
      let ended: AgentRun['ended'] = 'killed';
      const overdue = setTimeout(() => child.kill('SIGKILL'), SETTLE_MS_MAX);
      for await (const line of createInterface({ input: child.stdout })) {
        const said = JSON.parse(line) as { effect?: number; name?: string; settled?: boolean };
        if (said.name !== undefined) effects.push(said.name);
        if (said.settled !== true) continue;
        ended = 'settled';
        child.kill('SIGKILL');
      }
      await exited;
      clearTimeout(overdue);
      live.delete(child);
      return { effects, ended };
    },
    async close() {
      for (const child of live) child.kill('SIGKILL');
      await Promise.all(
        [...live].map(
          (child) =>
            new Promise((resolve) => {
              if (child.exitCode !== null || child.signalCode !== null) resolve(undefined);
              else child.on('exit', resolve);
            }),
        ),
      );
      if (existsSync(scratch)) rmSync(scratch, { recursive: true, force: true });
    },
  };
}
