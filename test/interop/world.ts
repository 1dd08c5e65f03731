/**
 * One node in this (private) mount namespace: a scratch directory with a state root, the real agent started from its
 * source, and third-party programs beside it. Nothing of it stays.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PlanDocument } from '../../agent/plan/plan-document.ts';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { untilHealthy, waitForStatus } from '../demo/agent-status.ts';
import { runCommand } from '../demo/child-process.ts';
import {
  detachLoopDevices,
  loopDevicesBelow,
  mountsBelow,
  readOrNothing,
  unmountAll,
} from '../demo/machine.ts';
import type { OracleOptions } from '../../agent/drive/oracle/oracle-context.ts';
import { programArguments } from '../machine/program.ts';
import { type Program, startProgram } from './program.ts';
import { createWitness, type Witness } from './witness.ts';

/** The product's one program. */
export const AGENT_COMMAND: readonly string[] = [process.execPath, ...programArguments('agent/main.ts')];
/** `create`, `list` and `delete` of the bundled driver, for node. */
export const LOOPFILE_COMMAND: readonly string[] = programArguments('plugins/loopfile/main.ts');
const DEADLINE_MS = 300_000;
const LAST_LINES = 15;
export const NODE = 'interop-node';
const CSI_DEADLINE_MS = 30_000;
/** A call arrives after its deadline has begun to run, and on a busy machine a while after it. */
const CALLER_MS = CSI_DEADLINE_MS - 5_000;

export interface World {
  readonly scratch: string;
  readonly root: string;
  /** The agent's. */
  readonly socket: string;
  readonly registry: string;
  readonly pods: string;
  readonly pool: string;
  /** The CSI socket of a driver, in a directory made for it. */
  socketOf(driver: string): string;
  logOf(name: string): string;
  /** There is one at a time: what an earlier one had asked of a driver, nobody waits for any more. */
  startAgent(...flags: readonly string[]): Promise<Program>;
  /** An agent that must not start: how it ends. */
  startRefused(): Promise<{ readonly code: number | null; readonly output: string }>;
  /** `mooring plan -o json`; fails when there is none. */
  plan(...flags: readonly string[]): Promise<{ readonly code: number; readonly plan: PlanDocument }>;
  /** Settles when it listens. */
  startLoopfile(endpoint: string, ...flags: readonly string[]): Promise<Program>;
  /** Announced at the front of it, the driver is judged by all that anybody calls; see `close`. */
  witness(driver: string, options?: OracleOptions): Witness;
  /** A program with its output in `<name>.log`. */
  start(name: string, argv: readonly string[]): Program;
  putManifest(name: string, text: string): void;
  removeManifest(name: string): void;
  until(what: string, holds: (status: StatusDocument) => boolean): Promise<StatusDocument>;
  untilReady(pod: string): Promise<StatusDocument>;
  /** Ready, and nothing of what was found at the start is in doubt any more. */
  untilSettled(pod: string): Promise<StatusDocument>;
  /** No pod, no volume, nothing under way. */
  untilEmpty(): Promise<StatusDocument>;
  untilRegistered(driver: string): Promise<StatusDocument>;
  /** Everything still there, by name, and what witnesses have to say; all of it is taken away. */
  close(): Promise<readonly string[]>;
  /** The last lines of every log. */
  lastWords(): string;
}

/** `config`: further lines of the agent's configuration file. */
export function createWorld(config: readonly string[] = [], nodeName = NODE): World {
  const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'mooring-interop-'));
  const root = join(scratch, 'root');
  const manifests = join(scratch, 'manifests');
  const socket = join(scratch, 'agent.sock');
  const registry = join(root, 'plugins_registry');
  const pool = join(scratch, 'pool');
  for (const directory of [root, manifests, registry, pool])
    mkdirSync(directory, { recursive: true, mode: 0o750 });
  const configFile = join(scratch, 'config.yaml');
  const backOff = 'back_off: { first_ms: 50, max_ms: 1000 }';
  writeFileSync(
    configFile,
    [
      `root: ${root}`,
      `socket: ${socket}`,
      `manifests: ${manifests}`,
      `node_name: ${nodeName}`,
      backOff,
      'vanished_hold_ms: 0',
      // What a killed agent had asked and not written down is waited for that long before the volume is let go of.
      `csi_deadline_ms: ${CSI_DEADLINE_MS}`,
      'late_effect_ms: 1000',
      ...config,
      '',
    ].join('\n'),
  );
  const started: Program[] = [];
  const witnesses: Witness[] = [];
  const logs = new Set<string>();
  const signal = new AbortController().signal;

  function logOf(name: string): string {
    return join(scratch, `${name}.log`);
  }

  function start(name: string, argv: readonly string[]): Program {
    logs.add(logOf(name));
    const program = startProgram(name, argv, logOf(name));
    started.push(program);
    return program;
  }

  function socketOf(driver: string): string {
    const directory = join(root, 'plugins', driver);
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    return join(directory, 'csi.sock');
  }

  function lastWords(): string {
    return [...logs]
      .map((file) => {
        const lines = (readOrNothing(file) ?? '').trimEnd().split('\n').slice(-LAST_LINES);
        return [`${file.slice(scratch.length + 1)}:`, ...lines].join('\n  ');
      })
      .join('\n');
  }

  async function until(what: string, holds: (status: StatusDocument) => boolean): Promise<StatusDocument> {
    try {
      return await waitForStatus(socket, holds, { what, deadlineMs: DEADLINE_MS, signal });
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${lastWords()}`);
    }
  }

  return {
    scratch,
    root,
    socket,
    registry,
    pods: join(root, 'pods'),
    pool,
    socketOf,
    logOf,
    start,
    lastWords,
    until,
    async startAgent(...more) {
      for (const witness of witnesses) witness.callersAreGone();
      const flags = ['--config', configFile, '--allow-private-mount-namespace', '--log-format', 'json'];
      const agent = start('agent', [...AGENT_COMMAND, 'agent', ...flags, ...more]);
      await untilHealthy(socket, agent, signal);
      return agent;
    },
    startRefused() {
      const flags = ['--config', configFile, '--allow-private-mount-namespace', '--log-format', 'json'];
      return runCommand([...AGENT_COMMAND.slice(1), 'agent', ...flags]);
    },
    async plan(...more) {
      const flags = ['--config', configFile, '--allow-private-mount-namespace', '-o', 'json'];
      const planned = await runCommand([...AGENT_COMMAND.slice(1), 'plan', ...flags, ...more]);
      assert.ok(planned.output.startsWith('{'), planned.output);
      return { code: planned.code ?? -1, plan: JSON.parse(planned.output) as PlanDocument };
    },
    async startLoopfile(endpoint, ...flags) {
      const argv = ['--pool', pool, '--endpoint', `unix://${endpoint}`, '--node-id', nodeName, ...flags];
      const loopfile = start('loopfile', [process.execPath, ...LOOPFILE_COMMAND, ...argv]);
      await loopfile.line('its start', (line) => line.includes('"event":"started"'));
      return loopfile;
    },
    witness(driver, options) {
      const witness = createWitness(driver, socketOf(driver), scratch, {
        steadyWish: true,
        callerMs: CALLER_MS,
        ...options,
      });
      witnesses.push(witness);
      return witness;
    },
    putManifest(name, text) {
      const hidden = join(manifests, `.${name}.new`);
      writeFileSync(hidden, text, { mode: 0o600 });
      renameSync(hidden, join(manifests, name));
    },
    removeManifest: (name) => rmSync(join(manifests, name)),
    untilReady: (pod) =>
      until(`pod ${pod} to be ready`, ({ pods }) => pods.some(({ name, ready }) => name === pod && ready)),
    untilSettled: (pod) =>
      until(`pod ${pod} to be settled`, ({ pods, summary }) => {
        const volumes = pods.find(({ name, ready }) => name === pod && ready)?.volumes ?? [];
        const sure = volumes.every(({ rungs }) => !Object.values(rungs).includes('unsure'));
        return volumes.length > 0 && sure && summary.operationsRunning + summary.operationsQueued === 0;
      }),
    untilEmpty: () =>
      until('nothing to be left', ({ summary, pods, volumes }) => {
        const running = summary.operationsRunning + summary.operationsQueued;
        return pods.length === 0 && volumes.length === 0 && running === 0;
      }),
    untilRegistered: (driver) =>
      until(`the registration of ${driver}`, ({ drivers }) =>
        drivers.some(({ name, state }) => name === driver && state === 'registered'),
      ),
    async close() {
      for (const program of started.reverse()) await program.end('SIGTERM');
      for (const witness of witnesses) await witness.close();
      const mounts = mountsBelow(scratch);
      // Before: one that holds a block volume has the path of a mount, and without the mount it has none.
      const devices = loopDevicesBelow(scratch);
      await unmountAll([...mounts].reverse());
      await detachLoopDevices(scratch, [...new Set([...devices, ...loopDevicesBelow(scratch)])]);
      rmSync(scratch, { recursive: true, force: true });
      return [
        ...mounts.map(({ target }) => `mount ${target.slice(scratch.length)}`),
        ...devices,
        ...new Set(witnesses.flatMap((witness) => witness.verdict())),
      ];
    },
  };
}

/**
 * Runs a test in a world of its own; a test that fails shows the logs, one that passes must have left nothing, and no
 * call that a witness saw may break a rule.
 */
export async function inWorld(
  tell: (world: World) => Promise<void>,
  ...config: readonly string[]
): Promise<void> {
  const world = createWorld(config);
  try {
    await tell(world);
  } catch (error) {
    process.stderr.write(`${world.lastWords()}\n`);
    await world.close();
    throw error;
  }
  assert.deepEqual(await world.close(), [], 'left behind, or against the rules');
}
