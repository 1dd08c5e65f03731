/** Agent and bundled driver, each started by its own name as an operator or systemd does, and a pod with a volume. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import { untilHealthy, waitForStatus } from '../demo/agent-status.ts';
import type { ChildProcess, Ending } from '../demo/child-process.ts';
import {
  detachLoopDevices,
  loopDevicesBelow,
  mountsBelow,
  readOrNothing,
  unmountAll,
} from '../demo/machine.ts';
import { bundle } from './bundle.ts';
import { podWith } from './real-node.ts';

const DEADLINE_MS = 300_000;
const LOG_LINES_SHOWN = 30;
const NODE_NAME = 'doors-node';
const PROGRAMS = ['driver', 'agent'] as const;

export type ProgramName = (typeof PROGRAMS)[number];

export interface ShippedAgentOptions {
  readonly t: TestContext;
  /** Executable files. */
  readonly programs: Readonly<Record<ProgramName, string>>;
  readonly scratch: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Words in front of the program, which becomes the program without another process. */
  readonly wrapper?: readonly string[];
  /** Told at once, before this process does anything else. */
  readonly onStart?: (started: { readonly program: ProgramName; readonly pid: number }) => void;
}

export interface ShippedAgent {
  /** Agent and driver run in it. */
  readonly directory: string;
  pid(program: ProgramName): number;
  untilMounted(): Promise<void>;
  /** Settles when the program has ended, and answers how. */
  ended(program: ProgramName): Promise<Ending>;
  /** Starts what does not run. */
  start(): Promise<void>;
  log(): string;
}

/** Bundles both before the tests of a file; their directory, of this short name, goes after them. */
export function shippedPrograms(name: string): Pick<ShippedAgentOptions, 'programs' | 'scratch'> {
  const scratch = mkdtempSync(join(tmpdir(), `mooring-${name}-`));
  const programs = { agent: '', driver: '' };
  before(async () => {
    [programs.agent, programs.driver] = await Promise.all([
      bundle(scratch, 'agent/main.ts', 'mooring.mjs'),
      bundle(scratch, 'plugins/loopfile/main.ts', 'mooring-loopfile.mjs'),
    ]);
  });
  after(() => rmSync(scratch, { recursive: true, force: true }));
  return { programs, scratch };
}

/** Taken down at the end of the test; what does not come down by itself then fails it. */
export async function startShippedAgent(options: ShippedAgentOptions): Promise<ShippedAgent> {
  const { t, programs, scratch } = options;
  const directory = mkdtempSync(join(scratch, 'node-'));
  const place = (name: string): string => join(directory, name);
  for (const name of ['root', 'manifests', 'pool']) mkdirSync(place(name), { mode: 0o750 });
  const registry = place('root/plugins_registry');
  const endpoint = place('root/plugins/loopfile.mooring.dev/csi.sock');
  for (const one of [registry, join(endpoint, '..')]) mkdirSync(one, { recursive: true, mode: 0o750 });
  const volume = ['create', '--pool', place('pool'), '--name', 'data', '--size', '16Mi', '--yaml'];
  const yaml = execFileSync(programs.driver, volume, { encoding: 'utf8' });
  writeFileSync(place('manifests/data.yaml'), yaml);
  writeFileSync(place('manifests/pod.yaml'), podWith('data'));
  const socket = place('agent.sock');
  const config = { root: place('root'), manifests: place('manifests'), socket, node_name: NODE_NAME };
  // An agent that is killed with a call open remembers the call for the sum of both.
  const remembered = { csi_deadline_ms: 30_000, late_effect_ms: 1_000 };
  const backOff = { first_ms: 50, max_ms: 500 };
  writeFileSync(place('config.yaml'), JSON.stringify({ ...config, ...remembered, back_off: backOff }));
  const words: Readonly<Record<ProgramName, readonly string[]>> = {
    agent: ['agent', '--config', place('config.yaml'), '--allow-private-mount-namespace'],
    driver: [
      '--pool',
      place('pool'),
      '--endpoint',
      `unix://${endpoint}`,
      '--registry',
      registry,
      '--node-id',
      NODE_NAME,
    ],
  };
  const log = place('log');
  const { signal } = new AbortController();
  const running = new Map<ProgramName, ChildProcess>();

  async function start(): Promise<void> {
    for (const program of PROGRAMS) {
      if (running.get(program)?.running()) continue;
      const argv = [...(options.wrapper ?? []), programs[program], ...words[program]];
      const child = startNamed({ program, argv, log, directory, environment: options.environment ?? {} });
      running.set(program, child);
      options.onStart?.({ program, pid: child.pid });
      if (program === 'agent') await untilHealthy(socket, child, signal).catch(withLog);
    }
  }

  function withLog(error: unknown): never {
    const lines = (readOrNothing(log) ?? '').trimEnd().split('\n').slice(-LOG_LINES_SHOWN);
    throw new Error([String(error), ...lines].join('\n'));
  }

  const processOf = (program: ProgramName): ChildProcess =>
    running.get(program) ?? assert.fail(`the ${program} was started`);
  const until = (what: string, mounted: number): Promise<unknown> =>
    waitForStatus(
      socket,
      ({ pods, volumes, summary }) =>
        pods.flatMap((pod) => pod.volumes).filter(({ state }) => state === 'mounted').length === mounted &&
        volumes.length === mounted &&
        summary.operationsRunning + summary.operationsQueued === 0,
      { what, deadlineMs: DEADLINE_MS, signal },
    );

  t.after(async () => {
    await start();
    rmSync(place('manifests/pod.yaml'));
    await until('nothing to be left', 0);
    for (const program of PROGRAMS) await processOf(program).end('SIGTERM');
    assert.deepEqual(await takeAway(directory), []);
  });
  await start();
  return {
    directory,
    start,
    pid: (program) => processOf(program).pid,
    ended: (program) => processOf(program).ended,
    untilMounted: async () => void (await until('the volume of the pod', 1)),
    log: () => readOrNothing(log) ?? '',
  };
}

interface Named {
  readonly program: ProgramName;
  readonly argv: readonly string[];
  readonly log: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Bound to our life by PR_SET_PDEATHSIG; its pid is the program's, because each word before becomes the next. */
function startNamed({ program, argv, log, directory, environment }: Named): ChildProcess {
  const file = openSync(log, 'a');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], {
    cwd: directory,
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', file, file],
    detached: true,
  });
  closeSync(file);
  const ended = once(child, 'exit').then(([code, signal]): Ending => ({ code, signal }));
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    name: program,
    pid: child.pid ?? assert.fail('setpriv starts'),
    ended,
    running,
    end(signal) {
      if (running()) child.kill(signal);
      return ended;
    },
  };
}

async function takeAway(directory: string): Promise<readonly string[]> {
  const mounts = mountsBelow(directory);
  const devices = loopDevicesBelow(directory);
  await unmountAll([...mounts].reverse());
  await detachLoopDevices(directory, devices);
  rmSync(directory, { recursive: true, force: true });
  return [...mounts.map(({ target }) => target), ...devices];
}
