/** One agent with one no-op driver below a directory of their own. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isIdle, untilHealthy, waitForStatus } from '../demo/agent-status.ts';
import { AGENT_BUNDLE, DRIVER_BUNDLE } from '../demo/bundles.ts';
import { type ChildProcess, runCommand, startProcess } from '../demo/child-process.ts';
import { detachLoopDevices, loopDevicesBelow, mountsBelow, runToEnd } from '../demo/machine.ts';
import { startProgram } from '../interop/program.ts';
import { type AgentLog, createAgentLog } from './agent-log.ts';
import { type DriverCall, type NoopDriver, startNoopDriver } from './noop-driver-process.ts';
import { manifestOf } from './pods.ts';

export const NOOP = 'noop.mooring.dev';
export const LOOPFILE = 'loopfile.mooring.dev';

export interface World {
  readonly directory: string;
  /** The root of its state. */
  readonly root: string;
  readonly socket: string;
  readonly log: AgentLog;
  readonly interrupted: AbortSignal;
  agentPid(): number;
  /** Calls to the no-op driver since this was asked last. */
  calls(): Promise<readonly DriverCall[]>;
  /** Replaces a manifest by rename; the file is written before, so that its time is not measured. */
  put(name: string, objects: readonly object[]): () => void;
  remove(name: string): void;
  untilIdle(): Promise<void>;
  startAgent(): Promise<void>;
  killAgent(): Promise<void>;
  startLoopfile(): Promise<void>;
  loopfile(...argv: readonly string[]): Promise<string>;
  /** Ends the processes, unmounts and detaches everything below the directory. */
  close(): Promise<void>;
}

const DEADLINE_MS = 300_000;

/** Where a driver below a state root listens: their directories are there. */
export function driverSockets(root: string): { readonly endpoint: string; readonly registration: string } {
  return {
    endpoint: join(root, 'plugins', NOOP, 'csi.sock'),
    registration: join(root, 'plugins_registry', `${NOOP}-reg.sock`),
  };
}

/** The driver of test/interop/bench-driver, which ends with its standard input. */
export function startGoDriver(program: string, root: string, log: string): ChildProcess {
  const { endpoint, registration } = driverSockets(root);
  const flags = ['--name', NOOP, '--endpoint', endpoint, '--registration', registration];
  return startProgram('bench-driver', [program, ...flags], log);
}

export interface WorldOptions {
  readonly directory: string;
  readonly interrupted: AbortSignal;
  /** Whether the no-op driver stages; by default it does. */
  readonly stage?: boolean;
  /** Another program in its place, given the same sockets: it stages, and tells no calls. */
  readonly driver?: string;
  /** How the agent is started, less its own arguments; by default the bundle. */
  readonly agentArgv?: readonly string[];
  /** Further settings of its configuration file. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Settles when the agent is healthy and knows the driver. */
export async function createWorld({
  directory,
  interrupted,
  stage = true,
  driver: driverProgram,
  agentArgv = [AGENT_BUNDLE],
  config = {},
}: WorldOptions): Promise<World> {
  const root = join(directory, 'root');
  const manifests = join(directory, 'manifests');
  const pool = join(directory, 'pool');
  const source = join(directory, 'source');
  const registry = join(root, 'plugins_registry');
  const socket = join(directory, 'agent.sock');
  for (const one of [
    manifests,
    source,
    registry,
    ...[NOOP, LOOPFILE].map((name) => join(root, 'plugins', name)),
  ]) {
    mkdirSync(one, { recursive: true, mode: 0o750 });
  }
  // One umount of this, lazily, takes thousands of mounts below it away in milliseconds.
  await runToEnd('mount', ['--bind', '--', root, root]);
  const configFile = join(directory, 'config.yaml');
  writeFileSync(
    configFile,
    JSON.stringify({
      ...{ root, socket, manifests, allow_private_mount_namespace: true, vanished_hold_ms: 0 },
      ...config,
    }),
  );
  const log = createAgentLog(interrupted);
  const started: ChildProcess[] = [];
  let agent: ChildProcess | undefined;

  function until(what: string, holds: Parameters<typeof waitForStatus>[1]) {
    return waitForStatus(socket, holds, { what, deadlineMs: DEADLINE_MS, signal: interrupted });
  }

  async function startAgent(): Promise<void> {
    rmSync(socket, { force: true });
    const argv = [...agentArgv, 'agent', '--config', configFile, '--log-format', 'json'];
    agent = startProcess({ name: 'agent', argv, log: log.line });
    started.push(agent);
    await untilHealthy(socket, agent, interrupted);
  }

  async function startDriver(): Promise<{ calls: NoopDriver['calls'] }> {
    const sockets = driverSockets(root);
    const file = join(directory, 'noop-driver.log');
    const driver =
      driverProgram === undefined
        ? startNoopDriver({ name: NOOP, ...sockets, source, stage, log: file })
        : { ...startGoDriver(driverProgram, root, file), calls: async () => [] };
    started.push(driver);
    await until(`the registration of ${NOOP}`, ({ drivers }) => drivers.some(({ name }) => name === NOOP));
    return driver;
  }

  async function close(): Promise<void> {
    for (const child of started.reverse()) await child.end('SIGKILL');
    if (mountsBelow(root).length > 0) await runToEnd('umount', ['--lazy', '--', root]);
    await detachLoopDevices(directory, loopDevicesBelow(directory));
  }

  try {
    await startAgent();
    const driver = await startDriver();
    return {
      directory,
      root,
      socket,
      log,
      interrupted,
      agentPid: () => agent?.pid ?? -1,
      calls: () => driver.calls(),
      put(name, objects) {
        const hidden = join(manifests, `.${name}.new`);
        writeFileSync(hidden, manifestOf(objects));
        return () => renameSync(hidden, join(manifests, `${name}.json`));
      },
      remove: (name) => rmSync(join(manifests, `${name}.json`)),
      untilIdle: async () => void (await until('an idle agent', isIdle)),
      startAgent,
      killAgent: async () => void (await agent?.end('SIGKILL')),
      async startLoopfile() {
        const endpoint = `unix://${join(root, 'plugins', LOOPFILE, 'csi.sock')}`;
        const argv = [DRIVER_BUNDLE, '--pool', pool, '--endpoint', endpoint, '--registry', registry];
        started.push(startProcess({ name: 'loopfile', argv, log: join(directory, 'loopfile.log') }));
        await until(`the registration of ${LOOPFILE}`, ({ drivers }) =>
          drivers.some(({ name }) => name === LOOPFILE),
        );
      },
      async loopfile(...argv) {
        const { code, output } = await runCommand([DRIVER_BUNDLE, ...argv, '--pool', pool]);
        if (code !== 0) throw new Error(`mooring-loopfile ${argv.join(' ')}: ${output}`);
        return output.trim();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
